"""What the recorded trainings learn from: CIFAR-10's first images, and the source of Python's standard library.

`python -m benchmarks.recording.data cifar10/train_jpeg.npz IMAGES.npz` keeps what is needed, in a file of 6 MB.
"""

import io
import sys
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IMAGES = 20_000
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
"""Any other character counts as a space, or as a question mark outside ASCII."""


def keep_images(source: Path, target: Path) -> None:
    """A smaller file of the same form, with the first images only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with np.load(source) as archive:
        offset = archive["offset"][: IMAGES + 1]
        np.savez_compressed(target, jpeg=archive["jpeg"][: offset[-1]], offset=offset, label=archive["label"][:IMAGES])


def images(path: Path, *, count: int = IMAGES) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(count, 32, 32, 3) and their labels, from JPEG."""
    with np.load(path) as archive:
        jpeg, offset, label = archive["jpeg"], archive["offset"][: count + 1], archive["label"][:count]
    parts = [jpeg[start:end].tobytes() for start, end in pairwise(offset)]
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        return np.stack(list(pool.map(_decoded, parts, chunksize=500))), label.astype(np.int64)


def _decoded(jpeg: bytes) -> NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(jpeg)))


def source_code() -> NDArray[np.uint8]:
    """All modules at the top of the standard library, in the order of their names, as indices into CHARACTERS."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.py")))
    codes = np.frombuffer(text.encode("ascii", errors="replace"), dtype=np.uint8)
    table = np.full(256, CHARACTERS.index(" "), dtype=np.uint8)
    table[[ord(character) for character in CHARACTERS]] = np.arange(len(CHARACTERS))
    return np.asarray(table[codes])


if __name__ == "__main__":
    keep_images(Path(sys.argv[1]), Path(sys.argv[2]))
