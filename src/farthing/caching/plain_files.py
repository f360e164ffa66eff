"""Plain data in a folder:

output.json    the data, with the places of its parts
arrays.npy     all arrays, one after the other, each as `numpy.save` writes it
0.bytes        long texts and bytes
0.path/name    files and folders that the data names
"""

import json
from pathlib import Path
from shutil import copy2, copytree
from typing import Any

from farthing.caching.plain_data import Parts, put_together, take_apart
from farthing.files.durable import names_in


def save(thing: object, folder: Path) -> None:
    """Writes plain data into an empty folder; raises NotPlain for other data."""
    parts = Parts()
    (folder / "output.json").write_text(json.dumps(take_apart(thing, parts), allow_nan=False))
    if parts.arrays:
        _save_arrays(parts.arrays, folder / "arrays.npy")
    for place, blob in enumerate(parts.blobs):
        (folder / f"{place}.bytes").write_bytes(blob)
    for place, path in enumerate(parts.paths):
        _copy(path, folder / f"{place}.path" / path.name)


def load(folder: Path, *, scratch: Path) -> Any:
    """Loads the value saved in the folder. Copies files and folders to `scratch`, where the caller may change them."""
    parts = Parts(
        arrays=_load_arrays(folder / "arrays.npy"),
        blobs=[(folder / f"{place}.bytes").read_bytes() for place in range(_count(folder, ".bytes"))],
        paths=[_copied_out(folder / f"{place}.path", scratch) for place in range(_count(folder, ".path"))],
    )
    return put_together(json.loads((folder / "output.json").read_text()), parts)


def _save_arrays(arrays: list[Any], path: Path) -> None:
    import numpy as np

    with path.open("wb") as file:
        for array in arrays:
            np.lib.format.write_array(file, array, allow_pickle=False)


def _load_arrays(path: Path) -> list[Any]:
    if not path.exists():
        return []
    import numpy as np

    arrays, size = [], path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            arrays.append(np.lib.format.read_array(file, allow_pickle=False))
    return arrays


def _count(folder: Path, ending: str) -> int:
    return sum(name.endswith(ending) for name in names_in(folder))


def _copied_out(wrapped: Path, scratch: Path) -> Path:
    (name,) = names_in(wrapped)
    return _copy(wrapped / name, scratch / wrapped.name / name)


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(copytree(source, target, dirs_exist_ok=True) if source.is_dir() else copy2(source, target))
