"""Populations on real training, hundreds of runs at once: `python -m benchmarks.run population-real`.

All studies of one task train together: each asks for trials through the public `ask` and is told their scores, and one
interval of all trials in flight is one batched computation (`batched_tasks.py`), on a GPU where there is one. Every
method trains B members for all intervals, or as many intervals in all. Reported is what the agent that a study
recommends is worth on data, or in play, that no decision saw. A run that the file of results has is not repeated.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.plan import matches
from benchmarks.population.ray_pb2 import RayPB2
from benchmarks.population.ray_pb2 import missing as ray_is_missing
from benchmarks.population.report import as_text, report
from benchmarks.problems.data import data_folder, missing_package
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from farthing.costs import Budget
from farthing.space import Fidelity, Float, Parameter, Space
from farthing.strategies import Strategy
from farthing.strategies.multifidelity.halving import ASHA
from farthing.strategies.plain.bayesian import LogEI
from farthing.strategies.plain.random import Random
from farthing.strategies.population import PB2
from farthing.strategies.population.pbt import PBT, Clone
from farthing.study import Study

if TYPE_CHECKING:
    import torch

    from benchmarks.population.batched_networks import State
    from benchmarks.population.batched_tasks import BatchedTask

SUITE = "population-real"
SEEDS = 24
SIZES = (8,)

Method = Callable[[int, int], Strategy]


def population(kind: Callable[..., Strategy]) -> Method:
    return lambda B, intervals: kind(population=B, interval=1, steps=intervals)


METHODS: Mapping[str, Method] = {
    "random search": lambda B, intervals: Random(),
    "ASHA": lambda B, intervals: ASHA(),
    "LogEI": lambda B, intervals: LogEI(),
    "Clone": population(Clone),
    "PBT": population(PBT),
    "PB2.paper()": population(PB2.paper),
    "PB2": population(PB2),
    "Ray PB2": population(RayPB2),
    "random search, a schedule": lambda B, intervals: Random(),
    "PBT, a schedule": population(PBT),
    "PB2, a schedule": population(PB2),
}

SCHEDULED = ", a schedule"
"""Ends the names of methods whose rate falls along a run: the space has its value at the end too, as a share."""
RATE, LAST_SHARE = "lr", "lr_end"

ONE_BY_ONE = ("LogEI",)
"""Learn from each whole run before the next begins; the others have B trials in flight."""


def task_named(name: str, device: "torch.device", *, data: Path | None) -> "BatchedTask":
    """Tasks to report on, and those that choices are made on."""
    from benchmarks.population import batched_tasks as tasks

    if name == "digits":
        return tasks.Classifying("digits", tasks.digits(), device, (64, 64, 10), train_size=300, validation=300)
    if name == "fashion":
        images = tasks.fashion(data_folder() / "fashion_mnist") if data is None else tasks.stored(data)
        return tasks.Classifying(
            "fashion", images, device, (196, 64, 10), train_size=1000, validation=500, augmented=True
        )
    if name == "spirals":
        return tasks.Classifying("spirals", tasks.spirals(), device, (2, 48, 48, 2), train_size=300, validation=300)
    if name == "clusters":
        return tasks.Classifying("clusters", tasks.clusters(), device, (30, 48, 10), train_size=400, validation=300)
    if name == "cart-pole":
        return tasks.CartPole(device)
    if name in HOPPERS:
        from benchmarks.population.hopper import Hopper

        return Hopper(device, name=name, rollouts=HOPPERS[name], threads=len(os.sched_getaffinity(0)))
    return tasks.Pendulum(device) if name == "pendulum" else tasks.SwingUp(device)


REPORTED = ("digits", "pendulum", "fashion", "cart-pole")
HOPPERS = {"hopper": 32, "hopper-short": 16}
"""The paper's own task by its rollouts of an interval; it needs MuJoCo and many cores, so it is run when named."""
TUNING = ("spirals", "clusters", "swing-up")
"""Tasks that settings of PB2 were chosen on; how it does on them is not reported."""


@dataclass(frozen=True)
class Run:
    """One method on one task with one seed."""

    task: str
    population: int
    method: str
    seed: int
    intervals: int
    device: str = "cuda"

    @property
    def strategy(self) -> Strategy:
        return METHODS[self.method](self.population, self.intervals)

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "problem": f"{self.task}, B = {self.population}{self._elsewhere}",
            "method": self.method,
            "seed": self.seed,
            "settings": {"strategy": self.strategy.to_json(), "intervals": self.intervals},
        }

    @property
    def is_scheduled(self) -> bool:
        return self.method.endswith(SCHEDULED)

    def params(self, task: "BatchedTask") -> dict[str, Parameter]:
        """Those of the task, and with a schedule what is left of the rate at the end."""
        return {**task.params(), **({LAST_SHARE: Float(1e-3, 1.0, log=True)} if self.is_scheduled else {})}

    @property
    def _elsewhere(self) -> str:
        """A CPU draws other batches and games from the same seed, so its runs are compared with each other only."""
        return ", on a CPU" if self.device == "cpu" else ""


