"""`python -m benchmarks.tuning.pipeline_haste`: what haste saves the strategies for pipelines, and what it costs them.

CPU milliseconds of a suggestion at every effort, in studies of sixty trials of a made-up pipeline with the parameters
of `PipelineSearchCV`'s and measured costs of its stages; and the regret with all effort and with the least, for equal
cost, on functions for tuning with two and with three stages. The rows are in
`benchmarks/results/tuning-pipeline-haste.jsonl.xz`; `Strategy.thinking` and `Strategy.haste` were read from them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.drivers.staged import Staged
from benchmarks.pipelines.sklearn import PARAMETERS
from benchmarks.pipelines.synthetic import TUNING, StagedFunction
from benchmarks.problems import Params
from benchmarks.problems.problem import Direction, Evaluation
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from farthing.costs import EFFORT_LEVELS, Budget, EffortLevel, Remaining
from farthing.space import Space
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Suggestion

PATH = results_path("tuning-pipeline-haste")
STRATEGIES: tuple[Strategy, ...] = (ft.PrefixEI(), ft.LaMBO())
SEEDS, TRIALS, FIRST_BY_MODEL, FULL_RUNS, UNLIMITED = 4, 60, 4, 12.0, 1e9


@dataclass(frozen=True)
class Steps:
    """The parameters of `benchmarks.pipelines.sklearn`, with made-up errors and costs that differ by a tenth."""

    name: str = "made-up steps"
    direction: Direction = "minimize"
    best_value: float | None = None
    full_cost: float = 1.0

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return Space(stages={step: _of(step) for step in ("scale", "map", "clf")})

    def stage_costs(self, params: Params) -> tuple[float, ...]:
        kernel = params.get("map__n_components", 0)
        usual = (
            0.02 + 7e-5 * params.get("scale__n_quantiles", 0),
            0.01 + 4e-4 * kernel,
            0.02 + 3e-4 * kernel,
        )
        key = sha256(repr(sorted(params.items(), key=str)).encode()).digest()
        noise = np.random.default_rng(list(key)).standard_normal(3)
        return tuple(seconds * math.exp(0.1 * float(z)) for seconds, z in zip(usual, noise, strict=True))

    def full_value(self, params: Params) -> float:
        mapped = 0.2
        if params["map"] == "kernel":
            gamma, components = math.log10(params["map__gamma"]), math.log10(params["map__n_components"])
            mapped = 0.1 + 0.05 * (gamma + 1.5) ** 2 - 0.03 * components
        judged = 0.01 * (math.log10(params["clf__alpha"]) + 1.0) ** 2 + 0.01 * (params["clf__class_weight"] is None)
        return float(mapped + judged + 0.02 * (params["scale"] == "standard"))

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(self.full_value(params), sum(self.stage_costs(params)))


def _of(step: str) -> dict[str, Any]:
    return {name: one for name, one in PARAMETERS.items() if name.partition("__")[0] == step}


@dataclass(frozen=True)
class Kept:
    """A strategy that thinks as much as it is told to, whatever a trial takes."""

    strategy: Strategy
    effort: EffortLevel

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
        return list(self.strategy.suggest(history, replace(budget, effort=self.effort), count, rng))


def driver(strategy: Strategy, effort: EffortLevel) -> Staged:
    return Staged(type(strategy).__name__, Kept(strategy, effort))  # type: ignore[arg-type]


def thinking(strategy: Strategy, effort: EffortLevel, seed: int) -> Record:
    steps = driver(strategy, effort).run(Steps(), budget=Budget(cost=UNLIMITED), seed=seed)
    seconds = [step.suggest_seconds for step in islice(steps, TRIALS)]
    return {"milliseconds": round(1e3 * fmean(seconds[FIRST_BY_MODEL:]), 2)}


def quality(strategy: Strategy, effort: EffortLevel, problem: StagedFunction, seed: int) -> Record:
    spent, regret = 0.0, 1.0
    for step in driver(strategy, effort).run(problem, budget=Budget(cost=UNLIMITED), seed=seed):
        spent += step.cost
        if spent > FULL_RUNS * problem.full_cost:
            break
        regret = problem.full_value(step.recommended)
    return {"regret": regret}


def main(path: Path = PATH) -> None:
    present = {key_of(record) for record in read_records(path)}
    for seed, problem, strategy in product(range(SEEDS), (None, *TUNING), STRATEGIES):
        for effort in EFFORT_LEVELS if problem is None else (EFFORT_LEVELS[0], EFFORT_LEVELS[-1]):
            identity = {
                "problem": Steps.name if problem is None else problem.name,
                "method": type(strategy).__name__,
                "seed": seed,
                "settings": {"effort": effort},
            }
            if key_of(identity) not in present:
                made = thinking(strategy, effort, seed) if problem is None else quality(strategy, effort, problem, seed)
                append_record(path, identity | made | {"versions": versions(("numpy", "scipy"))} | commit())
    print(summary(read_records(path)))


def summary(records: list[Record]) -> str:
    """Milliseconds and their share of those with all effort; the geometric mean of the regrets, and who is better."""
    lines = []
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        taken = {
            effort: fmean(one["milliseconds"] for one in own if "milliseconds" in one and effort == _effort(one))
            for effort in EFFORT_LEVELS
        }
        for effort, milliseconds in taken.items():
            lines.append(f"{method}, {effort}: {milliseconds:.0f} ms, {milliseconds / taken[EFFORT_LEVELS[0]]:.2f}")
        most, least = (
            {(one["problem"], one["seed"]): one["regret"] for one in own if _is_judged(one, effort)}
            for effort in (EFFORT_LEVELS[0], EFFORT_LEVELS[-1])
        )
        pairs = [(most[pair], least[pair]) for pair in most if pair in least]
        if pairs:
            means = [
                math.exp(fmean(math.log(max(1e-6, regret)) for regret in found)) for found in zip(*pairs, strict=True)
            ]
            won, lost = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
            lines.append(
                f"{method}: regret {means[0]:.4f} with all effort, {means[1]:.4f} with the least; "
                f"all effort is better {won} times, worse {lost}"
            )
    return "\n".join(lines)


def _effort(record: Record) -> str:
    return str(record["settings"]["effort"])


def _is_judged(record: Record, effort: str) -> bool:
    return "regret" in record and _effort(record) == effort


if __name__ == "__main__":
    main()
