"""Tunes three stages that read handwritten digits, and computes none of them twice.

    python examples/4_pipeline_digits.py                 ten seconds of tuning with two workers
    python examples/4_pipeline_digits.py --seconds 60    a longer look

    images ── enlarge ── features ── classify ── the share of digits that were read wrongly
              zoom       count       alpha
              blur       gamma

It leaves a picture, `pipeline.png`: what each stage cost, and what was saved.

Needs scikit-learn for the digits, and matplotlib: pip install 'farthing[demo]'.
"""

import argparse

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier

import farthing as ft

TRAINING = 1200
SPACE = ft.Space(
    stages={
        "enlarge": {"zoom": ft.Float(1.0, 4.0), "blur": ft.Float(0.1, 2.0)},
        "features": {"count": ft.Int(50, 800, log=True), "gamma": ft.Float(1e-4, 1e-1, log=True)},
        "classify": {"alpha": ft.Float(1e-3, 1e2, log=True)},
    }
)

Array = np.ndarray


def enlarge(images: Array, *, zoom: float, blur: float) -> Array:
    """More pixels, then smoother ones; a row for each image."""
    large = [ndimage.gaussian_filter(ndimage.zoom(image, zoom, order=1), blur) for image in images]
    rows = np.stack(large).reshape(len(images), -1)
    return (rows - rows.mean()) / rows.std()


def features(rows: Array, *, count: int, gamma: float) -> Array:
    """How near each image is, in the kernel's sense, to some of the training images."""
    near = Nystroem(n_components=count, gamma=gamma * 64 / rows.shape[1], random_state=0).fit(rows[:TRAINING])
    return near.transform(rows)


def classify(inputs: Array, *, alpha: float) -> float:
    """The share of images that a linear classifier gets wrong, of those that it did not learn from."""
    digits = load_digits().target
    fitted = RidgeClassifier(alpha=alpha).fit(inputs[:TRAINING], digits[:TRAINING])
    return 1.0 - float(fitted.score(inputs[TRAINING:], digits[TRAINING:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    images = load_digits().images
    pipeline = ft.Pipeline(source=images, cache_limit="1 GB", enlarge=enlarge, features=features, classify=classify)
    with ft.Study(SPACE, minimize="error", name="digits", seed=0) as study:
        study.run(pipeline, budget=ft.Budget(seconds=seconds), workers=2)
        best, ledger = study.best, study.ledger
        print(f"Error {best.value:.4f} with", "  ".join(f"{name}={value:.3g}" for name, value in best.params.items()))
        print(ledger)
        saved = ledger.saved.get("cache", 0.0)
        print(f"Outputs used again saved {saved / (saved + ledger.total):.0%} of what computing everything would cost.")
        study.plot().savefig("pipeline.png")


if __name__ == "__main__":
    main()
