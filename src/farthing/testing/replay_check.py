"""A check that a strategy is a function of the history: what it suggested it suggests again."""

import json

from farthing.session.questions import suggested_again, without_knowledge
from farthing.study import Study
from farthing.trials import History, Trial
from farthing.trials.extension import as_suggested


def check_replay(study: Study) -> list[int]:
    """The numbers of the trials that the study's strategy would not suggest again, bit for bit; none if all is well.

    Each is suggested from what its note says that it knew, however many workers there were. Trials that were enqueued
    or added are left out. The study must have its declared cost, if any, and have had one strategy.
    """
    history = study.history
    return [trial.number for trial in history if trial.overhead > 0.0 and not _is_repeated(study, history, trial)]


def _is_repeated(study: Study, history: History, trial: Trial) -> bool:
    again = suggested_again(study.strategy, history, trial.number)
    if again is None:
        return False
    space = history.before(trial.number).problem.space  # it may have been extended since
    params, fidelity = space.check(again.params), space.check_fidelity(again.fidelity)
    note = json.loads(json.dumps(again.note)) or None
    told = (as_suggested(trial, space).params, trial.fidelity, trial.resume_from, without_knowledge(trial.note))
    return (params, fidelity, again.resume_from, note) == told
