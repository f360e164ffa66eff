"""The paper's reinforcement learning, scaled: `python -m benchmarks.run population-rl`.

PPO (`examples/ppo.py`) on LunarLanderContinuous with B = 4: 2·10⁵ steps of play instead of 10⁶, an interval still a
twentieth of them, the range of the batch a fifth of the paper's. "misspecified" is the range of its Figure 3, scaled
likewise (there on BipedalWalker): most batches are so large that an agent hardly ever learns. A member's score is the
mean return of the episodes that ended in its last interval; the final best agent is also judged by 6000 steps of fresh
play without exploration. Every method trains four agents for all steps.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.population.together import carry_out_together, parser_of
from benchmarks.problems.data import REPOSITORY, missing_package
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, key_of, read_records, results_path
from farthing.costs import Budget
from farthing.space import Fidelity, Float, Int, Space
from farthing.strategies import Strategy
from farthing.strategies.plain.random import Random
from farthing.study import Study

SUITE = "population-rl"
POPULATION, INTERVALS, PLAY = 4, 20, 10_000
JUDGED_STEPS = 6000
BATCHES = {"lander": (200, 12_000), "lander-misspecified": (1000, 40_000)}
SIZE: dict[str, Any] = {"population": POPULATION, "interval": 1, "steps": INTERVALS}


def methods() -> dict[str, Callable[[], Strategy]]:
    from farthing import PB2, PBT, Clone

    return {
        "random": Random,
        "pbt": lambda: PBT(**SIZE),
        "clone": lambda: Clone(**SIZE),
        "pb2": lambda: PB2(**SIZE),
        "pb2.paper": lambda: PB2.paper(**SIZE),
    }


@dataclass(frozen=True)
class Run:
    """One method on one range with one seed."""

    problem: str
    method: str
    seed: int
    play: int
    deadline: float
    commit: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"method": methods()[self.method]().to_json(), "play": self.play, "batches": BATCHES[self.problem]}
        return {"problem": self.problem, "method": self.method, "seed": self.seed, "settings": settings}


def space(problem: str) -> Space:
    low, high = BATCHES[problem]
    return Space(
        {
            "batch": Int(low, high),
            "gae": Float(0.9, 0.99),
            "clip": Float(0.1, 0.5),
            "lr": Float(1e-5, 1e-3, log=True),
        },
        fidelities={"steps": Fidelity(1, INTERVALS, integer=True, trace=True)},
    )


def carry_out(run: Run) -> Record | None:
    began = time.process_time()
    study = Study(space(run.problem), maximize="reward", strategy=methods()[run.method](), seed=run.seed)
    agent = _agent_class(run.play)
    study.run(agent, budget=Budget(trials=POPULATION), executor="inline", progress=False)
    if time.time() > run.deadline:
        return None
    history = study.history
    best = study.best.trial
    assert study.best.schedule is not None
    assert best is not None
    return {
        "suite": SUITE,
        **run.identity,
        "reward": best.value,
        "best_ever": max(point.value for trial in history for point in trial.points if point.value is not None),
        "judged": _judged(agent, study),
        "schedule": study.best.schedule.to_json(),
        "trials": [
            {
                "params": dict(trial.params),
                "resume_from": trial.resume_from,
                "rewards": [[point.fidelity["steps"], point.value] for point in trial.points],
            }
            for trial in history
        ],
        "cpu_seconds": round(time.process_time() - began, 1),
        "suggest_seconds": round(study.ledger.overhead, 3),
        "versions": versions(("numpy", "scipy", "gymnasium")),
        **(commit() if run.commit is None else {"commit": run.commit, "dirty": False}),
    }


def _agent_class(play: int) -> Any:
    sys.path.insert(0, str(REPOSITORY / "examples"))
    from ppo import Lander  # type: ignore[import-not-found]

    return type("Lander", (Lander,), {"play": play})


def _judged(agent: Any, study: Study) -> float:
    """The mean return of the best agent's episodes when it does what it thinks best."""
    import numpy as np

    best = study.best.trial
    assert best is not None
    assert best.checkpoint is not None, "the best trial's checkpoint is kept"
    judged = agent()
    judged.trial = _Seeds(study.problem, best.number)
    judged.setup(best.params)
    judged.load(study.checkpoints.path(best.checkpoint))
    judged.apply(best.params)
    judged.rng = np.random.default_rng([study.problem.seed, 2**20])
    returns, _ = judged.played(steps=JUDGED_STEPS, explores=False)
    return float(np.mean(returns))


@dataclass(frozen=True)
class _Seeds:
    """As much of a trial as an agent needs to be set up."""

    problem: Any
    number: int


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if reason := missing_package("gymnasium") or missing_package("Box2D"):
        print(f"{SUITE} is left out: {reason.partition(';')[0]}. Run: pip install --group rl.")
        return 1
    path = options.output or results_path(f"{SUITE}-quick" if options.quick else SUITE)
    present = {key_of(record) for record in read_records(path)}
    runs = [run for run in _runs(options) if key_of(run.identity) not in present]
    carry_out_together(runs, carry_out, path=path, processes=options.processes, describe=_described)
    _report(read_records(path))
    return 0


def _runs(options: argparse.Namespace) -> Iterator[Run]:
    play = 400 if options.quick else PLAY
    deadline = time.time() + 60 * options.minutes
    for seed in range(options.seeds):
        for problem in options.problems or BATCHES:
            for method in methods():
                if not options.methods or method in options.methods:
                    yield Run(problem, method, seed, play, deadline, options.commit)


def _described(run: Run, record: Record) -> str:
    return f"{run.problem:20} {run.method:9} seed {run.seed}: reward {record['reward']:.0f}"


def _report(records: Sequence[Record]) -> None:
    print("\nmedian over seeds: reward of the final best agent, the best reward ever, fresh play; by seed")
    for problem, method in dict.fromkeys((record["problem"], record["method"]) for record in records):
        own = [r for r in records if (r["problem"], r["method"]) == (problem, method)]
        middle = [median(r[key] for r in own) for key in ("reward", "best_ever", "judged")]
        each = " ".join(f"{r['reward']:.0f}" for r in sorted(own, key=lambda r: r["seed"]))
        print(f"{problem:20} {method:9} {middle[0]:7.0f} {middle[1]:7.0f} {middle[2]:7.0f}   {each}")


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(SUITE, __doc__, seeds=3)
    parser.add_argument("--problems", nargs="+", choices=tuple(BATCHES), help="only these")
    parser.add_argument("--quick", action="store_true", help="a 25th of the play, to see that it works")
    return parser


if __name__ == "__main__":
    sys.exit(main())
