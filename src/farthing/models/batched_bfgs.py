"""BFGS within a box, for many starting points at once.

Every start has its own point, step and curvature, but all of them ask for the objective together: one call evaluates
the next point of each search that is still running. In Python the calls, not the arithmetic, are what costs.

The method is projected quasi-Newton. Variables at a bound whose gradient points outward are held, the Newton step
−B⁻¹∇ is taken in the others, and steps along the projected path shrink until they decrease enough (Armijo). B is a
full matrix: with at most a few dozen variables it converges in fewer calls than a limited memory, and costs less.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farthing.models.linalg import Array, BoolArray, IntArray

Objective = Callable[[Array], tuple[Array, Array]]
"""Rows (R, d) → values (R,) and gradients (R, d)."""

Rows = slice | IntArray
"""Some of the running searches."""

SUFFICIENT_DECREASE = 1e-4
"""The usual constant of Armijo's condition (Nocedal and Wright, 2006, chapter 3)."""
MOST_BACKTRACKS = 15
LEAST_CURVATURE = 1e-10
RIDGE = 1e-13
"""Guards of the arithmetic, near its precision."""
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Minima:
    """The end of each search: x (R, d), value (R,), and the number of calls of the objective."""

    x: Array
    value: Array
    calls: int


def minimize_batch(
    objective: Objective,
    start: Array,
    *,
    lower: Array,
    upper: Array,
    most_calls: int = 200,
    race_after: int | None = None,
    first_step: float = 1.0,
    gradient_tolerance: float = 1e-5,
    value_tolerance: float = 1e-9,
) -> Minima:
    """Local minima from all starts (R, d); bounds have shape (d,) or (R, d), and lower = upper holds a variable.

    A search ends when its projected gradient falls below `gradient_tolerance`, or an accepted step changes the value
    by less than `value_tolerance` relative to max(1, |value|). `first_step` is the length of the first step. After
    `race_after` calls, if given, only the search that is lowest by then continues.
    """
    with np.errstate(all="ignore"):  # a value that is not finite does not decrease, and the step shrinks
        searches = _Searches(objective, start, lower, upper, first_step)
        searches.keep(np.isfinite(searches.value) & ~searches.flat(gradient_tolerance))
        calls = 1
        while searches.rows.size and calls < most_calls:
            searches.keep(searches.advance(gradient_tolerance, value_tolerance))
            calls += 1
            if calls == race_after:
                searches.keep_lowest()
        searches.record()
    return Minima(searches.end_x, searches.end_value, calls)


