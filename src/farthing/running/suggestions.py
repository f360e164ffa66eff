"""Gets suggestions for a run: here and now, or in a thread of their own while the workers work.

A suggestion that is begun before a worker needs it lives in memory only. When a trial ends it does not know the result:
it is thrown away, unless a worker would wait too long for a new one. What would be thrown away is not begun. At the
least effort several are made at once, and used one after the other.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import ceil
from queue import SimpleQueue
from typing import Protocol, runtime_checkable

from farthing.costs import EFFORT_LEVELS, EffortLevel, Remaining
from farthing.errors import HistoryMoved
from farthing.session.questions import Question
from farthing.session.records import Records, Taken
from farthing.session.turns import Answer, Turns
from farthing.strategies import Strategy
from farthing.strategies.shared.effort import SHARE, allowed_effort, relative, seconds_of_a_trial, seconds_of_thinking
from farthing.trials import History, Trial

# ------------------------------------------------------------
# How far a run suggests ahead, so that workers do not wait: by the figures that decide how much a strategy thinks.


WAIT = 0.02
"""A worker waits for a suggestion that knows all results for at most this share of a trial's seconds, wherever one that
misses a result misses little (`KNOWN_FOR_EACH_MISSED`)."""
BETWEEN_LOOKS = 1.0
"""Seconds within which a process notices what others did."""
KNOWN_FOR_EACH_MISSED = 40
"""Results that a suggestion must know for each one that it misses although it has come. Branin with eight workers and
trials of 50 ms was left at a median regret of .39 after 30 trials without this limit, .09 with a limit of 8, and .02
without suggesting ahead (4 pairs each). With 20, Hartmann-6 after 40 trials was worse than without suggesting ahead in
9 of 10 pairs; of 20 and 40, on three functions of five or six numbers and other seeds, 20 won 6 of 18 pairs against
suggesting without it and 40 won 11; more effort did not help. Where a study is so short, waiting costs little."""


def suggested_together(strategy: Strategy, history: History, *, workers: int) -> int:
    """How many suggestions to make at once at the least effort: as many as bring the time of each to its share, since
    of those made together all but the first know less than they could.
    """
    most = max(1, min(workers, may_miss(history)))
    seconds = seconds_of_a_trial(history)
    if seconds is None:
        return most
    return max(1, min(most, ceil(_taken(strategy, history, EFFORT_LEVELS[-1]) * workers / (SHARE * seconds))))


def may_miss(history: History) -> int:
    """The number of results that have come and that a suggestion may leave out all the same."""
    return history.results // KNOWN_FOR_EACH_MISSED


def queued_ahead(strategy: Strategy, history: History, *, workers: int) -> int:
    """How many suggestions to keep waiting for all workers of a study: one for each that is idle and, as far as they
    may miss results, as many as there are trials that end before the next suggestions are there.

    None ahead for one worker: it would miss the only result that is new, and the study would depend on the clock.
    """
    idle = max(0, workers - (len(history) - history.finished - history.waiting))
    seconds = seconds_of_a_trial(history)
    if workers == 1 or seconds is None:
        return min(workers, idle)
    ending = ceil(workers * (seconds_of_thinking(strategy, history) + BETWEEN_LOOKS) / seconds)
    return min(workers, idle + min(ending, may_miss(history)))


def is_long_to_wait(strategy: Strategy, history: History, effort: EffortLevel) -> bool:
    """Whether a worker that waited for a suggestion of that effort would wait for too large a share of a trial."""
    seconds = seconds_of_a_trial(history)
    return seconds is not None and _taken(strategy, history, effort) > WAIT * seconds


def _taken(strategy: Strategy, history: History, effort: EffortLevel) -> float:
    return relative(strategy, effort) * seconds_of_thinking(strategy, history)


Suggest = Callable[[Question], Answer]
Wake = Callable[[], None]
"""Called in the thread that suggests when it is done."""


class Suggester(Protocol):
    """The source of a run's suggestions."""

    turns: Turns

    def answer(self, question: Question) -> Answer | None:
        """Suggestions for a worker that is free now; None while the strategy thinks."""
        ...

    def open(self, answer: Answer, *, most: int, taken: Taken, waits: list[float]) -> list[Trial]:
        """Opens trials of up to `most` of the suggestions; none if others opened some meanwhile: ask again.

        `waits` has the seconds that each worker has waited, the longest first.
        """
        ...

    def prepare(self, question: Question) -> None:
        """Begins a suggestion for the next worker that will be free, if it will be worth it."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether a suggestion has come that nobody has looked at."""
        ...

    @property
    def may_prepare(self) -> bool:
        """Whether there is a thread for it, which has nothing to do."""
        ...

    def close(self, *, waits: bool) -> None:
        """Nothing more will be asked."""
        ...


