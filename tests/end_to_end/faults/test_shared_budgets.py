"""Programs that share a budget all end with a reason, and spend no more than it and what was in flight."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from taking_turns import SharedStorage, Turns, TurnTakingExecutor

import farthing as ft
from farthing.execution import InlineExecutor
from farthing.extending import Strategy
from farthing.names import STRATEGIES
from farthing.session import session_of
from farthing.storage import MemoryStorage, Storage
from farthing.trials import Params

PLAIN = ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("a", "b")})
CURVES = ft.Space(PLAIN.parameters, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
STAGES = ft.Space(stages={"prepare": {"x": ft.Float(0, 1)}, "train": {"kind": ft.Choice("a", "b")}})

QUICK: Mapping[str, tuple[Strategy, ft.Space]] = {
    "Random": (ft.Random(), PLAIN),
    "Sobol": (ft.Sobol(), PLAIN),
    "Grid": (ft.Grid(points=20), PLAIN),
    "CMAES": (ft.CMAES(), PLAIN),
    "ASHA": (ft.ASHA(), CURVES),
    "Hyperband": (ft.Hyperband(), CURVES),
    "PBT": (ft.PBT(population=4, interval=3), CURVES),
    "Clone": (ft.Clone(population=4, interval=3), CURVES),
}
WITH_MODELS: Mapping[str, tuple[Strategy, ft.Space]] = {
    "LogEI": (ft.LogEI(initial=4), PLAIN),
    "EIPerCost": (ft.EIPerCost(initial=4), PLAIN),
    "BOHB": (ft.BOHB(), CURVES),
    "LogEHVI": (ft.LogEHVI(initial=4), PLAIN),
    "ParetoHalving": (ft.ParetoHalving(), CURVES),
    "TraceKG": (ft.TraceKG(), CURVES),
    "PB2": (ft.PB2(population=4, interval=3), CURVES),
    "PrefixEI": (ft.PrefixEI(), STAGES),
    "LaMBO": (ft.LaMBO(restart=5), STAGES),
}
SEVERAL = (ft.LogEHVI, ft.ParetoHalving)
"""Their studies have two objectives."""
SECONDS_EACH = 10.0


@dataclass
class Ending:
    """Some coordinators that come to the end of one budget, in an order that the seed decides."""

    strategy: Strategy
    space: ft.Space
    seed: int
    storage: Storage
    clock: ft.FakeClock
    folder: Path
    rng: random.Random = field(init=False)
    coordinators: int = field(init=False)
    workers: int = field(init=False)
    budget: ft.Budget = field(init=False)
    is_declared: bool = field(init=False)
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.coordinators, self.workers = self.rng.randint(2, 4), self.rng.randint(1, 3)
        amount = self.rng.randint(4, 12)
        self.budget = self.rng.choice(
            [ft.Budget(trials=amount), ft.Budget(cost=3.0 * amount), ft.Budget(seconds=SECONDS_EACH * amount)]
        )
        self.is_declared = self.rng.random() < 0.5

    def happen(self) -> None:
        turns = Turns(self.seed)
        errors = turns.take([lambda index=index: self._coordinate(turns, index) for index in range(self.coordinators)])
        assert not errors, f"seed {self.seed}: {errors}"

    def _coordinate(self, turns: Turns, index: int) -> None:
        study = self._study(SharedStorage(self.storage, turns, self.clock))
        places = [
            InlineExecutor(self._work, study.problem, checkpoints=study.checkpoints, clock=self.clock)
            for _ in range(self.workers)
        ]
        executor = TurnTakingExecutor(places, turns, seed=(self.seed, index))
        stopped = study.run(self._work, budget=self.budget, executor=executor, retries=1, progress=False)
        self.reasons.append(str(stopped))
        session_of(study).records.leases.close()

    def _study(self, storage: object) -> ft.Study:
        return ft.Study(
            self.space,
            minimize=["error", "size"] if isinstance(self.strategy, SEVERAL) else "error",
            strategy=self.strategy,
            storage=storage,  # type: ignore[arg-type]
            cost=declared if self.is_declared else None,
            cost_unit="dollars",
            folder=self.folder,
            lease=1e6,
            clock=self.clock,
            name=f"ending-{self.seed}",
            seed=self.seed,
        )

    def _work(self, trial: ft.RunningTrial) -> float | dict[str, float]:
        self.clock.advance(SECONDS_EACH)
        if not self.is_declared:
            trial.charge(declared(trial.params, trial.fidelity))
        if self.strategy.needs_checkpoints:
            (trial.checkpoint_dir / "state").touch()
        if self.rng.random() < 0.1:
            raise ValueError("diverged")
        error, size = float(trial.params["x"]) + 1 / trial.fidelity.get("epochs", 9), 1.0 - float(trial.params["x"])
        return {"error": error, "size": size} if isinstance(self.strategy, SEVERAL) else error

    def check(self) -> None:
        study = self._study(self.storage)
        where = f"seed {self.seed}, {self.budget}, {self.reasons}"
        left = self.budget.remaining_for_waiting(study.history, seconds=self.storage.seconds_run(study.name))
        assert session_of(study).records.payable(study.history, left) == 0, where
        assert not any(trial.state is ft.State.RUNNING for trial in study.trials), where
        assert all(_is_an_ordinary_reason(reason) for reason in self.reasons), where
        if self.budget.trials is not None:
            assert study.history.configurations <= self.budget.trials, where
        if self.budget.cost is not None and self.is_declared:
            assert study.ledger.total <= self.budget.cost * (1 + 1e-12) + self._retried(study), where
        elif self.budget.cost is not None:
            assert self._paid_after(study, self.budget.cost) < self.coordinators * self.workers, where
        assert self.storage.check() == []

    def _retried(self, study: ft.Study) -> float:
        """What second attempts cost: nobody predicts that an attempt will fail."""
        return math.fsum(trial.cost for trial in study.trials if trial.attempt > 1)

    def _paid_after(self, study: ft.Study, cost: float) -> int:
        """How many attempts were paid for after that much had been spent: no more than had begun by then."""
        points = [point for trial in study.trials for point in trial.measurements if point.cost]
        amounts = [math.fsum(point.cost.values()) for point in sorted(points, key=lambda point: point.time)]
        return sum(math.fsum(amounts[:index]) >= cost for index in range(len(amounts)))


def declared(params: Params, fidelity: Mapping[str, float]) -> float:
    return float(1 + 2 * params["x"]) * fidelity.get("epochs", 1)


def _is_an_ordinary_reason(reason: str) -> bool:
    begins = (
        "the budget is spent",
        "nothing that is worth suggesting fits",
        "the next trial is predicted to cost",
        "the population is trained",
    )
    return reason.startswith(begins) and "inf" not in reason.split()


def come_to_many_ends(name: str, seeds: range, folder: Path) -> None:
    strategy, space = {**QUICK, **WITH_MODELS}[name]
    for seed in seeds:
        clock = ft.FakeClock()
        ending = Ending(strategy, space, seed, MemoryStorage(clock), clock, folder)
        ending.happen()
        ending.check()


def test_every_strategy_is_among_them() -> None:
    assert STRATEGIES.keys() == {*QUICK, *WITH_MODELS}


@pytest.mark.parametrize("name", QUICK)
def test_programs_that_share_a_budget_end_with_a_reason(name: str, tmp_path: Path) -> None:
    come_to_many_ends(name, range(20), tmp_path)


@pytest.mark.parametrize("name", WITH_MODELS)
def test_programs_that_share_a_budget_and_a_model_end_with_a_reason(name: str, tmp_path: Path) -> None:
    come_to_many_ends(name, range(1), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("name", WITH_MODELS)
def test_programs_that_share_a_budget_and_a_model_end_with_a_reason_many_times(name: str, tmp_path: Path) -> None:
    come_to_many_ends(name, range(100, 110), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", QUICK)
def test_programs_that_share_a_budget_end_with_a_reason_thousands_of_times(name: str, tmp_path: Path) -> None:
    come_to_many_ends(name, range(100, 600), tmp_path)
