"""The suites of bandits: which strategies play in which worlds, and what is claimed of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from typing import Any, Literal, TypeAlias

from benchmarks.baselines.bandits import (
    EXP3R,
    EXP3S,
    UCB1,
    EpsilonGreedy,
    GPBandit,
    RestartedGPUCB,
    Softmax,
)
from benchmarks.baselines.smooth_arms import SmoothArms
from benchmarks.online.worlds import ARMS, SENSORS, SYNTHETIC, World
from farthing.online import CEGPUCB, OnlineStrategy
from farthing.online.ce_gp_ucb import FLOOR
from farthing.online.context import QueryRule
from farthing.rules import (
    Bernoulli,
    Capped,
    Confidence,
    Every,
    ExpectedRegret,
    Floor,
    Overlap,
    Quota,
    ValueOfInformation,
)

Make: TypeAlias = Callable[[Mapping[str, Any]], OnlineStrategy]
"""From what is known of a world to a strategy."""


@dataclass(frozen=True, eq=False)
class OnlineSuite:
    """`curves` are families that differ only in how often they ask; `measure` is what is reported beside C_T.

    Rules, prices and the paper mode's bandwidth were chosen on other seeds than are played here.
    """

    name: str
    worlds: tuple[World, ...]
    contenders: Mapping[str, Make]
    curves: Mapping[str, tuple[str, ...]]
    ours: tuple[str, ...]
    measure: str = "regret"
    seeds: int = 30
    first_seed: int = 1000

    def all_seeds(self, count: int | None = None) -> range:
        return range(self.first_seed, self.first_seed + (count or self.seeds))

    def quick(self) -> "OnlineSuite":
        return replace(self, name=f"{self.name}-quick", worlds=self.worlds[:2], seeds=min(2, self.seeds))


# -------------------------------------------------------------------------------------------------------- synthetic

KAPPAS = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
QUOTAS = ((25, 125), (50, 250), (125, 125))
CAPS = (60, 120)
"""Measurements of 500: the paper's B1 and B2, and hard caps, around what κ = 0.9 takes without them."""
SHARES = (0.05, 0.1, 0.2, 0.4, 0.6)
PAPER_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The coins of Table A2, as published: silent rounds play the choice."""
STEPS = (2, 3, 5, 10, 20)
PRICES = (0.02, 0.05, 0.1)

VOI_PRICES = (0.1, 1.0)
"""Beside the default's 0.3."""


def _paper(rule: QueryRule, **changes: Any) -> Make:
    """The paper's settings; over candidates nothing is climbed."""
    return lambda facts: CEGPUCB.paper(**{"rule": rule, "bandwidth": 0.1, "climbs": 0, **facts, **changes})


def _ours(rule: QueryRule) -> Make:
    """Our settings with the model of the paper's experiment."""
    return lambda facts: CEGPUCB(**facts, scale=1.0, rule=rule)


def _acquiring(acquisition: Literal["ei", "pi"], p: float) -> Make:
    """The paper's Figure 1: other acquisitions with a coin; silent rounds exploit, as ours do."""
    return lambda facts: GPBandit(**facts, scale=1.0, acquisition=acquisition, rule=Bernoulli(p))


def _restarted(p: float) -> Make:
    return lambda facts: RestartedGPUCB(**facts, scale=1.0, beta="paper", rule=Bernoulli(p))


_SYNTHETIC: dict[str, Make] = {
    "TV-GP-UCB": _paper(Every(1)),
    **{f"CE κ={kappa:g}": _paper(Confidence(kappa)) for kappa in KAPPAS},
    "CE @*": _paper(Overlap()),
    **{f"TV-GP-UCB, Ber({p:g})": _paper(Bernoulli(p)) for p in PAPER_SHARES},
    "CE κ=0.9, silent mean": _paper(Confidence(0.9), silent="mean"),
    **{
        f"CE κ=0.9, B1={sure}, B2={allowed}": _paper(Quota(Confidence(0.9), sure=sure, allowed=allowed))
        for sure, allowed in QUOTAS
    },
    **{f"CE κ=0.9, at most {most}": _paper(Capped(Confidence(0.9), most)) for most in CAPS},
    "R-GP-UCB": lambda facts: RestartedGPUCB(**facts, scale=1.0, beta="paper", silent="ucb"),
    **{f"TV-GP-EI, Bernoulli {p:g}": _acquiring("ei", p) for p in SHARES},
    **{f"TV-GP-PI, Bernoulli {p:g}": _acquiring("pi", p) for p in SHARES},
    **{f"R-GP-UCB, Bernoulli {p:g}": _restarted(p) for p in SHARES},
    **{f"Bernoulli {p:g}": _ours(Bernoulli(p)) for p in SHARES},
    **{f"Bernoulli {p:g}, paper's β": _paper(Bernoulli(p), silent="mean") for p in SHARES},
    **{f"Every {n}": _ours(Every(n)) for n in STEPS},
    **{f"Every {n}, paper's β": _paper(Every(n), silent="mean") for n in STEPS},
    **{f"expected regret {price:g}": _ours(ExpectedRegret(price)) for price in PRICES},
    **{f"information {price:g}": _ours(ValueOfInformation(price)) for price in VOI_PRICES},
    "default": lambda facts: CEGPUCB(**facts, scale=1.0),
}

