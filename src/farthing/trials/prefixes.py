"""Which outputs of stages are there to be used again, as far as the history knows."""

from dataclasses import asdict, dataclass

from farthing.space.stages import prefix_key
from farthing.trials.history import History
from farthing.trials.measurement import Measurement
from farthing.trials.suggestion import Json
from farthing.trials.trial import Trial

EVICTED = "stage evicted"
"""The kind of event that says that a prefix is not cached any more; its payload is an `Eviction`."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """The output of the first `length` stages, whose params are `prefix`, is not cached any more, or never was.

    `why` is one word: "limit" (others were worth more), "corrupt", "unwritable" or "missing".
    """

    prefix: str
    length: int
    why: str
    detail: str = ""

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


def cached_prefixes(history: History) -> dict[str, int]:
    """The key of every prefix that a trial computed or loaded and nothing has evicted since, with its length.

    What the last stage returns is the value, which is never cached. A prefix may be gone all the same, when somebody
    deleted files: it is then computed again, and the trial pays for it.
    """
    space = history.problem.space
    seen: dict[str, tuple[float, int]] = {}
    for trial in history:
        for step, time in stages_left(trial).items():
            if step < len(space.stages) - 1:
                key = prefix_key(space, trial.params, step + 1)
                seen[key] = max(seen.get(key, (time, step + 1)), (time, step + 1))
    for event in history.events:
        if event.kind == EVICTED and (key := event.payload["prefix"]) in seen and seen[key][0] <= event.time:
            del seen[key]
    return {key: length for key, (_, length) in seen.items()}


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
