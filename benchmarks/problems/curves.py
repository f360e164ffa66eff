"""Learning curves of neural networks on tabular data: the lcbench surrogate of YAHPO Gym.

The value is the validation accuracy in percent, the cost the predicted seconds. Epoch 1 is the untrained network, as
its authors say, so that the least which may be asked for is epoch 2.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from benchmarks.problems.data import data_folder
from benchmarks.problems.problem import Direction, Evaluation, Judged, Params, Point, random_params
from benchmarks.problems.yahpo import Array, missing_surrogate, predict
from farthing.space import Fidelity, Float, Int, Space

FIRST_EPOCH, LAST_EPOCH = 2, 52
EPOCHS = range(FIRST_EPOCH, LAST_EPOCH + 1)
CONFIGURATIONS_FOR_FULL_COST = 200
CONFIGURATIONS_FOR_MEAN_COST = 1000
INSTANCES = (
    *(
        3945,
        7593,
        126025,
        126026,
        146212,
        167104,
        167152,
        167161,
        167181,
        167184,
        167190,
        167200,
        168329,
        168330,
        168335,
    ),
    *(168868, 168910, 189354, 189865, 189866, 189905, 189906, 189909),
)
SPACE = Space(
    {
        "batch_size": Int(16, 512, log=True),
        "learning_rate": Float(1e-4, 0.1, log=True),
        "momentum": Float(0.1, 0.99),
        "weight_decay": Float(1e-5, 0.1),
        "num_layers": Int(1, 5),
        "max_units": Int(64, 1024, log=True),
        "max_dropout": Float(0.0, 1.0),
    },
    fidelities={"epoch": Fidelity(FIRST_EPOCH, LAST_EPOCH, integer=True, trace=True)},
)


@dataclass(frozen=True)
class LearningCurves:
    """One data set of lcbench, named by its number at OpenML."""

    instance: int
    direction: Direction = "maximize"

    @property
    def name(self) -> str:
        return f"lcbench/{self.instance}"

    def missing(self) -> str | None:
        return missing_surrogate("lcbench")

    def space(self) -> Space:
        return SPACE

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        trace = self._curve(params)[: round(fidelity["epoch"]) - FIRST_EPOCH + 1]
        return Evaluation(trace[-1].value, trace[-1].cost, trace)

    def full_value(self, params: Params) -> float:
        return self._curve(params)[-1].value

    @cached_property
    def best_value(self) -> float:
        """The best that the surrogate's authors found in 500 000 draws. Not a strict bound: some lie a little above."""
        with (data_folder() / "yahpo/lcbench/random_search_extremes.csv").open(encoding="utf-8") as file:
            extremes = {
                (row["instance"], row["metric"], row["statistic"]): row["value"] for row in csv.DictReader(file)
            }
        return float(extremes[str(self.instance), "val_accuracy", "max"])

    def full_values(self, many: Sequence[Params]) -> Array:
        return self._at_the_end(many)["val_accuracy"]

    @cached_property
    def full_cost(self) -> float:
        """Median seconds of all epochs, over random configurations that are always the same."""
        return float(np.median(self._at_the_end(random_params(self, CONFIGURATIONS_FOR_FULL_COST))["time"]))

    @cached_property
    def mean_cost(self) -> float:
        """Mean seconds of all epochs. It is what a training costs on average; the median is 0.6 to 0.8 of it."""
        return float(np.mean(self._at_the_end(random_params(self, CONFIGURATIONS_FOR_MEAN_COST))["time"]))

    def cross_entropies(self, params: Params) -> tuple[float, ...]:
        """Of the validation, at the points of the curve."""
        return _cross_entropies(self.instance, tuple(params.items()))

    def _at_the_end(self, many: Sequence[Params]) -> dict[str, Array]:
        return predict("lcbench", [{**params, "OpenML_task_id": self.instance, "epoch": LAST_EPOCH} for params in many])

    def _curve(self, params: Params) -> tuple[Point, ...]:
        return _curve(self.instance, tuple(params.items()))


@lru_cache(maxsize=4096)
def _curve(instance: int, params: tuple[tuple[str, Any], ...]) -> tuple[Point, ...]:
    """All points from FIRST_EPOCH on. Predicted seconds dip a little in places: a later epoch never costs less."""
    predicted = _predicted(instance, params)
    seconds = np.maximum.accumulate(predicted["time"])
    return tuple(
        Point({"epoch": epoch}, float(value), float(cost))
        for epoch, value, cost in zip(EPOCHS, predicted["val_accuracy"], seconds, strict=True)
    )


@lru_cache(maxsize=4096)
def _cross_entropies(instance: int, params: tuple[tuple[str, Any], ...]) -> tuple[float, ...]:
    return tuple(_predicted(instance, params)["val_cross_entropy"].tolist())


def _predicted(instance: int, params: tuple[tuple[str, Any], ...]) -> dict[str, Array]:
    return predict("lcbench", [{**dict(params), "OpenML_task_id": instance, "epoch": epoch} for epoch in EPOCHS])


CURVES: tuple[Judged, ...] = tuple(LearningCurves(instance) for instance in INSTANCES)
