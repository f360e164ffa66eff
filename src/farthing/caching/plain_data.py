"""Plain data, taken apart into JSON and a few plain parts, and put together again exactly: no pickle, no loss.

Plain are None, booleans, numbers, text, bytes, NumPy arrays and scalars, SciPy's CSR and CSC matrices, pandas data
frames, series and indices, paths of files and folders, and lists, tuples and dicts of these.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from farthing.trials import Json

LONGEST_INLINE = 1000
"""Characters of a text that stands in the JSON; a longer one is a part of its own."""
SPARSE = ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
LARGEST_INLINE = 2**63
"""Integers beyond this are written in hexadecimal, which no limit on digits applies to."""


class NotPlain(Exception):
    """Holds the object that is not plain data, and the remedy if one is known."""

    def __init__(self, thing: object, remedy: str = "") -> None:
        super().__init__(thing, remedy)
        self.thing = thing
        self.remedy = remedy


@dataclass
class Parts:
    """The parts that are not in the JSON, which refers to them by their places."""

    arrays: list[Any] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)

    def add_array(self, array: Any) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def add_blob(self, blob: bytes) -> int:
        self.blobs.append(blob)
        return len(self.blobs) - 1

    def add_path(self, path: Path) -> int:
        self.paths.append(path)
        return len(self.paths) - 1


def take_apart(thing: object, parts: Parts) -> "Json":
    """The JSON form of plain data, whose parts are added to `parts`; NotPlain says what has none."""
    try:
        return _taken_apart(thing, parts)
    except RecursionError:
        raise NotPlain(type(thing), "It is nested too deeply, or holds itself: make it flat.") from None


def put_together(form: "Json", parts: Parts) -> Any:
    """The data that `take_apart` took apart."""
    if not isinstance(form, dict):
        return form
    ((kind, content),) = form.items()
    return _READERS[kind](content, parts)


def _taken_apart(thing: object, parts: Parts) -> "Json":
    writer = _WRITERS.get(type(thing))
    if writer is not None:
        return writer(thing, parts)
    if isinstance(thing, Path):
        return _write_path(thing, parts)
    home = type(thing).__module__.partition(".")[0]
    if home == "numpy" and "numpy" in sys.modules:
        return _write_numpy(thing, parts)
    if home == "scipy":
        return _write_sparse(thing, parts)
    if home == "pandas":
        from farthing.caching import plain_frames

        return plain_frames.take_apart(thing, parts)
    raise NotPlain(thing)


def _write_int(number: int, parts: Parts) -> "Json":
    return number if abs(number) < LARGEST_INLINE else {"int": hex(number)}


def _write_float(number: float, parts: Parts) -> "Json":
    return number if math.isfinite(number) else {"float": repr(number)}


def _write_text(text: str, parts: Parts) -> "Json":
    return text if len(text) <= LONGEST_INLINE else {"text": parts.add_blob(text.encode("utf-8", "surrogatepass"))}


def _write_sequence(things: list[Any] | tuple[Any, ...], parts: Parts) -> "Json":
    return {type(things).__name__: [take_apart(thing, parts) for thing in things]}


def _write_dict(things: dict[Any, Any], parts: Parts) -> "Json":
    unfit = next((key for key in things if not isinstance(key, str | int | float | bool | None)), None)
    if unfit is not None:
        raise NotPlain(unfit, "Keys must be text or numbers.")
    return {"dict": [[take_apart(key, parts), take_apart(thing, parts)] for key, thing in things.items()]}


def _write_path(path: Path, parts: Parts) -> "Json":
    if path.is_symlink() or not path.exists():
        raise NotPlain(path, "A path must be that of a file or a folder which the stage wrote.")
    return {"path": parts.add_path(path)}


def _write_numpy(thing: Any, parts: Parts) -> "Json":
    import numpy as np

    if type(thing) is np.ndarray and thing.dtype == object:
        forms = [take_apart(element, parts) for element in thing.flat]
        return {"objects": [list(thing.shape), "F" if thing.flags.fnc else "C", forms]}
    if type(thing) is np.ndarray:
        return {"array": parts.add_array(_fit_for_a_file(thing))}
    if isinstance(thing, np.generic):
        return {"scalar": parts.add_array(_fit_for_a_file(np.asarray(thing)))}
    if isinstance(thing, np.ma.MaskedArray):
        raise NotPlain(thing, "Return its data and its mask as two arrays.")
    raise NotPlain(thing, "Make it a plain array: np.asarray(…).")


def _fit_for_a_file(array: Any) -> Any:
    """The array, where NumPy's file format restores its type exactly."""
    import numpy as np

    if array.dtype.hasobject or array.dtype.metadata:
        raise NotPlain(array, "Give the array a simpler type.")
    if np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(array.dtype)) != array.dtype:
        raise NotPlain(array, "Give the array a simpler type.")
    return array


