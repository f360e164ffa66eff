"""The pipeline of `examples/4_pipeline.py` as a problem: nuclei found in real images, paid for in measured seconds.

Its parameters are on a grid, coarse enough for methods and seeds to meet. The first time that anybody asks for a prefix
it is computed by the example's own functions, and its CPU seconds are written to `results/pipeline-nuclei-table.jsonl`;
every later method pays the same, so that no method has a quieter machine than another. Whether a method pays at
all is up to its cache.
"""

import importlib.util
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.problems.data import REPOSITORY, missing_file, missing_package
from benchmarks.problems.problem import Direction, Evaluation, Params
from farthing.caching import plain_files
from farthing.caching.identity import identity_of_function
from farthing.caching.stage_cache import CacheKey, StageCache
from farthing.space import Float, Int, Space
from farthing.space.stages import prefix_key

SPACE = Space(
    stages={
        "denoise": {"sigma": Float(0.5, 3.5, step=0.5), "window": Int(0, 3), "radius": Int(3, 6)},
        "train": {"rate": Float(-4, -1, step=0.5), "units": Int(2, 6)},
        "clean": {"cut": Float(0.1, 0.9, step=0.1), "opening": Int(0, 5), "area": Int(0, 7)},
    }
)
KEPT = 6 * 10**9
"""Bytes of outputs that are kept on the disk while a suite runs."""


@cache
def example() -> ModuleType:
    path = REPOSITORY / "examples" / "4_pipeline.py"
    spec = importlib.util.spec_from_file_location("nuclei_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(params: Params) -> dict[str, dict[str, Any]]:
    """What the example's stages are given: windows are odd, rates powers of ten, the others powers of two."""
    return {
        "denoise": {"sigma": params["sigma"], "window": 2 * params["window"] + 1, "radius": 2 ** params["radius"]},
        "train": {"rate": 10 ** params["rate"], "units": 2 ** params["units"]},
        "clean": {"cut": params["cut"], "opening": params["opening"], "area": 2 ** params["area"]},
    }


@dataclass(frozen=True)
class Nuclei:
    """Minimises 1 − F1. Nobody knows the best value, so methods are judged by the loss itself."""

    name: str = "nuclei"
    direction: Direction = "minimize"
    best_value: float | None = None
    table: Path = REPOSITORY / "benchmarks" / "results" / "pipeline-nuclei-table.jsonl"

    def missing(self) -> str | None:
        return missing_file("nuclei/nuclei.npz") or missing_package("sklearn")

    @property
    def full_cost(self) -> float:
        """Seconds: results are in seconds of work."""
        return 1.0

    def space(self) -> Space:
        return SPACE

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(self.full_value(params), sum(self.stage_costs(params)))

    def stage_costs(self, params: Params) -> tuple[float, ...]:
        """The CPU seconds of each stage."""
        return tuple(self._row(params, length)["seconds"] for length in range(1, len(SPACE.stages) + 1))

    def full_value(self, params: Params) -> float:
        return float(self._row(params, len(SPACE.stages))["value"])

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        from benchmarks.records import read_records  # which imports the problems, and so this file

        return {row["prefix"]: row for row in read_records(self.table) if row["version"] == self._version}

    @cached_property
    def _outputs(self) -> StageCache:
        return StageCache(Path(tempfile.gettempdir(), "farthing-nuclei"), limit=KEPT)

    @cached_property
    def _version(self) -> str:
        """Of the example's stages: what other code took and found is not used."""
        return "-".join(identity_of_function(getattr(example(), name))[:8] for name in SPACE.stages)

    @cached_property
    def _source(self) -> Any:
        return example().load()

    def _row(self, params: Params, length: int) -> dict[str, Any]:
        """What is known of the first stages under these params; measured where nothing is."""
        key = prefix_key(SPACE, params, length)
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
        name = list(SPACE.stages)[length - 1]
        began = time.process_time()
        output = getattr(example(), name)(previous, **settings(params)[name])
        seconds = time.process_time() - began
        if length == len(SPACE.stages):
            return None, seconds, 1.0 - output
        lineage = [self._address(params, shorter) for shorter in range(1, length + 1)]
        with self._outputs.computing(lineage[-1]):
            self._outputs.put(lineage, output, seconds=[seconds] * length, save=plain_files.save)
        self._outputs.shrink()
        return output, seconds, None

    def _output(self, params: Params, length: int) -> Any:
        kept = self._outputs.get(self._address(params, length), lambda folder: plain_files.load(folder, scratch=folder))
        return self._computed(params, length)[0] if kept is None else kept.output

    def _address(self, params: Params, length: int) -> CacheKey:
        versions = tuple((name, self._version) for name in list(SPACE.stages)[:length])
        return CacheKey(str(self.table), versions, prefix_key(SPACE, params, length))


NUCLEI = Nuclei()
"""The one there is: its table and its outputs are shared by all methods and seeds."""
