"""Events of a history: all that was declared, asked for, learnt or changed beside its trials."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

from farthing.errors import StorageError
from farthing.scalars import with_tuples
from farthing.space import Space
from farthing.trials.problem import Problem
from farthing.trials.suggestion import Json, Params
from farthing.trials.trial import State, Trial
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.trials.history import Event, History


NOISE_DECLARED = "noise declared"
"""The kind of event that says so. Its payload has `is_noisy`, and the number of `trials` that there were."""


def noise_event(*, is_noisy: bool, trials: int) -> dict[str, Json]:
    return {"is_noisy": is_noisy, "trials": trials}


def is_noisy(events: "Sequence[Event]") -> bool:
    """The last declaration; noise is assumed where nothing was."""
    return next((bool(event.payload["is_noisy"]) for event in reversed(events) if event.kind == NOISE_DECLARED), True)


# ------------------------------------------------------------
# The seconds for which the workers of a run had nothing to do, where seconds have a price: an event of the history.


IDLE = "workers idle"
"""The kind of event, at the end of a run. Its payload has the `seconds` of all workers together: those before the first
and after the last trial of each, and those for which nothing fitted the budget. Waiting for suggestions is stored with
the trial that was waited for."""


def idle_seconds(events: "Iterable[Event]") -> float:
    return math.fsum(event.payload["seconds"] for event in events if event.kind == IDLE)


# ------------------------------------------------------------
# The first trial of a worker process, an event of the history.
#
# It pays for more than its own work: the process imports libraries, reads data and warms up a device, and its later
# trials do not. Whether a process was new cannot be seen in a trial's number or cost, so it is stored.


WORKER_BEGAN = "worker began"
"""The kind of event. Its payload has the `trial` and the `attempt` that a process ran first."""


def worker_event(trial: int, attempt: int) -> dict[str, Json]:
    return {"trial": trial, "attempt": attempt}


class FirstTrials:
    """The attempts that were the first of their process, as pairs of trial and attempt: a memo of a history."""

    def __init__(self) -> None:
        self._read = 0
        self._found: frozenset[tuple[int, int]] = frozenset()

    def of(self, history: "History") -> frozenset[tuple[int, int]]:
        events = history.events
        if len(events) < self._read:
            self._read, self._found = 0, frozenset()
        new = [event.payload for event in events[self._read :] if event.kind == WORKER_BEGAN]
        self._found |= {(one["trial"], one["attempt"]) for one in new}
        self._read = len(events)
        return self._found


def began_its_worker(history: "History", trial: Trial) -> bool:
    """Whether the last attempt at this trial was the first work of its process."""
    return (trial.number, trial.attempt) in history.memo(FirstTrials)


# ------------------------------------------------------------
# Trials of code that is gone: the stages of a pipeline changed while its study went on.


CHANGED = "code of stages changed"
"""The kind of event that says so; its payload has the versions `before` and `after`, and whether it was `harmless`."""


def change(before: Mapping[str, str], after: Mapping[str, str], *, harmless: bool) -> dict[str, Json]:
    return {"before": dict(before), "after": dict(after), "harmless": harmless}


@dataclass(frozen=True)
class CodeChanges:
    """The changes of a history. Code that was changed back counts again, and so do its trials."""

    times: tuple[float, ...] = ()
    versions: tuple[str, ...] = ()
    """The version before the first change, and after each."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """For each version one that stands for all that give the same values."""

    @classmethod
    def of(cls, events: "Iterable[Event]") -> "CodeChanges":
        changes = [event for event in events if event.kind == CHANGED]
        if not changes:
            return cls()
        keys = [(_key(event.payload["before"]), _key(event.payload["after"])) for event in changes]
        groups = {key: key for pair in keys for key in pair}
        for (before, after), event in zip(keys, changes, strict=True):
            if event.payload["harmless"]:
                old, new = groups[before], groups[after]
                groups = {key: new if group == old else group for key, group in groups.items()}
        return cls(tuple(event.time for event in changes), (keys[0][0], *(after for _, after in keys)), groups)

    def is_outdated(self, trial: Trial) -> bool:
        """Whether the trial ended under code that gives other values than that of today."""
        if not self.times or trial.finished_at is None:
            return False
        then = sum(time <= trial.finished_at for time in self.times)
        return self.groups[self.versions[then]] != self.groups[self.versions[-1]]


def _key(versions: Mapping[str, str]) -> str:
    return json.dumps(versions, sort_keys=True)


# ------------------------------------------------------------
# What users ask of a whole study while it goes: a budget, or to stop.
#
# Both are events of the history, so that every process that works on the study sees them, and a replay knows which
# budget was in force.


BUDGET = "budget set"
"""The kind of event that sets a budget. Its payload has the `limits`, the number of `trials` that there were, and
whether a run was `given` it: a program that is started again gives the same, and changes nothing. `noted` says that a
suggestion which knew it at once says so in its note; a study's first budget was set without that in earlier versions.
"""

STOP = "stop requested"
WITHDRAWN = "stop withdrawn"
"""The study may go on: somebody started a run."""


def budget_event(limits: Mapping[str, Json], *, trials: int, given: bool) -> dict[str, Json]:
    return {"limits": dict(limits), "trials": trials, "given": given, "noted": True}


def limits_in_force(events: "Sequence[Event]") -> Mapping[str, Json] | None:
    """The limits of the last budget that was set; None if none was."""
    return next((event.payload["limits"] for event in reversed(events) if event.kind == BUDGET), None)


def limits_given(events: "Sequence[Event]") -> Mapping[str, Json] | None:
    """The limits that a run was last given."""
    given = (event for event in reversed(events) if event.kind == BUDGET and event.payload["given"])
    return next((event.payload["limits"] for event in given), None)


def budgets_known(events: "Iterable[Event]", number: int) -> "list[Event]":
    """The budgets that the suggestion of that trial knew, if it noted nothing.

    One that was set since the trial before may have come while this one was suggested: whether that knew it is in its
    note (`changed_just_now`). Only of a study's first budget it was once taken for granted.
    """
    budgets = [event for event in events if event.kind == BUDGET]
    return [
        event
        for place, event in enumerate(budgets)
        if event.payload["trials"] < number or (event.payload["trials"] == number and _goes_without_note(place, event))
    ]


def changed_just_now(events: "Sequence[Event]", trials: int) -> bool:
    """Whether a budget was set since the last of so many trials was opened, so that whoever knows it must say so."""
    budgets = [event for event in events if event.kind == BUDGET]
    if not budgets or budgets[-1].payload["trials"] < trials:
        return False
    return not _goes_without_note(len(budgets) - 1, budgets[-1])


def _goes_without_note(place: int, event: "Event") -> bool:
    return place == 0 and not event.payload.get("noted")


def stop_requests(events: "Iterable[Event]") -> int:
    """How often the study was asked to stop."""
    return sum(event.kind == STOP for event in events)


def is_to_stop(events: "Sequence[Event]") -> bool:
    """Whether the last request to stop still stands."""
    last = next((event.kind for event in reversed(events) if event.kind in (STOP, WITHDRAWN)), None)
    return last == STOP


# ------------------------------------------------------------
# How long a full trial takes, to a power of ten, as the study decided it.
#
# How much a strategy thinks follows from it. Measured seconds differ from one day to the next, and a suggestion that
# followed from them could not be made again. So they are rounded to a power of ten, and that is decided once, after the
# first results, and again after fixed numbers of them.


DURATION = "duration decided"
"""The kind of event. Its payload has the `decade`, the power of ten of the seconds of a full trial, the number of
`results` after which it was due, and the number of `trials` that there were."""
DUE_AFTER = (5, 50, 200, 1000)
"""Results after which it is decided."""
JUDGED = 15
"""Results of which the median is taken, the latest; a guess, not tuned."""
STAYS_WITHIN = 0.75
"""A decade stays unless it is further off than this. Half of one would let a study between two of them change."""


def decade_of(events: "Sequence[Event]") -> int | None:
    """The power of ten that was decided last; None if none was. If two processes decided at once, the first counts."""
    decided = [event.payload for event in events if event.kind == DURATION]
    return next((int(one["decade"]) for one in decided if one["results"] == decided[-1]["results"]), None)


def duration_due(history: "History") -> dict[str, Json] | None:
    """The payload of the event that the study lacks; None if it lacks none, or its cost does not come from a clock."""
    due = max((results for results in DUE_AFTER if results <= history.results), default=0)
    decided = max((event.payload["results"] for event in history.events if event.kind == DURATION), default=0)
    if due <= decided or not history.problem.measures_cost:
        return None
    done = (trial for trial in reversed(history) if trial.state is State.DONE)
    seconds = [full for trial in islice(done, JUDGED) if (full := _seconds_of_full(history, trial)) > 0.0]
    if not seconds:
        return None
    return {"decade": _decade(median(seconds), history.decade), "results": due, "trials": len(history)}


def share_trained(history: "History", trial: Trial) -> float:
    """The share of a full trial that this one adds to the run it continues."""
    before = 0.0 if trial.resume_from is None else history.reach(history[trial.resume_from])
    return max(0.0, history.reach(trial) - before)


def _decade(seconds: float, before: int | None) -> int:
    exponent = math.log10(seconds)
    return before if before is not None and abs(exponent - before) <= STAYS_WITHIN else round(exponent)


def _seconds_of_full(history: "History", trial: Trial) -> float:
    share = share_trained(history, trial)
    return seconds_taken(history.problem, trial) / share if share > 0.0 else 0.0


def seconds_taken(problem: Problem, trial: Trial) -> float:
    """The seconds of a trial: its cost if that is time, else by the storage's clock."""
    if problem.cost_is_time:
        return trial.cost
    return max(0.0, (trial.finished_at or trial.began_at) - trial.began_at)


