"""Makes stored_studies.db and stored_suggestions.json: a study of each strategy, and the trial that each suggests next.

Kept to show what is in them. What `PrefixEI`, `StagedBO` and `EEIPU` suggest was made again when they began to discount
improvement that a noisy measurement cannot show, what `BOCA` suggests when costs became a fixed part and work, and what
`LogEI` and `EIPerCost` suggest when they began to look into other branches earlier. The
studies themselves are as they were, except that the folders and owners of the machine that made them are taken out, and
the online runs are given back. It is not run again: `tests/end_to_end/test_stored_studies.py` opens what an earlier
version wrote, and a later version would write what it suggests itself.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA, FreezeThawEI
from benchmarks.baselines.staged import EEIPU, StagedBO
from farthing.extending import Strategy
from farthing.testing.strategy_contract import MIXED_SPACE, learning_curve

HERE = Path(__file__).parent
TRIALS = 14
ROUNDS = 40
STAGED_SPACE = ft.Space(
    stages={
        "prepare": {"rate": ft.Float(1e-4, 1e-1, log=True), "layers": ft.Int(1, 3)},
        "train": {"optimizer": ft.Choice("adam", "sgd"), "momentum": ft.Float(0.0, 0.99, when={"optimizer": "sgd"})},
        "finish": {"units": ft.Int(4, 64, log=True)},
    }
)
ONLINE_SPACE = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "kind": ft.Choice("a", "b")})
STRATEGIES: dict[str, tuple[ft.Space, Strategy]] = {
    "random": (MIXED_SPACE, ft.Random()),
    "sobol": (MIXED_SPACE, ft.Sobol()),
    "log-ei": (MIXED_SPACE, ft.LogEI(initial=5)),
    "ei-per-cost": (MIXED_SPACE, ft.EIPerCost(initial=5)),
    "asha": (MIXED_SPACE, ft.ASHA()),
    "hyperband": (MIXED_SPACE, ft.Hyperband()),
    "bohb": (MIXED_SPACE, ft.BOHB()),
    "boca": (MIXED_SPACE, BOCA()),
    "freeze-thaw": (MIXED_SPACE, FreezeThawEI()),
    "trace-kg": (MIXED_SPACE, ft.TraceKG()),
    "pb2": (MIXED_SPACE, ft.PB2(population=4, interval=3)),
    "pb2-paper": (MIXED_SPACE, ft.PB2.paper(population=4, interval=3)),
    "pbt": (MIXED_SPACE, ft.PBT(population=4, interval=3)),
    "clone": (MIXED_SPACE, ft.Clone(population=4, interval=3)),
    "prefix-ei": (STAGED_SPACE, ft.PrefixEI()),
    "lambo": (STAGED_SPACE, ft.LaMBO(restart=5)),
    "staged": (STAGED_SPACE, StagedBO(cost="cooled")),
    "eeipu": (STAGED_SPACE, EEIPU()),
}


def cost_of(params: Mapping[str, Any]) -> float:
    """Grows with the layers, so that strategies which learn costs have something to learn."""
    return 1.0 + 0.5 * float(params["layers"])


def run_study(name: str, storage: str) -> ft.Study:
    space, strategy = STRATEGIES[name]
    study = ft.Study(space, minimize="error", strategy=strategy, storage=storage, name=name, seed=11)
    for number in range(TRIALS):
        for trial in study.ask(count=1):
            if number % 7 == 6:
                study.tell(trial, failure="diverged")
            else:
                study.tell(trial, learning_curve(trial.params, trial.fidelity), cost=cost_of(trial.params))
    return study


def next_trial(study: ft.Study) -> dict[str, Any]:
    (trial,) = study.ask(count=1)
    return {
        "params": dict(trial.params),
        "fidelity": dict(trial.fidelity),
        "resume_from": study.trials[trial.number].resume_from,
        "note": study.trials[trial.number].note,
    }


def online_tuner(name: str, storage: str) -> ft.OnlineTuner:
    strategy = ft.CEGPUCB.paper(bandwidth=0.1, climbs=0) if name == "online-paper" else ft.CEGPUCB()
    return ft.OnlineTuner(ONLINE_SPACE, rounds=ROUNDS, strategy=strategy, storage=storage, name=name, seed=11)


def play(tuner: ft.OnlineTuner, rounds: int) -> Iterator[ft.Decision]:
    """Value is best at a rate that grows from round to round."""
    for decision in islice(tuner, rounds):
        yield decision
        if decision.measure:
            rate, kind = decision.params["rate"], decision.params["kind"]
            decision.observe(-abs(rate - 0.1 - decision.round / ROUNDS) - 0.1 * (kind == "b"))


def described(decision: ft.Decision) -> dict[str, Any]:
    return {"round": decision.round, "params": dict(decision.params), "measure": decision.measure}


def make(folder: Path) -> None:
    """The suggestions are taken from a second database, so that the first one is left as it was before them."""
    storage, other = (f"sqlite:///{folder}/{name}.db" for name in ("stored_studies", "asked"))
    expected: dict[str, Any] = {}
    for name in STRATEGIES:
        run_study(name, storage).close()
        expected[name] = next_trial(run_study(name, other))
    for name in ("online", "online-paper"):
        list(play(online_tuner(name, storage), ROUNDS // 2))
        unbroken = [described(decision) for decision in play(online_tuner(name, other), ROUNDS // 2 + 3)]
        expected[name] = unbroken[-3:]
    (folder / "stored_suggestions.json").write_text(json.dumps(expected, indent=1) + "\n")
    for left in folder.glob("asked.db*"):
        left.unlink()


if __name__ == "__main__":
    make(HERE)
