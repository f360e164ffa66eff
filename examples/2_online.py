"""Tunes learning rate, weight decay and augmentation while a small network trains on Fashion-MNIST, in one run.

    python examples/2_online.py                 one run with the default, which takes back what did harm
    python examples/2_online.py --compare 3     against CEGPUCB(), also every fifth round, and no tuning; three seeds

Needs torch (pip install 'farthing[torch]') and the data: $FARTHING_DATA/fashion_mnist, by default ../shared/data.
"""

import argparse
import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import farthing as ft
from farthing.extending import OnlineStrategy

ROUNDS, IMAGES_A_ROUND, BATCH = 60, 4000, 50
TRAIN, VALIDATION = 20_000, 40_000
FIXED = {"lr": 0.02, "weight_decay": 1e-4, "shift": 1}
SPACE = ft.Space(
    {
        "lr": ft.Float(5e-3, 0.2, log=True),
        "weight_decay": ft.Float(1e-6, 1e-2, log=True),
        "shift": ft.Int(0, 2),
    }
)
STRATEGIES = {
    "small probes, the default": ft.PairedProbes(),
    "CEGPUCB()": ft.CEGPUCB(),
    "CEGPUCB(), validating always": ft.CEGPUCB(rule=ft.rules.Every(1)),
    "CEGPUCB(), every 5th round": ft.CEGPUCB(rule=ft.rules.Every(5)),
}


def data_folder() -> Path:
    named = os.environ.get("FARTHING_DATA")
    return (Path(named) if named else Path(__file__).parents[2] / "shared" / "data") / "fashion_mnist"


def load(kind: str) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(data_folder() / f"{kind}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(data_folder() / f"{kind}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    halved = images.reshape(-1, 1, 14, 2, 14, 2).mean(axis=(3, 5), dtype=np.float32)
    return halved / 255.0 - 0.286, labels.astype(np.int64)


class CpuClock:
    """CPU seconds of this process, so that other work on the machine does not count."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.process_time()


class Training:
    """A network with one hidden layer, on images of 14 × 14, and its optimizer; a round is 4000 of them."""

    def __init__(self, seed: int) -> None:
        import torch
        from torch import nn

        from farthing.integrations.pytorch import Knobs, Snapshots

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.torch = torch
        self.rng = np.random.default_rng(seed)
        order = np.random.default_rng(0).permutation(60_000)
        images, labels = load("train")
        self.train = images[order[:TRAIN]], labels[order[:TRAIN]]
        self.validation = self.tensors(images[order[-VALIDATION:]], labels[order[-VALIDATION:]])
        self.test = self.tensors(*load("t10k"))
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(196, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.shift = 0
        self.knobs = Knobs().optimizer(self.optimizer, "lr", "weight_decay").hook("shift", self.set_shift)
        self.snapshots = Snapshots(self.model, self.optimizer)

    def set_shift(self, pixels: int) -> None:
        self.shift = pixels

    def tensors(self, images: np.ndarray, labels: np.ndarray) -> tuple:
        return self.torch.from_numpy(images), self.torch.from_numpy(labels)

    def round(self) -> None:
        chosen = self.rng.permutation(TRAIN)[:IMAGES_A_ROUND]
        for start in range(0, IMAGES_A_ROUND, BATCH):
            batch = chosen[start : start + BATCH]
            images, labels = self.tensors(self.shifted(self.train[0][batch]), self.train[1][batch])
            loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def shifted(self, images: np.ndarray) -> np.ndarray:
        x, y = self.rng.integers(-self.shift, self.shift + 1, 2)
        return np.ascontiguousarray(np.roll(images, (x, y), axis=(2, 3)))

    def accuracy(self, examples: tuple) -> float:
        with self.torch.no_grad():
            return float((self.model(examples[0]).argmax(1) == examples[1]).float().mean())


def tuned_run(seed: int, strategy: OnlineStrategy, *, storage: str | None = None) -> dict:
    training = Training(seed)
    is_default = isinstance(strategy, ft.PairedProbes)
    tuner = ft.OnlineTuner(
        SPACE,
        rounds=ROUNDS,
        strategy=strategy,
        initial=FIXED,
        overhead=0.1 if is_default else None,  # the others validate as often as they like
        save=training.snapshots.save,
        restore=training.snapshots.restore,
        maximize="accuracy",
        storage=storage,
        name=f"fashion-mnist-{seed}",
        seed=seed,
        cost_unit="seconds",
        clock=CpuClock(),
    )
    began = time.process_time()
    for decision in tuner:
        training.knobs.apply(decision.params)
        training.round()
        decision.observe(lambda: training.accuracy(training.validation))
    seconds = time.process_time() - began
    return {**tuner.summary, "seconds": seconds, "accuracy": training.accuracy(training.test)}


def fixed_run(seed: int) -> dict:
    training = Training(seed)
    training.knobs.apply(FIXED)
    began = time.process_time()
    for _ in range(ROUNDS):
        training.round()
    spent = {"validations": 0, "paid": 0.0, "saved": 0.0, "seconds": time.process_time() - began}
    return {**spent, "accuracy": training.accuracy(training.test)}


def compare(seeds: int, output: Path | None) -> None:
    runs = []
    for seed in range(seeds):
        for name, strategy in STRATEGIES.items():
            runs.append({"method": name, "seed": seed, **tuned_run(seed, strategy)})
        runs.append({"method": "fixed params, no tuning", "seed": seed, **fixed_run(seed)})
    if output:
        output.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    print(f"{'':30} test accuracy   validations   CPU seconds   of which validating   (means of {seeds} seeds)")
    for name in dict.fromkeys(run["method"] for run in runs):
        own = [run for run in runs if run["method"] == name]
        accuracy = [run["accuracy"] for run in own]
        count, total, paid = (float(np.mean([run[key] for run in own])) for key in ("validations", "seconds", "paid"))
        spread = f"{np.mean(accuracy):.4f} ± {np.std(accuracy):.4f}"
        print(f"{name:30} {spread} {count:12.1f} {total:13.1f} {paid:21.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", type=int, metavar="SEEDS", help="compare strategies over that many seeds")
    parser.add_argument("--output", type=Path, help="with --compare: JSON lines, one a run")
    parser.add_argument(
        "--storage", help="keep the run, for `farthing plot`; after a kill it goes on with a new network"
    )
    options = parser.parse_args()
    if not (data_folder() / "train-images-idx3-ubyte.gz").is_file():
        print(f"Skipped: {data_folder()} is not there. Set FARTHING_DATA to the folder of benchmark data.")
        return
    try:
        import torch  # noqa: F401
    except ImportError:
        print("Skipped: torch is not installed. Run: pip install 'farthing[torch]'.")
        return
    if options.compare:
        compare(options.compare, options.output)
        return
    result = tuned_run(0, ft.PairedProbes(), storage=options.storage)
    print(f"Test accuracy {result['accuracy']:.4f} after {ROUNDS} rounds.")
    print(f"{result['validations']} validations paid, {result['skipped']} skipped: {result['saved']:.1f} s saved.")
    print(f"{result['undone']} rounds did harm and were taken back.")


if __name__ == "__main__":
    sys.exit(main())
