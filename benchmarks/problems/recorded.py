"""Real learning curves that were recorded for random configurations: TaskSet, OPDA, and tables of this project.

A space is searched as the runs were drawn from it. A configuration stands for a recorded run near to it (Euclidean,
in the coordinates of the encoder), so that every tuner sees the same problem through its usual interface, and
continuing or repeating a configuration shows the same run.

There are two ways to say which run. `taskset/…` and `opda/…` have the nearest: two proposals can be one run, paid
twice, which punishes every tuner that searches locally. `taskset-rows/…`, `opda-rows/…` and `rows/…` are problems of
rows: a proposal is the nearest run that no other proposal of the same tuning has had.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from benchmarks.problems.data import REPOSITORY, data_folder, missing_file
from benchmarks.problems.problem import Direction, Evaluation, Judged, Params, Point, Span
from farthing.space import Choice, Fidelity, Float, Int, Parameter, Space

Array: TypeAlias = npt.NDArray[np.float64]


class Runs(NamedTuple):
    """Recorded runs: their params, and for each the value and the cost from nothing at every amount of the fidelity."""

    params: tuple[Params, ...]
    values: Array
    costs: Array


@dataclass(frozen=True)
class Recorded:
    """`file` holds the runs; the one fidelity counts the points of a curve from 1."""

    name: str
    file: str
    declared: Space
    direction: Direction

    def missing(self) -> str | None:
        return missing_file(self.file)

    def space(self) -> Space:
        return self.declared

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        [(name, amount)] = fidelity.items()
        [run] = self._nearest([params])
        trace = tuple(
            Point({name: point + 1}, float(self._runs.values[run, point]), float(self._runs.costs[run, point]))
            for point in range(round(amount))
        )
        return Evaluation(trace[-1].value, trace[-1].cost, trace)

    def full_value(self, params: Params) -> float:
        return float(self.full_values([params])[0])

    def full_values(self, many: Sequence[Params]) -> Array:
        return np.asarray(self._runs.values[self._nearest(many), -1])

    @cached_property
    def best_value(self) -> float:
        final = self._runs.values[:, -1]
        return float(final.min() if self.direction == "minimize" else final.max())

    @cached_property
    def full_cost(self) -> float:
        return float(np.median(self._runs.costs[:, -1]))

    @property
    def mean_cost(self) -> float:
        """Of all the runs there are."""
        return float(np.mean(self._runs.costs[:, -1]))

    @cached_property
    def span(self) -> Span:
        """Of the recorded runs themselves: the best loss and the median."""
        losses = self._runs.values[:, -1] * (1.0 if self.direction == "minimize" else -1.0)
        return Span(float(losses.min()), float(np.median(losses)))

    @property
    def _runs(self) -> Runs:
        return read_runs(self.file)

    def _nearest(self, many: Sequence[Params]) -> npt.NDArray[np.int64]:
        return np.asarray(self._tree.query(self.declared.encoder.encode(many))[1])

    @cached_property
    def _tree(self) -> Any:
        return cKDTree(self.declared.encoder.encode(self._runs.params))


@dataclass(frozen=True)
class Rows(Recorded):
    """The same runs as a problem of rows. What a proposal stands for depends on those before it: `for_run`."""

    def for_run(self) -> "RowsInUse":
        """The problem for one tuning, in which nothing was proposed yet."""
        return RowsInUse(self.name, self.file, self.declared, self.direction)


class RowsInUse(Recorded):
    """One tuning of a problem of rows: each proposal has the nearest run that no other proposal has.

    The same params are the same proposal, also after a round trip through another library. Once all runs are taken,
    a proposal is its nearest one. A configuration that was only asked for its full value takes none.
    """

    def __init__(self, name: str, file: str, declared: Space, direction: Direction) -> None:
        super().__init__(name, file, declared, direction)
        object.__setattr__(self, "_taken", {})
        object.__setattr__(self, "_away", {})
        object.__setattr__(self, "distances", [])

    _taken: dict[bytes, int]
    _away: dict[int, float]
    distances: list[float]
    """From each proposal that took a run to that run."""

    def row_of(self, params: Params) -> int:
        """The number of the run that a configuration stands for."""
        return int(self._nearest([params])[0])

    def nearest_free(self, params: Params) -> Params:
        """The params of the run that a proposal would have. It is taken when it is evaluated."""
        x = self.declared.encoder.encode([params])
        run = self._free(x)
        self._away[run] = self._distance(x, run)
        return self._runs.params[run]

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        self._take(params)
        return super().evaluate(params, fidelity, seed=seed)

    def _take(self, params: Params) -> None:
        x = self.declared.encoder.encode([params])
        if (key := key_of(x[0])) not in self._taken:
            self._taken[key] = run = self._free(x)
            self.distances.append(self._away.get(run, self._distance(x, run)))

    def _distance(self, x: Array, run: int) -> float:
        return float(np.linalg.norm(self._tree.data[run] - x[0]))

    def _free(self, x: Array) -> int:
        """The run of that proposal, or the nearest that is not taken."""
        if (taken := self._taken.get(key_of(x[0]))) is not None:
            return taken
        used, count = set(self._taken.values()), len(self._runs.params)
        nearest = np.atleast_2d(self._tree.query(x, k=min(count, len(used) + 1))[1]).ravel()
        return next((int(run) for run in nearest if int(run) not in used), int(nearest[0]))

    def _nearest(self, many: Sequence[Params]) -> npt.NDArray[np.int64]:
        X = self.declared.encoder.encode(many)
        plain = np.asarray(self._tree.query(X)[1])
        return np.array([self._taken.get(key_of(x), run) for x, run in zip(X, plain, strict=True)], dtype=np.int64)


def key_of(x: Array) -> bytes:
    """The same for the same configuration, also after a round trip through another library."""
    return bytes(np.round(x, 9).tobytes())


@cache
def read_runs(file: str) -> Runs:
    if file.startswith("taskset/"):
        return _read_task(file)
    if file.startswith("opda/"):
        return _read_deberta(file) if "deberta" in file else _read_convnext(file)
    return _read_table(file)


# ------------------------------------------------------------------------------------------------------- TaskSet

POINTS = 50
DIVERGED = 2.0
"""A loss that is not a number, or higher than this many times the usual loss before training, counts as that much."""

ADAM = Space(
    {
        "learning_rate": Float(1e-8, 10.0, log=True),
        "one_minus_beta1": Float(1e-4, 1.0, log=True),
        "one_minus_beta2": Float(1e-6, 1.0, log=True),
        "epsilon": Float(1e-10, 1e3, log=True),
        "l1": Float(1e-8, 10.0, log=True),
        "l2": Float(1e-8, 10.0, log=True),
        "linear_decay": Float(1e-7, 1e-4, log=True),
        "exponential_decay": Float(1e-6, 1e-3, log=True),
    },
    fidelities={"point": Fidelity(1, POINTS, integer=True, trace=True)},
)


def _read_task(file: str) -> Runs:
    """Validation loss at 50 points after the start. No time was recorded: a point costs 1."""
    with np.load(data_folder() / file) as stored:
        names = [str(name) for name in stored["hp_names"]]
        rows, curves = np.asarray(stored["hp"], dtype=float), np.asarray(stored["valid_loss"], dtype=float)
    ceiling = DIVERGED * float(np.nanmedian(curves[:, 0]))
    values = np.minimum(np.nan_to_num(curves[:, 1:], nan=ceiling), ceiling)
    costs = np.tile(np.arange(1.0, POINTS + 1), (len(values), 1))
    return Runs(tuple(_adam(dict(zip(names, row.tolist(), strict=True))) for row in rows), values, costs)


def _adam(recorded: dict[str, float]) -> Params:
    """Momenta as they were drawn: their distance from 1, on a logarithmic scale."""
    near_one = {f"one_minus_{name}": 1.0 - recorded.pop(name) for name in ("beta1", "beta2")}
    values = recorded | near_one
    return {
        name: float(np.clip(values[name], parameter.low, parameter.high)) for name, parameter in _floats(ADAM).items()
    }


def _floats(space: Space) -> dict[str, Float]:
    return {name: parameter for name, parameter in space.parameters.items() if isinstance(parameter, Float)}


# ---------------------------------------------------------------------------------------------------------- OPDA

PARTS = 20
CHANCE = 0.001
"""Accuracy over the thousand classes of a run that diverged."""

CONVNEXT = Space(
    {
        "epochs": Int(20, 100),
        "batch_size": Int(128, 1024, log=True),
        "lr": Float(5e-3, 50.0, log=True),
        "peak": Float(0.0, 0.8),
        "momentum": Float(0.7, 1.0),
        "weight_decay": Float(1e-6, 1e-3, log=True),
        "label_smoothing": Float(0.0, 0.5),
    },
    fidelities={"twentieths": Fidelity(1, PARTS, integer=True, trace=True)},
)


def _read_convnext(file: str) -> Runs:
    """Top-1 accuracy and seconds at each twentieth of a run's own schedule; `peak` is where in it the rate is highest.

    A run that diverged is at chance from then on and costs nothing more. One that diverged in its first epoch left no
    time: it counts as the usual first epoch of the others.
    """
    runs = _lines(file)
    first = float(np.median([run["learning_curve"][0]["time"] for run in runs if run["learning_curve"]]))
    curves = [_convnext_curve(run, first_epoch=first) for run in runs]
    params = tuple(_convnext_params(run) for run in runs)
    return Runs(params, np.array([values for values, _ in curves]), np.array([costs for _, costs in curves]))


def _convnext_curve(run: Mapping[str, Any], *, first_epoch: float) -> tuple[list[float], list[float]]:
    measured = [(point["top_1"], point["time"]) for point in run["learning_curve"]]
    after = (CHANCE, measured[-1][1] if measured else first_epoch)
    ends = [-(-run["epochs"] * part // PARTS) - 1 for part in range(1, PARTS + 1)]
    values, costs = zip(*(measured[end] if end < len(measured) else after for end in ends), strict=True)
    return list(values), list(costs)


def _convnext_params(run: Mapping[str, Any]) -> Params:
    names = ("epochs", "batch_size", "lr", "momentum", "weight_decay", "label_smoothing")
    return CONVNEXT.check({**{name: run[name] for name in names}, "peak": run["lr_peak_epoch"] / run["epochs"]})


def _lines(file: str) -> list[dict[str, Any]]:
    with gzip.open(data_folder() / file) as lines:
        return [json.loads(line) for line in lines]


GUESSED = 1.0 / 3.0
"""Accuracy over three classes before training."""

DEBERTA = Space(
    {
        "epochs": Int(1, 4),
        "batch_size": Int(16, 64),
        "learning_rate": Float(1e-6, 1e-3, log=True),
        "warmup": Float(0.0, 0.6),
        "dropout": Float(0.0, 0.3),
    },
    fidelities={"twentieths": Fidelity(1, PARTS, integer=True, trace=True)},
)


def _read_deberta(file: str) -> Runs:
    """Matched accuracy at each twentieth of a run's own schedule, between reports on a straight line.

    No time was recorded: what is paid is the examples seen. `warmup` is a share of the schedule.
    """
    runs = _lines(file)
    ends = np.arange(1, PARTS + 1) / PARTS
    values = [_on_a_line(ends * run["total_model_steps"], run["learning_curves"]["matched"]) for run in runs]
    costs = [ends * run["total_model_steps"] * run["train_batch_size"] for run in runs]
    return Runs(tuple(_deberta_params(run) for run in runs), np.array(values), np.array(costs))


def _on_a_line(steps: Array, curve: Sequence[tuple[float, float]]) -> Array:
    at, values = zip((0, GUESSED), *curve, strict=True)
    return np.asarray(np.interp(steps, at, values))


def _deberta_params(run: Mapping[str, Any]) -> Params:
    return DEBERTA.check(
        {
            "epochs": run["num_train_epochs"],
            "batch_size": run["train_batch_size"],
            "learning_rate": run["learning_rate"],
            "warmup": min(run["warmup_steps"] / run["total_model_steps"], 0.6),
            "dropout": run["cls_drop_out"],
        }
    )


# ------------------------------------------------------------------------------------------ Recorded for this project

TABLE_POINTS = 20
ONE_MINUS = "one_minus_"
"""Of a momentum, what is searched is its distance from 1, on a logarithmic scale, as it was drawn."""


def _of_table(parameters: Mapping[str, Parameter]) -> Space:
    return Space(dict(parameters), fidelities={"point": Fidelity(1, TABLE_POINTS, integer=True, trace=True)})


SHARED_TABLES = {
    "lm_code": _of_table(
        {
            "lr": Float(1e-4, 3e-2, log=True),
            "weight_decay": Float(1e-4, 1.0, log=True),
            "one_minus_beta1": Float(0.01, 0.3, log=True),
            "warmup": Float(0.0, 0.3),
            "dropout": Float(0.0, 0.3),
            "init": Float(0.25, 4.0, log=True),
            "width": Choice(64, 96, 128, 192, 256, ordered=True),
            "batch": Choice(16, 32, 64, 128, ordered=True),
        }
    ),
    "mixer_fashion": _of_table(
        {
            "lr": Float(1e-3, 3.0, log=True),
            "one_minus_momentum": Float(0.01, 0.5, log=True),
            "weight_decay": Float(1e-6, 1e-2, log=True),
            "smoothing": Float(0.0, 0.3),
            "warmup": Float(0.0, 0.3),
            "mask": Float(0.0, 0.5),
            "width": Choice(32, 48, 64, 96, 128, ordered=True),
            "batch": Choice(64, 128, 256, 512, ordered=True),
        }
    ),
}
"""What was drawn from for the tables of the data folder, which do not say it themselves."""

FOLDS = tuple(sorted((REPOSITORY / "benchmarks" / "data" / "folds").glob("*.npz")))
"""Cross-validations of this repository, whose points are the mean errors after each fit."""
OWN_TABLES = tuple(sorted((REPOSITORY / "benchmarks" / "data").glob("*.npz")))
"""Tables of this repository, each with its space."""


def _read_table(file: str) -> Runs:
    """Validation loss or error after each twentieth of a training; seconds are the same for every twentieth."""
    space = table_space(file)
    with np.load(data_folder() / file) as stored:
        values, seconds = np.asarray(stored["curves"], dtype=float), np.asarray(stored["seconds"], dtype=float)
        columns = {name: _column(stored, name) for name in space.parameters}
    parameters = space.parameters.values()
    rows = [map(_within, parameters, row) for row in zip(*columns.values(), strict=True)]
    params = tuple(space.check(dict(zip(space.parameters, row, strict=True))) for row in rows)
    costs = seconds[:, None] * np.arange(1, TABLE_POINTS + 1) / TABLE_POINTS
    return Runs(params, values, costs)


def _column(stored: Mapping[str, npt.NDArray[Any]], name: str) -> list[Any]:
    recorded = stored[name] if name in stored else 1.0 - stored[name.removeprefix(ONE_MINUS)]
    column: list[Any] = recorded.tolist()
    return column


def _within(parameter: Parameter, value: Any) -> Any:
    """Single precision can leave the bounds by a digit."""
    match parameter:
        case Float(low=low, high=high):
            return min(max(float(value), low), high)
        case Int(low=low, high=high):
            return min(max(round(value), low), high)
        case Choice(options=options):
            return next(option for option in options if option == value)


def table_space(file: str) -> Space:
    name = PurePath(file).stem
    if name in SHARED_TABLES:
        return SHARED_TABLES[name]
    with np.load(data_folder() / file) as stored:
        declared = json.loads(str(stored["space"]))
    return _of_table({name: _parameter(form) for name, form in declared.items()})


def _parameter(form: Mapping[str, Any]) -> Parameter:
    match form["kind"]:
        case "float":
            return Float(form["low"], form["high"], log=form.get("log", False))
        case "int":
            return Int(form["low"], form["high"], log=form.get("log", False))
        case "choice":
            return Choice(*map(int, form["choices"]), ordered=True)
    raise ValueError(f"A parameter of a table is a float, an int or a choice of whole numbers, got {form['kind']!r}.")


TABLE_FILES = {
    **{name: f"recorded/{name}.npz" for name in SHARED_TABLES},
    **{path.stem: str(path) for path in OWN_TABLES},
}
"""Where each table is, by its name: relative to the data folder, or as a whole path."""

TASKS = (
    "imdb_patch128_LSTM128_bs64",
    "imdb_patch128_LSTM128_embed128_bs64",
    "imdb_patch32_GRU64_avg_bs128",
    "imdb_patch32_IRNN64_relu_avg_bs128",
    "imdb_patch32_LSTM128_E128_bs128",
    "imdb_patch32_LSTM128_bs128",
    "imdb_patch32_VRNN128_tanh_bs128",
    "imdb_patch32_VRNN64_tanh_avg_bs128",
)
RECORDED: tuple[Judged, ...] = (
    *(Recorded(f"taskset/{task}", f"taskset/{task}.npz", ADAM, "minimize") for task in TASKS),
    Recorded("opda/convnext", "opda/convnext-tiny_tuning.results.jsonl.gz", CONVNEXT, "maximize"),
)
ROWS: tuple[Judged, ...] = (
    *(Rows(f"taskset-rows/{task}", f"taskset/{task}.npz", ADAM, "minimize") for task in TASKS),
    Rows("opda-rows/convnext", "opda/convnext-tiny_tuning.results.jsonl.gz", CONVNEXT, "maximize"),
    Rows("opda-rows/deberta", "opda/deberta-base_tuning.results.jsonl.gz", DEBERTA, "maximize"),
    *(Rows(f"rows/{name}", file, table_space(file), "minimize") for name, file in TABLE_FILES.items()),
    *(Rows(f"folds/{file.stem}", str(file), table_space(str(file)), "minimize") for file in FOLDS),
)
