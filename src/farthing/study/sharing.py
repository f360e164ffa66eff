"""Suggests for every worker of a study: one process at a time has the right to, and the others take from the queue.

The right is a lease in the storage, and saves work only: suggestions are opened for the numbers they were made for, so
two processes that believe that they have it harm nobody.
"""

from dataclasses import replace

from farthing.costs import Remaining
from farthing.errors import HistoryMoved
from farthing.session.questions import Question
from farthing.session.records import Records, Taken
from farthing.session.turns import Answer, Turns
from farthing.strategies import Strategy
from farthing.strategies.shared.effort import allowed_effort
from farthing.study.pace import queued_ahead
from farthing.study.suggesting import AnsweringThread, Wake
from farthing.trials import History, Trial


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
        self._thread = AnsweringThread(lambda question: records.answer(strategy, question), on_answer)
        self.turns = Turns(strategy)
        self._nothing: Answer | None = None
        """What was suggested last, if that was nothing: it is asked again when the study has changed."""

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
