"""The quality gate: a change that makes a system tune clearly worse goes red.

A few fixed seeds of each system, which take about half a minute of CPU time in all. A bound is a few times the median
that was recorded when it was written, and below the recorded median of a baseline, so that a strategy that has stopped
learning cannot pass. The runs are deterministic: if a bound fails after a change that was meant to alter suggestions,
look at the whole suite (`python -m benchmarks.run …`) before moving the bound.
"""

from statistics import median

import pytest

from benchmarks.comparing import score_at
from benchmarks.methods import METHODS
from benchmarks.online.playing import play as play_online
from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.population import synthetic
from benchmarks.population.playing import play as play_population
from benchmarks.population.tasks import TASKS
from benchmarks.problems import PROBLEMS
from benchmarks.records import Record, read_records, results_path
from benchmarks.suites import Allowance, Unit
from benchmarks.trajectory import trajectory

SEEDS = range(5)

TUNING: tuple[tuple[str, str, str, float, Unit, float, str], ...] = (
    # suite, problem, method, allowance, unit, bound, baseline (recorded medians of both: at the right)
    ("sequential", "branin", "log-ei", 30, "evaluations", 0.05, "random"),  # 0.0003, 0.21
    ("sequential", "hartmann-6", "log-ei", 30, "evaluations", 0.5, "random"),  # 0.037, 1.9
    ("mf-synthetic", "augmented-branin", "TraceKG", 4, "cost", 1.5, "hyperband"),  # 0.28, 9.1
    ("mf-synthetic", "augmented-hartmann-3", "TraceKG", 4, "cost", 0.1, "hyperband"),  # 0.003, 1.0
    (
        "pipeline-synthetic",
        "shifted/hartmann-6 [3,3] 10:1",
        "prefix-ei",
        10,
        "full runs",
        0.4,
        "staged-ei",
    ),  # 0.11, 0.62
)
ONLINE_REGRET, ONLINE_QUERIES = 0.22, 140
"""Recorded: 0.181 with 90 measurements of 500; by a coin 0.232 with 104."""
POPULATION_REGRET = 3.3
"""Recorded: 2.28; PBT has 3.75."""


def recorded(suite: str, problem: str, method: str) -> list[Record]:
    seeds = range(ONLINE_SUITES[suite].first_seed, 10**9) if suite in ONLINE_SUITES else SEEDS
    records = read_records(results_path(suite))
    return [r for r in records if (r["problem"], r["method"]) == (problem, method) and r["seed"] in seeds][:5]


@pytest.mark.parametrize(("suite", "problem", "method", "amount", "unit", "bound", "baseline"), TUNING)
def test_a_method_reaches_the_regret_it_is_known_for(
    suite: str, problem: str, method: str, amount: float, unit: Unit, bound: float, baseline: str
) -> None:
    found = []
    for seed in SEEDS:
        standings = trajectory(METHODS[method], PROBLEMS[problem], allowance=Allowance(amount, unit), seed=seed)
        found.append([one.regret for one in standings if one.spent <= amount * (1 + 1e-9)][-1])
    assert median(found) <= bound, found
    assert median(score_at(record, amount) for record in recorded(suite, problem, baseline)) > bound


def test_the_online_tuner_has_little_regret_for_few_measurements() -> None:
    suite = ONLINE_SUITES["online-synthetic"]
    [world] = [world for world in suite.worlds if world.name == "ε = 0.01"]
    strategy = suite.contenders["default"]
    scores = [play_online(strategy(world.facts()), world, seed=seed) for seed in suite.all_seeds(5)]
    assert median(score.regret for score in scores) <= ONLINE_REGRET
    assert median(score.queries for score in scores) <= ONLINE_QUERIES
    assert median(r["regret"] for r in recorded(suite.name, world.name, "Bernoulli 0.2")) > ONLINE_REGRET


def test_a_population_learns_a_schedule() -> None:
    [task] = [task for task in TASKS if task.name == "drift"]
    outcomes = [play_population(synthetic.METHODS["PB2"](8), task, population=8, seed=seed) for seed in SEEDS]
    assert median(outcome.regret for outcome in outcomes) <= POPULATION_REGRET
    assert median(r["regret"] for r in recorded("population-synthetic", "drift, B = 8", "PBT")) > POPULATION_REGRET