# ------------------------------------------------------------
# A space that grew while its study went on.


EXTENDED = "space extended"
"""The kind of event that says so; its payload is an `Extension`."""


@dataclass(frozen=True)
class Extension:
    """From `before` to `after`, once there were that many `trials`.

    `fill` has the values that trials of the old space had, without saying so, of the new parameters.
    """

    before: Space
    after: Space
    fill: Mapping[str, Any]
    trials: int

    def to_json(self) -> dict[str, Json]:
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "fill": dict(self.fill),
            "trials": self.trials,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Extension":
        before, after = Space.from_json(form["before"]), Space.from_json(form["after"])
        return cls(before, after, form["fill"], form["trials"])

    def filled(self, params: Params) -> Params:
        """The params in the new space: parameters that are active there and have no value get theirs."""
        absent = [name for name in self.after.active_names(params) if name not in params]
        if unknown := [name for name in absent if name not in self.fill]:
            raise StorageError(
                f"A stored trial must have a value of {unknown[0]!r}, got {shown(dict(params))}. "
                "Restore the database from a copy."
            )
        missing = {name: self.fill[name] for name in absent}
        return {name: {**params, **missing}[name] for name in self.after.parameters if name in {**params, **missing}}


def extensions_of(events: "Iterable[Event]") -> tuple[Extension, ...]:
    """In the order in which they happened."""
    return tuple(Extension.from_json(event.payload) for event in events if event.kind == EXTENDED)


