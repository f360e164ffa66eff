"""Records a complete grid of LightGBM models on the prices of houses: their loss, their size and their price.

`python -m benchmarks.recording.lightgbm_grid FOLDER OUT [--processes 1]` reads `FOLDER/537_houses.npz` and writes
`OUT/space.json` and `OUT/houses.npz`. Each model is trained on one thread, on a split of its repeat; the grid's numbers
of trees are read off one training. Loss is the root mean squared error of the logarithm of the price, size the bytes of
the model as LightGBM writes it, and time the CPU seconds of training so many trees.
"""

import argparse
import json
import time
from functools import partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

TREES = (10, 20, 40, 80, 160, 320)
OPTIONS: dict[str, tuple[float, ...]] = {
    "num_leaves": (4, 8, 16, 32, 64, 128),
    "learning_rate": (0.01, 0.03, 0.1, 0.3),
    "min_data_in_leaf": (5, 20, 80),
    "feature_fraction": (0.5, 1.0),
    "lambda_l2": (0.0, 1.0, 10.0),
    "trees": TREES,
}
REPEATS = 2
TRAIN, VALIDATION = 8_000, 6_000


def trained(params: tuple[float, ...], *, file: Path, repeat: int) -> NDArray[np.float64]:
    """Loss, bytes and seconds (trees, 3) of one training."""
    with np.load(file) as stored:
        X, y = stored["X"], np.log(stored["y"])
    order = np.random.default_rng(repeat).permutation(len(y))
    train, check = order[:TRAIN], order[TRAIN : TRAIN + VALIDATION]
    settings: dict[str, Any] = dict(zip(OPTIONS, params, strict=False))
    seconds: list[float] = []

    def note(_: object) -> None:
        seconds.append(time.process_time())

    fixed = {"objective": "regression", "num_threads": 1, "verbose": -1, "seed": repeat, "deterministic": True}
    began = time.process_time()
    model = lightgbm.train(
        {**fixed, **settings, "num_leaves": int(settings["num_leaves"])},
        lightgbm.Dataset(X[train], y[train]),
        num_boost_round=TREES[-1],
        callbacks=[note],
    )
    found = []
    for trees in TREES:
        error = float(np.sqrt(np.mean((model.predict(X[check], num_iteration=trees) - y[check]) ** 2)))
        size = len(model.model_to_string(num_iteration=trees))
        found.append((error, float(size), seconds[min(trees, len(seconds)) - 1] - began))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    grid = list(product(*(choices for name, choices in OPTIONS.items() if name != "trees")))
    with Pool(options.processes) as pool:
        repeats = [
            pool.map(partial(trained, file=options.folder / "537_houses.npz", repeat=repeat), grid, chunksize=4)
            for repeat in range(REPEATS)
        ]
    found = np.array(repeats).reshape(REPEATS, -1, 3)  # a row for each configuration, the number of trees last
    options.out.mkdir(parents=True, exist_ok=True)
    space = {"params": {name: list(choices) for name, choices in OPTIONS.items()}, "order": list(OPTIONS)}
    (options.out / "space.json").write_text(json.dumps(space, indent=2) + "\n", encoding="utf-8")
    loss, size, seconds = (np.round(found[:, :, place].T, 5).astype(np.float32) for place in range(3))
    np.savez_compressed(options.out / "houses.npz", val_loss=loss, model_size=size, train_time=seconds)


if __name__ == "__main__":
    main()
