"""Finds nuclei in microscopy images with a pipeline of three stages, and computes no stage twice.

    python examples/4_pipeline.py                   a minute of tuning with two workers
    python examples/4_pipeline.py --seconds 300     a longer look

    images ── denoise ── train ── clean ── F1 of the nuclei that were found
              sigma      rate     cut
              window     units    opening
              radius              area

Smoothing with the right window and training a classifier of pixels are expensive; cleaning its output is cheap. So the
tuner tries many ways to clean up behind each trained classifier, trains several classifiers behind each way to smooth,
and the outputs of all stages are kept: going back to an earlier one costs nothing. The ledger at the end says what each
stage cost and what was saved.

Needs scikit-learn (pip install 'farthing[sklearn]') and the data: $FARTHING_DATA/nuclei, by default ../shared/data.
"""

import argparse
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

import farthing as ft

TRAIN, VALIDATION, TEST = 12, 20, 40
"""How many images are learnt from, tuned on, and kept for the end."""
PIXELS = 8_000
SPACE = ft.Space(
    stages={
        "denoise": {"sigma": ft.Float(0.3, 4.0), "window": ft.Int(1, 7), "radius": ft.Int(8, 64, log=True)},
        "train": {"rate": ft.Float(1e-4, 1e-1, log=True), "units": ft.Int(4, 64, log=True)},
        "clean": {"cut": ft.Float(0.1, 0.9), "opening": ft.Int(0, 6), "area": ft.Int(1, 200, log=True)},
    }
)

Images = np.ndarray


def data_file() -> Path:
    named = os.environ.get("FARTHING_DATA")
    return (Path(named) if named else Path(__file__).parents[2] / "shared" / "data") / "nuclei" / "nuclei.npz"


def load(*, test: bool = False) -> dict[str, Images]:
    """Images to learn from, then others; and for each pixel the number of its nucleus, 0 for none."""
    with np.load(data_file()) as data:
        order = np.random.default_rng(0).permutation(len(data["image"]))
        others = order[TRAIN + VALIDATION :][:TEST] if test else order[TRAIN:][:VALIDATION]
        chosen = np.concatenate([order[:TRAIN], others])
        return {"images": data["image"][chosen], "nuclei": data["label"][chosen].astype(np.int32)}


def denoise(data: dict[str, Images], *, sigma: float, window: int, radius: int) -> dict[str, Images]:
    """Takes speckles out, smooths, and makes the contrast the same everywhere."""
    return {"images": np.stack([_evened(image, sigma, window, radius) for image in data["images"]]), **_truth(data)}


def _evened(image: Images, sigma: float, window: int, radius: int) -> Images:
    smooth = ndimage.gaussian_filter(ndimage.median_filter(image, window).astype(np.float32), sigma)
    around = ndimage.uniform_filter(smooth, 2 * radius + 1)
    spread = ndimage.uniform_filter((smooth - around) ** 2, 2 * radius + 1)
    return (smooth - around) / (np.sqrt(np.maximum(spread, 0.0)) + 1.0)


def train(data: dict[str, Images], *, rate: float, units: int) -> dict[str, Images]:
    """Learns from the first images which pixels are nuclei; returns how likely each pixel of the others is one."""
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    features = np.stack([_features(image) for image in data["images"]])
    inputs = features[:TRAIN].reshape(-1, features.shape[-1])
    targets = data["nuclei"][:TRAIN].ravel() > 0
    chosen = rng.choice(len(inputs), PIXELS, replace=False)
    network = MLPClassifier((units,), learning_rate_init=rate, max_iter=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten epochs are meant
        network.fit(inputs[chosen], targets[chosen])
    rest = features[TRAIN:]
    likely = network.predict_proba(rest.reshape(-1, rest.shape[-1]))[:, 1]
    return {"likely": likely.reshape(rest.shape[:3]).astype(np.float32), **_truth(data)}


def _features(image: Images) -> Images:
    """A pixel's value, those around it at three scales, and how steep it is there."""
    around = [ndimage.gaussian_filter(image, scale) for scale in (2, 5, 10)]
    return np.stack([image, *around, ndimage.gaussian_gradient_magnitude(image, 1.5)], axis=-1)


def clean(data: dict[str, Images], *, cut: float, opening: int, area: int) -> float:
    """Cuts, opens and drops what is too small; returns how many of the nuclei that leaves."""
    found = [_objects(likely, cut, opening, area) for likely in data["likely"]]
    return f1(found, data["nuclei"][TRAIN:])


def _objects(likely: Images, cut: float, opening: int, area: int) -> Images:
    mask = likely > cut
    if opening:
        mask = ndimage.binary_opening(mask, iterations=opening)
    numbered, _ = ndimage.label(ndimage.binary_fill_holes(mask))
    sizes = np.bincount(numbered.ravel())
    return np.where(sizes[numbered] >= area, numbered, 0)


def f1(found: list[Images], nuclei: Images) -> float:
    """Of objects: one is found where it shares more than half of the area that it and a nucleus cover together."""
    counts = np.array([_matches(*pair) for pair in zip(found, nuclei, strict=True)]).sum(axis=0)
    matched, objects, truth = counts
    return float(2 * matched / max(1, objects + truth))


def _matches(found: Images, nuclei: Images) -> tuple[int, int, int]:
    shared = np.zeros((found.max() + 1, nuclei.max() + 1))
    np.add.at(shared, (found.ravel(), nuclei.ravel()), 1)
    sizes, true_sizes = shared.sum(axis=1), shared.sum(axis=0)
    together = sizes[1:, None] + true_sizes[None, 1:] - shared[1:, 1:]
    is_match = shared[1:, 1:] > 0.5 * together
    return int(is_match.sum()), int((sizes[1:] > 0).sum()), int((true_sizes[1:] > 0).sum())


def _truth(data: dict[str, Images]) -> dict[str, Images]:
    return {"nuclei": data["nuclei"]}


def pipeline() -> ft.Pipeline:
    return ft.Pipeline(source=load(), cache_limit="4 GB", denoise=denoise, train=train, clean=clean)


def test_score(params: Mapping[str, object]) -> float:
    """What the pipeline scores on images that no decision was based on."""
    output: Any = load(test=True)
    for name, stage in pipeline().stages.items():
        output = stage.function(output, **SPACE.stage_params(name, params))
    return float(output)


def main(seconds: float, workers: int) -> None:
    study = ft.Study(SPACE, maximize="f1", seed=0, name="nuclei")
    study.run(pipeline(), budget=ft.Budget(seconds=seconds), workers=workers)
    best = study.best
    print(study.ledger)
    print(f"\nF1 {best.value:.3f} on the images that were tuned on, {test_score(best.params):.3f} on others, with")
    print("  ".join(f"{name}={value:.3g}" for name, value in best.params.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if data_file().is_file():
        main(options.seconds, options.workers)
    else:
        print(f"Skipped: {data_file()} is not there. Set FARTHING_DATA to the folder of benchmark data.")
