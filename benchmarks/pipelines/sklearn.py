"""Scaler → feature selection or kernel map → classifier on real tables, judged by cross-validation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.problems.data import data_folder, missing_file, missing_package
from benchmarks.problems.problem import Direction, Evaluation, Params
from farthing.execution import Pipeline
from farthing.space import Choice, Float, Int, Parameter, Space

ROWS, FOLDS = 1500, 3
PARAMETERS: dict[str, Parameter] = {
    "scale": Choice("standard", "quantile"),
    "scale__n_quantiles": Int(10, 1000, log=True, when={"scale": "quantile"}),
    "map": Choice("select", "kernel"),
    "map__k": Int(2, 8, when={"map": "select"}),
    "map__n_components": Int(20, 500, log=True, when={"map": "kernel"}),
    "map__gamma": Float(1e-4, 1.0, log=True, when={"map": "kernel"}),
    "clf__alpha": Float(1e-4, 1e2, log=True),
    "clf__class_weight": Choice(None, "balanced"),
}


@dataclass(frozen=True)
class Table:
    """A table of shared data, the first rows of a fixed permutation. Minimises the error of cross-validation."""

    name: str
    file: str
    direction: Direction = "minimize"
    best_value: float | None = None
    full_cost: float = 1.0
    """Results are in seconds."""
    seen: dict[str, float] = field(default_factory=dict, compare=False)

    def missing(self) -> str | None:
        return missing_file(f"tabular/{self.file}.npz") or missing_package("sklearn")

    def space(self) -> Space:
        return Space(PARAMETERS)

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        raise NotImplementedError("these problems are evaluated by the methods themselves, with their own caches")

    def full_value(self, params: Params) -> float:
        """The value that was measured for it: it does not depend on the method."""
        return self.seen[_key(params)]

    def see(self, params: Params, score: float) -> None:
        self.seen[_key(params)] = 1.0 - score

    @cached_property
    def data(self) -> tuple[Any, Any]:
        with np.load(data_folder() / "tabular" / f"{self.file}.npz") as table:
            rows = np.random.default_rng(0).permutation(len(table["y"]))[:ROWS]
            return table["X"][rows].astype(float), table["y"][rows]

    def search(self) -> Any:
        """The steps, their alternatives and the folds, as a search that is not run."""
        from sklearn.feature_selection import SelectKBest
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import RidgeClassifier
        from sklearn.model_selection import StratifiedKFold
        from sklearn.pipeline import Pipeline as Steps
        from sklearn.preprocessing import QuantileTransformer, StandardScaler

        from farthing.integrations.sklearn import PipelineSearchCV

        steps = [("scale", StandardScaler()), ("map", SelectKBest()), ("clf", RidgeClassifier())]
        alternatives = {
            "scale": {"standard": StandardScaler(), "quantile": QuantileTransformer(random_state=0)},
            "map": {"select": SelectKBest(), "kernel": Nystroem(random_state=0)},
        }
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        return PipelineSearchCV(Steps(steps), self.space(), alternatives=alternatives, cv=folds)

    def work(self) -> tuple[Space, Pipeline]:
        """What `PipelineSearchCV` would run."""
        from farthing.integrations.sklearn_folds import Data, work_of
        from farthing.integrations.sklearn_steps import Steps as TunedSteps

        search, (X, y) = self.search(), self.data
        steps = TunedSteps.of(search.estimator, search.space, search.alternatives)
        data = Data(X, y, list(search.cv.split(X, y)), {})
        return steps.staged, work_of(steps, data, {"": _accuracy}, cache_limit="2 GB")


def _accuracy(fitted: Any, X: Any, y: Any) -> float:
    return float(fitted.score(X, y))


def _key(params: Params) -> str:
    return repr(sorted(params.items()))


TABLES_USED = ("satimage", "spambase", "churn", "magic", "optdigits")
SKLEARN_TABLES = tuple(Table(f"sklearn/{file}", file) for file in TABLES_USED)
