"""Runs one attempt at a trial, in any process."""

from farthing.errors import Pruned, WorkError
from farthing.execution.failures import failure_of
from farthing.execution.running_trial import CutShort, RunningTrial
from farthing.execution.work import CarriesOut
from farthing.trials import Outcome


class Superseded(BaseException):
    """Unwinds the work of an attempt whose news is not wanted any more. No Exception, so that work lets it pass."""


def run_attempt(
    work: CarriesOut, trial: RunningTrial, *, let_through: tuple[type[BaseException], ...] = ()
) -> Outcome | None:
    """How the work ended; None when the attempt was superseded. Any exception of the work makes an outcome too."""
    try:
        _check_resume_dir(trial)
        returned = work.run(trial)
    except Superseded:
        return None
    except (Pruned, CutShort):
        return trial._prune()
    except BaseException as error:
        if isinstance(error, let_through):
            raise
        return trial._fail(failure_of(error))
    return trial._finish(returned)


def _check_resume_dir(trial: RunningTrial) -> None:
    if trial.resume_dir is not None and not trial.resume_dir.is_dir():
        raise WorkError(
            f"A checkpoint to continue from must be a folder, got {str(trial.resume_dir)!r}, which is missing. "
            f"Run the trial it came from again."
        )
