"""Complete grids of real training runs, each repeated: FCNet, the MLP of HPOBench, cells of NAS-Bench-201, LightGBM.

A tuner sees one repeat, its value and its seconds; a configuration is judged by the mean over the repeats. Which
repeat is seen depends on the seed and the configuration, so that tuners with the same seed see the same noise.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.problems.data import REPOSITORY, data_folder, missing_file
from benchmarks.problems.problem import Direction, Evaluation, Params, Problem
from farthing.space import Choice, Space

Array: TypeAlias = npt.NDArray[np.float64]


OWN = REPOSITORY / "benchmarks" / "data" / "grids"
"""The grids that were recorded here."""


def folder_of(name: str) -> Path:
    own = OWN / name
    return own if own.is_dir() else data_folder() / name


@dataclass(frozen=True)
class Table:
    """One data set of a folder that holds `space.json` and a grid a data set: `values` names the array to optimise."""

    name: str
    folder: str
    dataset: str
    values: str
    direction: Direction

    def missing(self) -> str | None:
        if (OWN / self.folder).is_dir():
            return None
        return missing_file(f"{self.folder}/space.json") or missing_file(f"{self.folder}/{self.dataset}.npz")

    def space(self) -> Space:
        return Space({name: _choice(options) for name, options in self._options.items()})

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        row = self._row(params)
        repeats = np.flatnonzero(~np.isnan(self._grid[self.values][row]))
        repeat = repeats[np.random.default_rng([seed, row]).integers(repeats.size)]
        return Evaluation(float(self._grid[self.values][row, repeat]), float(self._grid["train_time"][row, repeat]))

    def full_value(self, params: Params) -> float:
        return float(self._means[self._row(params)])

    @cached_property
    def best_value(self) -> float:
        return float(self._means.min() if self.direction == "minimize" else self._means.max())

    @cached_property
    def full_cost(self) -> float:
        return float(np.nanmedian(self._grid["train_time"]))

    @property
    def _options(self) -> dict[str, list[Any]]:
        return _read_options(folder_of(self.folder) / "space.json")

    @property
    def _grid(self) -> dict[str, Array]:
        return _read_grid(folder_of(self.folder) / f"{self.dataset}.npz", arrays=(self.values, "train_time"))

    @cached_property
    def _means(self) -> Array:
        """Over the repeats there are: some cells were not trained three times, which is NaN in the table."""
        return np.asarray(np.nanmean(self._grid[self.values], axis=1))

    def _row(self, params: Params) -> int:
        options = self._options
        picks = [options[name].index(params[name]) for name in options]
        return int(np.ravel_multi_index(picks, [len(options[name]) for name in options]))


def _choice(options: list[Any]) -> Choice:
    return Choice(*options, ordered=not isinstance(options[0], str))


@cache
def _read_options(path: Path) -> dict[str, list[Any]]:
    """The options of each parameter, in the order that numbers the rows."""
    declared = json.loads(path.read_text(encoding="utf-8"))
    return {name: declared["params"][name] for name in declared["order"]}


@cache
def _read_grid(path: Path, *, arrays: tuple[str, ...]) -> dict[str, Array]:
    with np.load(path) as stored:
        return {name: np.asarray(stored[name], dtype=float) for name in arrays}


TABLES: tuple[Problem, ...] = (
    *(
        Table(f"fcnet/{dataset}", "fcnet", dataset, values="val_loss", direction="minimize")
        for dataset in ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure")
    ),
    *(
        Table(f"hpobench-mlp/{dataset}", "hpobench_mlp", dataset, values="val_acc", direction="maximize")
        for dataset in ("australian", "blood_transfusion", "credit_g", "phoneme", "segment")
    ),
)

CELLS: tuple[Problem, ...] = tuple(
    Table(f"nasbench-201/{dataset}", "nasbench201", dataset, values="val_acc", direction="maximize")
    for dataset in ("cifar10", "cifar100")
)
