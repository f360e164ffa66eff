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

SECONDS, CROSS_ENTROPY = "train_time", "cross_entropy"
GENERATIONS, CHILDREN, BEST = 200, 500, 20
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
        limited = "-limited" if self.constraints else ""
        object.__setattr__(self, "name", f"lcbench-of-{len(self.objectives)}{limited}/{self.curves.instance}")

    @property
    def full_cost(self) -> float:
        return self.curves.full_cost

    def missing(self) -> str | None:
        return self.curves.missing()

    def space(self) -> Space:
        return self.curves.space()

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        value, cost, trace, *_ = self.curves.evaluate(params, fidelity, seed=seed)
        metrics = [{"seconds": point.cost} for point in trace]
        if CROSS_ENTROPY in self.constraints:
            for one, entropy in zip(metrics, self.curves.cross_entropies(params), strict=False):
                one[CROSS_ENTROPY] = entropy
        points = [point._replace(metrics=one) for point, one in zip(trace, metrics, strict=True)]
        return Evaluation(value, cost, points, metrics=metrics[-1])

    def true_values(self, params: Params) -> dict[str, float]:
        end = self.evaluate(params, self.space().full_fidelity, seed=0)
        return {"accuracy": end.value, **end.metrics}

    @cached_property
    def scale(self) -> Scale:
        """20 000 random configurations alone are passed by studies of 20 trainings, by half of what they have."""
        rng, dimension = np.random.default_rng(0), self.space().encoder.dimension
        U = np.random.default_rng(0).random((RANDOM_CONFIGURATIONS, dimension))  # as `random_params` has them
        losses = self._losses(U)
        reference = scale_of_front(front_of(losses)).reference if len(self.objectives) > 1 else ()
        for _ in range(GENERATIONS):
            place = _places_on_front(losses) if reference else np.argsort(losses[:, 0])[:BEST]
            U, losses = U[place], losses[place]
            parents, others = (U[rng.integers(len(U), size=CHILDREN)] for _ in range(2))
            mixed = np.where(rng.random(parents.shape) < rng.choice([0.0, 0.3], (CHILDREN, 1)), others, parents)
            is_changed = rng.random(parents.shape) < rng.uniform(0.15, 1.0, (CHILDREN, 1))
            steps = 10.0 ** rng.uniform(-3.0, -0.3, (CHILDREN, 1)) * rng.standard_normal(parents.shape)
            children = np.clip(mixed + is_changed * steps, 0.0, 1.0)
            U, losses = np.vstack([U, children]), np.vstack([losses, self._losses(children)])
        whole = hypervolume(losses, reference) if reference else self.objectives[0].sign * float(losses.min())
        return Scale(reference, whole)

    def _losses(self, U: Array) -> Array:
        """Of rows of the unit cube; what is beyond a limit is worse than anything."""
        found = self.curves._at_the_end(self.space().encoder.decode_unit(U))
        quantities = {
            "accuracy": found["val_accuracy"],
            "seconds": found["time"],
            CROSS_ENTROPY: found[f"val_{CROSS_ENTROPY}"],
        }
        losses = np.stack([one.sign * quantities[one.name] for one in self.objectives], axis=1)
        for name, limit in self.constraints.items():
            losses[[limit.excess(float(value)) > 0.0 for value in quantities[name]]] = np.inf
        return losses


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
_LIMITS = {
    "tuning": {126026: (0.196, 77.8), 189909: (0.862, 82.5), 3945: (0.452, 128.8), 189354: (0.644, 575.5)},
    "reporting": {167161: (0.586, 59.2), 167181: (0.568, 54.7), 167190: (0.544, 60.6), 168868: (0.154, 112.8)},
}
"""The median cross entropy of random configurations, and the seconds that a quarter of them keep: a tenth keep both."""
LIMITED_CURVES, LIMITED_CURVES_FOR_TUNING = (
    tuple(
        VectorCurves(
            LearningCurves(instance),
            VectorCurves.objectives[:1],
            {CROSS_ENTROPY: AtMost(entropy), "seconds": AtMost(seconds)},
        )
        for instance, (entropy, seconds) in _LIMITS[use].items()
    )
    for use in ("reporting", "tuning")
)
