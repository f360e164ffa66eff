"""Runs: what was begun once, over all the trials that carried it on."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, overload

from farthing.errors import InvalidArgument
from farthing.fields import Whole
from farthing.scalars import as_int
from farthing.space import Space
from farthing.trials import History, Json, Measurement, Params, Problem, Trial
from farthing.validation import shown


def last_of_runs(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that no other of these trials continues."""
    continued = {trial.resume_from for trial in trials}
    return [trial for trial in trials if trial.number not in continued]


def with_value(history: History) -> list[Trial]:
    """The trials that have ended with a value, but for those of code that is gone."""
    ended = [trial for trial in history if trial.is_finished and trial.value is not None]
    return [trial for trial in ended if not history.is_outdated(trial)]


def ranked_runs(history: History) -> list[Trial]:
    """The last trial of each run that has a value: what went furthest first, and among those the best.

    Runs with another value of a retired parameter than new ones have come last.
    """
    runs = last_of_runs(with_value(history))
    if not history.problem.is_simple:
        return _ranked_by_several(history, runs)
    return sorted(runs, key=partial(_rank, history))


def _ranked_by_several(history: History, runs: Sequence[Trial]) -> list[Trial]:
    """The same of several objectives and limits: what keeps the limits first, by how many fronts are before it."""
    from farthing.strategies.shared.several import ordered

    alike: dict[tuple[bool, float], list[Trial]] = {}
    for trial in runs:
        alike.setdefault((not history.is_current(trial), -history.reach(trial)), []).append(trial)
    return [trial for key in sorted(alike) for trial in ordered(history, alike[key])]


def _rank(history: History, trial: Trial) -> tuple[bool, float, float]:
    return not history.is_current(trial), -history.reach(trial), history.loss(trial.value or 0.0)


# ------------------------------------------------------------
# Learning curves: what was measured along a run, over the trials that carried it on.


@dataclass(frozen=True)
class Curve:
    """The values of one run by the amount of work behind them. `trials` are those that carried it on, in order."""

    trials: tuple[Trial, ...]
    axis: str
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> Trial:
        return self.trials[-1]

    @property
    def pauses(self) -> tuple[tuple[float, float], ...]:
        """The points at which another trial continued the run."""
        ends = {_place(trial.points[-1], self.axis) for trial in self.trials[:-1] if trial.points}
        return tuple(point for point in self.points if point[0] in ends)

    def includes(self, trial: Trial) -> bool:
        return any(part.number == trial.number for part in self.trials)


def curve_axis(space: Space) -> str:
    """The axis of the curves: the fidelity that has a trace, else the first one, else the step."""
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    return next(iter([*traces, *space.fidelities]), "step")


def breadth(history: History, trial: Trial) -> float:
    """How much of the full amount a trial has of the fidelities that curves do not run along, from 0 to 1."""
    space = history.problem.space
    others = {name: top for name, top in space.full_fidelity.items() if name != curve_axis(space)}
    return math.prod(trial.fidelity.get(name, 0.0) / top for name, top in others.items())


def learning_curves(history: History) -> list[Curve]:
    """The curve of each run that measured anything, by the number of its last trial."""
    axis = curve_axis(history.problem.space)
    runs = [tuple(history.lineage(trial.number)) for trial in last_of_runs(history)]
    curves = [Curve(trials, axis, points_along(trials, axis=axis)) for trials in runs]
    return [curve for curve in curves if curve.points]


def points_along(lineage: Iterable[Trial], *, axis: str) -> tuple[tuple[float, float], ...]:
    """The latest value at each place of a run."""
    latest = {_place(point, axis): point.value for trial in lineage for point in trial.points}
    return tuple(sorted((place, value) for place, value in latest.items() if value is not None))


def _place(point: Measurement, axis: str) -> float:
    return point.fidelity.get(axis, point.step or 0)


# ------------------------------------------------------------
# Lineage: the trials of each member, and the donor of each copy.


@dataclass(frozen=True)
class Copy:
    """A member that became a copy of another: `trial` is the first it trained as such, from `source`."""

    member: int
    donor: int
    trial: Trial
    source: Trial