# ------------------------------------------------------------------------------------------------------------- arms

BER = Bernoulli(0.1)
ARM_PRICES = (0.05, 0.1, 0.2)


DEFAULT_RULE = Floor(ValueOfInformation(), FLOOR)
"""Of `CEGPUCB()` where forgetting is learnt."""


def _arm_rule(rule: QueryRule) -> Make:
    return lambda facts: CEGPUCB(kernel="independent", rule=rule)


_ARMS: dict[str, Make] = {
    # those with a GP are without a level, as they were published
    "UCB1, forgetting": lambda facts: UCB1(rule=BER),
    "ε-greedy": lambda facts: EpsilonGreedy(rule=BER),
    "softmax": lambda facts: Softmax(rule=BER),
    "EXP3.S": lambda facts: EXP3S(rule=BER),
    "EXP3.R": lambda facts: EXP3R(rule=BER),
    "GP-UCB, RBF in time": lambda facts: SmoothArms(rule=BER),
    "CE κ=0.95, RBF in time": lambda facts: SmoothArms(rule=Confidence(0.95)),
    "default's rule, RBF in time": lambda facts: SmoothArms(rule=DEFAULT_RULE),
    "default's rule, the likelier drift": lambda facts: SmoothArms(rule=DEFAULT_RULE, drift="likelier"),
    "GP-UCB that forgets nothing": lambda facts: GPBandit(
        kernel="independent", level=0.0, forgetting=0.0, rule=BER, floor=0.0
    ),
    "R-GP-UCB": lambda facts: RestartedGPUCB(
        kernel="independent", level=0.0, block=200, forgetting=0.01, rule=BER, floor=0.0
    ),
    "TV-GP-UCB": lambda facts: GPBandit(kernel="independent", level=0.0, rule=BER, floor=0.0),
    "TV-GP-EI": lambda facts: GPBandit(kernel="independent", level=0.0, acquisition="ei", rule=BER, floor=0.0),
    "TV-GP-PI": lambda facts: GPBandit(kernel="independent", level=0.0, acquisition="pi", rule=BER, floor=0.0),
    "CE κ=0.95": lambda facts: CEGPUCB(kernel="independent", level=0.0, rule=Confidence(0.95), beta="paper"),
    "CE κ=0.95, as published": lambda facts: CEGPUCB.paper(
        0.95, kernel="independent", level=0.0, scale=None, noise=None, forgetting="learn", floor=0.0, climbs=0
    ),
    "CE κ=0.95, as published, RBF in time": lambda facts: SmoothArms(rule=Confidence(0.95), silent="ucb"),
    "CE κ=0.95, as published, RBF by maximum likelihood": lambda facts: SmoothArms(
        rule=Confidence(0.95), silent="ucb", priors=False
    ),
    "GP-UCB as published, RBF in time": lambda facts: SmoothArms(rule=BER, silent="ucb"),
    "GP-UCB, all feedback, RBF in time": lambda facts: SmoothArms(rule=Every(1)),
    "default": lambda facts: CEGPUCB(kernel="independent"),
    **{f"expected regret {p:g}": _arm_rule(ExpectedRegret(p)) for p in ARM_PRICES},
}

# ---------------------------------------------------------------------------------------------------------- sensors


