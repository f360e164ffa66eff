"""The grid: every combination of values once, in an order that makes its beginning useful too."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.fields import whole
from farthing.space import Choice, Float, Int, Space
from farthing.space.parameters import is_active
from farthing.space.space_validation import activation_order
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Params, Suggestion
from farthing.validation import refuse_unknown

if TYPE_CHECKING:
    import numpy as np

POINTS = 5
"""Values of a continuous parameter. A guess: a grid has no better rule for it."""
MOST = 10_000
"""Combinations that a grid may have. A limit on time: all of them are put in order, and each is tried."""
AHEAD = 2
"""Sobol points for each combination: most of them have had one by then. A limit on time, not tuned."""
DIGITS = 12
"""Of the values of a continuous parameter, so that a grid from 0.0001 to 0.1 has 0.001 and no rounding errors."""

Axes = Mapping[str, Sequence[Any]]
"""The values of each parameter in the grid."""


@dataclass(frozen=True)
class Grid(Strategy):
    """Every combination of values, each once, at full fidelity; then the study has finished.

    Choices, whole numbers and steps have all their values, continuous parameters `points` of them, from bound to bound
    on their own scale. A conditional parameter multiplies only the combinations in which it is active. What was tried
    already, by whomever, is left out.

    The order follows a Sobol sequence through the cells of the grid, so that a grid that is ended early has tried the
    values of every parameter about equally often. Row by row, it would have tried one value of the first parameter.

    Args:
        points: the number of values of every continuous parameter; or a number by name, also for whole numbers and
            steps, of which these then have that many, evenly spread.
    """

    points: int | Mapping[str, int] = whole(POINTS, least=1)

    has_end: ClassVar[bool] = True
    when_finished: ClassVar[str] = "every combination of the grid has been tried"
    takes_objectives: ClassVar[bool] = True

    def shaped(self, space: Space) -> Space:
        """The same space, once it is certain that its grid can be tried."""
        self._check_names(space)
        _check_size(space, axes_of(space, self.points))
        return space

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return list(islice(self._left(history), count))

    def to_come(self, history: History) -> Sequence[Suggestion]:
        return list(self._left(history))

    def _left(self, history: History) -> Iterator[Suggestion]:
        """The combinations that were not tried at full fidelity, in their order."""
        space = history.problem.space
        tried = {_key(trial.params) for trial in history.full}
        every = self._ordered(space, history.problem.seed)
        for place, params in enumerate(every, start=1):
            if _key(params) not in tried:
                why = f"combination {place} of {len(every)} in the grid"
                yield Suggestion(params, space.full_fidelity, note={"why": why})

    def _ordered(self, space: Space, seed: int) -> Sequence[Params]:
        given = self.points if isinstance(self.points, int) else tuple(sorted(self.points.items()))
        return _ordered(space, given, seed)

    def _check_names(self, space: Space) -> None:
        if isinstance(self.points, int):
            return
        refuse_unknown(self.points, space.parameters, what="Names in Grid's points", error=InvalidArgument)
        for name, count in self.points.items():
            most = space.parameters[name].count
            if isinstance(space.parameters[name], Choice):
                raise InvalidArgument(
                    f"Grid's points are of numbers, got {name!r}, a Choice, which has all its options. Leave it out."
                )
            if most is not None and count > most:
                raise InvalidArgument(
                    f"Grid's points must be at most the number of values, got {count} for {name!r}, which has {most}. "
                    "Leave it out for all of them."
                )


def axes_of(space: Space, points: int | Mapping[str, int]) -> Axes:
    """The values of each parameter, in its order; of a retired one the value that new trials have."""
    named: Mapping[str, int] = {} if isinstance(points, int) else points
    usual = points if isinstance(points, int) else POINTS
    return {
        name: [space.retired[name]] if name in space.retired else _values(parameter, named.get(name), usual)
        for name, parameter in space.parameters.items()
    }


def _values(parameter: Float | Int | Choice, named: int | None, usual: int) -> Sequence[Any]:
    if isinstance(parameter, Float) and parameter.step is None:
        return list(dict.fromkeys(_between(parameter, share) for share in _shares(named or usual)))
    count = parameter.count
    assert count is not None, "only a Float without a step has no number of values"
    if named is None and count > MOST:
        return range(count)  # places instead of values: such a grid is refused, by their number
    if named is None:
        return [parameter.value_at(index) for index in range(count)]
    if isinstance(parameter, Int) and parameter.log:
        return list(dict.fromkeys(round(_scaled(parameter, share)) for share in _shares(named)))
    return [parameter.value_at(round(share * (count - 1))) for share in _shares(named)]


def _shares(count: int) -> list[float]:
    """Places from 0 to 1, both included; one alone is in the middle."""
    return [0.5] if count == 1 else [place / (count - 1) for place in range(count)]


def _between(parameter: Float, share: float) -> float:
    value = float(f"{_scaled(parameter, share):.{DIGITS}g}")
    return min(max(value, parameter.low), parameter.high)


def _scaled(parameter: Float | Int, share: float) -> float:
    """The value at that share of the axis, both bounds to the bit."""
    low, high = parameter.low, parameter.high
    if share in (0.0, 1.0):
        return high if share else low
    return low * math.exp(share * math.log(high / low)) if parameter.log else low + share * (high - low)


def _check_size(space: Space, axes: Axes) -> None:
    size, is_all = size_of(space, axes)
    if size > MOST:
        counts = " × ".join(str(len(values)) for values in axes.values())
        raise InvalidArgument(
            f"A grid must have at most {MOST:,} combinations, got {'' if is_all else 'more than '}{size:,} "
            f"({counts} values). Give fewer points, tune fewer parameters, or leave strategy= out."
        )


def size_of(space: Space, axes: Axes) -> tuple[int, bool]:
    """The number of combinations, and whether that is all: with conditions it is not counted far beyond the most."""
    parents = {parent for parameter in space.parameters.values() for parent in parameter.when}
    leaves = [name for name in axes if name not in parents]
    size = 0
    for params in _combinations(space, axes, [name for name in _order(space) if name in parents]):
        size += math.prod(len(axes[name]) for name in leaves if is_active(space.parameters[name].when, params))
        if size > MOST and parents:
            return size, False
    return size, True


def _combinations(space: Space, axes: Axes, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The combinations of these parameters, which have every parent before its children; the last changes fastest."""
    if not names:
        yield {}
        return
    *before, last = names
    for params in _combinations(space, axes, before):
        if not is_active(space.parameters[last].when, params):
            yield params
            continue
        for value in axes[last]:
            yield {**params, last: value}