@dataclass
class Lane:
    """A study in training: its trials in flight, and where the states of its trials are kept."""

    run: Run
    study: Study
    budget: Budget
    in_flight: list["Flight"] = field(default_factory=list)
    states: dict[int, tuple[int, int]] = field(default_factory=dict)
    failures: int = 0

    @classmethod
    def of(cls, run: Run, task: "BatchedTask") -> "Lane":
        whole = Fidelity(1, run.intervals, integer=True, trace=True)
        one_by_one = run.method in ONE_BY_ONE
        space = Space(run.params(task), fidelities={} if one_by_one else {"steps": whole})
        study = Study(space, maximize="score", strategy=run.strategy, seed=run.seed, cost=None)
        plain = run.method.removesuffix(SCHEDULED) in ("random search", *ONE_BY_ONE)
        return cls(run, study, Budget(trials=run.population) if plain else Budget(cost=run.population * run.intervals))

    def fill(self) -> None:
        """Asks for as many trials as may be in flight."""
        most = 1 if self.run.method in ONE_BY_ONE else self.run.population
        free = most - len(self.in_flight)
        for trial in self.study.ask(free, budget=self.budget) if free else ():
            source = trial.resume_from
            first = 0 if source is None else int(self.study.history[source].fidelity["steps"])
            last = int(trial.fidelity.get("steps", self.run.intervals))
            came_from = None if source is None else self.states[source]
            self.in_flight.append(Flight(trial, first, last, came_from))


@dataclass
class Flight:
    """A trial in flight: the intervals it has behind it and ahead, and the wave and row that hold its state."""

    trial: Any
    begun_at: int
    last: int
    state: tuple[int, int] | None
    done: int = 0


class Waves:
    """The states after every wave, an interval of everything in flight."""

    def __init__(self, task: "BatchedTask", device: "torch.device") -> None:
        self._task, self._device = task, device
        self._kept: list[State] = []

    def train(self, flights: Sequence[tuple[Lane, Flight]]) -> list[float]:
        """One interval of all; their scores. States are found by the number of the wave and the row in it."""
        import torch

        state = self._gathered(flights)
        seeds = torch.tensor([lane.run.seed for lane, _ in flights], device=self._device)
        names = self._task.params()
        settings = {
            name: torch.tensor([float(flight.trial.params[name]) for _, flight in flights], device=self._device)
            for name in names
        }
        if RATE in settings:
            settings[RATE] *= torch.tensor([_of_first_rate(*one) for one in flights], device=self._device)
        state, score = self._task.train(state, settings, seeds)
        self._kept.append({name: tensor.detach() for name, tensor in state.items()})
        for row, (_, flight) in enumerate(flights):
            flight.state, flight.done = (len(self._kept) - 1, row), flight.done + 1
        return [float(value) for value in score.cpu()]

    def judged(self, places: Sequence[tuple[int, int]], seeds: Sequence[int]) -> list[float]:
        import torch

        state = self._rows(places)
        return [float(v) for v in self._task.judge(state, torch.tensor(list(seeds), device=self._device)).cpu()]

    def _gathered(self, flights: Sequence[tuple[Lane, Flight]]) -> "State":
        import torch

        fresh = [i for i, (_, flight) in enumerate(flights) if flight.state is None]
        others = [i for i, (_, flight) in enumerate(flights) if flight.state is not None]
        parts = []
        if fresh:
            seeds = [flights[i][0].run.seed for i in fresh]
            parts.append(self._task.start(seeds, [flights[i][1].trial.number for i in fresh]))
        if others:
            parts.append(self._rows([place for i in others if (place := flights[i][1].state) is not None]))
        order = torch.tensor([*fresh, *others], device=self._device).argsort()
        return {name: torch.cat([part[name] for part in parts])[order] for name in parts[0]}

    def _rows(self, places: Sequence[tuple[int, int]]) -> "State":
        import torch

        waves = sorted({wave for wave, _ in places})
        order = torch.tensor([i for w in waves for i, (wave, _) in enumerate(places) if wave == w], device=self._device)
        found = {
            name: torch.cat([self._kept[w][name][[row for wave, row in places if wave == w]] for w in waves])
            for name in self._kept[0]
        }
        return {name: tensor[order.argsort()] for name, tensor in found.items()}


def _of_first_rate(lane: Lane, flight: Flight) -> float:
    """The share of the rate that is left in the next interval: it falls by the same factor in each."""
    share: float = flight.trial.params.get(LAST_SHARE, 1.0)
    return float(share ** ((flight.begun_at + flight.done) / max(lane.run.intervals - 1, 1)))


