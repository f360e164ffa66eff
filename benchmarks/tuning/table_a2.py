"""python -m benchmarks.tuning.table_a2 READING …: other readings of the paper on cells of its Table A2 that we miss.

What is observed enters a Kalman filter over a grid, apart from the package: with the reading that is built it also
checks the package. Truths are the same for all readings. A run on record is not made again. Without a name, prints a
row for each reading.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from farthing.acquisition.confidence_bound import ce_gp_ucb_beta
from farthing.models.linalg import Array, IntArray, cholesky, one_thread

SUITE = "tuning-table-a2"
POINTS, ROUNDS, TRIALS, NOISE = 250, 500, 30, 0.01
"""A quarter of the paper's points, and as many trials as the suite online-synthetic has."""
BANDWIDTH = 0.1
EPSILONS = (0.005, 0.05)
METHODS: Mapping[str, float | None] = {"all feedback": 1.0, "Ber(0.2)": 0.2, "Ber(0.5)": 0.5, "CE κ=0.9": None}
"""The share of rounds in which a coin asks; None asks by the paper's rule."""
KAPPA = 0.9


@dataclass(frozen=True)
class Reading:
    """`frozen`: silent rounds leave mean and deviation as they are, and an observation makes up for them.
    `counts`: time is the number of observations, not of rounds. `holds`: the choice stays in silent rounds.
    `exploits`: silent rounds play the argmax of the mean. `widens`: β grows with observations, not with rounds.
    `believed`: the model's ε, the true one unless told. `lengthscale` is that of truth and model.
    """

    frozen: bool = False
    counts: bool = False
    holds: bool = False
    exploits: bool = False
    widens: bool = False
    believed: float | None = None
    lengthscale: float = 0.2


READINGS = {
    "as built": Reading(),
    "silent rounds freeze mean and deviation": Reading(frozen=True),
    "time counts observations": Reading(counts=True),
    "the choice stays in silent rounds": Reading(holds=True),
    "silent rounds play the best mean": Reading(exploits=True),
    "β grows with observations": Reading(widens=True),
    "the model has ε = 0.01 throughout": Reading(believed=0.01),
    "lengthscale 0.15": Reading(lengthscale=0.15),
    "lengthscale 0.3": Reading(lengthscale=0.3),
}


@dataclass(frozen=True)
class Trial:
    """One method with one reading on one drifting function."""

    name: str
    method: str
    epsilon: float
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"points": POINTS, "reading": self.name}
        return {"suite": SUITE, "problem": f"ε = {self.epsilon:g}", "method": self.method, "seed": self.seed,
                "settings": settings}  # fmt: skip

    @property
    def title(self) -> str:
        return f"{self.name}, {self.method}, ε = {self.epsilon:g}, seed {self.seed}"


@lru_cache
def prior(lengthscale: float) -> tuple[Array, Array]:
    """Matérn-3/2 over the grid, and a factor of it."""
    grid = np.linspace(0.0, 1.0, POINTS)
    scaled = sqrt(3.0) * np.abs(grid[:, None] - grid[None, :]) / lengthscale
    K = np.asarray((1.0 + scaled) * np.exp(-scaled))
    return K, cholesky(K + 1e-9 * np.eye(POINTS))


def result_of(trial: Trial) -> Record:
    with one_thread():
        regret, queries = played(READINGS[trial.name], METHODS[trial.method], trial.epsilon, trial.seed)
    return {**trial.identity, "regret": regret, "queries": queries, **commit()}


def played(reading: Reading, share: float | None, epsilon: float, seed: int) -> tuple[float, int]:
    """R_T/T and C_T; the first measurement is always taken and not counted."""
    K, factor = prior(reading.lengthscale)
    rng = np.random.default_rng([seed, round(1e4 * epsilon)])
    F = rng.standard_normal((ROUNDS, POINTS)) @ factor.T
    for t in range(1, ROUNDS):
        F[t] = sqrt(1.0 - epsilon) * F[t - 1] + sqrt(epsilon) * F[t]
    noise, coins = sqrt(NOISE) * rng.standard_normal(ROUNDS), rng.random(ROUNDS)
    mean, P, assumed = np.zeros(POINTS), K.copy(), reading.believed or epsilon
    lost, asked, last, owed = 0.0, 0, 0, 0
    for t in range(ROUNDS):
        height = mean + sqrt(ce_gp_ucb_beta(asked + 1 if reading.widens else t + 1)) * np.sqrt(
            np.maximum(np.diagonal(P), 0.0)
        )
        choice = int(np.argmax(height))
        asks = t == 0 or (coins[t] < share if share is not None else is_unsure(mean, P, height, choice))
        at = choice
        if not asks and reading.holds:
            at = last
        elif not asks and reading.exploits:
            at = int(np.argmax(mean))
        lost, last = lost + float(F[t].max() - F[t, at]), at
        owed += 1
        if asks:
            asked += 1
            if reading.frozen and owed > 1:
                mean, P = drifted(mean, P, K, assumed, owed - 1)
            gain = P[:, at] / (P[at, at] + NOISE)
            mean = mean + gain * (F[t, at] + noise[t] - mean[at])
            P = P - np.outer(gain, P[at])
        if asks or not (reading.frozen or reading.counts):
            mean, P = drifted(mean, P, K, assumed, 1)
            owed = 0
    return lost / ROUNDS, asked - 1


def drifted(mean: Array, P: Array, K: Array, epsilon: float, rounds: int) -> tuple[Array, Array]:
    kept = (1.0 - epsilon) ** rounds
    return sqrt(kept) * mean, kept * P + (1.0 - kept) * K


def is_unsure(mean: Array, P: Array, height: Array, choice: int) -> bool:
    """The paper's rule: some local optimum of the bound is not beaten with probability κ, or there is none."""
    rivals = optima(height, choice)
    if not rivals.size:
        return True
    gap, variance = mean[choice] - mean[rivals], np.diagonal(P)
    return bool(np.min(ndtr(gap / np.sqrt(variance[choice] + variance[rivals]))) < KAPPA)


def optima(height: Array, choice: int) -> IntArray:
    """Local maxima of the bound, the ends among them, the highest first; none within the bandwidth of a higher one."""
    padded = np.concatenate([[-np.inf], height, [-np.inf]])
    found = np.flatnonzero((height >= padded[:-2]) & (height >= padded[2:]))
    kept = [choice]
    for one in found[np.argsort(-height[found], kind="stable")].tolist():
        if min(abs(one - other) for other in kept) >= BANDWIDTH * (POINTS - 1):
            kept.append(one)
    return np.array(kept[1:], dtype=np.int64)


def rows_of(name: str, method: str, epsilon: float) -> list[Record]:
    return [
        row
        for row in read_records(results_path(SUITE))
        if (row["settings"]["reading"], row["method"], row["problem"]) == (name, method, f"ε = {epsilon:g}")
    ]


def main(names: Sequence[str]) -> int:
    for name in names:
        trials = [
            Trial(name, method, epsilon, seed) for epsilon in EPSILONS for method in METHODS for seed in range(TRIALS)
        ]
        make_missing(results_path(SUITE), trials, result_of=result_of)
    for name in () if names else READINGS:
        cells = [rows_of(name, method, epsilon) for epsilon in EPSILONS for method in METHODS]
        means = [f"{fmean(r['regret'] for r in own):.3f}/{fmean(r['queries'] for r in own):.0f}" for own in cells]
        print(f"| {name} | " + " | ".join(means) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