def filled(trial: Trial, extensions: Sequence[Extension]) -> Trial:
    """The trial as one of the space of today; a trial that has all its params is returned as it is."""
    params = trial.params
    for extension in extensions:
        if any(name not in params for name in extension.after.active_names(params)):
            params = extension.filled(params)
    return trial if params is trial.params else replace(trial, suggestion=replace(trial.suggestion, params=params))


def as_suggested(trial: Trial, space: Space) -> Trial:
    """The trial as one of the space that it was suggested in."""
    params = {name: value for name, value in trial.params.items() if name in space.parameters}
    return replace(trial, suggestion=replace(trial.suggestion, params=params))


# ------------------------------------------------------------
# Knowledge from earlier studies, frozen as an event, so that replay needs no other study.


LEARNED = "learned from earlier studies"
"""The kind of event; its payload is a `Learned`. Of several, which two processes may log at once, the first counts."""


@dataclass(frozen=True)
class LearnedStart:
    """The best configuration of an earlier study, as one of today's space."""

    params: Params
    source: str


@dataclass(frozen=True)
class RandomResult:
    """The value that a configuration of an earlier study's initial design had, and its share of the full fidelity."""

    source: str
    reach: float
    value: float


@dataclass(frozen=True)
class EarlierCost:
    """The cost of a run of an earlier study from nothing to that share of the full fidelity."""

    params: Params
    reach: float
    cost: float


@dataclass(frozen=True)
class Learned:
    """`starts` are in the order in which they are tried; `sources` names every study that was learnt from."""

    sources: tuple[str, ...]
    starts: tuple[LearnedStart, ...] = ()
    random: tuple[RandomResult, ...] = ()
    costs: tuple[EarlierCost, ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {
            "sources": list(self.sources),
            "starts": [asdict(one) for one in self.starts],
            "random": [asdict(one) for one in self.random],
            "costs": [asdict(one) for one in self.costs],
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Learned":
        return cls(
            tuple(form["sources"]),
            tuple(LearnedStart(with_tuples(one["params"]), one["source"]) for one in form["starts"]),
            tuple(RandomResult(**one) for one in form["random"]),
            tuple(EarlierCost(with_tuples(one["params"]), one["reach"], one["cost"]) for one in form["costs"]),
        )

    def filled(self, fill: Callable[[Params], Params]) -> "Learned":
        """The same in a space that has grown."""
        return replace(
            self,
            starts=tuple(replace(one, params=fill(one.params)) for one in self.starts),
            costs=tuple(replace(one, params=fill(one.params)) for one in self.costs),
        )

    def summary(self) -> str:
        """`3 starts from digits-may, digits-june`"""
        count = len(self.starts)
        names = dict.fromkeys(start.source for start in self.starts) or self.sources
        return f"{count} start{'' if count == 1 else 's'} from {', '.join(names)}"


def learned_of(events: "Iterable[Event]") -> Learned | None:
    payload = next((event.payload for event in events if event.kind == LEARNED), None)
    return None if payload is None else Learned.from_json(payload)


def random_by_source(results: Sequence[RandomResult]) -> dict[str, list[RandomResult]]:
    found: dict[str, list[RandomResult]] = {}
    for result in results:
        found.setdefault(result.source, []).append(result)
    return found
