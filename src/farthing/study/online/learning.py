"""The first settings of an online run, learnt from earlier studies."""

from pathlib import Path

from farthing.errors import StudyNotFound
from farthing.knowledge.earlier import learn
from farthing.session.creation import closed_on_error
from farthing.storage import Storage, StudyRecord, open_storage
from farthing.trials import Params, Problem


def learned_params(given: object, problem: Problem, *, name: str, storage: str | Path | Storage | None) -> list[Params]:
    """The best configurations of earlier studies; of a run that is continued, those that it began with."""
    place = open_storage(storage)
    with closed_on_error(place, given=storage):
        params = _stored(place, name)
        if params is None:
            params = [start.params for start in learn(given, problem, name=name, storage=place).starts]
    if place is not storage:
        place.close()
    return params


def _stored(place: Storage, name: str) -> list[Params] | None:
    try:
        record: StudyRecord = place.load_study(name)
    except StudyNotFound:
        return None
    arguments = (record.strategy or {}).get("arguments", {})
    return list(arguments.get("initial", []))
