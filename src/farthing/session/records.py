"""One coordinator's way to a stored study: reads what changed, and opens, prices and closes trials under its leases."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farthing.costs import Budget, Clock, Remaining, ResourcePrices, SystemClock
from farthing.costs.expected import expected_cost
from farthing.costs.prices import ResourcesLike
from farthing.errors import FarthingError, HistoryMoved, InvalidArgument
from farthing.execution.executor import Checkpointed, News
from farthing.session.leases import Leases, held_interrupts, is_gone, this_process
from farthing.session.prices import Prices
from farthing.session.questions import Question, answers_to, with_knowledge
from farthing.session.turns import Answer, Turns, usable_late
from farthing.storage import MemoryStorage, Storage, StudyRecord
from farthing.storage.storage import Changes, FindsLeaders, Leaders, OpensInTurn, ReadsOutlines
from farthing.strategies import Randomness, Strategy
from farthing.trials import Attempt, History, Json, Measurement, Outcome, Problem, Rate, State, Suggestion, Trial
from farthing.trials.events import (
    BUDGET,
    CHANGED,
    DURATION,
    EXTENDED,
    IDLE,
    LEARNED,
    NOISE_DECLARED,
    STOP,
    WITHDRAWN,
    WORKER_BEGAN,
    Extension,
    Learned,
    budget_event,
    duration_due,
    limits_given,
    noise_event,
    worker_event,
)
from farthing.trials.objectives import COST
from farthing.trials.prefixes import EVICTED, Eviction
from farthing.trials.problem import with_best_so_far
from farthing.validation import shown

MORE_CHOICES = 8
"""Number of further suggestions to ask for if none of the first fits the budget; a guess, not tuned."""

SUGGESTING_LEASE = 10.0
"""Seconds after which another process suggests for all, if the one that does is no longer heard of."""

LOOKS_PER_LEASE = 10
"""How often per lease a coordinator reads all running trials: leases are renewed, and end, without a change. The end of
one is noticed this share of it later at most; reading all of them at every step would cost each trial the more, the
more of them run."""

PRICES = "prices"
"""The setting of a study that has the prices of resources."""

IS_EXTENDED = "extended"
"""The setting of a study whose space has grown."""

RECOMMENDATION = "recommendation"
"""The setting of a study that has what its strategy recommended, and of which version that is."""

Plan = Callable[[History], tuple[Remaining, int]]
"""From the history to the rest of the budget and the largest number of trials to open."""

Taken = dict[Attempt, Trial]
"""The trials that this process is responsible for: each is entered here in the step that makes it run."""


def stored_leaders(storage: Storage, name: str, problem: Problem, settings: Mapping[str, Json]) -> Leaders | None:
    """The best trials as the database finds them; None if it cannot."""
    is_in_columns = not (problem.best_so_far or problem.space.stages or settings.get(IS_EXTENDED))
    if not is_in_columns or not isinstance(storage, FindsLeaders):
        return None
    return storage.leaders(name, problem)


@dataclass(frozen=True)
class Opening:
    """The trials that were opened or, if there are none, the suggestions that the rest of the budget did not cover."""

    trials: Sequence[Trial]
    remaining: Remaining
    uncovered: Sequence[Suggestion] = ()


class Records:
    """Owns the storage of a study: whatever is read or written goes through here."""

    def __init__(
        self,
        storage: Storage,
        record: StudyRecord,
        *,
        lease: float,
        retries: int,
        closes_storage: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._storage = storage
        self._closes_storage = closes_storage
        self.name = record.name
        self.settings = dict(record.settings)
        self.leases = Leases(storage, record.name, seconds=lease)
        self.lost_retries = retries
        self._clock = clock or SystemClock()
        self._prices = Prices(record.problem)
        self.randomness = Randomness(record.problem.seed)
        self._history = History(record.problem)
        self._running: dict[Attempt, Trial] = {}
        self.label: str | None = None
        self._is_still = False
        self._looks_at_leases_at = self._sweeps_at = -math.inf
        self._suggests_until = -math.inf
        self.hold(None, must_cost=False)

    @property
    def problem(self) -> Problem:
        """The problem of today: its space may have been extended."""
        if self.settings.get(IS_EXTENDED) and not self._history.version:
            self.refresh()
        return self._history.problem

    @property
    def storage(self) -> Storage:
        """The storage of the study, and of others beside it."""
        return self._storage

    @property
    def history(self) -> History:
        """The history as it was last read."""
        return self._history

    def refresh(self) -> History:
        """The history as it is now, at the price of what changed since the last call."""
        if self._is_still:
            return self._history
        changes = self._storage.history(self.name, since=self._history.version, running=self._is_time_for_leases())
        if changes.trials or changes.events or changes.version != self._history.version:
            self._history = self._history.updated(changes.trials, events=changes.events, version=changes.version)
        return self._history

    def refresh_to_suggest(self) -> History:
        """The history as it is now, with all that is decided once and stored before a suggestion may follow from it."""
        return self._decided(self.refresh())

    def sweep_to_suggest(self) -> History:
        """The same after a sweep, of which only one that took something back is read again."""
        return self.refresh_to_suggest() if self.sweep() else self._decided(self._history)

    def _decided(self, history: History) -> History:
        due = duration_due(history)
        if due is None:
            return history
        self._storage.log_event(self.name, DURATION, due)
        return self.refresh()

    def _is_time_for_leases(self) -> bool:
        now = self._clock.elapsed()
        if now < self._looks_at_leases_at:
            return False
        self._looks_at_leases_at = now + self.leases.seconds / LOOKS_PER_LEASE
        return True

    @contextmanager
    def still(self) -> Iterator[History]:
        """The history of one moment: inside, `refresh` reads nothing new, so that all that is shown agrees."""
        history = self.refresh()
        before, self._is_still = self._is_still, True
        try:
            yield history
        finally:
            self._is_still = before

    def leaders(self) -> Leaders | None:
        """The best trials as the database finds them; None if it cannot, or if the history is read already."""
        return None if self._history.version else stored_leaders(self._storage, self.name, self.problem, self.settings)

    def keep_recommendation(self, form: Mapping[str, Json]) -> None:
        """Stores what follows from the history last read, for readers of a study that does not change any more."""
        self.remember({RECOMMENDATION: {**form, "version": self._history.version}})

    def kept_recommendation(self) -> Mapping[str, Any]:
        """The stored result, if the study is as it was then; nothing if it is not, or if the history is read."""
        form = self.settings.get(RECOMMENDATION)
        if self._history.version or not isinstance(form, Mapping) or not isinstance(self._storage, ReadsOutlines):
            return {}
        return form if form.get("version") == self._storage.versions().get(self.name) else {}

    def trials(self, numbers: Sequence[int]) -> list[Trial]:
        """Some trials whole, at the price of these where the storage can."""
        if isinstance(self._storage, ReadsOutlines) and not self._history.version:
            return self._storage.trials(self.name, numbers)
        history = self.refresh()
        return [history[number] for number in numbers]

    def sweep(self) -> list[int]:
        """Takes back trials whose owner is gone or whose lease has ended; what is held here is renewed in time.

        That a process on this machine is gone is seen at once. At leases it looks once in a tenth of one: to look at
        every trial is a third of what a stored one takes.
        """
        history = self.refresh()
        if self.leases.holds_all(history.numbers_in_flight):
            return []
        held = {attempt.number for attempt in self.leases.held}
        others = [trial for trial in history.in_flight if trial.number not in held]
        owners = {trial.owner for trial in others if trial.owner}  # none where its lease is read as ended already
        dead, now = sorted(owner for owner in owners if is_gone(owner)), self._clock.elapsed()
        if not others or (not dead and now < self._sweeps_at):
            return []
        self._sweeps_at = now + self.leases.seconds / LOOKS_PER_LEASE
        return self._storage.sweep(self.name, dead=dead)

    def claim(self, count: int, *, taken: Taken, number: int | None = None, waits: Sequence[float] = ()) -> list[Trial]:
        """Up to `count` pending trials, running now: enqueued ones, and lost or failed ones to be tried again.

        With a `number`, no other than that one. `waits` has the seconds that each worker has waited for a suggestion.
        """
        claimed: list[Trial] = []
        waited = [*waits, *[0.0] * count]
        while len(claimed) < count and (trial := self._claim_one(taken, number, waited[len(claimed)])):
            claimed.append(trial)
        if not claimed:  # it may have been renewed after its lease was taken to have ended
            self._looks_at_leases_at = -math.inf
        return claimed

    @property
    def rate(self) -> Rate | None:
        """The price of a measured second of a trial, in a study with prices."""
        return self._prices.rate

    def hold(
        self,
        resources: ResourcesLike | None,
        *,
        must_cost: bool,
        prices: Mapping[str, float] | None = None,
        label: str | None = None,
    ) -> None:
        """Says what trials that are begun from now on hold; it has a meaning in a study with prices.

        `prices` are those of this worker instead of the study's, and `label` names what it is on the bill.
        """
        given, self.label = self.settings.get(PRICES), label
        if given is None and prices:
            raise InvalidArgument(
                f"A worker's price needs a study with prices, got {shown(dict(prices))} for {self.name!r}. Begin the "
                "study with prices: [prices] in its file, or ft.Study(…, prices={'gpu': 2.5, 'per': 'hour'})."
            )
        if given is not None:
            here = ResourcePrices({**given, **(prices or {})})
            self._prices.rate = here.rate(resources, must_cost=must_cost)

    def may_suggest(self) -> bool:
        """Whether this process has the right to suggest for all, which it then keeps for a few seconds at least."""
        now = self._clock.elapsed()
        if now < self._suggests_until:
            return True
        me, lease = this_process(), min(SUGGESTING_LEASE, self.leases.seconds)
        holder = self._storage.claim_suggesting(self.name, owner=me, lease=lease)
        if holder != me and is_gone(holder):
            holder = self._storage.claim_suggesting(self.name, owner=me, lease=lease, dead=[holder])
        self._suggests_until = now + lease / 3 if holder == me else -math.inf
        return holder == me

    def yield_suggesting(self) -> None:
        """Lets another process suggest at once."""
        if self._suggests_until > -math.inf:
            self._suggests_until = -math.inf
            with suppress(FarthingError):
                self._storage.yield_suggesting(self.name, owner=this_process())

    def workers_going(self) -> int:
        """The number of runs of the study, on all machines, as far as they were heard of."""
        return self._storage.runs_going(self.name)

    def put_in_line(self, answer: Answer) -> None:
        """Opens what was suggested as trials that wait; raises `HistoryMoved` if others opened some meanwhile."""
        if answer.question.ahead and isinstance(self._storage, OpensInTurn):
            self._open_late(self._storage, answer, owner=None)
            return
        self._storage.open_trials(
            self.name,
            answer.suggestions,
            owner=None,
            lease=self.leases.seconds,
            retries=self.lost_retries,
            expected_trials=len(answer.question.history),
            overhead=answer.overhead,
        )

    def open(self, strategy: Strategy, plan: Plan, *, taken: Taken) -> Opening:
        """Opens what the strategy suggests for the history last read, as far as the budget covers it.

        If others opened trials meanwhile, it reads the history and plans again. If they are always quicker, it takes a
        turn; where a suggestion follows from its number, at once: it would be made in vain as often as others ask.
        """
        turns = Turns(strategy)
        while True:
            is_in_turn = strategy.is_blind or (turns.is_due and turns.is_quick)
            if is_in_turn and (opening := self.open_in_turn(strategy, plan, taken=taken)):
                return opening
            answer = self.answer(strategy, Question(self._history, *plan(self._history), ahead=turns.ahead))
            question = answer.question
            if not answer.suggestions:
                return Opening([], question.remaining, answer.uncovered)
            try:
                return Opening(self.open_answer(answer, taken=taken, most=question.count), question.remaining)
            except HistoryMoved:
                turns.lose(answer, self.refresh())

    def open_in_turn(self, strategy: Strategy, plan: Plan, *, taken: Taken) -> Opening | None:
        """As `open`, while everyone else waits; None where the storage cannot make them."""
        if not isinstance(self._storage, OpensInTurn):
            return None
        answers = list[Answer]()

        def choose(history: History) -> tuple[Sequence[Suggestion], float]:
            answers.append(self.answer(strategy, Question(history, *plan(history))))
            return answers[-1].suggestions, answers[-1].overhead

        with held_interrupts():
            trials = self._take(self._open_locked(self._storage, choose, owner=this_process()), taken)
        return Opening(trials, answers[-1].question.remaining, answers[-1].uncovered)

    def _open_late(
        self, storage: OpensInTurn, answer: Answer, *, owner: str | None, most: int | None = None, waited: float = 0.0
    ) -> list[Trial]:
        """Opens suggestions although others opened trials meanwhile; the lock is held to choose among them only."""

        def choose(history: History) -> tuple[Sequence[Suggestion], float]:
            suggestions, left = usable_late(answer, history)
            chosen = self._covered(suggestions, left, history)[: answer.question.count][:most]
            return chosen, answer.overhead * len(chosen) / len(answer.suggestions)

        opened = self._open_locked(storage, choose, owner=owner, waited=waited)
        if not opened:
            raise HistoryMoved("Others have opened all that was suggested, or left no budget for it. Suggest again.")
        return opened

    def _open_locked(
        self,
        storage: OpensInTurn,
        choose: Callable[[History], tuple[Sequence[Suggestion], float]],
        *,
        owner: str | None,
        waited: float = 0.0,
    ) -> list[Trial]:
        known = self._history

        def choose_now(changes: Changes) -> tuple[Sequence[Suggestion], float]:
            self._history = known.updated(changes.trials, events=changes.events, version=changes.version)
            return choose(self._history)

        return storage.open_in_turn(
            self.name,
            choose_now,
            since=known.version,
            owner=owner,
            lease=self.leases.seconds,
            retries=self.lost_retries,
            waited=waited,
            rate=self.rate,
            label=self.label,
        )

    def answer(self, strategy: Strategy, question: Question) -> Answer:
        """The suggestions of the strategy. It touches no storage, so any thread may ask while another one records."""
        began = self._clock.elapsed()
        suggestions = self._suggest(strategy, question)
        overhead = self._clock.elapsed() - began
        covered = self._covered(suggestions, question.remaining, question.history)
        if suggestions and not covered:
            more = self._alternatives(strategy, question)
            covered = self._covered(more, question.remaining, question.history)[: question.asked]
        return Answer(question, covered, () if covered else suggestions, overhead)

    def open_answer(
        self,
        answer: Answer,
        *,
        taken: Taken,
        most: int | None = None,
        opened: int = 0,
        waits: Sequence[float] = (),
    ) -> list[Trial]:
        """Opens trials of up to `most` of the suggestions; raises `HistoryMoved` if others opened some meanwhile.

        `opened` is the number of those that were opened of this answer before; `waits` has the seconds that each worker
        has waited.
        """
        first = answer.suggestions[:most]
        overhead = answer.overhead * len(first) / len(answer.suggestions)
        waited = math.fsum(waits[: len(first)]) / len(first)
        if answer.question.ahead and isinstance(self._storage, OpensInTurn):
            with held_interrupts():
                late = self._open_late(self._storage, answer, owner=this_process(), most=most, waited=waited)
                return self._take(late, taken)
        expected = len(answer.question.history) + opened
        return self._open_all(first, taken, expected_trials=expected, overhead=overhead, waited=waited)

    def covers(self, suggestions: Sequence[Suggestion], remaining: Remaining) -> bool:
        """Whether the rest of a budget pays for all of them."""
        return len(self._covered(suggestions, remaining, self._history)) == len(suggestions)

    def payable(self, history: History, remaining: Remaining) -> int:
        """How many of the trials that wait the rest of a budget pays for, in their order; they have been counted."""
        waiting = [trial for trial in history.in_flight if trial.state is State.PENDING]
        for place, trial in enumerate(waiting):
            expected = expected_cost(history, trial.suggestion)
            if not remaining.covers(expected, is_new=False, in_seconds=self.problem.cost_unit == "seconds"):
                return place
            remaining = remaining.less(expected, is_new=False)
        return len(waiting)

    def record(self, attempt: Attempt, news: News) -> None:
        """Makes durable what a running trial says of itself."""
        match news:
            case Measurement():
                priced = [self._prices.measurement(self._trial_of(attempt), news)]
                if self.problem.prices_runs:
                    priced = self._with_full_price(attempt.number, priced)
                self._storage.record(self.name, attempt, priced, lease=self.leases.seconds)
            case Checkpointed(checkpoint):
                self._storage.save_checkpoint(self.name, attempt, checkpoint)
            case Eviction():
                self.log_eviction(news)

    def retire_checkpoint(self, number: int) -> bool:
        return self._storage.retire_checkpoint(self.name, number)

    def extend(self, extension: Extension) -> None:
        """Lets the space grow. The setting comes first: with it, every process reads the history before it decides."""
        self.remember({IS_EXTENDED: True})
        self._storage.log_event(self.name, EXTENDED, extension.to_json())
        self.refresh()

    def declare_noise(self, is_noisy: bool) -> None:
        """Says whether equal params may give different values, unless that is what is known."""
        history = self.refresh()
        if history.is_noisy != is_noisy:
            payload = noise_event(is_noisy=is_noisy, trials=len(history))
            self._storage.log_event(self.name, NOISE_DECLARED, payload)
            self.refresh()

    def set_budget(self, budget: Budget, *, given: bool = False) -> None:
        """Sets the budget of the study, for all that work on it; `given` says that a run was given it.

        A run that is given what the last one was given changes nothing: the budget may have been changed meanwhile,
        and the same program was started again.
        """
        history, limits = self.refresh(), budget.to_json()
        if limits == history.limits or (given and limits == limits_given(history.events)):
            return
        self._storage.log_event(
            self.name, BUDGET, lambda trials: budget_event(limits, trials=trials, given=given)
        )  # others may open trials meanwhile, which do not know of it
        self.refresh()

    def request_stop(self) -> None:
        self._storage.log_event(self.name, STOP, None)
        self.refresh()

    def withdraw_stop(self) -> None:
        """Lets the study go on, if it was asked to stop."""
        if self.refresh().is_to_stop:
            self._storage.log_event(self.name, WITHDRAWN, None)
            self.refresh()

    def learn(self, learned: Learned) -> None:
        """Freezes what was learnt from earlier studies; of two processes that begin at once, the first counts."""
        self._storage.log_event(self.name, LEARNED, learned.to_json())
        self.refresh()

    def log_code_change(self, payload: Json) -> None:
        self._storage.log_event(self.name, CHANGED, payload)
        self.refresh()

    def log_eviction(self, eviction: Eviction) -> None:
        self._storage.log_event(self.name, EVICTED, eviction.to_json())

    def note_worker(self, attempt: Attempt) -> None:
        """Says that an attempt was the first work of its process, where its cost is measured by the clock."""
        if self.problem.measures_cost:
            self._storage.log_event(self.name, WORKER_BEGAN, worker_event(attempt.number, attempt.attempt))

    def log_idle(self, seconds: float, *, holds: bool) -> None:
        """Says for how long workers had nothing to do, where that has a price, or they held what others could use."""
        if (holds or self.rate is not None) and seconds > 0.0:
            self._storage.log_event(self.name, IDLE, {"seconds": seconds})

    def close(self, attempt: Attempt, outcome: Outcome) -> Trial:
        try:
            final = self._with_best_so_far(attempt.number, outcome)
            priced = self._prices.outcome(self._trial_of(attempt), final)
            if self.problem.prices_runs:
                priced = replace(priced, measurements=self._with_full_price(attempt.number, priced.measurements))
            return self._storage.close_trial(self.name, attempt, priced)
        finally:
            self.forget(attempt)

    def _with_best_so_far(self, number: int, outcome: Outcome) -> Outcome:
        if not self.problem.best_so_far:
            return outcome
        run = self.refresh().lineage(number)
        return with_best_so_far(self.problem, outcome, before=[point.value for trial in run for point in trial.points])

    def _with_full_price(self, number: int, new: Sequence[Measurement]) -> list[Measurement]:
        history = self.refresh()
        return self._prices.of_full_run(history, history[number], new)

    def release(self, attempt: Attempt) -> None:
        """Gives a trial back unfinished."""
        self.forget(attempt)
        self._storage.release_trial(self.name, attempt)

    def holds(self, trial: Trial) -> bool:
        """Whether the attempt that runs was opened or claimed here, and is not done with."""
        return Attempt(trial.number, trial.attempt) in self._running

    def give_back(self, taken: Taken) -> None:
        """Puts trials that are not done with back to pending, for the next to take up first.

        One that cannot be given back, because the storage fails, is offered again when its lease ends.
        """
        for attempt in list(taken):
            with suppress(FarthingError):
                self.release(attempt)
            del taken[attempt]

    def forget(self, attempt: Attempt) -> None:
        self._running.pop(attempt, None)
        self._prices.end(attempt)
        self.leases.drop(attempt)

    def add(self, suggestion: Suggestion, outcome: Outcome, *, tags: Sequence[str]) -> Trial:
        whole = with_best_so_far(self.problem, outcome)
        if self.problem.prices_runs:
            self._require_cost(suggestion, whole.measurements)
            history = self.refresh()
            trial = Trial(len(history), suggestion, State.RUNNING)
            whole = replace(whole, measurements=self._prices.of_full_run(history, trial, whole.measurements))
        return self._storage.add_trial(self.name, suggestion, whole, tags=tags)

    def _require_cost(self, suggestion: Suggestion, told: Sequence[Measurement]) -> None:
        is_known = self.problem.declared_cost is not None or any(point.cost or COST in point.metrics for point in told)
        if not is_known:
            raise InvalidArgument(
                f"A result from elsewhere must say what it cost where {COST!r} is asked for, got none for "
                f"{shown(dict(suggestion.params))}. Pass cost=12.0."
            )

    def enqueue(self, suggestion: Suggestion, *, tags: Sequence[str]) -> Trial:
        return self._storage.enqueue_trial(self.name, suggestion, retries=self.lost_retries, tags=tags)

    def enqueue_once(self, wished: Callable[[History], Suggestion], *, note: Json) -> None:
        """Puts in line what is wished for after the history as it is, unless a trial with that note is there."""

        def choose(history: History) -> tuple[Sequence[Suggestion], float]:
            is_there = any(trial.note == note for trial in history)
            return [] if is_there else [replace(wished(history), note=note)], 0.0

        if isinstance(self._storage, OpensInTurn):
            self._open_locked(self._storage, choose, owner=None)
            return
        for suggestion in choose(self.refresh())[0]:
            self.enqueue(suggestion, tags=())

    def annotate(self, number: int, *, tags: Sequence[str] | None, comment: str | None) -> None:
        self._storage.annotate(self.name, number, tags=tags, comment=comment)

    def store_strategy(self, form: Json) -> None:
        self._storage.update_study(self.name, strategy=form)

    def remember(self, settings: Mapping[str, Json]) -> None:
        """Stores settings with the study, for the command line and the integrations to find at a resume."""
        self.settings |= settings
        self._storage.update_study(self.name, settings=settings)

    def seconds_run(self) -> float:
        return self._storage.seconds_run(self.name)

    def now(self) -> float:
        """The storage's clock."""
        return self._storage.now()

    @property
    def folder(self) -> Path | None:
        """The storage's own place for the study's files."""
        return self._storage.folder

    @property
    def is_in_memory(self) -> bool:
        return isinstance(self._storage, MemoryStorage)

    def let_go(self) -> None:
        """Lets go of the storage. Leases that are held end by themselves."""
        self.leases.close()
        if self._closes_storage:
            self._storage.close()

    def _claim_one(self, taken: Taken, number: int | None, waited: float) -> Trial | None:
        with held_interrupts():
            trial = self._storage.claim_trial(
                self.name,
                owner=this_process(),
                lease=self.leases.seconds,
                number=number,
                waited=waited,
                rate=self.rate,
                label=self.label,
            )
            return None if trial is None else self._take([trial], taken)[0]

    def _open_all(
        self, suggestions: Sequence[Suggestion], taken: Taken, *, expected_trials: int, overhead: float, waited: float
    ) -> list[Trial]:
        with held_interrupts():
            opened = self._storage.open_trials(
                self.name,
                suggestions,
                owner=this_process(),
                lease=self.leases.seconds,
                retries=self.lost_retries,
                expected_trials=expected_trials,
                overhead=overhead,
                waited=waited,
                rate=self.rate,
                label=self.label,
            )
            return self._take(opened, taken)

    def _take(self, trials: list[Trial], taken: Taken) -> list[Trial]:
        grown = [self._history.filled(trial) for trial in trials]
        taken.update({Attempt(trial.number, trial.attempt): trial for trial in grown})
        return [self._begin(trial) for trial in grown]

    def _suggest(self, strategy: Strategy, question: Question) -> list[Suggestion]:
        history, count = question.history, question.asked
        if count < 1:
            return []
        suggestions = answers_to(question, strategy, self.randomness)
        if len(suggestions) > count:
            raise InvalidArgument(
                f"A strategy must suggest at most as many trials as asked, got {len(suggestions)} for {count} "
                f"from {type(strategy).__name__}. Cut the list in its suggest()."
            )
        return [
            with_knowledge(
                self._prices.suggestion(self._checked(suggestion), history, question.remaining), question, place=place
            )
            for place, suggestion in enumerate(suggestions)
        ]

    def _alternatives(self, strategy: Strategy, question: Question) -> list[Suggestion]:
        """The strategy's next suggestions, if its first ones do not fit the rest of the budget."""
        tried = [(trial.params, trial.fidelity) for trial in question.history]
        more = self._suggest(strategy, replace(question, count=question.count + MORE_CHOICES))
        return [suggestion for suggestion in more if (suggestion.params, suggestion.fidelity) not in tried]

    def _covered(self, suggestions: Sequence[Suggestion], remaining: Remaining, history: History) -> list[Suggestion]:
        """The suggestions whose expected costs fit what those before them leave."""
        covered: list[Suggestion] = []
        in_seconds = self.problem.cost_unit == "seconds"
        is_limited = remaining.most_to_pay(in_seconds=in_seconds) < math.inf
        for suggestion in suggestions:
            is_new = suggestion.resume_from is None
            expected = expected_cost(history, suggestion) if is_limited else suggestion.predicted_cost
            if remaining.covers(expected, is_new=is_new, in_seconds=in_seconds):
                covered.append(suggestion)
                remaining = remaining.less(expected, is_new=is_new)
        return covered

    def _checked(self, suggestion: Suggestion) -> Suggestion:
        space = self.problem.space
        return replace(
            suggestion, params=space.check(suggestion.params), fidelity=space.check_fidelity(suggestion.fidelity)
        )

    def _trial_of(self, attempt: Attempt) -> Trial:
        """Also one that this coordinator does not run, or no longer: the storage says whether the attempt may write."""
        return self._running.get(attempt) or self.refresh()[attempt.number]

    def _begin(self, trial: Trial) -> Trial:
        attempt = Attempt(trial.number, trial.attempt)
        self._running[attempt] = trial
        self._prices.begin(trial, resumed_at=self._resumed_at(trial))
        self.leases.hold(attempt)
        return trial

    def _resumed_at(self, trial: Trial) -> Mapping[str, float] | None:
        """The fidelity of the checkpoint that an attempt starts from: its own trial's last report, or another trial."""
        if trial.checkpoint is not None and trial.points:
            return trial.points[-1].fidelity
        if trial.resume_checkpoint is None or trial.resume_from is None:
            return None
        return self._history[trial.resume_from].fidelity