class _Searches:
    """The searches that are still running, changed in place; `rows` says which starts they belong to."""

    def __init__(self, objective: Objective, start: Array, lower: Array, upper: Array, first_step: float) -> None:
        R, d = start.shape
        self._objective, self._first_step = objective, first_step
        self._lower, self._upper = np.broadcast_to(lower, (R, d)), np.broadcast_to(upper, (R, d))
        self.rows = np.arange(R)
        self._x = np.clip(start, self._lower, self._upper)
        self.value, self._gradient = map(np.array, objective(self._x))
        self._B, self._knows_curvature = np.tile(np.eye(d), (R, 1, 1)), np.zeros(R, dtype=bool)
        self._step, self._backtracks = np.ones(R), np.zeros(R, dtype=np.int64)
        self._direction = self._steepest(self._free_gradient(slice(None))[1])
        self.end_x, self.end_value = self._x.copy(), self.value.copy()

    def advance(self, gradient_tolerance: float, value_tolerance: float) -> BoolArray:
        """One evaluation for every search: it moves where the step decreases enough, else its step shrinks.

        Says which searches continue.
        """
        trial = np.minimum(np.maximum(self._x + self._step[:, None] * self._direction, self._lower), self._upper)
        value, gradient = self._objective(trial)
        slope = _dot(self._gradient, trial - self._x)
        enough = (slope < 0.0) & (value <= self.value + SUFFICIENT_DECREASE * slope)
        goes_on = np.ones(enough.size, dtype=bool)
        if not enough.all():
            some = _where(~enough)
            goes_on[some] = self._shrink(some, value[some], slope[some])
        if enough.any():
            some = _where(enough)
            decreased = self._move(some, trial[some], value[some], gradient[some], value_tolerance)
            goes_on[some] = decreased & ~self.flat(gradient_tolerance)[some]
        return goes_on

    def flat(self, gradient_tolerance: float) -> BoolArray:
        """The searches whose projected gradient, x − P(x − ∇), has vanished."""
        stepped = np.minimum(np.maximum(self._x - self._gradient, self._lower), self._upper)
        return np.asarray(np.abs(self._x - stepped).max(axis=1, initial=0.0) <= gradient_tolerance)

    def record(self) -> None:
        """Notes where the running searches stand."""
        self.end_x[self.rows], self.end_value[self.rows] = self._x, self.value

    def keep(self, goes_on: BoolArray) -> None:
        """Ends all other searches."""
        if goes_on.all():
            return
        self.record()
        state = ("rows", "_lower", "_upper", "_x", "value", "_gradient", "_B", "_knows_curvature")
        for name in (*state, "_step", "_backtracks", "_direction"):
            setattr(self, name, getattr(self, name)[goes_on])

    def keep_lowest(self) -> None:
        """Ends all searches but the lowest; all, if that one has ended already."""
        self.record()
        lowest = int(np.argmin(np.where(np.isnan(self.end_value), np.inf, self.end_value)))
        self.keep(self.rows == lowest)

    def _move(self, some: Rows, x: Array, value: Array, gradient: Array, value_tolerance: float) -> BoolArray:
        """To new points; says where the value decreased by more than the tolerance."""
        self._learn_curvature(some, x - self._x[some], gradient - self._gradient[some])
        scale = np.maximum(1.0, np.maximum(np.abs(value), np.abs(self.value[some])))
        decreased = self.value[some] - value > value_tolerance * scale
        self._x[some], self.value[some], self._gradient[some] = x, value, gradient
        self._step[some], self._backtracks[some] = 1.0, 0
        self._set_direction(some)
        return np.asarray(decreased)

    def _learn_curvature(self, some: Rows, s: Array, y: Array) -> None:
        """B from a step s that changed the gradient by y, where sᵀy > 0; before its first update B = (yᵀy/sᵀy) I."""
        sy, yy = _dot(s, y), _dot(y, y)
        curved = sy > LEAST_CURVATURE * yy
        scale = np.where(self._knows_curvature[some], 1.0, yy / sy)
        updated = bfgs_update(self._B[some] * scale[:, None, None], s, y)
        self._B[some] = updated if curved.all() else np.where(curved[:, None, None], updated, self._B[some])
        self._knows_curvature[some] |= curved

    def _shrink(self, some: Rows, value: Array, slope: Array) -> BoolArray:
        """The next step is where a parabola through both values has its minimum, kept within [0.1, 0.5] of this one.

        A search that cannot decrease starts over from its gradient; one that has nothing to forget ends.
        """
        rise = value - self.value[some] - slope
        factor = np.where(rise > 0.0, -0.5 * slope / np.where(rise > 0.0, rise, 1.0), 0.1)
        self._step[some] *= np.clip(np.nan_to_num(factor, nan=0.1), 0.1, 0.5)
        self._backtracks[some] += 1
        stuck = self._backtracks > MOST_BACKTRACKS
        hopeless = stuck & ~self._knows_curvature
        if stuck.any():
            self._forget_curvature(_where(stuck))
        return np.asarray(~hopeless[some])

    def _forget_curvature(self, some: Rows) -> None:
        self._B[some], self._knows_curvature[some] = np.eye(self._x.shape[1]), False
        self._step[some], self._backtracks[some] = 1.0, 0
        self._set_direction(some)

    def _set_direction(self, some: Rows) -> None:
        """−B⁻¹∇ in the free variables, or along −∇ while B is unknown or should rounding have spoilt it."""
        free, g = self._free_gradient(some)
        newton = -newton_step(self._B[some], g, free)
        slope = _dot(newton, g)
        descends = self._knows_curvature[some] & (slope < 0.0) & np.isfinite(slope)
        self._direction[some] = newton if descends.all() else np.where(descends[:, None], newton, self._steepest(g))

    def _steepest(self, g: Array) -> Array:
        length = np.maximum(np.sqrt(_dot(g, g)), TINY)
        return np.asarray(-g * np.minimum(1.0, self._first_step / length)[:, None])

    def _free_gradient(self, some: Rows) -> tuple[BoolArray, Array]:
        """Which variables may move, and the gradient in those; held are the ones that it presses against a bound."""
        x, g = self._x[some], self._gradient[some]
        held = ((x <= self._lower[some]) & (g > 0.0)) | ((x >= self._upper[some]) & (g < 0.0))
        return ~held, np.where(held, 0.0, g)


def _where(mask: BoolArray) -> Rows:
    """The rows of a mask; all of them as a slice, which indexes without copying."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def bfgs_update(B: Array, s: Array, y: Array) -> Array:
    """τ (B − (Bs)(Bs)ᵀ/(sᵀBs)) + y yᵀ/(sᵀy) for each row, self-scaled by τ = min(1, sᵀy/sᵀBs).

    Without τ, a first step across a steep slope leaves B too large for many steps to come. A B that rounding has
    spoilt, sᵀBs ≤ 0, counts as the identity.
    """
    Bs = np.einsum("rij,rj->ri", B, s)
    sBs, sy = _dot(s, Bs), _dot(s, y)
    if not (sBs > 0.0).all():
        spoilt = ~(sBs > 0.0)
        B = np.where(spoilt[:, None, None], np.eye(s.shape[1]), B)
        Bs = np.where(spoilt[:, None], s, Bs)
        sBs = _dot(s, Bs)
    tau = np.minimum(1.0, sy / sBs)
    shrunk = B - _outer(Bs, 1.0 / sBs)
    return np.asarray(tau[:, None, None] * shrunk + _outer(y, 1.0 / sy))


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("rd,rd->r", a, b))


def _outer(v: Array, weight: Array) -> Array:
    return np.asarray((weight[:, None] * v)[:, :, None] * v[:, None, :])


def newton_step(B: Array, g: Array, free: BoolArray) -> Array:
    """B⁻¹ g restricted to the free variables of each row; g is zero in the others.

    A ridge far below the curvature of B keeps the matrix regular where rounding has not. Should one be singular all the
    same, there is no step, NaN, in any of the rows.
    """
    ridge = np.maximum(RIDGE * np.einsum("rii->r", B), TINY)
    identity = np.eye(B.shape[1])
    restricted = B + ridge[:, None, None] * identity
    if not free.all():
        restricted = np.where(free[:, :, None] & free[:, None, :], restricted, identity)
    try:
        return np.asarray(np.linalg.solve(restricted, g[:, :, None])[:, :, 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(g, np.nan)
