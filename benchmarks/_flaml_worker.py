"""Runs FLAML in its own environment, for `benchmarks.boosting`: a request as JSON, an answer as a line of JSON."""

import json
import logging
import sys
import time
from typing import Any

import numpy as np

_BEGAN = time.time()
time.time = lambda: _BEGAN + time.process_time()  # FLAML counts the seconds of a machine that may be busy

from flaml import AutoML  # noqa: E402

logging.disable(logging.WARNING)


def log_loss(y: Any, p: Any) -> float:
    clipped = np.clip(p, 1e-15, 1 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(clipped), np.log(1 - clipped))))


def main(request: dict[str, Any]) -> dict[str, float]:
    found = np.load(request["file"], allow_pickle=False)
    X, y = found["X"].astype(float), (found["y"] == found["y"].max()).astype(int)
    order = np.random.default_rng(request["seed"]).permutation(len(y))
    train, valid, test = np.split(order, [int(0.6 * len(y)), int(0.8 * len(y))])
    automl = AutoML()
    automl.fit(
        X[train],
        y[train],
        X_val=X[valid],
        y_val=y[valid],
        task="classification",
        metric="log_loss",
        estimator_list=["lgbm"],
        time_budget=request["seconds"],
        n_jobs=1,
        seed=request["seed"],
        retrain_full=False,
        verbose=0,
    )
    return {
        "valid": float(automl.best_loss),
        "test": log_loss(y[test], automl.predict_proba(X[test])[:, 1]),
        "configurations": int(automl._search_states["lgbm"].total_iter),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
