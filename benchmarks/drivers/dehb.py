"""Drives DEHB by its ask and tell: differential evolution over the brackets of Hyperband.

The space is ConfigSpace's, as SMAC's is. A promoted configuration is charged for what it adds. What is recommended is
the best value at the highest fidelity.
"""

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.drivers.promoting import Incumbent, PausedRuns, rounded, the_fidelity
from benchmarks.drivers.smac import config_space, params_of
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Point, Problem, loss
from benchmarks.problems.data import missing_package
from farthing.costs import Budget
from farthing.space import Space


@dataclass(frozen=True)
class DEHB:
    """With its own defaults."""

    name: str
    packages: tuple[str, ...] = ("dehb", "ConfigSpace", "numpy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def missing(self) -> str | None:
        return missing_package("dehb")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        space, runs, best = problem.space(), PausedRuns(problem, seed=seed), Incumbent(problem)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = _optimizer(space, folder, seed=seed)
            while True:
                meter = CpuMeter()
                with meter.running():
                    asked = optimizer.ask()
                params = params_of(space, dict(asked["config"]))
                fidelity = rounded(space, float(asked["fidelity"]))
                evaluation, cost = runs.evaluate(params, fidelity)
                with meter.running():
                    optimizer.tell(asked, {"fitness": loss(problem, evaluation.value), "cost": cost})
                best.see(params, Point(fidelity, evaluation.value, evaluation.cost))
                yield Step(best.params, cost, meter.seconds)


def _optimizer(space: Space, folder: str, *, seed: int) -> Any:
    import dehb

    declared = space.fidelities[the_fidelity(space)]
    return dehb.DEHB(
        f=None,
        cs=config_space(space, seed=seed),
        min_fidelity=declared.low,
        max_fidelity=declared.high,
        n_workers=1,
        output_path=folder,
        seed=seed,
        log_level="ERROR",
    )
