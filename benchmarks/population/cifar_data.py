"""CIFAR-10 as arrays: decoded once, by many processes, and kept in a file for those that train."""

import io
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.data import data_folder, missing_file, missing_package

CHUNK = 1000
FILES = {"train": "cifar10/train_jpeg.npz", "test": "cifar10/test_jpeg.npz"}


def missing() -> str | None:
    """Why the data cannot be read here; None when it can."""
    return missing_package("PIL") or missing_file(FILES["train"]) or missing_file(FILES["test"])


def decoded(kind: str, count: int, *, workers: int) -> Path:
    """A file with the first `count` images of "train" or "test", uint8 of (count, 3, 32, 32), and their labels."""
    path = Path(gettempdir()) / f"farthing-cifar10-{kind}-{count}-{os.getuid()}.npz"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(unfinished, images=_images(kind, count, workers=workers), labels=_labels(kind, count))
        unfinished.rename(path)
    return path


def _images(kind: str, count: int, *, workers: int) -> NDArray[np.uint8]:
    starts = range(0, count, CHUNK)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = pool.map(_decode, [kind] * len(starts), starts, [min(start + CHUNK, count) for start in starts])
        return np.concatenate(list(parts))


def _labels(kind: str, count: int) -> NDArray[np.int64]:
    with np.load(data_folder() / FILES[kind]) as archive:
        return np.asarray(archive["label"][:count], dtype=np.int64)


def _decode(kind: str, start: int, end: int) -> NDArray[np.uint8]:
    from PIL import Image

    with np.load(data_folder() / FILES[kind]) as archive:
        offsets = archive["offset"][start : end + 1]
        jpeg = archive["jpeg"][offsets[0] : offsets[-1]]
    pictures = [
        np.asarray(Image.open(io.BytesIO(jpeg[begin:end].tobytes())))
        for begin, end in zip(offsets[:-1] - offsets[0], offsets[1:] - offsets[0], strict=True)
    ]
    return np.stack(pictures).transpose(0, 3, 1, 2).copy()
