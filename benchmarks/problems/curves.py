"""Learning curves of neural networks on tabular data: the lcbench surrogate of YAHPO Gym.

The value is the validation accuracy in percent, the cost the predicted seconds. Epoch 1 is the untrained network, as
its authors say, so that the least which may be asked for is epoch 2.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.problems.data import data_folder, missing_file, missing_package
from benchmarks.problems.problem import Direction, Evaluation, Params, Point, Problem
from farthing.space import Fidelity, Float, Int, Space

Array: TypeAlias = npt.NDArray[np.float64]

FIRST_EPOCH, LAST_EPOCH = 2, 52
CONFIGURATIONS_FOR_FULL_COST = 200
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
        return missing_package("onnxruntime") or missing_file("yahpo/lcbench/model.onnx")

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
        with (self._folder / "random_search_extremes.csv").open(encoding="utf-8") as file:
            extremes = {
                (row["instance"], row["metric"], row["statistic"]): row["value"] for row in csv.DictReader(file)
            }
        return float(extremes[str(self.instance), "val_accuracy", "max"])

    @cached_property
    def full_cost(self) -> float:
        """Median seconds of all epochs, over random configurations that are always the same."""
        unit = np.random.default_rng(0).random((CONFIGURATIONS_FOR_FULL_COST, len(SPACE.parameters)))
        drawn = SPACE.encoder.decode(SPACE.encoder.from_unit(unit))
        rows = [{**params, "epoch": LAST_EPOCH} for params in drawn]
        return float(np.median(_surrogate(self._folder).predict(self.instance, rows)["time"]))

    @property
    def _folder(self) -> Path:
        return data_folder() / "yahpo/lcbench"

    def _curve(self, params: Params) -> tuple[Point, ...]:
        return _curve(self._folder, self.instance, tuple(params.items()))


@lru_cache(maxsize=4096)
def _curve(folder: Path, instance: int, params: tuple[tuple[str, Any], ...]) -> tuple[Point, ...]:
    """All points from FIRST_EPOCH on. Predicted seconds dip a little in places: a later epoch never costs less."""
    epochs = range(FIRST_EPOCH, LAST_EPOCH + 1)
    predicted = _surrogate(folder).predict(instance, [{**dict(params), "epoch": epoch} for epoch in epochs])
    seconds = np.maximum.accumulate(predicted["time"])
    return tuple(
        Point({"epoch": epoch}, float(value), float(cost))
        for epoch, value, cost in zip(epochs, predicted["val_accuracy"], seconds, strict=True)
    )


class Surrogate:
    """The ONNX model with the order of its inputs and outputs."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self._encoding = json.loads((folder / "encoding.json").read_text(encoding="utf-8"))

    def predict(self, instance: int, rows: list[dict[str, Any]]) -> dict[str, Array]:
        """Each output by name, an entry a row."""
        code = self._encoding["OpenML_task_id"][str(instance)]
        inputs = {
            "x_cat": np.full((len(rows), 1), code, dtype=np.int32),
            "x_cont": np.array([[row[name] for name in self._meta["x_cont"]] for row in rows], dtype=np.float32),
        }
        outputs = np.asarray(self._session.run(None, inputs)[0], dtype=float)
        return dict(zip(self._meta["y"], outputs.T, strict=True))


@cache
def _surrogate(folder: Path) -> Surrogate:
    return Surrogate(folder)


CURVES: tuple[Problem, ...] = tuple(LearningCurves(instance) for instance in INSTANCES)
