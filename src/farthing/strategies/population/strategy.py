"""Common to PB2, PBT and Clone: train for an interval, copy the best over the worst, choose their params, continue.

An interval of a member is a trial that resumes the trial before it; a replaced member's resumes its donor's instead.
In sync mode all members wait for each other at the end of an interval. The next one is decided once, from the trials up
to there, so that the number of workers and the order of requests do not matter. In async mode each member continues
as soon as it has finished: members are ranked by their latest scores, and a donor is copied as it was at the member's
own interval. Either way every member trains every interval once.

A trial that failed, was lost or was pruned makes its member the worst: it is replaced. If an interval left no member
to copy, it is trained again from its start, `MOST_REPEATS` times at most; after that the population has ended.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.fields import Whole, number, whole
from farthing.space import Fidelity, Space
from farthing.strategies.population.members import Members, interval_of, is_success, members_of, repeat_of
from farthing.strategies.shared.guessing import has_guesses
from farthing.strategies.shared.starts import draw, guided, next_starts
from farthing.strategies.shared.strategy import Randomness, Recommendation, Strategy
from farthing.trials import History, Json, Params, Prediction, Suggestion, Trial

# ------------------------------------------------------------
# When the intervals of a population end, in units of the space's trace fidelity.


STEPS = "steps"
"""The name of the trace fidelity that a space without one is given."""


@dataclass(frozen=True)
class Intervals:
    """Interval t, counted from 1, trains up to min(t · interval, steps) of the trace fidelity."""

    space: Space
    trace: str
    interval: int
    steps: float

    @property
    def count(self) -> int:
        return math.ceil(self.steps / self.interval)

    def fidelity(self, interval: int) -> Mapping[str, float]:
        """The fidelity at the end of an interval; all other fidelities are at full."""
        return self.space.check_fidelity({self.trace: min(interval * self.interval, self.steps)})


def shaped_space(space: Space, steps: int | None) -> Space:
    """The space, with a trace fidelity of `steps` steps if these are given and it has no fidelity."""
    if steps is None or space.fidelities or space.stages:
        return space
    return Space(space.parameters, fidelities={STEPS: Fidelity(1, steps, integer=True, trace=True)})


def intervals_of(space: Space, *, interval: int, steps: int | None) -> Intervals:
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    if len(traces) != 1:
        raise InvalidArgument(
            f"A population trains along one trace fidelity, got {len(traces)} of them in the space. Give steps=, or "
            'declare one: fidelities={"steps": Fidelity(1, 1000, integer=True, trace=True)}.'
        )
    declared = space.fidelities[traces[0]]
    total = declared.high if steps is None else float(steps)
    if total > declared.high:
        raise InvalidArgument(
            f"A population's steps must be within its trace fidelity, got {steps} for {traces[0]!r} up to "
            f"{declared.high:g}. Leave steps= out to train up to that."
        )
    if not declared.low <= interval <= total:
        raise InvalidArgument(
            f"An interval must be between the least {traces[0]!r}, {declared.low:g}, and all of it, {total:g}, "
            f"got {interval}. A tenth to a twentieth of it is usual."
        )
    return Intervals(space, traces[0], interval, total)


# ------------------------------------------------------------
# Truncation selection, common to all strategies: the worst members become copies of the best.


@dataclass(frozen=True)
class Selection:
    """Members that are replaced, in their order, and the members that may be copied, the best first."""

    replaced: tuple[int, ...]
    donors: tuple[int, ...]


def select(losses: Mapping[int, float], quantile: float) -> Selection:
    """The best members replace the worst `quantile`; a failed one has the loss ∞ and is always replaced.

    n = min(⌈quantile · B⌉, ⌊B/2⌋) are replaced, so that no donor is replaced. If more than n failed, all of them
    are; if none succeeded there are no donors. Equal losses rank in the order of the members.
    """
    ranked = sorted(losses, key=lambda member: (losses[member], member))
    succeeded = [member for member in ranked if losses[member] < math.inf]
    n = replaced_count(len(ranked), quantile)
    worst = ranked[len(ranked) - max(n, len(ranked) - len(succeeded)) :]
    return Selection(tuple(sorted(worst)), tuple(succeeded[: max(1, n)]))


def replaced_count(population: int, quantile: float) -> int:
    """min(⌈quantile · B⌉, ⌊B/2⌋)."""
    return min(math.ceil(quantile * population - 1e-9), population // 2)


MOST_REPEATS = 3
"""Number of times that an interval is trained again if it left no member to copy. A guess, not tuned."""


@dataclass(frozen=True)
class Replacement:
    """A member that is replaced, and the trial whose checkpoint it takes over."""

    member: int
    donor: int
    source: Trial


@dataclass(frozen=True)
class Pick:
    """Params for a replaced member, what to note of the choice, and the value expected at the end of the interval."""

    params: Params
    note: Mapping[str, Json] = field(default_factory=dict)
    predicted: Prediction | None = None


@dataclass(frozen=True)
class RunningParams:
    """Params that are in force, or about to be, during an interval that has no result yet."""

    params: Params
    interval: int


@dataclass(frozen=True)
class Replacements:
    """Members to be replaced as an interval begins; `running` are the params of the others."""

    members: Members
    replaced: Sequence[Replacement]
    interval: int
    running: Sequence[RunningParams] = ()


@dataclass(frozen=True, kw_only=True)
class PopulationStrategy(Strategy):
    """Base of the strategies that train a population.

    Args:
        population: how many members are trained side by side.
        interval: how much of the trace fidelity is trained between two decisions.
        steps: the whole of it; None takes the space's trace fidelity. A space without fidelities gets one, "steps".
        quantile: the share of members that is replaced at the end of an interval.
        mode: "sync" decides when all members have finished an interval, "async" for each member as it finishes.
    """

    population: Annotated[int, Whole(least=1, usual=8)]
    interval: Annotated[int, Whole(least=1, usual=5)]
    steps: int | None = whole(None, least=1)
    quantile: float = number(0.25, above=0.0, most=0.5)
    mode: Literal["sync", "async"] = "sync"

    has_end: ClassVar[bool] = True
    when_finished: ClassVar[str] = "the population is trained"
    needs_checkpoints: ClassVar[bool] = True
    takes_starts: ClassVar[bool] = True

    @abstractmethod
    def explore(self, replacements: Replacements, rng: Randomness) -> list[Pick]:
        """Params for the members that are replaced.

        It may learn from every trial of all members before the interval (all finished ones in async mode).
        """

    # ---- what a strategy is -----------------------------------------------------------------------------------------

    def shaped(self, space: Space) -> Space:
        return shaped_space(space, self.steps)

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        intervals = intervals_of(history.problem.space, interval=self.interval, steps=self.steps)
        turn = Turn(self, members_of(history, self.population), intervals, budget, rng)
        return list(islice(turn.synchronous() if self.mode == "sync" else turn.asynchronous(), count))

    def recommend(self, history: History) -> Recommendation | None:
        """The best member at the last interval that anybody finished, with the best trial of all intervals beside it.

        Only the last interval's is a whole run; an earlier trial may have had the better value.
        """
        members = members_of(history, self.population)
        if not members.successes:
            return super().recommend(history)
        final = members.best(members.successes[max(members.successes)].values())
        ever = members.best(trial for own in members.successes.values() for trial in own.values())
        return Recommendation(final.params, final, best_ever=ever)

    def recommendable(self, history: History) -> set[int]:
        """The trial recommended now: values are measured, and a later interval puts another in its place."""
        best = self.recommend(history)
        return {best.trial.number} if best else set()

    def resumable(self, history: History) -> set[int]:
        """The trials that members may still continue or copy, and the starts of intervals that none has finished."""
        members = members_of(history, self.population)
        if not members.begun:
            return set()
        last = intervals_of(history.problem.space, interval=self.interval, steps=self.steps).count
        reached = min(interval_of(trial) for trial in members.latest.values())
        ahead = {
            trial.number
            for interval, own in members.successes.items()
            if reached <= interval < last
            for trial in own.values()
        }
        return ahead | {
            trial.resume_from
            for trial in members.latest.values()
            if trial.resume_from is not None and self._may_repeat(members, trial)
        }

    def _may_repeat(self, members: Members, trial: Trial) -> bool:
        """Whether the trial's interval may be trained again: no member has finished it, or others are repeating it."""
        is_due = self.mode == "sync" and (interval_of(trial), repeat_of(trial)) < members.frontier
        return not members.successes.get(interval_of(trial)) or (not is_success(trial) and is_due)


