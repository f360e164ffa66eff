"""An online run that writes down what was acknowledged to it, to be killed at any moment by test_online_kills.py."""

import sys

from killed_study import acknowledge

import farthing as ft
from farthing.storage import Storage

SPACE = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "kind": ft.Choice("a", "b")})
STRATEGIES = {
    "probes": ft.PairedProbes(),
    "learnt": ft.CEGPUCB(),
    "known": ft.CEGPUCB(
        lengthscale=0.3, noise=0.01, forgetting=0.02, scale=1.0, rule=ft.rules.ValueOfInformation(0.05)
    ),
}


def value_at(progress: float, rate: float, kind: str) -> float:
    """Best at a rate that grows as training goes on."""
    return -abs(rate - 0.1 - progress) - (kind == "b") * 0.1


def tuner_in(storage: str | Storage | None, strategy: str, seed: int, *, rounds: int) -> ft.OnlineTuner:
    """Probes are taken back, of a training that has no state: what is decided depends on that all the same."""
    undoing = {"save": lambda: None, "restore": lambda saved: None} if strategy == "probes" else {}
    settings = {"validation_cost": 0.1, "overhead": 0.1 if strategy == "probes" else None, **undoing}
    return ft.OnlineTuner(SPACE, rounds=rounds, strategy=STRATEGIES[strategy], storage=storage, seed=seed, **settings)


def train(tuner: ft.OnlineTuner, acknowledged: str) -> None:
    for decision in tuner:
        if decision.measure:
            value = value_at(decision.round / tuner.rounds, **decision.params)
            decision.observe(value)
            acknowledge(acknowledged, f"observed {decision.round} {value!r}")


def main(storage: str, strategy: str, seed: str, rounds: str, acknowledged: str) -> None:
    tuner = tuner_in(storage, strategy, int(seed), rounds=int(rounds))
    acknowledge(acknowledged, "started")
    train(tuner, acknowledged)
    acknowledge(acknowledged, "finished")


if __name__ == "__main__":
    main(*sys.argv[1:])
