"""The first trials of a run: if they all fail in the same way, the work is broken and the budget is not spent on it."""

import logging

from farthing.execution.failures import cause_of
from farthing.study.limits import Stopped, StopReason
from farthing.trials import Failure, History, State, Trial

log = logging.getLogger("farthing")

FAILURES_THAT_TELL = 3
"""One failure may be bad params and two a coincidence; chosen, not measured."""


class FirstFailures:
    """Collects failures until a trial succeeds; a study that has a result already is past that."""

    def __init__(self, history: History, *, keep_going: bool) -> None:
        self._is_watching = not any(map(_succeeded, history))
        self._keeps_going = keep_going
        self._failures: list[Failure] = []

    def stops_after(self, trial: Trial) -> Stopped | None:
        """Takes a trial that has ended. Says that the run ends when it is the third to fail in the same way."""
        self._is_watching &= not _succeeded(trial)
        if not self._is_watching or trial.failure is None or trial.state is not State.FAILED:
            return None
        self._failures.append(trial.failure)
        if len(self._failures) < FAILURES_THAT_TELL:
            return None
        self._is_watching = False
        return self._verdict(trial)

    def _verdict(self, last: Trial) -> Stopped | None:
        causes = [cause_of(failure) for failure in self._failures]
        if self._keeps_going or causes[0] is None or any(cause != causes[0] for cause in causes):
            reason = self._failures[-1].reason
            log.warning("The first trials all failed, trial %d with: %s", last.number, reason)
            return None
        sentence = (
            f"the first {len(causes)} trials failed in the same way, and none has succeeded: {causes[0].text}. "
            "Correct the work and run again; keep_going=True, or --keep-going, spends the budget all the same"
        )
        log.warning("The run ends: %s.", sentence)
        return Stopped(StopReason.WORK_FAILS, sentence)


def _succeeded(trial: Trial) -> bool:
    return trial.state in (State.DONE, State.PRUNED)
