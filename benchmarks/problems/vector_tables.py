"""Tables and learning curves with several objectives or limits: what is measured beside the value of the same problems.

The best front known is that of all configurations of a grid, by means over the repeats. The reference is a tenth of its
range beyond it. Of learning curves the reference is that of the front of 20 000 random configurations, and the best
front known is what a search finds from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from benchmarks.hypervolume import Array, front_of, hypervolume
from benchmarks.problems.curves import LearningCurves
from benchmarks.problems.objectives import Scale, WithObjectives, scale_of_front
from benchmarks.problems.problem import RANDOM_CONFIGURATIONS, Evaluation, Params
from benchmarks.problems.tables import Table, _read_grid, folder_of
from farthing.space import Space
from farthing.trials.objectives import AtMost, Bound, Objective

SECONDS = "train_time"
GENERATIONS, CHILDREN = 200, 500
"""Of the search for the best front of learning curves. It takes a second and a half; four times as many find 0.8 % more
at most. All stored studies are behind what it finds, which a test checks."""


@dataclass(frozen=True)
class VectorTable(WithObjectives):
    """A table whose objectives and limited quantities are arrays of it. A tuner sees one repeat of all of them."""

    table: Table
    objectives: tuple[Objective, ...]
    constraints: Mapping[str, Bound] = field(default_factory=dict, hash=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        limited = "-limited" if self.constraints else ""
        name = f"{self.table.folder}-of-{len(self.objectives)}{limited}/{self.table.dataset}"
        object.__setattr__(self, "name", name)

    @property
    def full_cost(self) -> float:
        return self.table.full_cost

    @property
    def _named(self) -> tuple[str, ...]:
        return (*(one.name for one in self.objectives), *self.constraints)

    def missing(self) -> str | None:
        return self.table.missing()

    def space(self) -> Space:
        return self.table.space()

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        row = self.table._row(params)
        repeats = np.flatnonzero(~np.isnan(self._grid[self.table.values][row]))
        repeat = int(repeats[np.random.default_rng([seed, row]).integers(repeats.size)])
        found = {name: self._at(name, row, repeat) for name in self._named}
        first = found.pop(self.objectives[0].name)
        return Evaluation(first, self._at(SECONDS, row, repeat), metrics=found)

    def true_values(self, params: Params) -> dict[str, float]:
        row = self.table._row(params)
        return {name: float(self._means[name][row]) for name in self._named}

    @cached_property
    def scale(self) -> Scale:
        losses = np.stack([one.sign * self._means[one.name] for one in self.objectives], axis=1)
        for name, limit in self.constraints.items():
            losses[[limit.excess(float(value)) > 0.0 for value in self._means[name]]] = np.inf
        losses = losses[np.isfinite(losses).all(axis=1)]
        if len(self.objectives) == 1:
            return Scale((), self.objectives[0].sign * float(losses.min()))
        return scale_of_front(front_of(losses))

    def _at(self, name: str, row: int, repeat: int) -> float:
        """Some arrays have one column for all repeats."""
        columns = self._grid[name][row]
        return float(columns[repeat if columns.size > 1 else 0])

    @property
    def _grid(self) -> Mapping[str, Array]:
        arrays = tuple(dict.fromkeys([*self._named, SECONDS]))
        return _read_grid(folder_of(self.table.folder) / f"{self.table.dataset}.npz", arrays=arrays)

    @cached_property
    def _means(self) -> Mapping[str, Array]:
        return {name: np.nanmean(self._grid[name], axis=1) for name in self._named}


@dataclass(frozen=True)
class VectorCurves(WithObjectives):
    """Learning curves of lcbench: the validation accuracy, and the seconds that training to that epoch takes."""

    curves: LearningCurves
    objectives: tuple[Objective, ...] = (Objective("accuracy", minimize=False), Objective("seconds"))
    constraints: Mapping[str, Bound] = field(default_factory=dict, hash=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"lcbench-of-2/{self.curves.instance}")

    @property
    def full_cost(self) -> float:
        return self.curves.full_cost

    def missing(self) -> str | None:
        return self.curves.missing()

    def space(self) -> Space:
        return self.curves.space()

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        value, cost, trace, *_ = self.curves.evaluate(params, fidelity, seed=seed)
        points = [point._replace(metrics={"seconds": point.cost}) for point in trace]
        return Evaluation(value, cost, points, metrics={"seconds": cost})

    def true_values(self, params: Params) -> dict[str, float]:
        end = self.curves._curve(params)[-1]
        return {"accuracy": end.value, "seconds": end.cost}

    @cached_property
    def scale(self) -> Scale:
        """20 000 random configurations alone are passed by studies of 20 trainings, by half of what they have."""
        rng, dimension = np.random.default_rng(0), self.space().encoder.dimension
        U = np.random.default_rng(0).random((RANDOM_CONFIGURATIONS, dimension))  # as `random_params` has them
        losses = self._losses(U)
        reference = scale_of_front(front_of(losses)).reference
        for _ in range(GENERATIONS):
            place = _places_on_front(losses)
            U, losses = U[place], losses[place]
            parents, others = (U[rng.integers(len(U), size=CHILDREN)] for _ in range(2))
            mixed = np.where(rng.random(parents.shape) < rng.choice([0.0, 0.3], (CHILDREN, 1)), others, parents)
            is_changed = rng.random(parents.shape) < rng.uniform(0.15, 1.0, (CHILDREN, 1))
            steps = 10.0 ** rng.uniform(-3.0, -0.3, (CHILDREN, 1)) * rng.standard_normal(parents.shape)
            children = np.clip(mixed + is_changed * steps, 0.0, 1.0)
            U, losses = np.vstack([U, children]), np.vstack([losses, self._losses(children)])
        return Scale(reference, hypervolume(losses, reference))

    def _losses(self, U: Array) -> Array:
        """Of rows of the unit cube."""
        found = self.curves._at_the_end(self.space().encoder.decode_unit(U))
        return np.stack([-found["val_accuracy"], found["time"]], axis=1)


def _places_on_front(losses: Array) -> Array:
    """The rows of two columns that no other dominates, each once."""
    order = np.lexsort((losses[:, 1], losses[:, 0]))
    least_before = np.minimum.accumulate(np.append(np.inf, losses[order[:-1], 1]))
    return np.asarray(order[losses[order, 1] < least_before])


ACCURACY, LOSS = Objective("val_acc", minimize=False), Objective("val_loss")
LATENCY, SIZE, TIME = Objective("latency"), Objective("model_size"), Objective(SECONDS)


def _fcnet(dataset: str) -> Table:
    return Table(f"fcnet/{dataset}", "fcnet", dataset, values="val_loss", direction="minimize")


def _cells(dataset: str) -> Table:
    return Table(f"nasbench-201/{dataset}", "nasbench201", dataset, values="val_acc", direction="maximize")


_LIGHTGBM = Table("lightgbm/houses", "lightgbm", "houses", values="val_loss", direction="minimize")

VECTOR_TABLES = (
    *(VectorTable(_cells(dataset), (ACCURACY, LATENCY)) for dataset in ("cifar10", "cifar100")),
    *(VectorTable(_fcnet(dataset), (LOSS, SIZE)) for dataset in ("naval_propulsion", "protein_structure")),
    VectorTable(_fcnet("protein_structure"), (LOSS, SIZE, TIME)),
    VectorTable(_LIGHTGBM, (LOSS, SIZE)),
)
LIMITED_TABLES = (
    VectorTable(_fcnet("protein_structure"), (LOSS,), {"model_size": AtMost(10_000)}),
    VectorTable(_LIGHTGBM, (LOSS,), {"model_size": AtMost(100_000)}),
)
VECTOR_CURVES = tuple(VectorCurves(LearningCurves(instance)) for instance in (167161, 167181, 167190, 168868))