@dataclass(frozen=True, repr=False)
class Lineage:
    """The trials of a study by member, the oldest first, and the copies.

    Members are numbered by the strategy; without such numbers a member is a run: a trial and those that continue it.
    """

    history: History
    members: dict[int, tuple[Trial, ...]]

    @classmethod
    def of(cls, history: History) -> "Lineage":
        members: dict[int, list[Trial]] = {}
        place: dict[int, int] = {}
        for trial in history:
            if trial.member is not None:
                place[trial.number] = trial.member
            elif trial.resume_from is None or members[place[trial.resume_from]][-1].number != trial.resume_from:
                place[trial.number] = len(members)
            else:
                place[trial.number] = place[trial.resume_from]
            members.setdefault(place[trial.number], []).append(trial)
        return cls(history, {member: tuple(members[member]) for member in sorted(members)})

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, member: int) -> Sequence[Trial]:
        return self.members[member]

    def __repr__(self) -> str:
        return f"Lineage({len(self)} members, {len(self.copies)} copies)"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    @cached_property
    def is_population(self) -> bool:
        """Whether a strategy numbered the members."""
        return any(trial.member is not None for trial in self.history)

    def member_of(self, trial: Trial) -> int:
        return self._places[trial.number]

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """In the order in which they were made."""
        found = []
        for trial in self.history:
            if trial.resume_from is None:
                continue
            source = self.history[trial.resume_from]
            if self.member_of(source) != self.member_of(trial):
                found.append(Copy(self.member_of(trial), self.member_of(source), trial, source))
        return tuple(found)

    def run_of(self, trial: Trial) -> list[Trial]:
        """The chain of trials that ends with this one, through every member that it was copied from."""
        return self.history.lineage(trial.number)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {trial.number: member for member, own in self.members.items() for trial in own}

    def _lines(self) -> list[str]:
        copied = {copy.trial.number: copy.donor for copy in self.copies}
        width = len(str(max(self.members, default=0)))
        lines = []
        for member, own in self.members.items():
            parts = [f"{trial.number}{_source(copied.get(trial.number))}" for trial in own]
            lines.append(f"member {member:>{width}}: trials {' '.join(parts)}")
        return lines


def _source(donor: int | None) -> str:
    return "" if donor is None else f"(copy of {donor})"


# ------------------------------------------------------------
# The schedule that a run was trained by: which params were in force from which step on.


Change = tuple[int, Params]
"""A number of steps, and the params that are in force once these are done."""

EXAMPLE = '{"changes": [[0, {"lr": 0.1}], [50, {"lr": 0.01}]], "steps": 100}'


@dataclass(frozen=True, repr=False)
class Schedule(Sequence[Change]):
    """`[(0, {"lr": 0.1}), (50, {"lr": 0.01})]`, with everything needed to train by it again.

    `steps` is its length; `fidelity` is the name of the steps, and `value` that of the value.
    """

    changes: tuple[Change, ...]
    steps: int
    fidelity: str = "steps"
    value: str = "value"

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", tuple(_change(change) for change in self.changes))
        Whole(least=1).checked(self.steps, what="The steps of a schedule", advice="Give steps=100.")
        starts = [start for start, _ in self.changes]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts or starts[-1] >= self.steps:
            raise InvalidArgument(
                f"A schedule must begin at step 0, rise, and end after its last change, got changes at {starts} of "
                f"{self.steps} steps. Write {EXAMPLE}."
            )

    def at(self, step: int) -> Params:
        """The params that are in force once `step` steps are done."""
        return [params for start, params in self.changes if start <= max(0, step)][-1]

    @property
    def segments(self) -> list[tuple[int, int, Params]]:
        """From which step to which, with which params."""
        ends = [*(start for start, _ in self.changes[1:]), self.steps]
        return [(start, end, params) for (start, params), end in zip(self.changes, ends, strict=True)]

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self.changes[index]

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __repr__(self) -> str:
        return repr(list(self.changes))

    def to_json(self) -> dict[str, Json]:
        changes = [[start, dict(params)] for start, params in self.changes]
        return {"changes": changes, "steps": self.steps, "fidelity": self.fidelity, "value": self.value}

    @classmethod
    def from_json(cls, form: Json) -> "Schedule":
        if not isinstance(form, Mapping) or not isinstance(form.get("changes"), Sequence):
            raise InvalidArgument(f"A schedule must have changes and steps, got {shown(form)}. Write {EXAMPLE}.")
        return cls(**{**form, "changes": tuple(form["changes"])})


def schedule_of(history: History, trial: Trial) -> Schedule | None:
    """How the run that ends with that trial was trained; None where that is not told in steps along one trace."""
    return schedule_along(history.problem, history.lineage(trial.number))


def schedule_along(problem: Problem, chain: Sequence[Trial]) -> Schedule | None:
    """How a run was trained that is this chain of trials, each of which carries on the one before."""
    traces = [name for name, fidelity in problem.space.fidelities.items() if fidelity.trace and fidelity.integer]
    if len(traces) != 1 or not all(traces[0] in link.fidelity for link in chain):
        return None
    ends = [int(link.fidelity[traces[0]]) for link in chain]
    starts = [0, *ends[:-1]]
    if any(end <= start for start, end in zip(starts, ends, strict=True)):
        return None
    changes: list[Change] = []
    for start, link in zip(starts, chain, strict=True):
        if not changes or changes[-1][1] != link.params:
            changes.append((start, dict(link.params)))
    return Schedule(tuple(changes), ends[-1], fidelity=traces[0], value=problem.value)


def _change(given: Any) -> Change:
    try:
        start, params = given
    except (TypeError, ValueError):
        start, params = None, None
    step = as_int(start)
    if step is None or not isinstance(params, Mapping):
        raise InvalidArgument(f"A change of a schedule must be a step and params, got {shown(given)}. Write {EXAMPLE}.")
    return step, dict(params)
