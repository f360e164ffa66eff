"""Messages of a running trial: one value, from the work to the records."""

from dataclasses import dataclass
from typing import TypeAlias

from farthing.trials.measurement import Measurement
from farthing.trials.prefixes import Eviction


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A checkpoint of that name is committed."""

    checkpoint: str


News: TypeAlias = Measurement | Checkpointed | Eviction
