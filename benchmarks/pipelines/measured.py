"""Real pipelines as problems: every prefix is computed once, and its measured seconds are replayed to all methods.

Parameters are on a grid, coarse enough for methods and seeds to meet. The first time that anybody asks for a prefix it
is computed, and its CPU seconds are written to a table among the results; every later method pays the same, so that no
method has a quieter machine than another. Whether a method pays at all is up to its cache.
"""

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.problems.data import REPOSITORY
from benchmarks.problems.problem import Direction, Evaluation, Params
from farthing.caching import plain_files
from farthing.caching.identity import identity_of_function
from farthing.caching.stage_cache import CacheKey, StageCache
from farthing.space import Space
from farthing.space.stages import prefix_key

RESULTS = REPOSITORY / "benchmarks" / "results"
KEPT = 6 * 10**9
"""Bytes of outputs that are kept on the disk while a suite runs."""


@dataclass(frozen=True)
class Measured(ABC):
    """Minimises a loss whose best value nobody knows, so methods are judged by the loss itself."""

    name: str
    table: Path
    direction: Direction = "minimize"
    best_value: float | None = None

    @abstractmethod
    def missing(self) -> str | None:
        """What is not here but needed."""

    @abstractmethod
    def space(self) -> Space: ...

    @abstractmethod
    def source(self) -> Any:
        """The input of the first stage."""

    @abstractmethod
    def function(self, stage: str) -> Callable[..., Any]:
        """The function of a stage; `loss` says what the output of the last one means."""

    def loss(self, output: float) -> float:
        return output

    def settings(self, params: Params) -> Mapping[str, Mapping[str, Any]]:
        """What the functions are given, by stage."""
        return {stage: self.space().stage_params(stage, params) for stage in self._stages}

    @property
    def full_cost(self) -> float:
        """Seconds: results are in seconds of work."""
        return 1.0

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(self.full_value(params), sum(self.stage_costs(params)))

    def stage_costs(self, params: Params) -> tuple[float, ...]:
        """The CPU seconds of each stage."""
        return tuple(self._row(params, length)["seconds"] for length in range(1, len(self._stages) + 1))

    def full_value(self, params: Params) -> float:
        return float(self._row(params, len(self._stages))["value"])

    @cached_property
    def _stages(self) -> list[str]:
        return list(self.space().stages)

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        from benchmarks.records import read_records  # which imports the problems, and so this file

        return {row["prefix"]: row for row in read_records(self.table) if row["version"] == self._version}

    @cached_property
    def _outputs(self) -> StageCache:
        return StageCache(Path(tempfile.gettempdir(), f"farthing-{self.name}"), limit=KEPT)

    @cached_property
    def _version(self) -> str:
        """Of the stages: what other code took and found is not used."""
        return "-".join(identity_of_function(self.function(name))[:8] for name in self._stages)

    @cached_property
    def _source(self) -> Any:
        return self.source()

    def _row(self, params: Params, length: int) -> dict[str, Any]:
        """What is known of the first stages under these params; measured where nothing is."""
        key = prefix_key(self.space(), params, length)
        if key not in self._rows:
            _, seconds, value = self._computed(params, length)
            row = {"version": self._version, "prefix": key, "seconds": seconds}
            row |= {} if value is None else {"value": value}
            from benchmarks.records import append_record

            append_record(self.table, row)
            self._rows[key] = row
        return self._rows[key]

    def _computed(self, params: Params, length: int) -> tuple[Any, float, float | None]:
        """The output of a stage, its CPU seconds, and the value where it is the last."""
        previous = self._source if length == 1 else self._output(params, length - 1)
        name = self._stages[length - 1]
        began = time.process_time()
        output = self.function(name)(previous, **self.settings(params)[name])
        seconds = time.process_time() - began
        if length == len(self._stages):
            return None, seconds, float(self.loss(output))
        lineage = [self._address(params, shorter) for shorter in range(1, length + 1)]
        with self._outputs.computing(lineage[-1]):
            self._outputs.put(lineage, output, seconds=[seconds] * length, save=plain_files.save)
        self._outputs.shrink()
        return output, seconds, None

    def _output(self, params: Params, length: int) -> Any:
        kept = self._outputs.get(self._address(params, length), lambda folder: plain_files.load(folder, scratch=folder))
        return self._computed(params, length)[0] if kept is None else kept.output

    def _address(self, params: Params, length: int) -> CacheKey:
        versions = tuple((name, self._version) for name in self._stages[:length])
        return CacheKey(str(self.table), versions, prefix_key(self.space(), params, length))
