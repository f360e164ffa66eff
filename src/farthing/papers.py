"""The settings that the papers' theorems are about, each with the equation that it comes from.

They are far more cautious than what the papers run in their experiments, which is `CEGPUCB.paper()`, `PB2.paper()` and
`LaMBO.paper()`. What a theorem leaves open, constants of smoothness among it, is an argument here, and no argument of
the strategies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log, log2, pi, sqrt
from typing import Any

from farthing.errors import InvalidArgument
from farthing.fields import positive
from farthing.online.ce_gp_ucb import CEGPUCB
from farthing.online.query_rules import Confidence, Quota
from farthing.strategies.pipeline.lambo import LaMBO
from farthing.strategies.population.pbt import PB2

DELTA = 0.1
"""The probability with which a bound may fail; the papers name none."""


@dataclass(frozen=True)
class TheoreticalCEGPUCB(CEGPUCB):
    """CE-GP-UCB with β_t = `beta_level` + `beta_growth` · log t, which both theorems have."""

    beta_level: float = 1.0
    beta_growth: float = positive(4.0)

    def beta_at(self, round: int) -> float:
        return self.beta_level + self.beta_growth * log(round)


def ce_gp_ucb_theorem_4(candidates: int, *, delta: float = DELTA, **changes: Any) -> TheoreticalCEGPUCB:
    """β_t = 2 log(|D| t² π²/6δ), for a finite set of candidates (version 1, Theorem 4)."""
    return _theoretical(2.0 * log(candidates * pi**2 / (6.0 * delta)), 4.0, changes)


def ce_gp_ucb_theorem_7(
    dimension: int, *, a: float = 1.0, b: float = 1.0, r: float = 1.0, delta: float = DELTA, **changes: Any
) -> TheoreticalCEGPUCB:
    """β_t = 2 log(2π² t²/3δ) + 2d log(t² d b r √log(4da/δ)), over [0, r]^d (version 1, Theorem 7).

    a and b are the constants of Pr(sup |∂f/∂x| > L) ≤ a exp(−(L/b)²).
    """
    d = dimension
    level = 2.0 * log(2.0 * pi**2 / (3.0 * delta)) + 2.0 * d * log(d * b * r * sqrt(log(4.0 * d * a / delta)))
    return _theoretical(level, 4.0 + 4.0 * d, changes)


def _theoretical(level: float, growth: float, changes: dict[str, Any]) -> TheoreticalCEGPUCB:
    published = CEGPUCB.paper()
    settings = {name: getattr(published, name) for name in CEGPUCB.__dataclass_fields__}
    return TheoreticalCEGPUCB(**{**settings, **changes}, beta_level=level, beta_growth=growth)


def ce_gp_ucb_corollary_6(
    rounds: int, *, forgetting: float, smoothness: float | None = None, dimension: int = 1, kappa: float = 0.9
) -> Quota:
    """B_1 = B_2 of version 1, Corollary 6: the published rule with the quotas that balance regret and cost.

    max(T^{2/3}, T ε^{1/7}) for a squared exponential; for a Matérn kernel of `smoothness` ν ≥ 2, with
    c = d(d+1)/(2ν + d(d+1)), max(T^{2/(3−c)}, T ε^{(1−c)/(7−3c)}); at most T.
    """
    c = 0.0
    if smoothness is not None:
        if smoothness < 2.0:
            raise InvalidArgument(f"Corollary 6 needs a smoothness ν ≥ 2, got {smoothness:g}. Give 2.5 for Matérn-5/2.")
        c = dimension * (dimension + 1) / (2.0 * smoothness + dimension * (dimension + 1))
    quota = max(rounds ** (2.0 / (3.0 - c)), rounds * forgetting ** ((1.0 - c) / (7.0 - 3.0 * c)))
    return Quota(Confidence(kappa), sure=min(quota, float(rounds)), allowed=min(quota, float(rounds)))


def pb2_theorem_2(
    *,
    population: int,
    interval: int,
    intervals: int,
    dimension: int,
    a: float = 1.0,
    b: float = 1.0,
    r: float = 1.0,
    delta: float = DELTA,
) -> PB2:
    """β_T = 2 log(π²T²/2δ) + 2d log(r d b T² √log(d a π²T²/2δ)), the same in all T intervals (Theorem 2)."""
    T, d = intervals, dimension
    beta = 2.0 * log(pi**2 * T**2 / (2.0 * delta))
    beta += 2.0 * d * log(r * d * b * T**2 * sqrt(log(d * a * pi**2 * T**2 / (2.0 * delta))))
    return replace(PB2.paper(population=population, interval=interval), beta=beta)


def lambo_depths(costs: Sequence[float], *, steps: int, arms: int, weight: float = 0.1) -> tuple[int, ...]:
    """d_1 … d_{N−1} of Eq. 17, for the costs of all stages but the last; `weight` is λ, and each depth at least 1.

    d_1 + … + d_m = ⌈−log₂(Σ_{j>m} c_j/(√λ Σ_j c_j))⌉, and the last is log₂(T^{1/3}/log |K|) less the others. The proof
    rounds down and has −½ log λ where this has +½ log λ. The paper's logarithms have no base; 2 is our choice, because
    a further level halves the steps on which a stage may move.
    """
    whole, found = sum(costs), list[int]()
    for stage in range(1, len(costs)):
        reach = ceil(-log2(sum(costs[stage:]) / (sqrt(weight) * whole)))
        found.append(max(1, reach - sum(found)))
    deepest = log2(steps ** (1.0 / 3.0) / log(arms)) if arms > 1 else 1.0
    return (*found, max(1, round(deepest) - sum(found)))


def lambo_lemma_1(costs: Sequence[float], *, steps: int, arms: int, weight: float = 0.1, **changes: Any) -> LaMBO:
    """η = √(2^{−H} T^{−1} log |K|) of Lemma 1, with the depths of Eq. 17 and H their sum."""
    depths = lambo_depths(costs, steps=steps, arms=arms, weight=weight)
    eta = sqrt(2.0 ** -sum(depths) / steps * log(arms))
    return LaMBO.paper(**{"depths": depths, "eta": eta, **changes})
