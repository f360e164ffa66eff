"""Random numbers that depend on what they are for, never on how many were drawn before."""

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np


class Randomness:
    """Generators keyed by the study's seed and by what the strategy names: `rng.at("trial", 12)`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def at(self, *key: str | int) -> "np.random.Generator":
        """The generator for that key: the same in every process and after every resume."""
        import numpy as np

        words = [crc32(part.encode()) if isinstance(part, str) else part for part in key]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, *words])))
