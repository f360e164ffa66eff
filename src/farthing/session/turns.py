"""Gives a process its turn where others are always quicker to open trials.

A suggestion is made for the history that it knows, and is in vain if others opened trials meanwhile. After a few of
these it is this process's turn. If its suggestions are quick, one is made while everyone else waits. If they take long,
nobody waits: some more are asked for than are needed, and one that nobody else has made is opened whatever happened
meanwhile. Its note says what it knew, so that a replay makes it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from farthing.costs import Remaining
from farthing.costs.expected import expected_cost
from farthing.session.questions import Question
from farthing.strategies import Strategy
from farthing.trials import History, Prediction, Suggestion, Trial
from farthing.trials.trial import is_added

TRIES_BEFORE_A_TURN = 3
"""Number of suggestions of which all but the last may be in vain because others were quicker; a guess, not tuned."""

LONGEST_TURN = 0.1
"""Seconds of suggesting for which others may be made to wait, as they do when a disk is busy; a guess, not tuned."""

FEWEST_AHEAD = 2
"""Number of further suggestions to ask for at first: programs that think equally long open one or two meanwhile."""


@dataclass(frozen=True)
class Answer:
    """The suggestions of a strategy, as far as the budget covers it, and the seconds that it took.

    Without `suggestions`, `uncovered` are those that the budget did not cover.
    """

    question: Question
    suggestions: Sequence[Suggestion]
    uncovered: Sequence[Suggestion] = ()
    overhead: float = 0.0

    def after(self, opened: int) -> "Answer":
        """The rest of it, once that many of its suggestions are trials."""
        share = self.overhead / max(1, len(self.suggestions))
        rest = self.suggestions[opened:]
        return replace(self, suggestions=rest, overhead=share * len(rest))


class Turns:
    """Counts suggestions in vain, and says when it is this process's turn.

    In a population each suggestion depends on all the others: they are made while others wait, however long it takes.
    """

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self.win()

    def win(self) -> None:
        """A suggestion was opened."""
        self._in_vain = self._opened_meanwhile = 0
        self._longest = 0.0

    def lose(self, answer: Answer, history: History) -> None:
        """A suggestion was in vain, because the history has grown."""
        self._in_vain += 1
        self._opened_meanwhile = len(history) - len(answer.question.history)
        self._longest = max(self._longest, answer.overhead)

    @property
    def is_due(self) -> bool:
        return self._in_vain >= TRIES_BEFORE_A_TURN - 1

    @property
    def is_quick(self) -> bool:
        """Whether others can wait for it."""
        return self._longest < LONGEST_TURN or self._strategy.needs_checkpoints

    @property
    def ahead(self) -> int:
        """The number of further suggestions to ask for: more if even those of the last turn were in vain."""
        if not self.is_due or self.is_quick:
            return 0
        is_first = self._in_vain < TRIES_BEFORE_A_TURN
        return FEWEST_AHEAD if is_first else max(FEWEST_AHEAD, 2 * self._opened_meanwhile)


def usable_late(answer: Answer, history: History) -> tuple[Sequence[Suggestion], Remaining]:
    """The suggestions that may still be opened, the best first, and what others have left of the budget for them.

    If others have opened one of them, they think alike: then those come first that were made for later numbers. A
    strategy that repeats itself may do so; but no trial is continued twice.
    """
    opened = history[len(answer.question.history) :]
    suggestions = answer.suggestions
    new = [one for one in suggestions if not any(_is_same_work(one, trial) for trial in opened)]
    later = [one for one in suggestions[len(opened) :] if one in new]
    usable = new if len(new) == len(suggestions) else later or new
    if not usable and len(suggestions) > len(opened):
        usable = [one for one in suggestions if one.resume_from is None]
    return usable, _left(answer.question.remaining, opened, history)


def _is_same_work(suggestion: Suggestion, trial: Trial) -> bool:
    if suggestion.resume_from is not None:
        return suggestion.resume_from == trial.resume_from
    same = (trial.params, trial.fidelity, trial.resume_from)
    return (suggestion.params, suggestion.fidelity, suggestion.resume_from) == same


def _left(remaining: Remaining, opened: Sequence[Trial], history: History) -> Remaining:
    for trial in opened:
        expected = expected_cost(history, trial.suggestion)
        cost = Prediction(max(trial.cost, expected.mean if expected else 0.0))
        remaining = remaining.less(cost, is_new=trial.resume_from is None and not is_added(trial))
    return remaining
