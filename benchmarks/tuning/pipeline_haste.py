"""`python -m benchmarks.tuning.pipeline_haste`: what haste saves the strategies for pipelines.

CPU milliseconds of a suggestion at every effort, in studies of sixty trials of a made-up pipeline with the parameters
of `PipelineSearchCV`'s and measured costs of its stages. The rows are in
`benchmarks/results/tuning-pipeline-haste.jsonl.xz`; `Strategy.thinking` and `Strategy.haste` were read from them. What
haste costs in regret was not measured.
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
SEEDS, TRIALS, FIRST_BY_MODEL, UNLIMITED = 3, 60, 4, 1e9


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


def main(path: Path = PATH) -> None:
    present = {key_of(record) for record in read_records(path)}
    for seed, strategy, effort in product(range(SEEDS), STRATEGIES, EFFORT_LEVELS):
        identity = {
            "problem": Steps.name,
            "method": type(strategy).__name__,
            "seed": seed,
            "settings": {"effort": effort},
        }
        if key_of(identity) not in present:
            row = identity | thinking(strategy, effort, seed)
            append_record(path, row | {"versions": versions(("numpy", "scipy"))} | commit())
    print(summary(read_records(path)))


def summary(records: list[Record]) -> str:
    """Milliseconds, and their share of those with all effort."""
    lines = []
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        taken = {
            effort: fmean(one["milliseconds"] for one in own if one["settings"]["effort"] == effort)
            for effort in EFFORT_LEVELS
        }
        for effort, milliseconds in taken.items():
            lines.append(f"{method}, {effort}: {milliseconds:.0f} ms, {milliseconds / taken[EFFORT_LEVELS[0]]:.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
