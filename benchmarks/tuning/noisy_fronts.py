"""python -m benchmarks.tuning.noisy_fronts RULE: what `LogEHVI` improves on where measurements have noise.

`means` is the rule in use: the front of the models' means at what was seen. `averaged` is the noisy EHVI (Daulton et
al., 2021): the mean improvement over the fronts of draws from the models there. On functions that are not reported,
with noise of a twentieth and a fifth of what lies between the ideal and the reference of each objective, judged by true
values. A run on record is not made again. Without a rule, prints the pairs.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.methods import METHODS
from benchmarks.problems import Evaluation, Params
from benchmarks.problems.objectives import Scale, WithObjectives
from benchmarks.problems.vector_functions import VECTOR_FUNCTIONS_FOR_TUNING, VectorFunction
from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.suites import Allowance
from benchmarks.trajectory import trajectory
from benchmarks.tuning.ruled import Ruled
from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.hypervolume import LogFeasible, LogHypervolumeImprovement, boxes_of, non_dominated
from farthing.models.linalg import Array
from farthing.space import Space
from farthing.strategies.shared import several
from farthing.strategies.shared.several import LogProduct, Models

SUITE = "tuning-noisy-fronts"
SEEDS, EVALUATIONS, DRAWS = 3, (30, 60), 8
NOISES = (0.05, 0.2)
RULES = ("means", "averaged")


@dataclass(frozen=True)
class NoisyVector(WithObjectives):
    """A function whose objectives are measured with Gaussian noise, the same for every method."""

    quiet: VectorFunction
    noise: float
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.quiet.name}, noise of {self.noise:g}")
        object.__setattr__(self, "objectives", self.quiet.objectives)
        object.__setattr__(self, "constraints", self.quiet.constraints)

    @property
    def scale(self) -> Scale:
        return self.quiet.scale

    @property
    def full_cost(self) -> float:
        return self.quiet.full_cost

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return self.quiet.space()

    def true_values(self, params: Params) -> dict[str, float]:
        return self.quiet.true_values(params)

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        values = self.quiet.true_values(params)
        key = [seed, *(abs(hash(round(float(one), 12))) % 2**32 for one in params.values())]
        drawn = np.random.default_rng(key).standard_normal(len(self.objectives))
        for one, z in zip(self.objectives, drawn, strict=True):
            values[one.name] += self.noise * EXTENTS[self.quiet.name] * float(z)
        first, *others = values.items()
        return Evaluation(first[1], self.full_cost, metrics=dict(others))


EXTENTS = {"kursawe-3": 8.0, "srn": 150.0}
EXTENTS |= {one.name: 1.0 for one in VECTOR_FUNCTIONS_FOR_TUNING if one.name not in EXTENTS}
"""About how far each objective reaches along the front."""


@dataclass(frozen=True, eq=False)
class LogMean:
    """The logarithm of the mean of positive functions, each given by its logarithm."""

    parts: tuple[Acquisition, ...]

    def __call__(self, X: Array) -> Array:
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        found = [part.value_and_gradient(X) for part in self.parts]
        values, gradients = np.stack([one for one, _ in found]), np.stack([one for _, one in found])
        most = values.max(axis=0)
        weights = np.exp(values - most)
        total = weights.sum(axis=0)
        gradient = (weights[..., None] * gradients).sum(axis=0) / total[:, None]
        return most + np.log(total) - math.log(len(found)), gradient


def averaged(models: Models) -> LogProduct:
    """As `Models.improvement`, over the fronts of draws."""
    means, keeps = models.means, models.keeps
    feasible = tuple(LogFeasible(gp, bound) for gp, bound in models.limits)
    if models.limits and not keeps.any():
        return LogProduct(feasible)
    reference = several.reference_of(means[keeps][non_dominated(means[keeps])], means)
    reference = np.minimum(reference, models.most)
    rng = np.random.default_rng(len(models.X))
    drawn = np.stack([gp.sample(models.X[keeps], DRAWS, rng=rng) for gp in models.objectives], axis=-1)
    parts = tuple(
        LogHypervolumeImprovement(models.objectives, boxes_of(rows[non_dominated(rows)], reference)) for rows in drawn
    )
    return LogProduct((LogMean(parts), *feasible))


def result_of(ruled: Ruled[NoisyVector]) -> Record:
    allowance = Allowance(EVALUATIONS[-1], "evaluations")
    standings = list(trajectory(METHODS["log-ehvi"], ruled.problem, allowance=allowance, seed=ruled.seed))
    regrets = {f"regret_{n}": standings[n - 1].regret for n in EVALUATIONS}
    return {**ruled.identity, **regrets, "suggest_cpu_seconds": standings[-1].suggest_seconds, **commit()}


def pairs(records: Sequence[Record], noise: float, evaluations: int) -> list[float]:
    """Regret averaged over fronts less that of means."""
    found = {(one["problem"], one["seed"], one["method"]): float(one[f"regret_{evaluations}"]) for one in records}
    return [
        regret - found[problem, seed, RULES[0]]
        for (problem, seed, rule), regret in found.items()
        if rule == RULES[1] and problem.endswith(f"noise of {noise:g}") and (problem, seed, RULES[0]) in found
    ]


def main(rules: Sequence[str]) -> int:
    if not rules:
        records = read_records(results_path(SUITE))
        for noise in NOISES:
            for n in EVALUATIONS:
                gaps = pairs(records, noise, n)
                won, lost = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
                error = np.std(gaps, ddof=1) / math.sqrt(len(gaps))
                print(f"noise {noise:g} at {n}: averaged {won}–{lost}, {np.mean(gaps):+.3f} ± {error:.3f}")
        return 0
    [rule] = rules
    if rule == RULES[1]:
        setattr(Models, "improvement", averaged)  # noqa: B010
    problems = [NoisyVector(one, noise) for one in VECTOR_FUNCTIONS_FOR_TUNING for noise in NOISES]
    make_missing(
        results_path(SUITE),
        [Ruled(SUITE, rule, one, seed) for seed in range(SEEDS) for one in problems],
        result_of=result_of,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
