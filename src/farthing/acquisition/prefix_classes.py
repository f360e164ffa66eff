"""The price of a row of which the first stages may be kept, and the search among all rows that keep some.

Stage j costs c_j, which may depend on the parameters of the stages up to it. A configuration whose first m stages are
kept pays for the others:

    price(x, m) = Σ_{j ≥ m} c_j(x)

This is the movement cost Γ of LaMBO (Eq. 6) and the cost of the last stage, which is always paid.

A class of rows keeps some columns as they are: a prefix that a pipeline has computed. All classes are searched
together. A row carries the number of stages that its class keeps in one more column, the last, so that an acquisition
function can price it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Protocol

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.maximize import Domain, Effort, improve, perturbed, sobol
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.scalars import ROUNDING


class LogCost(Protocol):
    """log c of each row, and its gradient."""

    def __call__(self, X: Array) -> Array: ...

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class ConstantCost:
    """The same for all parameters."""

    amount: float

    def __call__(self, X: Array) -> Array:
        return np.full(X.shape[0], np.log(self.amount))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        return self(X), np.zeros_like(X)


@dataclass(frozen=True, eq=False)
class StageCosts:
    """log c_j of every stage, in order."""

    stages: Sequence[LogCost]

    def costs(self, X: Array) -> Array:
        """c_j of each row, shape (n, N)."""
        return np.asarray(np.exp(np.stack([stage(X) for stage in self.stages], axis=1)))

    def price(self, X: Array, kept: IntArray) -> Array:
        """The cost of each row if its first `kept` stages are kept."""
        return np.asarray(np.sum(self._paid(kept) * self.costs(X), axis=1))

    def log_price_with_gradient(self, X: Array, kept: IntArray) -> tuple[Array, Array]:
        """∇ log Σ c_j = Σ c_j ∇ log c_j / Σ c_j, over the stages that are paid."""
        found = [stage.value_and_gradient(X) for stage in self.stages]
        paid = self._paid(kept) * np.exp(np.stack([log_cost for log_cost, _ in found], axis=1))
        price = np.sum(paid, axis=1)
        gradient = np.einsum("nj,jnd->nd", paid / price[:, None], np.stack([slope for _, slope in found]))
        return np.log(price), gradient

    def _paid(self, kept: IntArray) -> Array:
        return np.asarray(np.arange(len(self.stages)) >= kept[:, None], dtype=float)


# ------------------------------------------------------------
# The search over classes.

FEW = 1024
"""Classes with no more rows than this are searched one by one. A limit on time, not tuned."""
NEAR = 4
"""Number of the best rows whose free columns are tried in the other prefixes. A limit on time, not tuned."""


@dataclass(frozen=True, eq=False)
class PrefixClass:
    """Rows whose `held` columns (D,) are those of one of `rows` (P, D), which stand in the order of their promise."""

    kept: int
    held: BoolArray
    rows: Array


@dataclass(frozen=True, eq=False)
class ClassMaximum:
    """The best row of a class (D,), its value, and which of the class's rows it has its held columns from."""

    kept: int
    x: Array
    value: float
    source: int


@dataclass(frozen=True, eq=False)
class PricedClasses:
    """log value − γ log price of rows with their class in the last column; −∞ where the price is above `limit`."""

    log_value: Acquisition
    costs: StageCosts
    exponent: float = 1.0
    limit: float = np.inf

    def __call__(self, X: Array) -> Array:
        rows, kept = split(X)
        price = self.costs.price(rows, kept)
        return np.where(self._is_above(price), -np.inf, self.log_value(rows) - self.exponent * np.log(price))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        rows, kept = split(X)
        value, gradient = self.log_value.value_and_gradient(rows)
        log_price, slope = self.costs.log_price_with_gradient(rows, kept)
        total = np.where(self._is_above(np.exp(log_price)), -np.inf, value - self.exponent * log_price)
        return total, np.pad(gradient - self.exponent * slope, ((0, 0), (0, 1)))

    def _is_above(self, price: Array) -> BoolArray:
        """A price of exactly the limit is not, also after a logarithm and back."""
        return np.asarray(price > self.limit * (1.0 + ROUNDING))