@dataclass(frozen=True)
class Turn:
    """One call of `suggest`."""

    strategy: PopulationStrategy
    members: Members
    intervals: Intervals
    budget: Remaining
    rng: Randomness

    # ---- sync -------------------------------------------------------------------------------------------------------

    def synchronous(self) -> Iterator[Suggestion]:
        """The unopened trials of the current interval, or all of the next one; none while it trains."""
        interval, repeat = self.members.frontier
        if interval == 0:
            yield from self._starts(range(self.strategy.population), repeat=0)
            return
        begun = self.members.generation(interval, repeat)
        is_open = True
        for suggestion in self._opening(interval, repeat, begun):
            is_open = False
            yield suggestion
        if is_open and all(trial.is_finished for trial in begun.values()):
            yield from self._following(interval, repeat)

    def _following(self, interval: int, repeat: int) -> Iterator[Suggestion]:
        if not self.members.successes.get(interval):
            if repeat < MOST_REPEATS:
                yield from self._opening(interval, repeat + 1, {})
        elif interval < self.intervals.count:
            yield from self._opening(interval + 1, 0, {})

    def _opening(self, interval: int, repeat: int, begun: Mapping[int, Trial]) -> Iterator[Suggestion]:
        """The trials still to open of an interval in which these members have begun."""
        if repeat:
            before = self.members.generation(interval, repeat - 1)
            yield from self._repeats([trial for member, trial in before.items() if member not in begun])
        elif interval == 1:
            yield from self._starts([m for m in range(self.strategy.population) if m not in begun], repeat=0)
        else:
            yield from self._decisions(interval, begun)

    def _decisions(self, interval: int, begun: Mapping[int, Trial]) -> Iterator[Suggestion]:
        """Members that continue, then replaced ones: all decided from the trials before this interval."""
        before = self.members.successes[interval - 1]
        chosen = self._select({member: before.get(member) for member in self.members.begun})
        going_on = [before[member] for member in self.members.begun if member not in chosen.replaced]
        for trial in going_on:
            if self._member(trial) not in begun:
                yield self._continued(trial)
        if any(member not in begun for member in chosen.replaced):
            running = [RunningParams(trial.params, interval) for trial in going_on]
            yield from self._replacements(interval, chosen, before, begun, running)

    def _replacements(
        self,
        interval: int,
        chosen: Selection,
        before: Mapping[int, Trial],
        begun: Mapping[int, Trial],
        running: Sequence[RunningParams],
    ) -> Iterator[Suggestion]:
        """The first of them carries the whole batch in its note, so that the others need not be computed again."""
        noted = next((trial.note["batch"] for trial in begun.values() if trial.note.get("batch")), None)
        if noted is not None:
            yield from (self._noted(entry, interval, before) for entry in noted if entry["member"] not in begun)
            return
        replaced = [self._replacement(member, interval, chosen, before) for member in chosen.replaced]
        picks = self.strategy.explore(Replacements(self.members, replaced, interval, running), self.rng)
        entries = [_entry(each, pick) for each, pick in zip(replaced, picks, strict=True)]
        first = {"batch": entries[1:]} if len(entries) > 1 else {}
        for index, entry in enumerate(entries):
            if entry["member"] not in begun:
                yield self._noted(entry, interval, before, **({} if index else first))

    def _replacement(self, member: int, interval: int, chosen: Selection, before: Mapping[int, Trial]) -> Replacement:
        donor = chosen.donors[int(self.rng.at("donor", interval, member).integers(len(chosen.donors)))]
        return Replacement(member, donor, before[donor])

    # ---- async ------------------------------------------------------------------------------------------------------

    def asynchronous(self) -> Iterator[Suggestion]:
        """The next trial of every member that is not training; none for one that has finished or must wait.

        The member furthest behind comes first, so that with fewer workers than members all keep pace.
        """
        running = [RunningParams(t.params, interval_of(t)) for t in self.members.latest.values() if not t.is_finished]
        absent = [member for member in range(self.strategy.population) if member not in self.members.latest]
        yield from self._starts(absent, repeat=0)
        in_turn = sorted(self.members.latest.items(), key=lambda item: (interval_of(item[1]), item[0]))
        for member, trial in in_turn:
            if trial.is_finished and (suggestion := self._next_of(member, trial, running)):
                running.append(RunningParams(suggestion.params, suggestion.note["interval"]))
                yield suggestion

    def _next_of(self, member: int, trial: Trial, running: Sequence[RunningParams]) -> Suggestion | None:
        interval = interval_of(trial)
        finished = self.members.successes.get(interval, {})
        if interval == self.intervals.count and finished:
            return None
        chosen = self._select({each: self.members.last_success(each) for each in self.members.begun})
        donors = [each for each in chosen.donors if each in finished and each != member]
        if is_success(trial):
            is_replaced = member in chosen.replaced and donors
            return self._copied(member, interval, donors, running) if is_replaced else self._continued(trial)
        if finished:
            return self._copied(member, interval, donors or self.members.ranked(finished), running)
        return next(self._repeats([trial]), None) if repeat_of(trial) < MOST_REPEATS else None

    def _copied(
        self, member: int, interval: int, donors: Sequence[int], running: Sequence[RunningParams]
    ) -> Suggestion:
        """The member as a copy of a donor at the end of the same interval."""
        donor = donors[int(self.rng.at("donor", interval + 1, member).integers(len(donors)))]
        source = self.members.successes[interval][donor]
        replaced = [Replacement(member, donor, source)]
        picks = self.strategy.explore(Replacements(self.members, replaced, interval + 1, running), self.rng)
        return self._noted(_entry(replaced[0], picks[0]), interval + 1, {donor: source})

    # ---- suggestions ------------------------------------------------------------------------------------------------

    def _starts(self, members: Sequence[int], *, repeat: int) -> Iterator[Suggestion]:
        """Yields configurations learnt from earlier studies, then random ones; as many as the budget still allows."""
        learnt = iter(() if repeat else next_starts(self.members.history))
        for member in members[: int(min(len(members), max(0, self.budget.trials)))]:
            key = range(member + repeat * self.strategy.population, member + repeat * self.strategy.population + 1)
            if first := next(learnt, None):
                yield self._suggestion(first.params, member, 1, repeat=repeat, **first.note)
                continue
            [params] = draw(self.members.history, key, self.rng)
            if has_guesses(self.members.history.problem.space):
                first = guided(self.members.history, params, key[0], self.rng, place=member)
                yield self._suggestion(first.params, member, 1, repeat=repeat, **first.note)
                continue
            yield self._suggestion(params, member, 1, repeat=repeat)

    def _repeats(self, trials: Sequence[Trial]) -> Iterator[Suggestion]:
        """The same interval from the same checkpoint: at first with the same params, then with random ones.

        If all failed, the cause is rather the machine than the params; but a first interval has no good ones yet.
        """
        for trial in trials:
            member, interval, repeat = self._member(trial), interval_of(trial), repeat_of(trial) + 1
            if interval == 1:
                yield from self._starts([member], repeat=repeat)
                continue
            params = trial.params if repeat == 1 else redrawn(self.members, interval, member, self.rng, repeat=repeat)
            yield self._suggestion(params, member, interval, resume_from=trial.resume_from, repeat=repeat)

    def _continued(self, trial: Trial) -> Suggestion:
        member = self._member(trial)
        return self._suggestion(trial.params, member, interval_of(trial) + 1, resume_from=trial.number)

    def _noted(self, entry: Mapping[str, Any], interval: int, sources: Mapping[int, Trial], **more: Json) -> Suggestion:
        expected = entry["expects"]
        return self._suggestion(
            entry["params"],
            entry["member"],
            interval,
            resume_from=sources[entry["donor"]].number,
            predicted=None if expected is None else Prediction(*expected),
            donor=entry["donor"],
            **entry["note"],
            **more,
        )

    def _suggestion(
        self,
        params: Params,
        member: int,
        interval: int,
        *,
        resume_from: int | None = None,
        predicted: Prediction | None = None,
        donor: int | None = None,
        repeat: int = 0,
        **more: Json,
    ) -> Suggestion:
        place = {"member": member, "interval": interval, "donor": donor} | ({"repeat": repeat} if repeat else {})
        return Suggestion(
            params,
            self.intervals.fidelity(interval),
            resume_from=resume_from,
            predicted_value=predicted,
            note=place | more,
        )

    def _select(self, scored: Mapping[int, Trial | None]) -> Selection:
        losses = {member: self.members.loss(trial) for member, trial in scored.items()}
        return select(losses, self.strategy.quantile)

    def _member(self, trial: Trial) -> int:
        return int(trial.note["member"])


def redrawn_picks(replacements: Replacements, rng: Randomness) -> list[Pick]:
    """Fresh draws for all of them."""
    return [
        Pick(redrawn(replacements.members, replacements.interval, each.member, rng)) for each in replacements.replaced
    ]


def redrawn(members: Members, interval: int, member: int, rng: Randomness, *, repeat: int = 0) -> Params:
    """A random configuration for a member at the beginning of an interval."""
    encoder = members.history.problem.space.encoder
    return encoder.decode_unit(rng.at("redraw", interval, member, repeat).random((1, encoder.dimension)))[0]


def _entry(replaced: Replacement, pick: Pick) -> dict[str, Any]:
    """A decision as plain JSON."""
    expected = None if pick.predicted is None else [pick.predicted.mean, pick.predicted.deviation]
    return {
        "member": replaced.member,
        "donor": replaced.donor,
        "params": dict(pick.params),
        "note": dict(pick.note),
        "expects": expected,
    }