class SuggesterHere:
    """Suggests in the calling thread, when a worker is free."""

    def __init__(self, records: Records, strategy: Strategy) -> None:
        self._records = records
        self._strategy = strategy
        self.turns = Turns(strategy)

    def answer(self, question: Question) -> Answer | None:
        return self._records.answer(self._strategy, replace(question, ahead=self.turns.ahead))

    def open(self, answer: Answer, *, most: int, taken: Taken, waits: list[float]) -> list[Trial]:
        try:
            opened = self._records.open_answer(answer, taken=taken, most=most, waits=waits)
        except HistoryMoved:
            self.turns.lose(answer, self._records.refresh())
            return []
        self.turns.win()
        return opened

    def prepare(self, question: Question) -> None:
        """Nothing: whoever waits here also does the work."""

    is_ready = may_prepare = False

    def close(self, *, waits: bool) -> None:
        """Nothing is under way."""


class SuggesterInThread:
    """Suggests in a thread, so that reports are recorded meanwhile. `on_answer` is called there when it is done.

    `workers` is the number of trials in flight when all of them are busy.
    """

    def __init__(
        self,
        records: Records,
        strategy: Strategy,
        *,
        workers: int,
        on_answer: Wake,
        thinking: "Callable[[Suggest, Wake], Thinking] | None" = None,
    ) -> None:
        self._records = records
        self._strategy = strategy
        self._workers = workers
        suggest = partial(records.answer, strategy)
        self._thread = thinking(suggest, on_answer) if thinking else AnsweringThread.of(strategy, suggest, on_answer)
        self._is_ahead = False
        self._ready: Answer | None = None
        self._opened = 0
        self.turns = Turns(strategy)

    @property
    def is_ready(self) -> bool:
        return self._ready is not None or self._thread.has_answer

    @property
    def may_prepare(self) -> bool:
        return not (self.is_ready or self._thread.is_busy)

    def answer(self, question: Question) -> Answer | None:
        self._collect()
        answer, self._ready = self._ready, None
        if answer is None or not self._is_usable(answer, question):
            if answer is not None and len(question.history) != len(answer.question.history) + self._opened:
                self.turns.lose(answer, question.history)
            if not self._thread.is_busy:
                self._begin(question, is_ahead=False)
            return None
        return answer

    def open(self, answer: Answer, *, most: int, taken: Taken, waits: list[float]) -> list[Trial]:
        try:
            opened = self._records.open_answer(answer, taken=taken, most=most, opened=self._opened, waits=waits)
        except HistoryMoved:
            self.turns.lose(answer, self._records.refresh())
            return []
        self.turns.win()
        rest = answer.after(len(opened))
        self._opened += len(opened)
        self._ready = rest if rest.suggestions and not answer.question.ahead else None
        return opened

    def prepare(self, question: Question) -> None:
        if not question.history.waiting and self._may_be_stale(question.history):
            self._begin(question, is_ahead=True)

    def close(self, *, waits: bool) -> None:
        self._thread.close(waits=waits)

    def _begin(self, question: Question, *, is_ahead: bool) -> None:
        effort = self._effort(question.history)
        is_least = effort == EFFORT_LEVELS[-1]
        together = (
            suggested_together(self._strategy, question.history, workers=self._workers) if is_least else question.count
        )
        count = max(question.count, int(min(together, question.remaining.trials)))
        self._is_ahead = is_ahead
        more = 0 if is_ahead else self.turns.ahead
        self._thread.ask(Question(question.history, replace(question.remaining, effort=effort), count, more))

    def _collect(self) -> None:
        if (answer := self._thread.take()) is not None:
            self._ready, self._opened = answer, 0

    def _is_usable(self, answer: Answer, question: Question) -> bool:
        """Whether it may be used although trials have ended since; numbers must be those that it was made for."""
        known, history = answer.question.history, question.history
        if answer.question.ahead and answer.suggestions:
            return True
        if len(history) != len(known) + self._opened:
            return False
        missed = history.ended_since(known)
        if not missed:
            return True
        if not answer.suggestions or not (self._is_ahead or self._opened):
            return bool(answer.suggestions)
        is_covered = self._records.covers(answer.suggestions[: question.count], question.remaining)
        return is_covered and self._may_be_stale(history, missed=missed)

    def _may_be_stale(self, history: History, *, missed: int = 1) -> bool:
        """Whether a worker would wait too long for a new one. Of several made together all but the first are stale.

        Never with one worker: it would miss the only result that is new, and the study would depend on the clock. And
        only where what it misses is little beside what it knows.
        """
        if self._workers == 1 or missed > may_miss(history):
            return False
        effort = self._effort(history)
        return effort == EFFORT_LEVELS[-1] or is_long_to_wait(self._strategy, history, effort)

    def _effort(self, history: History) -> EffortLevel:
        return allowed_effort(self._strategy, history, workers=self._workers)


