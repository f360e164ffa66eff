"""Which outputs of stages are there to be used again, as far as the history knows."""

from dataclasses import asdict, dataclass

from farthing.space.stages import prefix_key
from farthing.trials.history import History
from farthing.trials.measurement import Measurement
from farthing.trials.suggestion import Json

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
        for point in trial.measurements:
            if is_stage(point) and point.step < len(space.stages) - 1:  # type: ignore[operator]  # a stage has a step
                length = (point.step or 0) + 1
                key = prefix_key(space, trial.params, length)
                seen[key] = max(seen.get(key, (point.time, length)), (point.time, length))
    for event in history.events:
        if event.kind == EVICTED and (key := event.payload["prefix"]) in seen and seen[key][0] <= event.time:
            del seen[key]
    return {key: length for key, (_, length) in seen.items()}


def is_stage(point: Measurement) -> bool:
    """Whether a measurement is the end of a stage: it has a place and a cost, and no value."""
    return point.step is not None and point.value is None and not point.fidelity


def was_cached(point: Measurement) -> bool:
    """Whether a stage's output was loaded instead of computed."""
    return "cache" in point.saved