@dataclass(frozen=True, eq=False)
class NewPrefixes:
    """−∞ where a row of class m has a prefix of m + 1 stages that is there already: it belongs to a cheaper class.

    `columns[m]` are those of the first m + 1 stages, `known[m]` the rows that have been computed so far (n, D).
    """

    other: Acquisition
    columns: Sequence[BoolArray]
    known: Sequence[Array]

    def __call__(self, X: Array) -> Array:
        return np.where(self._is_known(X), -np.inf, self.other(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.other.value_and_gradient(X)
        return np.where(self._is_known(X), -np.inf, value), gradient

    def _is_known(self, X: Array) -> BoolArray:
        rows, kept = split(X)
        found = np.zeros(kept.size, dtype=bool)
        for m, (columns, known) in enumerate(zip(self.columns, self._keys, strict=True)):
            own = np.flatnonzero(kept == m)
            if known and own.size:
                found[own] = [key in known for key in _keys(rows[own][:, columns])]
        return found

    @cached_property
    def _keys(self) -> list[set[bytes]]:
        return [set(_keys(known[:, columns])) for columns, known in zip(self.columns, self.known, strict=True)]


def split(X: Array) -> tuple[Array, IntArray]:
    """Rows, and how many stages their class keeps."""
    return X[:, :-1], X[:, -1].astype(np.int64)


def maximize_classes(
    acquisition: Acquisition,
    domain: Domain,
    classes: Sequence[PrefixClass],
    *,
    rng: np.random.Generator,
    effort: Effort,
) -> list[ClassMaximum]:
    """The best row of every class; −∞ for one that has none to offer.

    The class that keeps nothing has every row of the others in it, and starts from the best of those too.
    """
    wide = _with_class_column(domain, 1 + max(each.kept for each in classes))
    U, value, origin = _starts(acquisition, wide, domain, classes, effort, rng)
    if any(each.kept == 0 for each in classes):
        U, value, origin = _with_borrowed(acquisition, wide, U, value, origin)
    held = {each.kept: each.held for each in classes}
    lower, upper = _bounds(wide, U, np.stack([held[m] for m in split(U)[1].tolist()]))
    U, value = improve(acquisition, wide, U, value, lower=lower, upper=upper, effort=effort)
    return [_best_of(wide, each.kept, U, value, origin) for each in classes]


def _starts(
    acquisition: Acquisition,
    wide: Domain,
    domain: Domain,
    classes: Sequence[PrefixClass],
    effort: Effort,
    rng: np.random.Generator,
) -> tuple[Array, Array, IntArray]:
    """The best screened rows of every class, near what was seen and spread out, with their values and origins."""
    spread = sobol(domain.width, effort.screened, rng=rng)
    groups = [group for each in classes for group in _screened(domain, each, spread, effort, rng)]
    rows, origin, kept = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    U = np.column_stack([rows, kept])
    value = acquisition(wide.snap(U))
    ends = np.cumsum([0, *(len(group[0]) for group in groups)])
    half = max(1, effort.restarts // 2)
    best = np.concatenate([first + _highest(value[first:last], half) for first, last in pairwise(ends)])
    return U[best], value[best], origin[best]


def _with_borrowed(
    acquisition: Acquisition, wide: Domain, U: Array, value: Array, origin: IntArray
) -> tuple[Array, Array, IntArray]:
    """And the rows of all other classes as rows of the one that keeps nothing."""
    borrowed = U[U[:, -1] > 0.0]
    if not len(borrowed):
        return U, value, origin
    borrowed[:, -1] = 0.0
    found = acquisition(wide.snap(borrowed))
    nowhere = np.zeros(len(borrowed), dtype=np.int64)
    return np.concatenate([U, borrowed]), np.append(value, found), np.append(origin, nowhere)


def _best_of(wide: Domain, kept: int, U: Array, value: Array, origin: IntArray) -> ClassMaximum:
    own = np.flatnonzero(U[:, -1] == kept)
    best = own[int(np.argmax(value[own]))]
    return ClassMaximum(kept, wide.snap(U[best : best + 1])[0, :-1], float(value[best]), int(origin[best]))


def _screened(
    domain: Domain, each: PrefixClass, spread: Array, effort: Effort, rng: np.random.Generator
) -> list[tuple[Array, IntArray, Array]]:
    """Two groups of rows to screen, near what was seen and spread out, each with its origins and class."""
    complete = np.where(np.isnan(each.rows), 0.5, each.rows)
    P = complete.shape[0]
    near = perturbed(domain, complete, effort.screened // 4, rng=rng)
    crossed = np.repeat(complete[:NEAR], P, axis=0)
    every = _every_completion(domain, each.held, P)
    far = domain.from_unit(spread) if every is None else np.repeat(every, P, axis=0)
    found = [np.concatenate([near, crossed]), far]
    origins = [np.concatenate([np.arange(len(near)) % P, np.arange(len(crossed)) % P]), np.arange(len(far)) % P]
    return [
        (np.where(each.held, complete[origin], rows), origin, np.full(len(rows), float(each.kept)))
        for rows, origin in zip(found, origins, strict=True)
    ]


def _every_completion(domain: Domain, held: BoolArray, prefixes: int) -> Array | None:
    """All rows that differ in columns which are not held; None where there are too many."""
    grids = [np.zeros(1) if fixed else grid for fixed, grid in zip(held, domain.grids, strict=True)]
    finite = [grid for grid in grids if grid is not None]
    if len(finite) < len(grids) or prefixes * prod(grid.size for grid in finite) > FEW:
        return None
    return np.stack([axis.ravel() for axis in np.meshgrid(*finite, indexing="ij")], axis=1)


def _bounds(domain: Domain, U: Array, held: BoolArray) -> tuple[Array, Array]:
    fixed = np.column_stack([held, np.ones(len(U), dtype=bool)])
    lower, upper = domain.bounds()
    return np.where(fixed, U, lower), np.where(fixed, U, upper)


def _with_class_column(domain: Domain, count: int) -> Domain:
    def snap(U: Array) -> Array:
        return np.column_stack([domain.snap(U[:, :-1]), U[:, -1]])

    return replace(domain, grids=(*domain.grids, np.arange(float(count))), snap=snap)


def _highest(value: Array, count: int) -> IntArray:
    return np.argsort(-value, kind="stable")[:count]


def _keys(rows: Array) -> list[bytes]:
    """Equal for equal rows, inactive values being equal to each other."""
    plain = np.ascontiguousarray(np.where(np.isnan(rows), -1.0, rows) + 0.0)  # which makes -0.0 equal to 0.0
    return [row.tobytes() for row in plain]
