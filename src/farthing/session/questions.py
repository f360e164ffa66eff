"""The knowledge of a suggestion when it was made, kept in its note: with it the same suggestion can be made again.

A suggestion that is made while trials run does not know how they end, and one that was prepared may not know of trials
that ended since. Nothing is noted where it goes without saying: one suggestion, after all trials before it had ended,
with the rest of the study's budget that follows from them. Of the trials that ran, a note has what changed since the
note of an earlier trial: with a thousand workers all of them would be thirteen kilobytes a trial.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice

from farthing.costs import Budget, EffortLevel, Remaining
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Json, State, Suggestion, Trial
from farthing.trials.events import changed_just_now
from farthing.trials.memos import places_changed
from farthing.trials.trial import noted

KNEW = "knew"
"""The key in the note of a suggestion."""
MOST_LINKS = 50
"""Notes that are read to know what one suggestion knew; the next one names all trials that ran. A limit on time."""


@dataclass(frozen=True)
class Knowledge:
    """The knowledge of a suggestion, as its note has it; the defaults go without saying.

    `running` has the number, the attempt and the count of measurements of each trial that ran. With `since` it has only
    those that ran otherwise, or not at all, when the trial of that number was suggested; `ended` are those that ran
    then only, and `links` counts the notes that lead to one with all. `left` has the limits of what was left of the
    budget, and `place` is its own among those that were asked for.
    """

    trials: int | None = None
    running: Sequence[tuple[int, int, int]] = ()
    since: int | None = None
    ended: Sequence[int] = ()
    links: int = 0
    left: Mapping[str, float] | None = None
    events: int | None = None
    effort: EffortLevel | None = None
    asked: int = 1
    place: int = 0

    @classmethod
    def of(cls, trial: Trial) -> "Knowledge":
        known = noted(noted(trial.note).get(KNEW))
        return cls(**{field.name: known[field.name] for field in fields(cls) if field.name in known})


@dataclass(frozen=True)
class Question:
    """A question to a strategy: the history and the rest of the budget that it knows, and how many suggestions.

    With `ahead`, so many more are asked for, and the answer is used although others opened trials meanwhile
    (`session/turns.py`).
    """

    history: History
    remaining: Remaining
    count: int
    ahead: int = 0

    @property
    def asked(self) -> int:
        return self.count + self.ahead if self.count > 0 else 0

    @property
    def is_plain(self) -> bool:
        """Whether it is what everyone would assume: one suggestion, with all trials before it ended.

        The seconds of a run cannot be assumed, nor whether a budget that was changed just now was known in time.
        """
        is_usual = self.asked == 1 and self.history.finished == len(self.history)
        is_sure = not changed_just_now(self.history.events, len(self.history))
        return is_usual and is_sure and self.remaining == _assumed_rest(self.history)


def with_knowledge(suggestion: Suggestion, question: Question, *, place: int) -> Suggestion:
    """The suggestion with what it knew in its note; `place` is its own among those that were asked for.

    A note that is no mapping is left as it is: it is the strategy's.
    """
    note = {} if suggestion.note is None else suggestion.note
    if question.is_plain or not isinstance(note, dict):
        return suggestion
    return replace(suggestion, note={**note, KNEW: _knowledge(question, place)})


def without_knowledge(note: Json) -> Json:
    """The note as the strategy wrote it."""
    if KNEW not in noted(note):
        return note
    return {key: part for key, part in noted(note).items() if key != KNEW} or None


def question_of(history: History, number: int) -> tuple[Question, int]:
    """The question that a trial of the history answered, and its place among the answers."""
    knew = Knowledge.of(history[number])
    before = history.before(number if knew.trials is None else knew.trials)
    known = History(
        before.problem,
        _as_known(_with_checkpoints(before, history), running_then(history, number)),
        events=before.events if knew.events is None else history.events[: knew.events],
    )
    remaining = _assumed_rest(known) if knew.left is None else Remaining(**knew.left, effort=knew.effort)
    return Question(known, remaining, knew.asked), knew.place


def running_then(history: History, number: int) -> dict[int, tuple[int, int]]:
    """The attempts and the counts of measurements of the trials that ran when that one was suggested, by number."""
    notes = [Knowledge.of(history[number])]
    while (since := notes[-1].since) is not None and since < number:
        number = since
        notes.append(Knowledge.of(history[number]))
    running: dict[int, tuple[int, int]] = {}
    for knew in reversed(notes):
        for ended in knew.ended:
            running.pop(ended, None)
        running |= {one: (attempt, count) for one, attempt, count in knew.running}
    return running


def answers_to(question: Question, strategy: Strategy, rng: Randomness) -> list[Suggestion]:
    """The suggestions of a strategy; before them what was learnt, at full fidelity, unless it has starts of its own."""
    history = question.history
    if history.learned is not None and not strategy.takes_starts:
        from farthing.strategies.shared.starts import learnt_starts

        if found := learnt_starts(history)[: question.asked]:
            full = history.problem.space.full_fidelity
            return [Suggestion(first.params, full, note=first.noted()) for first in found]
    return list(strategy.suggest(history, question.remaining, question.asked, rng))


def suggested_again(strategy: Strategy, history: History, number: int) -> Suggestion | None:
    """The suggestion of a strategy that knows no more than that trial's suggestion knew; None if it suggests less."""
    question, place = question_of(history, number)
    suggestions = answers_to(question, strategy, Randomness(history.problem.seed))
    return suggestions[place] if place < len(suggestions) else None


