"""The pipeline of `examples/4_pipeline.py` as a problem: nuclei found in real images, paid for in measured seconds."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.pipelines.measured import RESULTS, Measured
from benchmarks.problems.data import REPOSITORY, missing_file, missing_package
from benchmarks.problems.problem import Direction, Evaluation, Params
from farthing.space import Float, Int, Space

DENOISE: Mapping[str, Float | Int] = {"sigma": Float(0.5, 3.5, step=0.5), "window": Int(0, 3), "radius": Int(3, 6)}
TRAIN: Mapping[str, Float | Int] = {"rate": Float(-4, -1, step=0.5), "units": Int(2, 6)}
CLEAN: Mapping[str, Float | Int] = {"cut": Float(0.1, 0.9, step=0.1), "opening": Int(0, 5), "area": Int(0, 7)}
SPACE = Space(stages={"denoise": DENOISE, "train": TRAIN, "clean": CLEAN})


@cache
def example() -> ModuleType:
    path = REPOSITORY / "examples" / "4_pipeline.py"
    spec = importlib.util.spec_from_file_location("nuclei_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Nuclei(Measured):
    """Minimises 1 − F1."""

    name: str = "nuclei"
    table: Path = RESULTS / "pipeline-nuclei-table.jsonl"

    def missing(self) -> str | None:
        return missing_file("nuclei/nuclei.npz") or missing_package("sklearn")

    def space(self) -> Space:
        return SPACE

    def source(self) -> Any:
        return example().load()

    def function(self, stage: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(example(), stage)
        return found

    def settings(self, params: Params) -> Mapping[str, Mapping[str, Any]]:
        """Windows are odd, rates powers of ten, the others powers of two."""
        return {
            "denoise": {"sigma": params["sigma"], "window": 2 * params["window"] + 1, "radius": 2 ** params["radius"]},
            "train": {"rate": 10 ** params["rate"], "units": 2 ** params["units"]},
            "clean": {"cut": params["cut"], "opening": params["opening"], "area": 2 ** params["area"]},
        }

    def loss(self, output: float) -> float:
        return 1.0 - output


NUCLEI = Nuclei()
"""The one there is: its table and its outputs are shared by all methods and seeds."""

IN_TWO = Space(stages={"learn": {**DENOISE, **TRAIN}, "clean": CLEAN})


@dataclass(frozen=True)
class NucleiInTwo:
    """The same with its first two stages as one module: either both of their outputs are kept, or none."""

    name: str = "nuclei, two modules"
    direction: Direction = "minimize"
    best_value: float | None = None
    full_cost: float = NUCLEI.full_cost
    in_three: Nuclei = NUCLEI

    def missing(self) -> str | None:
        return self.in_three.missing()

    def space(self) -> Space:
        return IN_TWO

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return self.in_three.evaluate(params, fidelity, seed=seed)

    def stage_costs(self, params: Params) -> tuple[float, ...]:
        denoise, train, clean = self.in_three.stage_costs(params)
        return denoise + train, clean

    def full_value(self, params: Params) -> float:
        return self.in_three.full_value(params)


NUCLEI_IN_TWO = NucleiInTwo()
