"""How long a full trial takes, to a power of ten, as the study decided it: an event of the history.

How much a strategy thinks follows from it. Measured seconds differ from one day to the next, and a suggestion that
followed from them could not be made again. So they are rounded to a power of ten, and that is decided once, after the
first results, and again after fixed numbers of them.
"""

import math
from collections.abc import Sequence
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from farthing.trials.problem import Problem
from farthing.trials.suggestion import Json
from farthing.trials.trial import State, Trial

if TYPE_CHECKING:
    from farthing.trials.history import Event, History

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
