"""The rounds of an online run: the measurements of a trial whose params change while it runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farthing.trials.measurement import Measurement

if TYPE_CHECKING:
    from farthing.trials.trial import Trial

BAD = "bad"
"""A metric of a round whose validation gave no value: it was no finite number, or measuring it failed."""


def played_rounds(trial: "Trial") -> list[Measurement]:
    """The rounds of a run, in order, as they led to where it stands."""
    return [trial.measurements[position] for position in kept_rounds(trial.measurements)]


def kept_rounds(measurements: Sequence[Measurement]) -> list[int]:
    """The positions of the rounds that led to where a run stands, in order.

    A process that went back to an earlier round, after a kill or with an older state, undid what came after it.
    """
    kept: list[int] = []
    for position, point in enumerate(measurements):
        if point.step is None or point.params is None:
            continue
        while kept and (measurements[kept[-1]].step or 0) >= point.step:
            kept.pop()
        kept.append(position)
    return kept
