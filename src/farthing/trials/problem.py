"""The problem of a study: the space, the value that is optimised, the unit in which cost is paid."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from farthing.errors import InvalidArgument
from farthing.fields import Text, Whole
from farthing.space import Space
from farthing.space.space_validation import is_name
from farthing.trials.measurement import Measurement, cost_amount
from farthing.trials.objectives import COST, Limit, Objective, Succeeds, limit_from_json, limit_to_json
from farthing.trials.suggestion import Json, Params
from farthing.trials.trial import Outcome, State, Trial
from farthing.validation import shown

DeclaredCost = Callable[[Params, Mapping[str, float]], float]
"""From params and fidelity to the cost of a run from nothing to that fidelity."""

Rate = float | Callable[[Params], float]
"""The price of a measured second: the same for all trials, or by their params."""


def rate_of(rate: Rate | None, params: Params) -> float | None:
    return rate(params) if callable(rate) else rate


@dataclass(frozen=True)
class Problem:
    """`measures_cost` says that cost is the measured seconds of the work, or follows from them by prices, unless a
    trial charges an amount.

    `declared_cost` is the user's own function; it is not stored, so a study that is loaded without it has none.
    `further` are the objectives after the first, and `constraints` the limits of results by name: each needs a metric
    of its name beside every value.
    """

    space: Space
    value: str = "value"
    minimize: bool = True
    seed: int = 0
    cost_unit: str = "seconds"
    measures_cost: bool = True
    declared_cost: DeclaredCost | None = field(default=None, compare=False, repr=False)
    further: tuple[Objective, ...] = ()
    constraints: Mapping[str, Limit] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        names = [objective.name for objective in self.objectives]
        for name in names:
            self._check_name(name)
        if len(set(names)) < len(names):
            raise InvalidArgument(f"Each value must be named once, got {', '.join(names)}. Leave out the second one.")
        for name in self.constraints:
            self._check_name(name)
        if not self.is_simple and self.space.stages:
            raise InvalidArgument(
                f"A pipeline has one value and no limits, got {', '.join(self.named)}. Leave the others out, or "
                "declare the space without stages."
            )
        if not self.is_simple and self.best_so_far:
            raise InvalidArgument(
                f"A run that is worth its best point has one value, got {', '.join(self.named)}. Declare the fidelity "
                f"{self.best_so_far[0]!r} without best_so_far."
            )
        seed = Whole(least=0).checked(self.seed, what="The seed", advice="Use for example seed=0.")
        object.__setattr__(self, "seed", seed)  # a plain number, which can be stored, also where NumPy's was given
        Text().checked(self.cost_unit, what="The unit of cost", advice="Write for example cost_unit='dollars'.")
        if self.declared_cost is not None and not callable(self.declared_cost):
            raise InvalidArgument(
                f"A declared cost must be a function of params and fidelity, got {shown(self.declared_cost)}. "
                "Write cost=lambda params, fidelity: fidelity['epochs']."
            )

    def _check_name(self, name: str) -> None:
        if not is_name(name):
            raise InvalidArgument(
                f"The value's name must be one word, got {name!r}. Use letters, digits and _ . - / inside: "
                "minimize='val/loss'."
            )
        if name in self.space.fidelities or name in self.space.parameters:
            raise InvalidArgument(
                f"The value must have a name of its own, got {name!r}, which the space uses. Rename one of them."
            )

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The values that are optimised; the first is the value of a measurement, the others are among its metrics."""
        return (Objective(self.value, self.minimize), *self.further)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The names of the metrics that every value must bring."""
        limited = [name for name, limit in self.constraints.items() if not isinstance(limit, Succeeds)]
        others = [*(objective.name for objective in self.further), *limited]
        return tuple(dict.fromkeys(name for name in others if name != self.value))

    @property
    def named(self) -> tuple[str, ...]:
        """The names of everything that a result has: the objectives, then what is only limited."""
        return (self.value, *self.needed)

    @property
    def prices_runs(self) -> bool:
        """Whether the price of a full run is asked for: it follows from what runs pay, unless the work reports it."""
        return COST in self.needed

    @property
    def returned(self) -> tuple[str, ...]:
        """The names of what the work must return."""
        return (self.value, *(name for name in self.needed if name != COST))

    @property
    def is_simple(self) -> bool:
        """Whether there is one objective and no constraint."""
        return not self.further and not self.constraints

    @property
    def aim(self) -> str:
        """All that is asked of a result: `minimize error, latency; maximize recall; memory ≤ 8e+09`."""
        parts = [
            f"{direction} {', '.join(one.name for one in self.objectives if one.direction == direction)}"
            for direction in dict.fromkeys(one.direction for one in self.objectives)
        ]
        return "; ".join([*parts, *(f"{name} {limit}" for name, limit in self.constraints.items())])

    @property
    def cost_is_time(self) -> bool:
        """Whether cost is the measured seconds themselves."""
        return self.measures_cost and self.cost_unit == "seconds"

    @property
    def has_prices(self) -> bool:
        """Whether cost is measured seconds times the prices of what a trial holds."""
        return self.measures_cost and self.cost_unit != "seconds"

    @cached_property
    def best_so_far(self) -> tuple[str, ...]:
        """The fidelities along which a run is worth the best point of its curve."""
        return tuple(name for name, fidelity in self.space.fidelities.items() if fidelity.best_so_far)

    @property
    def sign(self) -> float:
        """1 or −1: times a value it gives a loss, of which less is better."""
        return 1.0 if self.minimize else -1.0

    @property
    def direction(self) -> str:
        return "minimize" if self.minimize else "maximize"

    @cached_property
    def _tops(self) -> list[tuple[str, float]]:
        return list(self.space.full_fidelity.items())

    def reach(self, fidelity: Mapping[str, float]) -> float:
        """How much of the full fidelity that is, from 0 to 1, all fidelities multiplied."""
        return math.prod([fidelity.get(name, 0.0) / top for name, top in self._tops])

    def is_full(self, fidelity: Mapping[str, float]) -> bool:
        return all(fidelity.get(name, 0) >= top for name, top in self._tops)

    def cost_of(self, params: Params, fidelity: Mapping[str, float]) -> float:
        """The declared cost of a run from nothing to that fidelity, checked."""
        assert self.declared_cost is not None, "ask only where a cost is declared"
        return cost_amount(self.declared_cost(params, fidelity), what="The declared cost")

    def better(self, value: float, other: float) -> bool:
        return self.sign * value < self.sign * other

    def to_json(self) -> dict[str, Json]:
        """The stored form. A problem with one value and no limits is written as it always was."""
        form: dict[str, Json] = {
            "space": self.space.to_json(),
            "value": self.value,
            "minimize": self.minimize,
            "seed": self.seed,
            "cost_unit": self.cost_unit,
            "measures_cost": self.measures_cost,
        }
        if self.further:
            form["further"] = [[objective.name, objective.minimize] for objective in self.further]
        if self.constraints:
            form["constraints"] = {name: limit_to_json(limit) for name, limit in self.constraints.items()}
        return form

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> "Problem":
        further = tuple(Objective(str(name), minimize is True) for name, minimize in form.get("further", ()))
        limits = {name: limit_from_json(limit) for name, limit in form.get("constraints", {}).items()}
        return cls(**{**form, "space": Space.from_json(form["space"]), "further": further, "constraints": limits})


# ------------------------------------------------------------
# Runs that are worth the best point of their curve, and that may stop by themselves when it no longer improves.


def with_best_so_far(problem: Problem, outcome: Outcome, *, before: Iterable[float | None] = ()) -> Outcome:
    """The outcome with the best value among its own and those `before` it on the same run."""
    if not problem.best_so_far or outcome.value is None:
        return outcome
    own = [outcome.value, *(point.value for point in outcome.measurements)]
    seen = [value for value in [*before, *own] if value is not None]
    return replace(outcome, value=min(seen, key=lambda value: problem.sign * value))


def stops_early(
    problem: Problem, wanted: Mapping[str, float], points: Sequence[Measurement], *, is_continued: bool
) -> bool:
    """Whether work ended by itself before it had done the amounts `wanted`, by the points that it measured.

    It did if the amount that is left is larger than every step between two of its reports: work that reports
    every fifth epoch may well end with the second of the next five.
    """
    return any(
        _stops_short([point.fidelity[name] for point in points if name in point.fidelity], wanted[name], is_continued)
        for name in problem.best_so_far
        if name in wanted
    )


def ended_early(problem: Problem, trial: Trial) -> bool:
    """Whether the work of a trial stopped by itself, before its amount was done."""
    if not problem.best_so_far or trial.state is not State.DONE:
        return False
    return stops_early(problem, trial.fidelity, trial.points, is_continued=trial.resume_from is not None)


def fidelity_known(problem: Problem, trial: Trial) -> Mapping[str, float]:
    """The fidelity at which the trial's value holds: its own, with the full trace if it stopped by itself."""
    if not ended_early(problem, trial):
        return trial.fidelity
    full = problem.space.full_fidelity
    return {**trial.fidelity, **{name: full[name] for name in problem.best_so_far}}


def _stops_short(places: Sequence[float], wanted: float, is_continued: bool) -> bool:
    steps = [after - before for before, after in pairwise(places if is_continued else [0.0, *places])]
    return bool(places and steps) and wanted - places[-1] > max(steps)
