"""The objectives of a study beside its first value, and the limits that its results must keep.

A measurement has the first objective as its value. Further objectives, and quantities under a limit, are among its
metrics, by name: every value must bring them along.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.errors import InvalidArgument
from farthing.fields import Number, Several, Text
from farthing.fields.rules import Either
from farthing.space.space_validation import is_name
from farthing.trials.suggestion import Json
from farthing.trials.trial import State
from farthing.validation import refuse_non_mapping, shown

if TYPE_CHECKING:
    from farthing.trials.history import History
    from farthing.trials.problem import Problem
    from farthing.trials.trial import Trial


@dataclass(frozen=True)
class Objective:
    """One of the values that are optimised."""

    name: str
    minimize: bool = True

    @property
    def sign(self) -> float:
        """1 or −1: times a value it gives a loss, of which less is better."""
        return 1.0 if self.minimize else -1.0

    @property
    def direction(self) -> str:
        return "minimize" if self.minimize else "maximize"

    def loss(self, value: float) -> float:
        return self.sign * value


@dataclass(frozen=True)
class AtMost:
    """A limit that holds where the quantity is `bound` or less: `constraints={"memory": ft.AtMost(8e9)}`."""

    bound: float

    def __post_init__(self) -> None:
        _read_bound(self)

    def excess(self, value: float) -> float:
        """How far the value is beyond the limit; zero or less where it holds."""
        return value - self.bound

    def __str__(self) -> str:
        return f"≤ {self.bound:g}"


@dataclass(frozen=True)
class AtLeast:
    """A limit that holds where the quantity is `bound` or more: `constraints={"recall": ft.AtLeast(0.9)}`."""

    bound: float

    def __post_init__(self) -> None:
        _read_bound(self)

    def excess(self, value: float) -> float:
        """How far the value is beyond the limit; zero or less where it holds."""
        return self.bound - value

    def __str__(self) -> str:
        return f"≥ {self.bound:g}"


@dataclass(frozen=True)
class Succeeds:
    """A limit that holds where the work does not fail: `constraints={"runs": ft.Succeeds()}`.

    A model then learns where trials fail; without it they count as the worst result seen.
    """

    def __str__(self) -> str:
        return "succeeds"


Bound: TypeAlias = AtMost | AtLeast
Limit: TypeAlias = Bound | Succeeds
"""The limits that `constraints=` may ask of a result."""

BOUNDS: dict[str, type[Bound]] = {"at_most": AtMost, "at_least": AtLeast}
SUCCEEDS = "succeeds"
ADVICE = "Write constraints={'memory': ft.AtMost(8e9), 'recall': ft.AtLeast(0.9)}."


COST = "cost"
"""The objective, or the quantity under a limit, that is the price of a full run unless the work reports it."""

GRADIENT = "gradient"
"""The key of a returned mapping, or of a command's line, that has the derivatives; one number there is a metric."""


def _read_bound(limit: Bound) -> None:
    """Checks it, and makes NumPy's numbers plain ones, which can be stored."""
    what = f"The bound of {type(limit).__name__}"
    object.__setattr__(limit, "bound", Number().checked(limit.bound, what=what, advice=f"Write {_example(limit)}."))


def _example(limit: Bound) -> str:
    return f"ft.{type(limit).__name__}(0.9)"


def limit_to_json(limit: Limit) -> Json:
    if isinstance(limit, Succeeds):
        return SUCCEEDS
    return {name: limit.bound for name, kind in BOUNDS.items() if isinstance(limit, kind)}


def limit_from_json(form: object) -> Limit:
    """The limit that `limit_to_json` wrote, or that a study file names: `{at_most = 8e9}`, or `"succeeds"`."""
    if form == SUCCEEDS:
        return Succeeds()
    kinds: Any = list(form.items()) if isinstance(form, Mapping) else []
    if len(kinds) != 1 or kinds[0][0] not in BOUNDS:
        raise InvalidArgument(
            f"A limit must be {{at_most = number}}, {{at_least = number}} or 'succeeds', got {shown(form)}. "
            "Write for example memory = {at_most = 8e9}."
        )
    return BOUNDS[kinds[0][0]](kinds[0][1])


def _refuse_gradient(names: Iterable[object], given: str) -> None:
    if GRADIENT in names:
        raise InvalidArgument(
            f"A value must not be called {GRADIENT!r}, which has derivatives, got it in {given}=. "
            f"Rename it, for example to 'my_{GRADIENT}'."
        )


def read_constraints(given: object) -> dict[str, Limit]:
    """The constraints as a user gives them, checked."""
    if given is None:
        return {}
    refuse_non_mapping(given, what="constraints", error=InvalidArgument)
    assert isinstance(given, Mapping)
    for name, limit in given.items():
        if not is_name(name):
            raise InvalidArgument(f"A constraint's name must be one word, got {shown(name)}. {ADVICE}")
        if not isinstance(limit, Limit):
            raise InvalidArgument(
                f"A constraint must be AtMost, AtLeast or Succeeds, got {name}={shown(limit)}. {ADVICE}"
            )
    _refuse_gradient(given, "constraints")
    return dict(given)


