"""Successive halving: start many configurations cheaply, continue the best fraction of them.

Both strategies pause a run by letting its trial end at a rung and continue it with a new trial that resumes from it,
so that a promoted run pays only for what it adds.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import count as count_up
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.fields import whole
from farthing.strategies.shared.starts import FirstParams, first_params
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Json, Params, Problem, State, Suggestion, Trial, noted
from farthing.trials.memos import places_changed
from farthing.trials.objectives import bounds_of

if TYPE_CHECKING:
    from farthing.strategies.multifidelity.limits import InTheEnd
    from farthing.strategies.shared.several import Excesses

ParamsKey = frozenset[tuple[str, Json]]
"""Equal for equal params."""


@dataclass(frozen=True)
class Halving(Strategy):
    """Common to all: rungs at low, low·reduction, low·reduction², … of one fidelity, the others held at full.

    If several fidelities are declared it is the only trace among them, unless another is named.
    """

    reduction: int = whole(3, least=2)
    fidelity: str | None = None

    takes_starts: ClassVar[bool] = True
    takes_objectives: ClassVar[bool] = True

    def _rungs(self, history: History) -> "Rungs":
        return Rungs(history, self.reduction, _halved_fidelity(history, self.fidelity))


@dataclass(frozen=True)
class ASHA(Halving):
    """Asynchronous successive halving (Li et al., 2020): promotes runs in the best fraction of a rung so far.

    No worker ever waits for another. Failed trials count as the worst of their rung.
    """

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return self.suggest_on(self._rungs(history), budget, count, rng)

    def suggest_on(self, rungs: "Rungs", budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
        """Promotions on these rungs, then random configurations at the lowest."""
        promotions = [rungs.promotion(trial) for trial in islice(self._promotable(rungs), count)]
        numbers = numbers_left(rungs.history, budget, count, taken=len(promotions))
        first = first_params(rungs.history, numbers, rng)
        return [*promotions, *(rungs.start(one.params, rung=0, note=one.noted()) for one in first)]

    def resumable(self, history: History) -> set[int]:
        rungs = self._rungs(history)
        below = (trial for rung in range(len(rungs.levels) - 1) for trial in rungs.ended(rung))
        return {trial.number for trial in below if rungs.may_go_on(trial)}

    def _promotable(self, rungs: "Rungs") -> Iterator[Trial]:
        for rung in reversed(range(len(rungs.levels) - 1)):
            yield from filter(rungs.may_go_on, rungs.best(rung))


@dataclass(frozen=True)
class Hyperband(Halving):
    """Brackets of successive halving, from many short runs to a few full ones (Li et al., 2018).

    A rung is judged when all of it has ended; meanwhile free workers begin the next bracket.
    """

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        rungs = self._rungs(history)
        brackets, over = rungs.brackets
        promotable = [
            (trial, bracket) for bracket in brackets for trial in bracket.promotable(is_closed=budget.trials < 1)
        ]
        promotions = [rungs.promotion(trial, note=bracket.note) for trial, bracket in promotable[:count]]
        numbers = numbers_left(history, budget, count, taken=len(promotions))
        places = islice(_free_slots(rungs, brackets, over), len(numbers))
        return [
            *promotions,
            *(
                rungs.start(first.params, rung=bracket.first_rung, note=first.noted(bracket.note))
                for first, bracket in zip(self._new_params(rungs, numbers, rng), places, strict=True)
            ),
        ]

    def _new_params(self, rungs: "Rungs", numbers: range, rng: Randomness) -> Sequence[FirstParams]:
        """Configurations to begin with, for the trials that will have these numbers."""
        return first_params(rungs.history, numbers, rng)

    def resumable(self, history: History) -> set[int]:
        brackets, _ = self._rungs(history).brackets
        return {trial.number for bracket in brackets for trial in bracket.undecided()}


@dataclass(frozen=True)
class Rungs:
    """A history sorted by the rungs of one fidelity. A trial stands on the highest rung that its fidelity reaches.

    A rung that would lie nearer to the last than by √reduction is left out: it would cost almost as much as that. None
    lies below `lowest`, a share of the full fidelity.
    """

    history: History
    reduction: int
    fidelity: str
    lowest: float = 0.0

    @cached_property
    def levels(self) -> list[float]:
        declared = self.history.problem.space.fidelities[self.fidelity]
        least = self.lowest * declared.high
        levels = [max(declared.low, round(least) if declared.integer else least)]
        while levels[-1] * self.reduction**1.5 < declared.high * (1 - 1e-9):
            levels.append(levels[-1] * self.reduction)
        return [*levels, declared.high]

    @cached_property
    def kept(self) -> "RungStanding":
        rules = (self.reduction, self.fidelity, self.lowest)
        return self.history.memo(KeptRungs, *rules) if self._stays else KeptRungs(*rules).of(self.history)

    @cached_property
    def waiting(self) -> "Waiting":
        rules = (self.reduction, self.fidelity, self.lowest)
        return self.history.memo(KeptWaiting, *rules) if self._stays else KeptWaiting(*rules).of(self.history)

    @property
    def _stays(self) -> bool:
        """Whether a result stands where it stood as others come: not where several values decide the place."""
        return self.history.problem.is_simple

    @cached_property
    def brackets(self) -> "tuple[list[Bracket], AbstractSet[int]]":
        """The brackets of which something may still be promoted or begun, and the numbers of those that are over."""
        members, over = self.history.memo(KeptBrackets, self.reduction, self.fidelity, self.lowest)
        return [Bracket.of(self, number, members[number]) for number in sorted(members)], over

    def ended(self, rung: int) -> list[Trial]:
        """The trials of a rung that have ended, by number."""
        return [self.history[number] for number in sorted(number for _, number in self.kept.ended[rung])]

    def rung_of(self, trial: Trial) -> int | None:
        reached = bisect_right(self.levels, trial.fidelity.get(self.fidelity, 0.0))
        return reached - 1 if reached else None

    def may_go_on(self, trial: Trial) -> bool:
        is_waiting = trial.state is State.DONE and not self.waiting.is_continued(trial.number)
        return is_waiting and self.history.is_current(trial) and not self.history.ended_early(trial)

    def has_twin_above(self, trial: Trial) -> bool:
        """Whether the same params stand on a higher rung, or are on their way: a promotion would buy them twice."""
        here = self.rung_of(trial)
        return here is not None and self.highest.get(params_key(trial.params), 0) > here

    @property
    def highest(self) -> Mapping[ParamsKey, int]:
        """The highest rung of each configuration that has not failed."""
        return self.kept.highest

    def best(self, rung: int) -> Iterator[Trial]:
        """Lists the best of a rung, without runs that are being continued or have a twin above."""
        return map(self.history.__getitem__, self.waiting.best[rung])

    def ranked(self, trials: Iterable[Trial]) -> list[Trial]:
        """The best first, what has no value, or is not possible today, last; ties in the order of their numbers.

        With several values they are ordered among each other: results of other brackets change nothing.
        """
        if not self._stays:
            trials = list(trials)
            places = self._places_of(trials)
            return sorted(trials, key=lambda trial: (places.get(trial.number, math.inf), trial.number))
        return sorted(trials, key=lambda trial: (self.loss(trial), trial.number))

    def start(self, params: Params, *, rung: int, note: Json = None) -> Suggestion:
        return Suggestion(params, self._fidelity(rung), note=note)

    def promotion(self, trial: Trial, *, note: Json = None) -> Suggestion:
        rung = self.rung_of(trial)
        assert rung is not None, "only trials on a rung are promoted"
        return Suggestion(trial.params, self._fidelity(rung + 1), resume_from=trial.number, note=note)

    def _fidelity(self, rung: int) -> Mapping[str, float]:
        space = self.history.problem.space
        level = self.levels[rung]
        return space.check_fidelity({self.fidelity: round(level) if space.fidelities[self.fidelity].integer else level})

    def loss(self, trial: Trial) -> float:
        """By which the trials of a rung are ordered: the loss, or with several values the place on the rung."""
        if not self._stays:
            return self._places.get(trial.number, math.inf)
        return self.history.loss(trial.value) if self._is_ranked(trial) and trial.value is not None else math.inf

    def _is_ranked(self, trial: Trial) -> bool:
        return trial.state is State.DONE and self.history.is_current(trial)

    @cached_property
    def _places(self) -> Mapping[int, float]:
        """The place of every result on its rung."""
        by_rung: dict[int | None, list[Trial]] = {}
        for trial in self.history:
            by_rung.setdefault(self.rung_of(trial), []).append(trial)
        return {number: place for trials in by_rung.values() for number, place in self._places_of(trials).items()}

    def _places_of(self, trials: Iterable[Trial]) -> dict[int, float]:
        """The place of each of these results among them, by non-dominated rank."""
        from farthing.strategies.shared.several import ordered

        results = [trial for trial in trials if self._is_ranked(trial)]
        best_first = ordered(self.history, results, self.excess_in_the_end)
        return {trial.number: float(place) for place, trial in enumerate(best_first)}

    @cached_property
    def in_the_end(self) -> "Mapping[int, InTheEnd]":
        """How far each trial is expected beyond its limits when it is trained in full; empty without limits."""
        if not bounds_of(self.history.problem):
            return {}
        from farthing.strategies.multifidelity.limits import forecasts

        return forecasts(self)

    @cached_property
    def excess_in_the_end(self) -> "Excesses":
        return {number: one.excess for number, one in self.in_the_end.items()}


@dataclass(frozen=True)
class RungStanding:
    """The standings of a history's trials: losses and numbers of those that have ended on each rung, best first.

    `Rungs` says what is `highest`.
    """

    ended: Sequence[Sequence[tuple[float, int]]]
    highest: Mapping[ParamsKey, int]


@dataclass(frozen=True)
class Waiting:
    """The numbers of the trials that are promoted next on each rung, of the first `trials`."""

    trials: int
    best: Sequence[Sequence[int]]
    continued_by: Mapping[int, int]

    def is_continued(self, number: int) -> bool:
        return self.continued_by.get(number, self.trials) < self.trials


class FollowedRungs:
    """The standings of the last history; for the next one only the trials that changed move."""

    def __init__(self, reduction: int, fidelity: str, lowest: float) -> None:
        self._rules = (reduction, fidelity, lowest)
        self._problem: Problem | None = None
        self._trials: Sequence[Trial] = ()

    def _follow(self, history: History) -> None:
        rungs = Rungs(history, *self._rules)
        if history.problem is not self._problem or len(history) < len(self._trials):
            self._begin(history.problem, levels=len(rungs.levels))
        for place in places_changed(self._trials, history):
            if place < len(self._trials):
                self._move(rungs, self._trials[place], by=-1)
            self._move(rungs, history[place], by=1)
        self._trials = history

    def _begin(self, problem: Problem, *, levels: int) -> None:
        self._problem, self._trials = problem, ()
        self._ended: list[list[tuple[float, int]]] = [[] for _ in range(levels)]
        self._waiting: list[list[tuple[float, int]]] = [[] for _ in range(levels)]
        self._continued_by: dict[int, int] = {}
        self._keys: list[ParamsKey] = []
        self._counts: dict[ParamsKey, list[int]] = {}
        self._highest: dict[ParamsKey, int] = {}

    def _move(self, rungs: Rungs, trial: Trial, *, by: int) -> None:
        """Enters a trial, or takes it back as it was."""
        rung = rungs.rung_of(trial)
        if trial.number == len(self._keys):
            self._keys.append(params_key(trial.params))
            if trial.resume_from is not None and trial.resume_from not in self._continued_by:
                self._place(rungs, rungs.history[trial.resume_from], self._waiting, by=-1)
                self._continued_by[trial.resume_from] = trial.number
        self._place(rungs, trial, self._ended, by=by)
        if trial.number not in self._continued_by:
            self._place(rungs, trial, self._waiting, by=by)
        if trial.state not in (State.FAILED, State.LOST):
            self._count(self._keys[trial.number], rung or 0, by)

    def _place(self, rungs: Rungs, trial: Trial, lists: list[list[tuple[float, int]]], *, by: int) -> None:
        rung, standing = rungs.rung_of(trial), (rungs.loss(trial), trial.number)
        if not trial.is_finished or rung is None:
            return
        if by > 0:
            insort(lists[rung], standing)
        else:
            del lists[rung][bisect_left(lists[rung], standing)]

    def _count(self, key: ParamsKey, rung: int, by: int) -> None:
        """Says how many trials of a configuration stand on a rung and have not failed."""
        counts = self._counts.setdefault(key, [0] * len(self._ended))
        counts[rung] += by
        standing = [one for one, number in enumerate(counts) if number]
        if standing:
            self._highest[key] = standing[-1]
        else:
            self._highest.pop(key, None)


class KeptRungs(FollowedRungs):
    """The whole standing, a copy that stays as it is."""

    def of(self, history: History) -> RungStanding:
        self._follow(history)
        return RungStanding([ended.copy() for ended in self._ended], self._highest.copy())


class KeptWaiting(FollowedRungs):
    """Finds the next promotions without looking at, or copying, what has ended long ago."""

    def of(self, history: History) -> Waiting:
        self._follow(history)
        return Waiting(len(history), [self._best(rung) for rung in range(len(self._ended))], self._continued_by)

    def _best(self, rung: int) -> list[int]:
        ended, waiting = self._ended[rung], self._waiting[rung]
        places = len(ended) // self._rules[0]
        near = islice(waiting, bisect_right(waiting, ended[places - 1]) if places else 0)
        return [number for _, number in near if self._highest.get(self._keys[number], 0) <= rung]


def params_key(params: Params) -> ParamsKey:
    return frozenset(params.items())


@dataclass(frozen=True)
class Bracket:
    """One run of successive halving. Brackets take turns: the first begins at the lowest rung, the last at the top."""

    rungs: Rungs
    number: int
    members: Mapping[int, Sequence[Trial]]

    @classmethod
    def of(cls, rungs: Rungs, number: int, members: Iterable[int]) -> "Bracket":
        """The bracket of the trials with these numbers."""
        by_rung: dict[int, list[Trial]] = {}
        for trial in (rungs.history[member] for member in members):
            if (rung := rungs.rung_of(trial)) is not None:
                by_rung.setdefault(rung, []).append(trial)
        return cls(rungs, number, by_rung)

    @property
    def is_over(self) -> bool:
        """Whether it is full, has ended and nothing of it waits: then it stays as it is."""
        has_ended = all(trial.is_finished for here in self.members.values() for trial in here)
        return has_ended and self.free_slots() <= 0 and not any(self.undecided())

    @property
    def note(self) -> Json:
        return {"bracket": self.number}

    @property
    def first_rung(self) -> int:
        return self.number % len(self.rungs.levels)

    def places(self, rung: int) -> int:
        """The number of configurations of the rung: ⌈(s_max+1)/(s+1)·η^s⌉ at the first, an η-th of them at the next."""
        s = len(self.rungs.levels) - 1 - self.first_rung
        eta = self.rungs.reduction
        first: int = math.ceil(len(self.rungs.levels) / (s + 1) * eta**s)
        return first // int(eta ** (rung - self.first_rung))

    def free_slots(self) -> int:
        return self.places(self.first_rung) - len(self.members.get(self.first_rung, ()))

    def promotable(self, *, is_closed: bool = False) -> list[Trial]:
        """Winners of the lowest rung that still has some waiting; `is_closed` says that no configuration will join."""
        for rung in range(self.first_rung, len(self.rungs.levels) - 1):
            if not self._is_complete(rung, is_closed=is_closed):
                return []
            waiting = [trial for trial in self._winners(rung) if self.rungs.may_go_on(trial)]
            if waiting := [trial for trial in waiting if not self.rungs.has_twin_above(trial)]:
                return waiting
        return []

    def undecided(self) -> Iterator[Trial]:
        """Ended trials that may yet be promoted."""
        for rung in range(self.first_rung, len(self.rungs.levels) - 1):
            candidates = self._winners(rung) if self._is_complete(rung) else self.members.get(rung, ())
            yield from (trial for trial in candidates if self.rungs.may_go_on(trial))

    def _is_complete(self, rung: int, *, is_closed: bool = False) -> bool:
        here = self.members.get(rung, ())
        is_full = bool(here) and (is_closed or rung > self.first_rung or self.free_slots() <= 0)
        return is_full and all(trial.is_finished for trial in here)

    def _winners(self, rung: int) -> list[Trial]:
        here = self.members.get(rung, ())
        places = min(self.places(rung + 1), max(1, len(here) // self.rungs.reduction))
        return [trial for trial in self.rungs.ranked(here) if trial.state is State.DONE][:places]


class KeptBrackets:
    """The trials of each bracket of the history asked about last, by number, but for brackets that are over."""

    def __init__(self, reduction: int, fidelity: str, lowest: float) -> None:
        self._rules = (reduction, fidelity, lowest)
        self._problem: Problem | None = None
        self._known = 0

    def of(self, history: History) -> tuple[Mapping[int, Sequence[int]], AbstractSet[int]]:
        if history.problem is not self._problem or len(history) < self._known:
            self._problem, self._known = history.problem, 0
            self._members: dict[int, list[int]] = {}
            self._over: set[int] = set()
        rungs = Rungs(history, *self._rules)
        for trial in history[self._known :]:
            if "bracket" in (note := noted(trial.note)):
                self._members.setdefault(note["bracket"], []).append(trial.number)
        self._known = len(history)
        over = [one for one, members in self._members.items() if Bracket.of(rungs, one, members).is_over]
        for number in over:
            del self._members[number]
        self._over = self._over.union(over)
        return {number: tuple(members) for number, members in self._members.items()}, self._over


def _free_slots(rungs: Rungs, brackets: Iterable[Bracket], over: AbstractSet[int]) -> Iterator[Bracket]:
    """A bracket for each new configuration, without end."""
    begun = {bracket.number: bracket for bracket in brackets}
    for number in count_up():
        if number not in over:
            bracket = begun.get(number, Bracket(rungs, number, {}))
            yield from [bracket] * bracket.free_slots()


def numbers_left(history: History, budget: Remaining, count: int, *, taken: int) -> range:
    """Numbers of the new configurations that may follow the first `taken` suggestions."""
    first = len(history) + taken
    return range(first, first + int(min(count - taken, max(0, budget.trials))))


def _halved_fidelity(history: History, name: str | None) -> str:
    declared = history.problem.space.fidelities
    traces = [one for one, fidelity in declared.items() if fidelity.trace]
    if name is None and (len(declared) == 1 or len(traces) == 1):
        return traces[0] if traces else next(iter(declared))
    if name in declared:
        return str(name)
    if not declared:
        raise InvalidArgument(
            "Successive halving needs a fidelity to halve, got a space without. "
            "Declare one: fidelities={'epochs': ft.Fidelity(1, 27)}."
        )
    raise InvalidArgument(
        f"Successive halving needs one fidelity to halve, got {name!r} of {', '.join(declared)}. "
        f"Name it: fidelity={next(iter(declared))!r}."
    )
