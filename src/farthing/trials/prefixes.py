"""The outputs of stages that can be used again, as far as the history knows."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from farthing.space.stages import prefix_key
from farthing.trials.history import History
from farthing.trials.measurement import Measurement
from farthing.trials.suggestion import Json
from farthing.trials.trial import State, Trial

EVICTED = "stage evicted"
"""The kind of event that says that a prefix is not cached any more; its payload is an `Eviction`."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """The output of the first `length` stages, whose params are `prefix`, is not cached any more, or never was.

    `why` is one word: "limit" (others were worth more), "corrupt", "unwritable", "missing" or "pruned" (by the user).
    """

    prefix: str
    length: int
    why: str
    detail: str = ""

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


def cached_prefixes(history: History) -> dict[str, int]:
    """The key of every prefix that a trial computed or loaded and nothing has evicted since, with its length.

    It does not see deleted files: such a prefix is computed again, and the trial pays for it.
    """
    space = history.problem.space
    return {prefix_key(space, trial.params, n): n for trial, lengths in surviving_prefixes(history) for n in lengths}


def surviving_prefixes(history: History, *, expects: bool = False) -> Iterator[tuple[Trial, list[int]]]:
    """Every trial with the lengths of the prefixes that it left and that nothing has evicted since.

    The last stage returns the value, which is never cached. With `expects`, a trial that runs will leave all of
    its prefixes, and one that is done without a word about its stages has left all of them.
    """
    space = history.problem.space
    evicted = {event.payload["prefix"]: event.time for event in history.events if event.kind == EVICTED}
    for trial in history:
        left = _prefixes_left(trial, len(space.stages), expects=expects)
        yield (
            trial,
            [n for n, time in left if not evicted or time > evicted.get(prefix_key(space, trial.params, n), -math.inf)],
        )


def _prefixes_left(trial: Trial, stages: int, *, expects: bool) -> Iterator[tuple[int, float]]:
    """The lengths of the prefixes that a trial left, each with its time."""
    left = stages_left(trial)
    is_silent = trial.state is State.DONE and not left
    for length in range(1, stages):
        if length - 1 in left:
            yield length, left[length - 1]
        elif expects and (is_silent or not trial.is_finished):
            yield length, math.inf


def stages_left(trial: Trial) -> dict[int, float]:
    """The stages, by place, whose outputs were there when the trial had them, with the time of that.

    Those are the stages that it computed and the last of those that it loaded: the ones before that did not matter any
    more and may have been evicted.
    """
    stages = {point.step: point for point in trial.measurements if point.step is not None and is_stage(point)}
    loaded = [step for step, point in stages.items() if was_cached(point)]
    return {step: point.time for step, point in stages.items() if step not in loaded or step == max(loaded)}


def is_stage(point: Measurement) -> bool:
    """Whether a measurement is the end of a stage: it has a place and a cost, and no value."""
    return point.step is not None and point.value is None and not point.fidelity


def was_cached(point: Measurement) -> bool:
    """Whether a stage's output was loaded instead of computed; what loading cost is on its bill."""
    return "cache" in point.saved
