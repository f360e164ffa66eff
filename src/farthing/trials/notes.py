"""What notes on trials say, whoever wrote them: it is read here, so that a word means one thing everywhere."""

from collections.abc import Mapping
from typing import Any

from farthing.trials.suggestion import Json
from farthing.trials.trial import Trial

ADDED = "added"
"""In the note of a trial whose result was obtained elsewhere."""

THETA = "theta"
"""In the note of a trial that a model chose: the hyperparameters of the model."""


def noted(note: Json) -> Mapping[str, Any]:
    """The note by its words; nothing if a strategy wrote something else than a mapping."""
    return note if isinstance(note, dict) else {}


def is_added(trial: Trial) -> bool:
    return ADDED in noted(trial.note)


def is_by_model(trial: Trial) -> bool:
    return THETA in noted(trial.note)


def reason_of(trial: Trial) -> str:
    """The strategy's reason for its choice, if it gives one."""
    return str(noted(trial.note).get("why", ""))
