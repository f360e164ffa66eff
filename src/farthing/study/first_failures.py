"""The first trials of a run: if they all fail in the same way, the work is broken and the budget is not spent on it."""

import logging

from farthing.execution.failures import Cause, cause_of
from farthing.space import Choice
from farthing.space.parameters import Parameter
from farthing.study.limits import Stopped, StopReason
from farthing.trials import History, State, Trial

log = logging.getLogger("farthing")

FAILURES_THAT_TELL = 3
"""One failure may be bad params and two a coincidence; chosen, not measured."""


class FirstFailures:
    """Collects failures until a trial succeeds; a study that has a result already is past that."""

    def __init__(self, history: History, *, keep_going: bool) -> None:
        self._is_watching = not any(map(_succeeded, history))
        self._keeps_going = keep_going
        self._space = history.problem.space
        self._failed: list[Trial] = []

    def stops_after(self, trial: Trial) -> Stopped | None:
        """Takes a trial that has ended. Says that the run ends when all fail in the same way, the third time or later.

        While one option of a choice explains them all, as one solver that takes no such data, it waits for another; and
        while all values that are NaN lie in one half of a range, it waits for one in the other.
        """
        self._is_watching &= not _succeeded(trial)
        if not self._is_watching or trial.failure is None or trial.state is not State.FAILED:
            return None
        self._failed.append(trial)
        cause = self._common_cause()
        if len(self._failed) < FAILURES_THAT_TELL or (cause is not None and self._may_be_the_params(cause)):
            return None
        self._is_watching = False
        if cause is None or self._keeps_going:
            log.warning("The first trials all failed, trial %d with: %s", trial.number, trial.failure.reason)
            return None
        return self._ending(cause)

    def _common_cause(self) -> Cause | None:
        causes = [cause_of(trial.failure, trial.params) for trial in self._failed if trial.failure is not None]
        return causes[0] if all(cause == causes[0] for cause in causes) else None

    def _may_be_the_params(self, cause: Cause) -> bool:
        """Whether all had the same option of a choice that has others, or, where it may matter, one half of a range."""
        encoder = self._space.encoder
        for name, column in zip(encoder.names, encoder.encode([trial.params for trial in self._failed]).T, strict=True):
            declared = self._space.parameters[name]
            if _has_options(declared):
                if len({trial.params.get(name) for trial in self._failed}) == 1:
                    return True
            elif cause.may_be_the_params and declared.count != 1 and len(set(column > 0.5)) == 1:
                return True
        return False

    def _ending(self, cause: Cause) -> Stopped:
        why = cause.text.rstrip(".")
        sentence = (
            f"the first {len(self._failed)} trials failed in the same way, and none has succeeded: {why}. "
            "Correct the work and run again; keep_going=True, or --keep-going, spends the budget all the same"
        )
        log.warning("The run ends: %s.", sentence)
        return Stopped(StopReason.WORK_FAILS, sentence)


def _has_options(declared: Parameter) -> bool:
    return isinstance(declared, Choice) and declared.count > 1


def _succeeded(trial: Trial) -> bool:
    return trial.state in (State.DONE, State.PRUNED)
