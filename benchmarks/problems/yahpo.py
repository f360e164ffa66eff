"""The surrogates of YAHPO Gym: networks that predict what a configuration gives and takes on a data set."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.problems.data import data_folder, missing_file, missing_package

Array: TypeAlias = npt.NDArray[np.float64]

INACTIVE = "#na#"
"""The category of a parameter that does not exist under the others; such a number is 0."""


def missing_surrogate(scenario: str) -> str | None:
    return missing_package("onnxruntime") or missing_file(f"yahpo/{scenario}/model.onnx")


def predict(scenario: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Each output by name, an entry a row. A row holds the instance, the fidelity and all active parameters."""
    return _surrogate(data_folder() / "yahpo" / scenario).predict(rows)


class Surrogate:
    """The ONNX model with the order of its inputs and outputs."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self._encoding = json.loads((folder / "encoding.json").read_text(encoding="utf-8"))
        self._takes_one_row = self._session.get_inputs()[0].shape[0] == 1

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
        names = self._meta["x_cat"]
        x_cat = [[self._encoding[name][str(row.get(name, INACTIVE))] for name in names] for row in rows]
        x_cont = [[row.get(name, 0) for name in self._meta["x_cont"]] for row in rows]
        outputs = self._outputs(np.array(x_cat, dtype=np.int32), np.array(x_cont, dtype=np.float32))
        return dict(zip(self._meta["y"], outputs.T, strict=True))

    def _outputs(self, x_cat: npt.NDArray[np.int32], x_cont: npt.NDArray[np.float32]) -> Array:
        size = 1 if self._takes_one_row else max(1, len(x_cat))
        parts = [
            self._session.run(None, {"x_cat": x_cat[first : first + size], "x_cont": x_cont[first : first + size]})[0]
            for first in range(0, len(x_cat), size)
        ]
        return np.concatenate(parts).astype(float)


@cache
def _surrogate(folder: Path) -> Surrogate:
    return Surrogate(folder)
