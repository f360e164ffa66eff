"""Says what deleting a study loses."""

from farthing.study import Study
from farthing.trials import State


def losses(study: Study) -> str:
    """What would be deleted, in words."""
    history = study.history
    running = sum(trial.state is State.RUNNING for trial in history)
    still = f", {running} of them running now" if running else ""
    return f"{study.name} with its {len(history)} trials{still}, {history.cost:.4g} {study.problem.cost_unit} of work,"