def _arm_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same for bandits without a model; they begin at what the sensors read on average, as the models do."""
    gamma = (1.0 - facts["forgetting"]) ** 0.5
    return {"offset": facts["offset"], "scale": facts["scale"], "noise": facts["noise"], "gamma": gamma}


def _smooth(rule: QueryRule) -> Make:
    """An RBF in time with the same correlations one step and two steps apart as the forgetting and noise of the facts.

    ρ_k = (1 − s) exp(−k²/2ℓ²), in place of (1 − s)(1 − ε)^{k/2}.
    """

    def make(facts: Mapping[str, Any]) -> SmoothArms:
        rate = -log(1.0 - facts["forgetting"])
        shown = (1.0 - facts["noise"]) * exp(-0.5 * rate) * exp(rate / 6.0)
        return SmoothArms(
            rule=rule,
            covariance=facts["kernel"],
            time=sqrt(3.0 / rate),
            noise=min(max(1.0 - shown, 1e-3), 0.5),
            scale=facts["scale"],
            offset=facts["offset"],
        )

    return make


def _sensor_baselines(label: str, rule: QueryRule) -> dict[str, Make]:
    makes: dict[str, Make] = {
        "TV-GP-EI": lambda facts: GPBandit(**facts, acquisition="ei", rule=rule),
        "TV-GP-PI": lambda facts: GPBandit(**facts, acquisition="pi", rule=rule),
        "GP-UCB": lambda facts: GPBandit(**{**facts, "forgetting": 0.0}, rule=rule),
        "R-GP-UCB": lambda facts: RestartedGPUCB(**facts, rule=rule),
        "UCB1": lambda facts: UCB1(**_arm_facts(facts), rule=rule),
        "ε-greedy": lambda facts: EpsilonGreedy(**_arm_facts(facts), rule=rule),
        "softmax": lambda facts: Softmax(**_arm_facts(facts), rule=rule),
        "EXP3.S": lambda facts: EXP3S(**_arm_facts(facts), rule=rule),
    }
    return {f"{name}{label}": make for name, make in makes.items()}


_SENSORS: dict[str, Make] = {
    "TV-GP-UCB, all feedback": lambda facts: GPBandit(**facts),
    "default": lambda facts: CEGPUCB(**facts),
    "expected regret 0.05": lambda facts: CEGPUCB(**facts, rule=ExpectedRegret(0.05)),
    "expected regret 0.3": lambda facts: CEGPUCB(**facts, rule=ExpectedRegret(0.3)),
    "expected regret 0.1": lambda facts: CEGPUCB(**facts, rule=ExpectedRegret(0.1)),
    "information 1": lambda facts: CEGPUCB(**facts, rule=ValueOfInformation(1.0)),
    "information 5": lambda facts: CEGPUCB(**facts, rule=ValueOfInformation(5.0)),
    "default's rule, RBF in time": _smooth(ValueOfInformation()),
    "default's rule, the likelier drift": lambda facts: SmoothArms(
        rule=ValueOfInformation(),
        covariance=facts["kernel"],
        scale=facts["scale"],
        offset=facts["offset"],
        drift="likelier",
    ),
    "CE κ=0.9": lambda facts: CEGPUCB(**facts, rule=Confidence(0.9), beta="paper", silent="ucb"),
    "CE κ=0.9, RBF in time": _smooth(Confidence(0.9)),
    **_sensor_baselines(", all feedback", Every(1)),
    **_sensor_baselines(", Ber(0.2)", Bernoulli(0.2)),
    "TV-GP-UCB, Ber(0.2)": lambda facts: GPBandit(**facts, rule=Bernoulli(0.2)),
    "random": lambda facts: EpsilonGreedy(**_arm_facts(facts), explore=1.0),
}

_ENTRIES = (
    OnlineSuite(
        "online-synthetic",
        SYNTHETIC,
        _SYNTHETIC,
        curves={
            "paper's rule": tuple(f"CE κ={kappa:g}" for kappa in KAPPAS),
            "Bernoulli": tuple(f"Bernoulli {p:g}" for p in SHARES),
            "Bernoulli, paper's β": tuple(f"Bernoulli {p:g}, paper's β" for p in SHARES),
            "TV-GP-EI, Bernoulli": tuple(f"TV-GP-EI, Bernoulli {p:g}" for p in SHARES),
            "TV-GP-PI, Bernoulli": tuple(f"TV-GP-PI, Bernoulli {p:g}" for p in SHARES),
            "R-GP-UCB, Bernoulli": tuple(f"R-GP-UCB, Bernoulli {p:g}" for p in SHARES),
            "Every": tuple(f"Every {n}" for n in STEPS),
            "Every, paper's β": tuple(f"Every {n}, paper's β" for n in STEPS),
        },
        ours=(
            "default",
            *(f"expected regret {price:g}" for price in PRICES),
            *(f"information {price:g}" for price in VOI_PRICES),
        ),
    ),
    OnlineSuite("online-arms", ARMS, _ARMS, curves={}, ours=("default",)),
    OnlineSuite("online-sensors", SENSORS, _SENSORS, curves={}, ours=("default",), measure="reward", seeds=5),
)

ONLINE_SUITES = {suite.name: suite for suite in _ENTRIES}
