"""The trials of one study, read-only: the only state there is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar, overload

from farthing.errors import TrialNotFound
from farthing.trials.events import (
    BUDGET,
    DURATION,
    EXTENDED,
    NOISE_DECLARED,
    CodeChanges,
    Learned,
    as_suggested,
    budgets_known,
    decade_of,
    extensions_of,
    filled,
    is_noisy,
    is_to_stop,
    learned_of,
    limits_in_force,
    stop_requests,
)
from farthing.trials.memos import CostSoFar, Memo, Memos
from farthing.trials.problem import Problem, ended_early, fidelity_known
from farthing.trials.suggestion import Json, Params
from farthing.trials.trial import IN_FLIGHT, State, Trial, is_added

T = TypeVar("T")

PART = 256
"""Objects in a part of a shared list: about as many as there are parts in a history of a hundred thousand trials."""
COUNTED = (DURATION, EXTENDED, NOISE_DECLARED)
"""Kinds of events that say how many trials there were."""


FROM_EVENTS = (
    *("problem", "events", "_extensions", "learned", "is_noisy", "limits", "stop_requests", "is_to_stop", "decade"),
    "_changes",
)
"""The properties of a history that need none of its trials."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the study rather than to one trial, such as the eviction of a cached stage."""

    kind: str
    payload: Json
    time: float = 0.0