def values_of(problem: "Problem", trial: "Trial") -> dict[str, float] | None:
    """Every objective, and every quantity under a limit, as the trial measured it last; None without a result."""
    if trial.value is None:
        return None
    metrics = latest_metrics(trial)
    others = {name: metrics.get(name) for name in problem.needed}
    known = {name: number for name, number in others.items() if number is not None}
    return {problem.value: trial.value, **known} if len(known) == len(others) else None


def latest_metrics(trial: "Trial") -> Mapping[str, float | None]:
    """The metrics that came with the last value of a trial."""
    return next((point.metrics for point in reversed(trial.measurements) if point.value is not None), {})


def is_feasible(problem: "Problem", values: Mapping[str, float]) -> bool:
    """Whether measured values keep every limit."""
    return all(excess <= 0.0 for excess in excesses(problem, values))


def attained(problem: "Problem", trial: "Trial") -> dict[str, float] | None:
    """The values of a trial that is done and measured within every limit; None of any other."""
    values = values_of(problem, trial) if trial.state is State.DONE else None
    return values if values is not None and is_feasible(problem, values) else None


def losses_of(problem: "Problem", values: Mapping[str, float]) -> tuple[float, ...]:
    """The objectives with their signs turned so that less is better, in their order."""
    return tuple(objective.sign * values[objective.name] for objective in problem.objectives)


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether losses are nowhere more than others, and somewhere less."""
    return tuple(one) != tuple(other) and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


@dataclass(frozen=True)
class MeasuredFront:
    """The trials that no other dominates as they were measured, of those that keep every limit: one at most for each
    tie. It is what is known at a glance; `analysis.front` judges by models, for which no luck counts.
    """

    trials: tuple["Trial", ...] = ()

    @classmethod
    def of(cls, history: "History") -> "MeasuredFront":
        front = cls()
        for trial in history:
            front = front.after(trial, history.problem)
        return front

    def after(self, trial: "Trial", problem: "Problem") -> "MeasuredFront":
        """The front with another trial that has ended."""
        values = attained(problem, trial)
        if values is None:
            return self
        losses = losses_of(problem, values)
        known = [(one, losses_of(problem, values_of(problem, one) or {})) for one in self.trials]
        if any(theirs == losses or dominates(theirs, losses) for _, theirs in known):
            return self
        return MeasuredFront((*(one for one, theirs in known if not dominates(losses, theirs)), trial))

    def summary(self, problem: "Problem") -> str:
        """`front of 5: error from 0.05, latency from 2.1`, or the best of one objective; empty without a trial."""
        if not self.trials:
            return ""
        found = [values_of(problem, trial) or {} for trial in self.trials]
        bests = [(one, min((values[one.name] for values in found), key=one.loss)) for one in problem.objectives]
        if not problem.further:
            return f"best {problem.value} within the limits {bests[0][1]:.6g}"
        ends = [f"{one.name} {'down' if one.minimize else 'up'} to {number:.4g}" for one, number in bests]
        return f"front of {len(self.trials)}: {', '.join(ends)}"


def excesses(problem: "Problem", values: Mapping[str, float]) -> list[float]:
    """How far each quantity is beyond its limit, in the order of the constraints."""
    return [limit.excess(values[name]) for name, limit in bounds_of(problem).items()]


def bounds_of(problem: "Problem") -> dict[str, Bound]:
    """The constraints that are limits of a number."""
    return {name: limit for name, limit in problem.constraints.items() if not isinstance(limit, Succeeds)}


Names: TypeAlias = str | Sequence[str] | None
"""The name that `minimize=` or `maximize=` takes, or several."""


def objectives_given(minimize: Names, maximize: Names) -> tuple[Objective, ...]:
    """The objectives in the order in which they are named, those to minimise first, and last the cost beside others.

    The first is what the work returns; the cost is known without it.
    """
    found = [
        Objective(name, minimize=direction == "minimize")
        for direction, given in (("minimize", minimize), ("maximize", maximize))
        for name in _names(given, direction)
    ]
    if not found:
        raise InvalidArgument(
            f"A study needs a value to optimise, got minimize={minimize!r} and maximize={maximize!r}. "
            "Name it: minimize='error', or several: minimize=['error', 'latency']."
        )
    return tuple(sorted(found, key=lambda one: one.name == COST))


def _names(given: Names, direction: str) -> Sequence[str]:
    if given is None:
        return ()
    rule, advice = Either((Text(), Several(Text()))), f"Write {direction}='error', or {direction}=['error', 'latency']."
    names: str | tuple[str, ...] = rule.checked(given, what=f"{direction}=", advice=advice)
    found = (names,) if isinstance(names, str) else names
    _refuse_gradient(found, direction)
    return found
