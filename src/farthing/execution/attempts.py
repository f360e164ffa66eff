"""Runs one attempt at a trial, in any process."""

from farthing.errors import Pruned, WorkError
from farthing.execution.failures import failure_of
from farthing.execution.running_trial import CutShort, RunningTrial
from farthing.execution.work import CarriesOut
from farthing.trials import Outcome


class Superseded(BaseException):
    """Unwinds the work of an attempt whose news is not wanted any more. No Exception, so that work lets it pass."""


class Attempted:
    """`with Attempted(trial) as attempted: attempted.returned = …` does the work of a trial; any exception ends it.

    `outcome()` then says how: None where the attempt was superseded.
    """

    def __init__(self, trial: RunningTrial, *, let_through: tuple[type[BaseException], ...] = ()) -> None:
        self.returned: object = None
        self._trial = trial
        self._let_through = let_through
        self._error: BaseException | None = None

    def __enter__(self) -> "Attempted":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self._error = error
        return not isinstance(error, self._let_through)

    def outcome(self) -> Outcome | None:
        match self._error:
            case None:
                return self._trial._finish(self.returned)
            case Superseded():
                return None
            case Pruned() | CutShort():
                return self._trial._prune()
            case error:
                return self._trial._fail(failure_of(error))


def run_attempt(
    work: CarriesOut, trial: RunningTrial, *, let_through: tuple[type[BaseException], ...] = ()
) -> Outcome | None:
    """How the work ended; None when the attempt was superseded. Any exception of the work makes an outcome too."""
    with Attempted(trial, let_through=let_through) as attempted:
        check_resume_dir(trial)
        attempted.returned = work.run(trial)
    return attempted.outcome()


def check_resume_dir(trial: RunningTrial) -> None:
    if trial.resume_dir is not None and not trial.resume_dir.is_dir():
        raise WorkError(
            f"A checkpoint to continue from must be a folder, got {str(trial.resume_dir)!r}, which is missing. "
            f"Run the trial it came from again."
        )