def train_together(runs: Sequence[Run], task: "BatchedTask", device: "torch.device") -> Iterator[Record]:
    """All runs at once, wave by wave, and what each ended with."""
    lanes = [Lane.of(run, task) for run in runs]
    waves, thinking, began = Waves(task, device), dict.fromkeys(runs, 0.0), time.monotonic()
    while True:
        for lane in lanes:
            before = time.process_time()
            lane.fill()
            thinking[lane.run] += time.process_time() - before
        flights = [(lane, flight) for lane in lanes for flight in lane.in_flight]
        if not flights:
            break
        for (lane, flight), score in zip(flights, waves.train(flights), strict=True):
            _land(lane, flight, score)
    print(f"{task.name}: {len(runs)} runs in {time.monotonic() - began:.0f} s", flush=True)
    best = [trial for lane in lanes if (trial := lane.study.best.trial) is not None]
    places = [lane.states[trial.number] for lane, trial in zip(lanes, best, strict=True)]
    worth = waves.judged(places, [lane.run.seed for lane in lanes])
    for lane, trial, value in zip(lanes, best, worth, strict=True):
        yield {
            "suite": SUITE,
            **lane.run.identity,
            "regret": -value,
            "score": trial.value,
            "trials": len(lane.study.history),
            "failed": lane.failures,
            "suggest_cpu_seconds": round(thinking[lane.run], 3),
            "changes": _changes(lane.study),
            "device": str(device),
            "versions": versions(("numpy", "scipy", "torch")),
        }


def _land(lane: Lane, flight: Flight, score: float) -> None:
    """Tells the study of a trial that reached its end, or lost its way."""
    diverged = not math.isfinite(score)
    if not diverged and flight.begun_at + flight.done < flight.last:
        return
    lane.in_flight.remove(flight)
    assert flight.state is not None, "it has been trained"
    lane.states[flight.trial.number] = flight.state
    if diverged:
        lane.failures += 1
        lane.study.tell(flight.trial, failure="diverged", cost=flight.done)
    else:
        lane.study.tell(flight.trial, score, cost=flight.done)


def _changes(study: Study) -> list[list[float]]:
    """The best score after each further trial, rounded: enough for a picture of the run."""
    best, found = -math.inf, []
    for trial in study.history:
        if trial.value is not None and trial.value > best:
            best = trial.value
            found.append([trial.number, round(best, 5)])
    return found


def hopper_is_missing() -> str | None:
    """Why Hopper cannot be played here, or None."""
    return missing_package("mujoco") or missing_package("gymnasium")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if reason := missing_package("torch"):
        print(f"{SUITE} is left out: {reason}.")
        return 1
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    path = options.output or results_path(f"{SUITE}-quick" if options.quick else SUITE)
    for name in options.problems or REPORTED:
        if name in HOPPERS and (reason := hopper_is_missing()):
            print(f"{name} is left out: {reason.partition(';')[0]}. Run: pip install --group rl.")
            continue
        task = task_named(name, device, data=options.images)
        for group in _groups(options, task, device):
            present = {key_of(record) for record in read_records(path)}
            missing = [run for run in group if key_of(run.identity) not in present]
            for record in train_together(missing, task, device) if missing else ():
                origin = commit() if options.commit is None else {"commit": options.commit, "dirty": False}
                append_record(path, {**record, **origin})
    records = read_records(path)
    print(as_text(report(SUITE, records, ours="PB2", order=tuple(METHODS)), as_json=options.json))
    return 0


def _groups(options: argparse.Namespace, task: "BatchedTask", device: "torch.device") -> Iterator[list[Run]]:
    """Runs that take the same number of waves train together."""
    intervals = 3 if options.quick else task.intervals
    chosen = [method for method in METHODS if matches(method, options.methods or ())]
    if RATE not in task.params():
        chosen = [method for method in chosen if not method.endswith(SCHEDULED)]
    if ray_is_missing(Space(task.params())) is not None:
        chosen = [method for method in chosen if method != "Ray PB2"]
    for population in options.sizes:
        for slow in (False, True):
            methods = [method for method in chosen if (method in ONE_BY_ONE) is slow]
            seeds = range(options.first_seed, options.first_seed + (2 if options.quick else options.seeds))
            yield [
                Run(task.name, population, method, seed, intervals, device.type) for seed in seeds for method in methods
            ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"python -m benchmarks.run {SUITE}", description=__doc__)
    parser.add_argument("name", nargs="?", choices=[SUITE], help="the suite")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="B", help="sizes of the population")
    parser.add_argument(
        "--problems",
        nargs="+",
        choices=(*REPORTED, *HOPPERS, *TUNING),
        help="only these, Hopper, or tasks of tuning",
    )
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--images", type=Path, metavar="FILE", help="fashion's images, an archive of NumPy with X, y")
    parser.add_argument("--quick", action="store_true", help="two seeds and three intervals, to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--commit", help="what the results are of, for a copy without its git folder")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON lines to continue; benchmarks/results/ else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