def _order(space: Space) -> tuple[str, ...]:
    return activation_order(space.parameters)


@lru_cache(maxsize=4)
def _ordered(space: Space, points: int | tuple[tuple[str, int], ...], seed: int) -> tuple[Params, ...]:
    """Every combination, in the order in which a Sobol sequence first comes to its cell; then those that it missed."""
    axes = axes_of(space, points if isinstance(points, int) else dict(points))
    _check_size(space, axes)
    order = _order(space)
    every = {_key(params): params for params in _combinations(space, axes, order)}
    random = Randomness(seed)
    visited = dict.fromkeys(_key(params) for params in _visited(space, axes, order, len(every), random))
    missed = [key for key in every if key not in visited]
    rest = [missed[place] for place in random.at("grid", "missed").permutation(len(missed)).tolist()]
    return tuple({name: every[key][name] for name in axes if name in every[key]} for key in [*visited, *rest])


def _visited(space: Space, axes: Axes, order: Sequence[str], size: int, random: Randomness) -> Iterator[Params]:
    """The combinations whose cells the points of a Sobol sequence lie in, with repeats."""
    from farthing.models.sobol import sobol_points

    points = sobol_points(len(axes), (AHEAD * size).bit_length(), rng=random.at("grid"))
    columns = {name: _cells(points[:, place], len(values)) for place, (name, values) in enumerate(axes.items())}
    for row in range(len(points)):
        params: dict[str, Any] = {}
        for name in order:
            if is_active(space.parameters[name].when, params):
                params[name] = axes[name][columns[name][row]]
        yield params


def _cells(coordinates: "np.ndarray", count: int) -> list[int]:
    cells: list[int] = (coordinates * count).astype(int).tolist()
    return cells


def _key(params: Params) -> frozenset[tuple[str, Any]]:
    return frozenset(params.items())
