"""Records cross-validations whose folds are the fidelity: after each of twenty fits, the mean error so far.

`python -m benchmarks.recording.folds TABULAR_FOLDER OUT` draws random configurations, each validated four times in five
folds on a thousand rows, the same folds for all: LightGBM on `churn` and `spambase`, a support-vector machine on
`satimage` and `optdigits`. A curve does not fall, it wanders less and less. `seconds` are CPU seconds of all fits.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from farthing.space import Float, Int, Space

ROWS, CONFIGURATIONS = 1_000, 300
SPACES = {
    "lightgbm": Space(
        {
            "learning_rate": Float(0.01, 0.5, log=True),
            "trees": Int(10, 120, log=True),
            "leaves": Int(2, 48, log=True),
            "min_rows": Int(2, 60, log=True),
            "columns": Float(0.2, 1.0),
            "l2": Float(1e-3, 30.0, log=True),
        }
    ),
    "svm": Space(
        {
            "C": Float(1e-2, 1e3, log=True),
            "gamma": Float(1e-4, 1.0, log=True),
            "coef0": Float(0.0, 2.0),
            "degree": Int(1, 4),
        }
    ),
}
TABLES = {"churn": "lightgbm", "spambase": "lightgbm", "satimage": "svm", "optdigits": "svm"}


def model(kind: str, params: dict[str, Any]) -> Any:
    if kind == "svm":
        return make_pipeline(StandardScaler(), SVC(kernel="poly", **params))
    return lightgbm.LGBMClassifier(
        learning_rate=params["learning_rate"],
        n_estimators=params["trees"],
        num_leaves=params["leaves"],
        min_child_samples=params["min_rows"],
        colsample_bytree=params["columns"],
        reg_lambda=params["l2"],
        n_jobs=1,
        random_state=0,
        verbose=-1,
    )


def recorded(file: Path, kind: str) -> dict[str, NDArray[Any]]:
    with np.load(file) as stored:
        X, y = stored["X"], stored["y"]
    rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X, y = X[rows], y[rows]
    folds = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0).split(X, y))
    encoder = SPACES[kind].encoder
    drawn = encoder.decode_unit(np.random.default_rng(1).random((CONFIGURATIONS, encoder.dimension)))
    curves, seconds = np.zeros((CONFIGURATIONS, len(folds))), np.zeros(CONFIGURATIONS)
    for i, params in enumerate(drawn):
        began = time.process_time()
        errors = [np.mean(model(kind, params).fit(X[a], y[a]).predict(X[b]) != y[b]) for a, b in folds]
        seconds[i] = time.process_time() - began
        curves[i] = np.cumsum(errors) / np.arange(1, len(folds) + 1)
    columns = {name: np.array([params[name] for params in drawn], dtype=np.float32) for name in SPACES[kind].parameters}
    return {"curves": curves.astype(np.float32), "seconds": seconds.astype(np.float32), **columns}


def declared(space: Space) -> dict[str, Any]:
    return {
        name: {"kind": "int" if isinstance(one, Int) else "float", "low": one.low, "high": one.high, "log": one.log}
        for name, one in space.parameters.items()
        if isinstance(one, Int | Float)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.tables:
        kind = TABLES[name]
        found = recorded(options.folder / f"{name}.npz", kind)
        meta = {"task": f"error of {kind} on {ROWS} rows of {name}, four times five folds", "versions": _versions()}
        arrays: dict[str, Any] = {
            **found,
            "space": json.dumps(declared(SPACES[kind])),
            "meta": json.dumps(meta),
        }
        np.savez_compressed(options.out / f"{name}.npz", **arrays)


def _versions() -> dict[str, str]:
    import sklearn

    return {"scikit-learn": sklearn.__version__, "lightgbm": lightgbm.__version__, "numpy": np.__version__}


if __name__ == "__main__":
    main()