def _assumed_rest(history: History) -> Remaining:
    """The rest of the budget in force that follows from the trials; seconds do not."""
    budget = Budget.in_force(history)
    return Remaining() if budget is None else replace(budget.remaining(history, seconds=0.0), seconds=math.inf)


def _knowledge(question: Question, place: int) -> dict[str, Json]:
    history, left = question.history, question.remaining
    limits = {"cost": left.cost, "seconds": left.seconds, "trials": left.trials}
    return {
        "trials": len(history),
        **_running(history),
        "left": {name: amount for name, amount in limits.items() if amount < math.inf},
        **({"events": len(history.events)} if history.events else {}),
        **({} if left.effort is None else {"effort": left.effort}),
        **({} if question.asked == 1 else {"asked": question.asked, "place": place}),
    }


class _LastNote:
    """The history of the last question, and what its note says of the trials that ran.

    The next note says what changed since, and need not read the notes before it to know that.
    """

    def __init__(self) -> None:
        self.history: History | None = None
        self.note: Mapping[str, Json] = {}

    def of(self, history: History) -> "_LastNote":
        return self

    def was_for(self, knew: Mapping[str, Json]) -> bool:
        """Whether a trial with that note was suggested for that history."""
        return self.history is not None and all(knew.get(key) == self.note.get(key) for key in RUNNING_KEYS)


RUNNING_KEYS = ("trials", "running", "since", "ended", "links")


def _running(history: History) -> dict[str, Json]:
    """The trials that run: all of them, or what changed since the last trial was suggested, where that is shorter."""
    last = history.memo(_LastNote)
    if last.history is not history:
        note = _what_runs(history, last)
        last.history, last.note = history, {"trials": len(history), **note}
    return {key: part for key, part in last.note.items() if key != "trials"}


def _what_runs(history: History, last: _LastNote) -> dict[str, Json]:
    number = len(history) - 1
    links = Knowledge.of(history[number]).links + 1 if history else MOST_LINKS
    changed, ended = _changes_since(history, number, last) if links < MOST_LINKS else ([], [])
    if links >= MOST_LINKS or len(changed) + len(ended) >= len(history) - history.finished:
        return {"running": [[trial.number, *_standing(trial)] for trial in history.in_flight]}
    return {"since": number, "links": links, "running": changed, **({"ended": ended} if ended else {})}


def _changes_since(history: History, number: int, last: _LastNote) -> tuple[list[Json], list[Json]]:
    """Which trials run otherwise than when that one was suggested, or not at all, and which ran then only."""
    before: Mapping[int, tuple[int, int]]
    if last.history is not None and last.was_for(noted(noted(history[number].note).get(KNEW))):
        places = places_changed(last.history, history)
        then = {place: last.history.in_flight_as(place) for place in places}
        before = {place: _standing(trial) for place, trial in then.items() if trial is not None}
        now = [trial for place in places if (trial := history.in_flight_as(place)) is not None]
    else:
        before, now = running_then(history, number), list(history.in_flight)
    changed: list[Json] = [[one.number, *_standing(one)] for one in now if before.get(one.number) != _standing(one)]
    return changed, [one for one in sorted(before) if history.in_flight_as(one) is None]


def _standing(trial: Trial) -> tuple[int, int]:
    return trial.attempt, len(trial.measurements)


def _with_checkpoints(before: History, history: History) -> list[Trial]:
    """The trials with the checkpoints that later trials of the history began with, which are deleted afterwards."""
    trials = list(before)
    for trial in history:
        if trial.resume_checkpoint is not None and trial.resume_from is not None and trial.resume_from < len(trials):
            source = trials[trial.resume_from]
            trials[source.number] = replace(source, checkpoint=source.checkpoint or trial.resume_checkpoint)
    return trials


def _as_known(known: list[Trial], running: Mapping[int, tuple[int, int]]) -> list[Trial]:
    for number, (attempt, measurements) in running.items():
        known[number] = _still_running(known[number], attempt, measurements)
    return known


def _still_running(trial: Trial, attempt: int, measurements: int) -> Trial:
    """The trial as it was while it ran, after that many measurements."""
    return replace(
        trial,
        state=State.RUNNING,
        attempt=attempt,
        measurements=tuple(islice(trial.measurements, measurements)),
        value=None,
        failure=None,
        checkpoint=None,
        finished_at=None,
    )