class Thinking(Protocol):
    """Lets a strategy think while the loop goes on: one question at a time."""

    @property
    def is_busy(self) -> bool:
        """Whether a question was asked whose answer has not been taken."""
        ...

    @property
    def has_answer(self) -> bool: ...

    def ask(self, question: Question) -> None: ...

    def take(self) -> Answer | None:
        """The answer, once; None as long as there is none."""
        ...

    def close(self, *, waits: bool) -> None:
        """Nothing more will be asked. Waits, if it is to, until nothing is thought about."""
        ...


@runtime_checkable
class GivesTimeToThink(Protocol):
    """An executor that has a place of its own for the strategy's thinking, such as one in virtual time."""

    def thinking_of(self, suggest: Suggest, on_answer: Wake) -> Thinking: ...


class AnsweringThread:
    """A thread that answers one question at a time; an error is raised where the answer is taken.

    It is started for the first question and waits for the next ones: on a busy machine a new thread begins milliseconds
    later than one that sleeps, and whoever starts it waits until it has begun. It loads the module `imports_later` once
    the first answer is there, while the workers work.
    """

    def __init__(self, suggest: Suggest, on_answer: Wake, *, imports_later: str | None = None) -> None:
        self._suggest = suggest
        self._on_answer = on_answer
        self._imports_later = imports_later
        self._thread: threading.Thread | None = None
        self._questions: SimpleQueue[Question | None] = SimpleQueue()
        self._is_busy = False
        self._answer: Answer | None = None
        self._error: BaseException | None = None

    @classmethod
    def of(cls, strategy: Strategy, suggest: Suggest, on_answer: Wake) -> "AnsweringThread":
        return cls(suggest, on_answer, imports_later=strategy.imports_later)

    @property
    def is_busy(self) -> bool:
        """Whether a question was asked whose answer has not been taken."""
        return self._is_busy

    @property
    def has_answer(self) -> bool:
        return self._answer is not None or self._error is not None

    def ask(self, question: Question) -> None:
        assert not self.is_busy, "one question at a time"
        self._is_busy = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="farthing-suggesting", daemon=True)
            self._thread.start()
        self._questions.put(question)

    def take(self) -> Answer | None:
        """The answer, once; None as long as there is none."""
        if not self.has_answer:
            return None
        answer, error = self._answer, self._error
        self._answer = self._error = None
        self._is_busy = False
        if error is not None:
            raise error
        return answer

    def close(self, *, waits: bool) -> None:
        self._questions.put(None)
        if waits and self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            try:
                self._answer = self._suggest(question)
            except BaseException as error:
                self._error = error
            self._on_answer()
            if self._imports_later is not None:
                with suppress(ImportError):  # whoever needs it says so
                    import_module(self._imports_later)
                self._imports_later = None


