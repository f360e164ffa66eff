"""Whether budgets hold: simulated studies of every strategy, with what real work has, in virtual time.

    python -m benchmarks.simulated.budgets --studies 500

Trials cost by their configuration and by the epochs they train. Every epoch is noisy, one trial in thirty takes three
times as long, every trial pays for its set-up and a worker's first one for more. The budget is a random number of mean
trainings. Hard budgets may be exceeded by one report of each running trial, others by mispredicted trials.
"""

import argparse
import math
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from farthing import (
    ASHA,
    BOHB,
    CMAES,
    PB2,
    PBT,
    Budget,
    Clone,
    EIPerCost,
    Fidelity,
    Float,
    Grid,
    Hyperband,
    LaMBO,
    LogEHVI,
    LogEI,
    ParetoHalving,
    Pipeline,
    PrefixEI,
    Random,
    RunningTrial,
    Sobol,
    Space,
    Stage,
    Study,
    TraceKG,
)
from farthing.execution import Work
from farthing.extending import Strategy
from farthing.testing import Faults, SimulatedExecutor
from farthing.trials import Measurement, Params, Trial

EPOCHS = 9
PLAIN: tuple[Strategy, ...] = (
    *(Random(), Sobol(), Grid(points=20), CMAES()),
    *(LogEI(initial=5), EIPerCost(initial=5), LogEHVI(initial=5)),
)
MULTIFIDELITY: tuple[Strategy, ...] = (ASHA(), Hyperband(), BOHB(), TraceKG(), ParetoHalving())
POPULATIONS: tuple[Strategy, ...] = (
    PBT(population=32, interval=1),
    PB2(population=32, interval=1),
    Clone(population=32, interval=1),
)
STAGED: tuple[Strategy, ...] = (PrefixEI(), LaMBO())
SEVERAL = (LogEHVI, ParetoHalving)
"""Of these strategies studies have two objectives: the loss, and the size that makes a training expensive."""
STRATEGIES = (*PLAIN, *MULTIFIDELITY, *POPULATIONS, *STAGED)

PARAMETERS = {"size": Float(0.0, 1.0), "rate": Float(0.0, 1.0)}
EPOCH = 60.0
SETUP, FIRST_SETUP = 10.0, 60.0
NOISE = 0.3
"""The logarithm of an epoch's seconds has this standard deviation."""
MEAN_TRAINING = EPOCHS * EPOCH * 2.0
"""About: the largest size takes five times as long as the smallest."""
THINKING = 2.0


@dataclass(frozen=True)
class Held:
    """How a budget held: what was spent of it, and the largest number of reports of one trial after it was reached."""

    strategy: str
    workers: int
    seed: int
    hard: bool
    budget: float
    spent: float
    trials: int
    reports_beyond: int

    @property
    def excess(self) -> float:
        return max(0.0, self.spent / self.budget - 1.0)

    @property
    def unspent(self) -> float:
        return max(0.0, 1.0 - self.spent / self.budget)


def simulated(strategy: Strategy, seed: int, *, hard: bool) -> Held:
    """One study. Everything in it follows from the seed."""
    rng = np.random.default_rng([seed, 31])
    workers = int(rng.choice([1, 2, 4]))
    is_population = strategy in POPULATIONS
    trainings = rng.uniform(15.0, 30.0) if is_population else rng.uniform(25.0, 60.0)
    executor = SimulatedExecutor(
        workers=workers, thinking=THINKING, faults=Faults(straggler=1 / 30, slowdown=3.0), seed=seed
    )
    aims = ["loss", "volume"] if isinstance(strategy, SEVERAL) else "loss"
    study = Study(_space(strategy), minimize=aims, strategy=strategy, seed=seed, **executor.settings)
    budget = Budget(cost=trainings * MEAN_TRAINING, hard=hard)
    study.run(_work(strategy, executor, rng), executor=executor, budget=budget, progress=False)
    assert budget.cost is not None
    return Held(
        strategy=type(strategy).__name__,
        workers=workers,
        seed=seed,
        hard=hard,
        budget=budget.cost,
        spent=study.ledger.total,
        trials=len(study.trials),
        reports_beyond=_reports_beyond(study.trials, budget.cost),
    )


