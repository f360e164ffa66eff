"""Two-layer networks on Fashion-MNIST, recorded at five training sizes and twenty epochs: two fidelities at once.

It stands for the first panel of the taKG paper's Figure 2, which has MNIST. A configuration is the recorded one nearest
to it; between two recorded sizes, errors are on a straight line in the logarithm of the size. An epoch costs what it
sees, so that a complete training costs 1, as in the paper.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.problems.data import REPOSITORY
from benchmarks.problems.problem import Direction, Evaluation, Params, Point
from benchmarks.problems.recorded import Array
from farthing.space import Choice, Fidelity, Float, Int, Space

FILE = REPOSITORY / "benchmarks" / "data" / "sizes" / "mlp_fashion.npz"
SPACE = Space(
    {
        "lr": Float(1e-6, 1.0, log=True),
        "dropout": Float(0.0, 1.0),
        "batch": Choice(32, 64, 128, 256, 512, 1024, ordered=True),
        "units_1": Int(100, 1000),
        "units_2": Int(100, 1000),
    },
    fidelities={"data": Fidelity(1 / 16, 1.0), "epochs": Fidelity(1, 20, integer=True, trace=True)},
)


class Table(NamedTuple):
    """Errors (rows, sizes, epochs), the sizes, and where the rows are."""

    curves: Array
    sizes: Array
    tree: Any


@cache
def read_table() -> Table:
    with np.load(FILE) as stored:
        curves = np.asarray(stored["curves"], dtype=float)
        columns = {name: stored[name].tolist() for name in SPACE.parameters}
        sizes = np.array(json.loads(str(stored["meta"]))["sizes"])
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return Table(curves, sizes, cKDTree(SPACE.encoder.encode([_params(row) for row in rows])))


def _params(row: Mapping[str, float]) -> Params:
    whole = {name: round(row[name]) for name in ("batch", "units_1", "units_2")}
    return SPACE.check({**row, **whole, "lr": max(row["lr"], 1e-6)})


@dataclass(frozen=True)
class SizesAndEpochs:
    name: str = "mlp-fashion"
    direction: Direction = "minimize"
    full_cost: float = 1.0

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return SPACE

    @property
    def best_value(self) -> float:
        return float(read_table().curves[:, -1, -1].min())

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        curve = self._curve(params, fidelity["data"])
        trace = tuple(
            Point({**fidelity, "epochs": epoch}, float(curve[epoch - 1]), fidelity["data"] * epoch / curve.size)
            for epoch in range(1, round(fidelity["epochs"]) + 1)
        )
        return Evaluation(trace[-1].value, trace[-1].cost, trace)

    def full_value(self, params: Params) -> float:
        return float(self._curve(params, 1.0)[-1])

    def _curve(self, params: Params, data: float) -> Array:
        table = read_table()
        [row] = table.tree.query(SPACE.encoder.encode([params]))[1]
        place = float(np.interp(np.log(data), np.log(table.sizes), np.arange(table.sizes.size)))
        below = min(int(place), table.sizes.size - 2)
        share = place - below
        return np.asarray((1.0 - share) * table.curves[row, below] + share * table.curves[row, below + 1])


SIZES_AND_EPOCHS = SizesAndEpochs()