class SharedList(Sequence[T]):
    """A list in parts, which its copies share until they change them.

    A thousand workers make a new history at every report: copying twenty thousand trials, and forgetting as many of the
    history before, took most of the time of a trial.
    """

    __slots__ = ("_length", "_own", "_parts")

    def __init__(self) -> None:
        self._parts: list[list[T]] = []
        self._own: set[int] = set()  # the parts that no copy shares
        self._length = 0

    def copy(self) -> "SharedList[T]":
        later: SharedList[T] = SharedList()
        later._parts, later._length = self._parts.copy(), self._length
        self._own = set()
        return later

    def append(self, one: T) -> None:
        if self._length % PART == 0:
            self._own.add(len(self._parts))
            self._parts.append([])
        self._own_part(self._length // PART).append(one)
        self._length += 1

    def __setitem__(self, place: int, one: T) -> None:
        self._own_part(place // PART)[place % PART] = one

    def _own_part(self, place: int) -> list[T]:
        if place not in self._own:
            self._own.add(place)
            self._parts[place] = self._parts[place].copy()
        return self._parts[place]

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return self._sliced(range(*index.indices(self._length)))
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError(index)
        return self._parts[place // PART][place % PART]

    def _sliced(self, places: range) -> list[T]:
        if not places:
            return []
        low, high = min(places[0], places[-1]), max(places[0], places[-1])
        near = list(chain.from_iterable(self._parts[low // PART : high // PART + 1]))
        before = low - low % PART
        ascending = near[low - before : high - before + 1 : abs(places.step)]
        return ascending if places.step > 0 else ascending[::-1]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._length


class History(Sequence[Trial]):
    """Trials by number, without gaps. A history never changes; `updated` makes the next one."""

    def __init__(
        self, problem: Problem, trials: Iterable[Trial] = (), *, events: Iterable[Event] = (), version: int = 0
    ) -> None:
        self.version = version
        self.events = tuple(events)
        self._extensions = extensions_of(self.events)
        grown = self._extensions[-1].after if self._extensions else problem.space
        is_same = grown is problem.space or grown == problem.space
        self.problem = problem if is_same else replace(problem, space=grown)
        self._trials: SharedList[Trial] = SharedList()
        self._in_flight: dict[int, Trial] = {}
        self._waiting: set[int] = set()
        self._configurations = 0
        self._added = 0
        self._with_result = 0
        self._memos = Memos()
        self.log: list[int] = []  # the numbers of trials as they changed, up to `logged` those that this history knows
        self._take(trials)
        self.logged = len(self.log)

    def updated(self, trials: Iterable[Trial], *, events: Iterable[Event] = (), version: int) -> "History":
        """This history with some trials replaced or appended, at a price that does not grow with its length."""
        new = tuple(events)
        later = History(self.problem, events=(*self.events, *new) if new else (), version=version)
        if not new:  # what follows from a thousand events is not worked out again
            later.__dict__ |= {name: self.__dict__[name] for name in FROM_EVENTS if name in self.__dict__}
        grew = len(later._extensions) > len(self._extensions)
        later._trials = self._trials.copy()
        for trial in self._trials if grew else ():
            later._trials[trial.number] = later.filled(trial)
        later._in_flight = (
            {number: later._trials[number] for number in self._in_flight} if grew else self._in_flight.copy()
        )
        later._waiting = self._waiting.copy()
        later._configurations = self._configurations
        later._added = self._added
        later._with_result = self._with_result
        later._memos = self._memos
        is_latest = len(self.log) == self.logged and not grew
        later.log = self.log if is_latest else []
        later._take(sorted(trials, key=attrgetter("number")))
        later.logged = len(later.log)
        return later

    def places_changed_since(self, before: "History") -> list[int] | None:
        """The places of trials that changed after an earlier history of which this one grew; None if it did not.

        Histories that grow out of each other share a log of the numbers that changed, so that a thousand workers do not
        make everyone look through all trials for the one that ended.
        """
        if self.log is not before.log or before.logged > self.logged:
            return None
        return sorted(set(self.log[before.logged : self.logged]))

    def _take(self, trials: Iterable[Trial]) -> None:
        for stored in trials:
            trial = self.filled(stored) if self._extensions else stored
            number, state = trial.number, trial.state
            self.log.append(number)
            self._with_result += state is State.DONE
            if number < len(self._trials):
                self._with_result -= self._trials[number].state is State.DONE
                self._trials[number] = trial
                self._in_flight.pop(number, None)
                self._waiting.discard(number)
            else:
                self._trials.append(trial)
                self._configurations += trial.suggestion.resume_from is None
                self._added += is_added(trial)
            if state in IN_FLIGHT:
                self._in_flight[number] = trial
            if state is State.PENDING:
                self._waiting.add(number)

    def filled(self, trial: Trial) -> Trial:
        """The trial in the space of today: one that is older than a parameter has the value it was extended with."""
        return filled(trial, self._extensions) if self._extensions else trial

    @property
    def extended_at(self) -> int:
        """The number of trials there were when the space was last extended; 0 if it never was."""
        return self._extensions[-1].trials if self._extensions else 0

    @cached_property
    def learned(self) -> Learned | None:
        """The knowledge from earlier studies, in the space of today; None if it began from nothing."""
        found = learned_of(self.events)
        return found.filled(self._filled_params) if found and self._extensions else found

    def _filled_params(self, params: Params) -> Params:
        for extension in self._extensions:
            if any(name not in params for name in extension.after.active_names(params)):
                params = extension.filled(params)
        kept = self.problem.space.retired
        return {name: kept.get(name, value) for name, value in params.items()}

    def before(self, number: int) -> "History":
        """The trials before that one, in the space that it was suggested in: what a replay of it starts from."""
        budgets = budgets_known(self.events, number)
        events = [event for event in self.events if _is_before(event, number) or event in budgets]
        later = [extension for extension in self._extensions if extension.trials > number]
        if not later:
            return History(self.problem, self._trials[:number], events=events, version=self.version)
        space = later[0].before
        trials = [as_suggested(trial, space) for trial in self._trials[:number]]
        return History(replace(self.problem, space=space), trials, events=events, version=self.version)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        try:
            return self._trials[index]
        except IndexError:
            raise TrialNotFound(
                f"A trial's number must be below the {len(self)} there are, got {index}. `study.trials` lists them."
            ) from None

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    def __repr__(self) -> str:
        return f"History({len(self)} trials, {len(self.in_flight)} in flight, version {self.version})"

    def memo(self, kind: type[Memo[T]], *arguments: Any) -> T:
        """The answer of a memo of that kind for this history; it is kept for all histories that grow from this one."""
        return self._memos.of(self, kind, *arguments)

    def loss(self, value: float) -> float:
        """A value with its sign turned so that less is better."""
        return self.problem.sign * value

    @cached_property
    def in_flight(self) -> tuple[Trial, ...]:
        """The trials that are pending or running, by number."""
        return tuple(map(self._in_flight.__getitem__, sorted(self._in_flight)))

    @property
    def numbers_in_flight(self) -> AbstractSet[int]:
        return self._in_flight.keys()

    def in_flight_as(self, number: int) -> Trial | None:
        """The trial of that number, if it is pending or running."""
        return self._in_flight.get(number)

    def ended_since(self, earlier: "History") -> int:
        """The number of trials that were in flight in an earlier history and are not any more."""
        places = self.places_changed_since(earlier)
        then = earlier.numbers_in_flight if places is None else filter(earlier.numbers_in_flight.__contains__, places)
        return sum(number not in self._in_flight for number in then)

    @property
    def waiting(self) -> int:
        """The number of trials that wait for a worker, at a price that does not depend on how many are in flight."""
        return len(self._waiting)

    @property
    def finished(self) -> int:
        """The number of trials that have ended, at a price that does not depend on how many there are."""
        return len(self._trials) - len(self._in_flight)

    def has_in_flight_besides(self, numbers: AbstractSet[int]) -> bool:
        """Whether a trial with another number is in flight."""
        return not self.numbers_in_flight <= numbers

    @cached_property
    def done(self) -> tuple[Trial, ...]:
        """The trials that have a result, but for those of code that is gone."""
        done = tuple(trial for trial in self._trials if trial.state is State.DONE)
        return tuple(trial for trial in done if not self.is_outdated(trial)) if self._changes.times else done

    @cached_property
    def left_checkpoints(self) -> bool:
        """Whether a trial with a result left a checkpoint, which may be deleted by now, as it is once a run went on."""
        return any(
            trial.resume_checkpoint is not None or (trial.state is State.DONE and trial.checkpoint is not None)
            for trial in self._trials
        )

    @property
    def results(self) -> int:
        """The number of trials that are `done`, at a price that does not depend on how many there are."""
        return len(self.done) if self._changes.times else self._with_result

    @cached_property
    def is_noisy(self) -> bool:
        """Whether equal params may give different values; `Study(noise=False)` declares that they do not."""
        return is_noisy(self.events)

    @cached_property
    def limits(self) -> Mapping[str, Json] | None:
        """The limits of the budget in force; None if none was set."""
        return limits_in_force(self.events)

    @cached_property
    def stop_requests(self) -> int:
        """How often the study was asked to stop."""
        return stop_requests(self.events)

    @cached_property
    def is_to_stop(self) -> bool:
        """Whether the last request to stop still stands: no run was started since."""
        return is_to_stop(self.events)

    @cached_property
    def decade(self) -> int | None:
        """The power of ten of the seconds of a full trial, as the study decided it last; None before it did."""
        return decade_of(self.events)

    @cached_property
    def _changes(self) -> CodeChanges:
        return CodeChanges.of(self.events) if self.problem.space.stages else CodeChanges()

    def is_outdated(self, trial: Trial) -> bool:
        """Whether the trial is of an older version of a stage, which gives other values."""
        return self._changes.is_outdated(trial)

    def is_current(self, trial: Trial) -> bool:
        """Whether the trial's params are possible today: each retired parameter has the value that new trials have."""
        return self.problem.space.has(trial.params)

    @cached_property
    def eligible(self) -> tuple[Trial, ...]:
        """The trials that may be the best: those that are done and possible today; if there are none, all done."""
        return tuple(trial for trial in self.done if self.is_current(trial)) or self.done

    @cached_property
    def cost(self) -> float:
        """The cost of all trials, failed and lost ones included."""
        return self.memo(CostSoFar)

    @property
    def configurations(self) -> int:
        """The number of trials that are new configurations rather than continuations."""
        return self._configurations

    @property
    def added(self) -> int:
        """The number of results that were obtained elsewhere."""
        return self._added

    def reach(self, trial: Trial) -> float:
        """How much of the full fidelity a trial has, from 0 to 1, all fidelities multiplied."""
        return self.problem.reach(self.fidelity_known(trial))

    @property
    def full(self) -> Sequence[Trial]:
        """The trials at full fidelity; all of them where there are neither fidelities nor stages."""
        space = self.problem.space
        has_others = bool(space.fidelities or space.stages)
        return [trial for trial in self._trials if self.is_full(trial)] if has_others else self._trials

    def is_full(self, trial: Trial) -> bool:
        """Whether the trial was to run at full fidelity, or stopped by itself, so that more would change nothing.

        A trial of code that is gone is no full one.
        """
        return self.problem.is_full(self.fidelity_known(trial)) and not self.is_outdated(trial)

    def ended_early(self, trial: Trial) -> bool:
        """Whether the work stopped by itself, before its amount was done, where a run is worth its best point."""
        return ended_early(self.problem, trial)

    def fidelity_known(self, trial: Trial) -> Mapping[str, float]:
        """The fidelity at which the trial's value holds: its own, with the full trace if it stopped by itself."""
        return fidelity_known(self.problem, trial)

    def lineage(self, number: int) -> list[Trial]:
        """The chain of trials that this one continues, the oldest first, itself last."""
        chain = [self[number]]
        while (parent := chain[-1].resume_from) is not None:
            chain.append(self[parent])
        return chain[::-1]


def _is_before(event: Event, number: int) -> bool:
    """Whether an event had happened when that trial was suggested, as far as the event itself says; budgets do not."""
    return event.kind != BUDGET and (event.kind not in COUNTED or event.payload["trials"] <= number)
