"""Why a run ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from farthing.errors import InvalidArgument
from farthing.study.settings import OnInterrupt
from farthing.validation import listed, shown


class StopReason(StrEnum):
    """`STOPPED`: by `study.stop()`. `TOO_EXPENSIVE`: the next trial is predicted to cost more than is left.
    `WORK_FAILS`: the first trials failed in the same way, and none has succeeded.
    """

    BUDGET_SPENT = "budget spent"
    TOO_EXPENSIVE = "too expensive"
    STRATEGY_FINISHED = "strategy finished"
    WORK_FAILS = "work fails"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Stopped:
    """How a run ended: the reason to compare with, `stopped.reason is ft.StopReason.INTERRUPTED`, and a sentence.

    `str(stopped)` is the sentence.
    """

    reason: StopReason
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def check_on_interrupt(given: str) -> None:
    if given not in get_args(OnInterrupt):
        raise InvalidArgument(
            f"on_interrupt must be one of {listed(get_args(OnInterrupt))}, got {shown(given)}. "
            "Leave it out to have KeyboardInterrupt raised."
        )