# ------------------------------------------------------------
# Suggests for every worker of a study: one process at a time has the right to, and the others take from the queue.
#
# The right is a lease in the storage, and saves work only: suggestions are opened for the numbers they were made for,
# so two processes that believe that they have it harm nobody.


class SuggesterForAll:
    """Keeps as many trials waiting as free workers will need before the next suggestions are there.

    `workers` is the number of this process's own. With `only_runs` it suggests nothing, and takes what others suggest.
    """

    def __init__(
        self, records: Records, strategy: Strategy, *, workers: int, on_answer: Wake, only_runs: bool = False
    ) -> None:
        self._records = records
        self._strategy = strategy
        self._workers = workers
        self._only_runs = only_runs
        self._thread = AnsweringThread.of(strategy, partial(records.answer, strategy), on_answer)
        self.turns = Turns(strategy)
        self._nothing: Answer | None = None
        """The last answer, if it was no suggestion: the strategy is asked again when the study has changed."""

    @property
    def is_ready(self) -> bool:
        return self._thread.has_answer

    @property
    def may_prepare(self) -> bool:
        return not self._only_runs

    def answer(self, question: Question) -> Answer | None:
        """None while this or another process thinks; without suggestions if there are none to be had."""
        if self._only_runs:
            return Answer(question, ())
        if self._nothing is not None and self._nothing.question.history.version == question.history.version:
            return self._nothing
        answer = self._thread.take()
        if answer is None:
            self._think(question)
        else:
            self._nothing = None if answer.suggestions else answer
        return answer

    def open(self, answer: Answer, *, most: int, taken: Taken, waits: list[float]) -> list[Trial]:
        """Puts all in line for everyone, and takes up to `most` of what is there."""
        return self._records.claim(most, taken=taken, waits=waits) if self._put_in_line(answer) else []

    def prepare(self, question: Question) -> None:
        answer = self._thread.take()
        if answer is not None and answer.suggestions:
            self._put_in_line(answer)
        else:
            self._think(question)

    def close(self, *, waits: bool) -> None:
        self._thread.close(waits=waits)
        self._records.yield_suggesting()

    def _put_in_line(self, answer: Answer) -> bool:
        try:
            self._records.put_in_line(answer)
        except HistoryMoved:
            self.turns.lose(answer, self._records.refresh())
            return False
        self.turns.win()
        return True

    def _think(self, question: Question) -> None:
        """Begins to suggest what the queue lacks, if this process may and does not yet."""
        if self._thread.is_busy or not self._records.may_suggest():
            return
        history, workers = question.history, max(self._workers, self._records.workers_going())
        count = self._lacking(history, question.remaining, workers=workers)
        if count > 0:
            effort = allowed_effort(self._strategy, history, workers=workers)
            self._thread.ask(Question(history, replace(question.remaining, effort=effort), count, self.turns.ahead))

    def _lacking(self, history: History, left: Remaining, *, workers: int) -> int:
        wanted = queued_ahead(self._strategy, history, workers=workers) - history.waiting
        is_new_only = not history.problem.space.fidelities
        return int(min(wanted, max(0.0, left.trials))) if is_new_only else wanted
