"""Which parameters and which columns belong to the first stages of a pipeline."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.models.linalg import BoolArray
from farthing.space import Space
from farthing.space.stages import prefix
from farthing.trials import Params


@dataclass(frozen=True)
class Layout:
    """The stages of a space, in order; one that declares none is a pipeline of a single stage."""

    space: Space

    @cached_property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The parameters of each stage."""
        return tuple(self.space.stages.values()) or (tuple(self.space.parameters),)

    @cached_property
    def stage_names(self) -> tuple[str, ...]:
        return tuple(self.space.stages) or ("all",)

    @property
    def count(self) -> int:
        return len(self.stages)

    @cached_property
    def stage_of_column(self) -> tuple[int, ...]:
        home = {name: index for index, names in enumerate(self.stages) for name in names}
        return tuple(home[name] for name in self.space.encoder.names)

    def columns(self, length: int) -> BoolArray:
        """Which columns belong to the first `length` stages."""
        return np.array(self.stage_of_column) < length

    def prefixes(self, params: Params) -> list[Hashable]:
        """Keys of the first 1, 2, … stages of a configuration, the last stage left out: equal for equal stages."""
        return [prefix(self.space, params, length) for length in range(1, self.count)]

    def with_prefix(self, params: Params, source: Params, length: int) -> dict[str, object]:
        """`params` whose first `length` stages are those of `source`, to the bit: decoding may round them."""
        kept = {name for stage in self.stages[:length] for name in stage}
        chosen = {name: value for name, value in params.items() if name not in kept}
        chosen |= {name: value for name, value in source.items() if name in kept}
        return {name: chosen[name] for name in self.space.parameters if name in chosen}

    def is_discrete(self, first: int, last: int) -> bool:
        """Whether the stages from `first` up to `last`, itself left out, have finitely many configurations."""
        encoder = self.space.encoder
        finite = encoder.categories.keys() | encoder.discrete.keys()
        return all(j in finite for j, stage in enumerate(self.stage_of_column) if first <= stage < last)