def _space(strategy: Strategy) -> Space:
    if strategy in STAGED:
        return Space(stages={"prepare": {"size": PARAMETERS["size"]}, "train": {"rate": PARAMETERS["rate"]}})
    if strategy in PLAIN:
        return Space(PARAMETERS)
    return Space(PARAMETERS, fidelities={"epochs": Fidelity(1, EPOCHS, integer=True, trace=True)})


def _work(strategy: Strategy, executor: SimulatedExecutor, rng: np.random.Generator) -> Work:
    started = 0

    def epoch(params: Params) -> None:
        executor.spend(EPOCH * 5.0 ** params["size"] * math.exp(NOISE * rng.standard_normal()))

    def set_up() -> None:
        nonlocal started
        started += 1
        executor.spend(SETUP + (FIRST_SETUP if started <= executor.workers else 0.0))

    def train(trial: RunningTrial) -> None:
        set_up()
        done = int((trial.resume_dir / "epochs").read_text()) if trial.resume_dir else 0
        wanted = int(trial.fidelity.get("epochs", EPOCHS))
        for at in range(done + 1, wanted + 1):
            epoch(trial.params)
            loss = _loss(trial.params, at)
            value = {"loss": loss, "volume": trial.params["size"]} if isinstance(strategy, SEVERAL) else loss
            trial.report(value, epochs=at) if trial.fidelity else trial.report(value)
        (trial.checkpoint_dir / "epochs").write_text(str(wanted))

    def prepare(_: float, size: float) -> float:
        set_up()
        for _at in range(EPOCHS // 2):
            epoch({"size": size})
        return size

    def score(size: float, rate: float) -> float:
        for _at in range(EPOCHS - EPOCHS // 2):
            epoch({"size": 0.5})
        return _loss({"size": size, "rate": rate}, EPOCHS)

    if strategy in STAGED:
        return Pipeline(source=0.0, prepare=Stage(prepare, version=1), train=Stage(score, version=1))
    return train


def _loss(params: Params, epochs: int) -> float:
    return float((params["size"] - 0.6) ** 2 + (params["rate"] - 0.3) ** 2 + 1.0 / epochs)


def _reports_beyond(trials: Iterable[Trial], budget: float) -> int:
    """The most that one trial reported, or paid besides, after the budget was reached."""
    points = [(trial.number, place, point) for trial in trials for place, point in enumerate(trial.measurements)]
    spent, beyond = 0.0, Counter[int]()
    for number, _, point in sorted(points, key=lambda entry: (entry[2].time, *entry[:2])):
        if spent >= budget and _cost(point) > 0.0:
            beyond[number] += 1
        spent += _cost(point)
    return max(beyond.values(), default=0)


def _cost(point: Measurement) -> float:
    return math.fsum(point.cost.values())


def studies(count: int) -> Iterator[tuple[Strategy, int, bool]]:
    """So many, over all strategies in turn; every second one has a hard budget, and of each strategy too."""
    for number, strategy in enumerate(islice(cycle(STRATEGIES), count)):
        yield strategy, number, (number + number // len(STRATEGIES)) % 2 == 1


def report(held: Sequence[Held]) -> str:
    """The figures by strategy, and in all; of populations nothing is said about what they leave, because they end."""
    soft, hard = [one for one in held if not one.hard], [one for one in held if one.hard]
    names = dict.fromkeys(one.strategy for one in held)
    rows = [_row(name, [one for one in soft if one.strategy == name]) for name in names]
    beyond = max((one.reports_beyond for one in hard), default=0)
    most = max((one.excess for one in hard), default=0.0)
    last = f"hard: {len(hard)} studies, at most {beyond} reports of one trial beyond, worst excess {most:.1%}"
    return "\n".join([*rows, _row("in all", soft), last])


def _row(name: str, held: Sequence[Held]) -> str:
    if not held:
        return f"{name}: none"
    excess, unspent = [one.excess for one in held], [one.unspent for one in held]
    return (
        f"{name}: {len(held)} studies, exceeded by {statistics.median(excess):.1%} in the median and {max(excess):.1%} "
        f"at worst, {statistics.median(unspent):.1%} unspent in the median and {max(unspent):.1%} at most"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=len(STRATEGIES) * 2)
    options = parser.parse_args(arguments)
    held: list[Held] = []
    for strategy, seed, hard in studies(options.studies):
        held.append(simulated(strategy, seed, hard=hard))
        sys.stderr.write(f"{held[-1]}\n")
    print(report(held))
    return 0


if __name__ == "__main__":
    sys.exit(main())