def object_array(values: list[Any], shape: Sequence[int], order: Literal["C", "F"] = "C") -> Any:
    """An array of these objects as they are: NumPy itself would make lists among them a dimension."""
    import numpy as np

    array = np.empty(shape, dtype=object, order=order)
    for place, value in zip(np.ndindex(*shape), values, strict=True):
        array[place] = value
    return array


def _read_objects(content: list[Any], parts: Parts) -> Any:
    shape, order, forms = content
    return object_array([put_together(form, parts) for form in forms], shape, order)


def _write_sparse(thing: Any, parts: Parts) -> "Json":
    name = type(thing).__name__
    if name not in SPARSE:
        raise NotPlain(thing, "Of SciPy's types, CSR and CSC matrices are plain: call .tocsr().")
    arrays = [take_apart(array, parts) for array in (thing.data, thing.indices, thing.indptr)]
    return {"sparse": [name, list(thing.shape), *arrays]}


def _read_sparse(content: list[Any], parts: Parts) -> Any:
    import scipy.sparse

    name, shape, *arrays = content
    if name not in SPARSE:
        raise KeyError(name)
    data, indices, indptr = (put_together(array, parts) for array in arrays)
    matrix = getattr(scipy.sparse, name)((data, indices, indptr), shape=tuple(shape))
    matrix.indices, matrix.indptr = indices, indptr  # the constructor may have chosen another integer type
    return matrix


def _read_frame(kind: str) -> Callable[["Json", Parts], Any]:
    def read(content: "Json", parts: Parts) -> Any:
        from farthing.caching import plain_frames

        return plain_frames.put_together(kind, content, parts)

    return read


_WRITERS: dict[type, Callable[[Any, Parts], "Json"]] = {
    type(None): lambda nothing, parts: None,
    bool: lambda truth, parts: truth,
    int: _write_int,
    float: _write_float,
    str: _write_text,
    bytes: lambda blob, parts: {"bytes": parts.add_blob(blob)},
    list: _write_sequence,
    tuple: _write_sequence,
    dict: _write_dict,
}
_READERS: dict[str, Callable[[Any, Parts], Any]] = {
    "int": lambda digits, parts: int(digits, 16),
    "float": lambda name, parts: float(name),
    "text": lambda place, parts: parts.blobs[place].decode("utf-8", "surrogatepass"),
    "bytes": lambda place, parts: parts.blobs[place],
    "list": lambda forms, parts: [put_together(form, parts) for form in forms],
    "tuple": lambda forms, parts: tuple(put_together(form, parts) for form in forms),
    "dict": lambda items, parts: {put_together(key, parts): put_together(form, parts) for key, form in items},
    "path": lambda place, parts: parts.paths[place],
    "array": lambda place, parts: parts.arrays[place],
    "scalar": lambda place, parts: parts.arrays[place][()],
    "objects": _read_objects,
    "sparse": _read_sparse,
    "frame": _read_frame("frame"),
    "series": _read_frame("series"),
    "index": _read_frame("index"),
}
