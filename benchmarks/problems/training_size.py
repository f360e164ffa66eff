"""Learners trained on a part of the data: the rbv2 and iaml surrogates of YAHPO Gym.

The fidelity is the share of the training set. A run on more data starts from nothing: there is no trace and nothing to
continue, so that every evaluation is paid in full. With glmnet a part of the data saves little: an eighth of it
costs half as much as all of it, and on one data set more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from benchmarks.problems.problem import Direction, Evaluation, Judged, Params, random_params, span_of
from benchmarks.problems.yahpo import Array, missing_surrogate, predict
from farthing.space import Choice, Fidelity, Float, Int, Space

REPLICATIONS = 10
CONFIGURATIONS_FOR_FULL_COST = 200
CONFIGURATIONS_FOR_MEAN_COST = 1000
THEIR_NAMES = {"imputation": "num.impute.selected.cpo", "penalty": "cost"}

TREES = {"booster": ("gbtree", "dart")}
IMPUTATION = Choice("impute.mean", "impute.median", "impute.hist")
XGBOOST = Space(
    {
        "booster": Choice("gblinear", "gbtree", "dart"),
        "imputation": IMPUTATION,
        "nrounds": Int(7, 2981, log=True),
        "lambda": Float(9.12e-4, 1096.6, log=True),
        "alpha": Float(9.12e-4, 1096.6, log=True),
        "subsample": Float(0.1, 1.0),
        "eta": Float(9.12e-4, 1.0, log=True, when=TREES),
        "gamma": Float(4.54e-5, 7.389, log=True, when=TREES),
        "max_depth": Int(1, 15, when=TREES),
        "min_child_weight": Float(2.719, 148.41, log=True, when=TREES),
        "colsample_bytree": Float(0.01, 1.0, when=TREES),
        "colsample_bylevel": Float(0.01, 1.0, when=TREES),
        "rate_drop": Float(0.0, 1.0, when={"booster": "dart"}),
        "skip_drop": Float(0.0, 1.0, when={"booster": "dart"}),
    },
    fidelities={"trainsize": Fidelity(0.03, 1.0)},
)
SVM = Space(
    {
        "kernel": Choice("linear", "polynomial", "radial"),
        "imputation": IMPUTATION,
        "penalty": Float(4.54e-5, 22026.0, log=True),
        "tolerance": Float(4.54e-5, 2.0, log=True),
        "gamma": Float(4.54e-5, 22026.0, log=True, when={"kernel": "radial"}),
        "degree": Int(2, 5, when={"kernel": "polynomial"}),
    },
    fidelities={"trainsize": Fidelity(0.05, 1.0)},
)
GLMNET = Space(
    {"alpha": Float(0.0, 1.0), "s": Float(1e-4, 1e3, log=True)}, fidelities={"trainsize": Fidelity(0.03, 1.0)}
)


@dataclass(frozen=True)
class TrainingSize:
    """One data set of a scenario; the value is its output `target`, the cost the predicted seconds of training."""

    scenario: str
    instance: int
    declared: Space
    target: str
    direction: Direction

    @property
    def name(self) -> str:
        return f"{self.scenario}/{self.instance}"

    def missing(self) -> str | None:
        return missing_surrogate(self.scenario)

    def space(self) -> Space:
        return self.declared

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(
            *_predicted(self.scenario, self.instance, self.target, tuple(params.items()), fidelity["trainsize"])
        )

    def full_value(self, params: Params) -> float:
        return self.evaluate(params, self.declared.full_fidelity, seed=0).value

    def full_values(self, many: Sequence[Params]) -> Array:
        return self._at_full_size(many)[self.target]

    @cached_property
    def best_value(self) -> float:
        """The best of random configurations, a close bound but not a strict one."""
        best = span_of(self).best
        return best if self.direction == "minimize" else -best

    @cached_property
    def full_cost(self) -> float:
        """Median seconds on all of the data, over random configurations that are always the same."""
        return float(np.median(self._at_full_size(random_params(self, CONFIGURATIONS_FOR_FULL_COST))["timetrain"]))

    @cached_property
    def mean_cost(self) -> float:
        """Mean seconds on all of the data, over random configurations that are always the same."""
        return float(np.mean(self._at_full_size(random_params(self, CONFIGURATIONS_FOR_MEAN_COST))["timetrain"]))

    def _at_full_size(self, many: Sequence[Params]) -> dict[str, Array]:
        return predict(self.scenario, [_row(self.instance, params, 1.0) for params in many])


@lru_cache(maxsize=4096)
def _predicted(
    scenario: str, instance: int, target: str, params: tuple[tuple[str, Any], ...], trainsize: float
) -> tuple[float, float]:
    """The value and the seconds."""
    outputs = predict(scenario, [_row(instance, dict(params), trainsize)])
    return float(outputs[target][0]), float(outputs["timetrain"][0])


def _row(instance: int, params: Params, trainsize: float) -> dict[str, Any]:
    """In the surrogate's own names, some of which no parameter may have."""
    named = {THEIR_NAMES.get(name, name): value for name, value in params.items()}
    return {**named, "task_id": instance, "trainsize": trainsize, "repl": REPLICATIONS}


SIZES: tuple[Judged, ...] = (
    *(TrainingSize("rbv2_xgboost", instance, XGBOOST, "acc", "maximize") for instance in (16, 470)),
    *(TrainingSize("rbv2_svm", instance, SVM, "mmce", "minimize") for instance in (182, 1457)),
    *(TrainingSize("iaml_glmnet", instance, GLMNET, "mmce", "minimize") for instance in (41146, 1489, 40981, 1067)),
    *(TrainingSize("rbv2_svm", instance, SVM, "mmce", "minimize") for instance in (1462, 1476)),
    *(TrainingSize("rbv2_xgboost", instance, XGBOOST, "acc", "maximize") for instance in (11, 40983)),
)
