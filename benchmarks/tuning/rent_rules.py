"""`python -m benchmarks.tuning.rent_rules`: when `PrefixEI` buys stages that its model would keep.

It buys new ones once four times their price went into cheaper trials. With three stages of 40 : 10 : 1 that is two
hundred trials. Other rules go by what is left of the budget too, or by a smaller factor. Three functions of three
stages and four of two, with their minima at places for tuning, ten seeds each, 18 full evaluations. A row has the
regret at 5, 10 and 18 full evaluations, and how often a first stage was computed. No record of it is kept: no rule is
known to be better than today's.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median

import farthing as ft
from benchmarks.drivers.staged import Staged
from benchmarks.pipelines.synthetic import TUNING, StagedFunction
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from farthing.acquisition.prefix_classes import ClassMaximum
from farthing.costs import Budget
from farthing.strategies.pipeline.context import PipelineContext
from farthing.strategies.pipeline.purchases import due_class

PATH = results_path("tuning-rent-rules")
SEEDS, JUDGED_AT = 10, (5.0, 10.0, 18.0)
PROBLEMS = tuple(
    problem for problem in TUNING if len(problem.sizes) == 3 or problem.name.endswith(("[3,3] 10:1", "[2,6] 10:1"))
)


@dataclass(frozen=True)
class ByTheRest(ft.PrefixEI):
    """New stages are bought once their price, times `rent_or_buy`, or that share of the rest went into cheaper ones."""

    share: float = 0.25

    def _due(self, context: PipelineContext, found: Sequence[ClassMaximum]) -> int | None:
        pipeline, left = context.pipeline, context.budget.cost
        prices = {best.kept: pipeline.price(best.x, best.kept) for best in found if best.value > -math.inf}
        limits = [
            None if price is None else min((self.rent_or_buy or math.inf) * price, max(price, self.share * left))
            for price in (prices.get(kept) for kept in range(pipeline.layout.count))
        ]
        return due_class(pipeline.meters, limits, 1.0)


RULES: Mapping[str, ft.PrefixEI] = {
    "four times the price": ft.PrefixEI(),
    "or a quarter of the rest": ByTheRest(share=0.25),
    "or an eighth of the rest": ByTheRest(share=0.125),
    "twice the price": ft.PrefixEI(rent_or_buy=2.0),
}


def ran(rule: str, problem: StagedFunction, seed: int) -> Record:
    """Regrets, and computed first stages, at each cost; nothing recommended yet counts as 1."""
    spent, at, first = 0.0, dict.fromkeys(JUDGED_AT, 1.0), 0
    budget = Budget(cost=JUDGED_AT[-1] * problem.full_cost)
    for step in Staged(rule, RULES[rule]).run(problem, budget=budget, seed=seed):
        spent += step.cost / problem.full_cost
        first += step.cost >= problem.prices[0]
        at |= {amount: problem.full_value(step.recommended) for amount in JUDGED_AT if spent <= amount * (1 + 1e-9)}
        if spent >= JUDGED_AT[-1]:
            break
    return {"regret": {f"{amount:g}": regret for amount, regret in at.items()}, "first_stages": first}


def main(path: Path = PATH) -> None:
    present = {key_of(record) for record in read_records(path)}
    for seed, problem, rule in product(range(SEEDS), PROBLEMS, RULES):
        identity = {"problem": problem.name, "method": rule, "seed": seed, "settings": RULES[rule].to_json()}
        if key_of(identity) not in present:
            row = identity | ran(rule, problem, seed)
            append_record(path, row | {"versions": versions(("numpy", "scipy"))} | commit())
    sys.stdout.write(summary(read_records(path)) + "\n")


def summary(records: Sequence[Record]) -> str:
    """By number of stages: geometric means of the regret, how often a rule is better and worse, and first stages."""
    lines = []
    for count, rule in product((3, 2), RULES):
        names = [problem.name for problem in PROBLEMS if len(problem.sizes) == count]
        own = {
            method: {(one["problem"], one["seed"]): one for one in records if one["method"] == method}
            for method in (next(iter(RULES)), rule)
        }
        usual, other = (own[method] for method in (next(iter(RULES)), rule))
        pairs = [pair for pair in usual if pair[0] in names and pair in other]
        parts = [f"{count} stages, {rule}, n = {len(pairs)}:"]
        for amount in (f"{each:g}" for each in JUDGED_AT):
            regrets = [(other[pair]["regret"][amount], usual[pair]["regret"][amount]) for pair in pairs]
            mean = math.exp(fmean(math.log(max(1e-6, found)) for found, _ in regrets))
            better, worse = sum(a < b for a, b in regrets), sum(a > b for a, b in regrets)
            parts.append(f"at {amount} {mean:.4f} ({better}–{worse})")
        parts.append(f"first stages {median(other[pair]['first_stages'] for pair in pairs):g}")
        lines.append(" ".join(parts))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
