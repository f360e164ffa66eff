"""What the page on Bayesian optimisation counts."""

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.evidence.counts.counting import (
    Rows,
    Said,
    Table,
    after,
    gaps,
    percent,
    wtl,
)
from benchmarks.evidence.papers import NOTHING, records, regret_at, runs
from benchmarks.tuning import branch_rules

MARKS = (5, 10, 25, 50)
COSTS = {
    "over orders of magnitude": "costs over orders of magnitude",
    "within ten times": "costs within a factor of ten or so",
    "good runs expensive": "good runs are expensive ones",
}
TOLD_NOTHING = {"random": 3, "log-ei": 3, "optuna-tpe": 2}
TOLD = {"ei-per-cost": 3, "random": 1, "optuna-tpe": 1, "flaml-cfo": 2, "flaml-blendsearch": 2}
"""Rivals, and in how many of the kinds of costs they stand."""
EVALUATED = ("the default as run has it", "functions", "tables", "measured seconds")
"""Contests that are counted in evaluations."""
NOISY = "noise of a third of the distance from the best to the median"


def bayesian() -> Said:
    def evaluated(one: str, other: str, at: int, part: str = "") -> str:
        mine, theirs = (
            {key: row for contest in EVALUATED for key, row in runs("sequential", contest, method).items()}
            for method in (one, other)
        )
        both = [key for key in mine.keys() & theirs.keys() if part in key[0]]
        return wtl(after(mine[key], at) - after(theirs[key], at) for key in both)

    def costs(one: str, other: str, at: float, *kinds: str) -> str:
        return wtl(gap for kind in kinds or COSTS for gap in gaps("cost-aware", COSTS[kind], one, other, at))

    def rivals(one: str, found: Mapping[str, int]) -> Rows:
        return [(f"{other} | {kind}", [costs(one, other, at, kind) for at in MARKS])
                for other, count in found.items() for kind in tuple(COSTS)[:count]]  # fmt: skip

    def joined(at: int) -> str:
        peers = ("optuna-gp", "botorch-log-ei", "optuna-tpe", "random")
        return ", ".join(f"{other} {evaluated('log-ei', other, at)}" for other in peers)

    def branches(other: str, at: float, problem: str = "") -> str:
        return wtl(regret_at(row, at) - regret_at(found[other, *key], at) for (method, *key), row in found.items()
                   if method == "log-ei" and str(key[0]).startswith(problem))  # fmt: skip

    def wrong(method: str) -> Sequence[str]:
        """In the wrong branch after 30 and after 60, and the second half bringing less than 1 %."""
        rows = [row for key, row in found.items() if key[0] == method]
        last = [[[step for step in row["steps"] if step["spent"] <= at][-1] for row in rows] for at in (30, 60)]
        stalled = [regret_at(row, 30) - regret_at(row, 60) < 0.01 * abs(regret_at(row, 30)) for row in rows]
        return [*(f"{sum(not one['right'] for one in some)} of {len(rows)}" for some in last),
                f"{sum(stalled)} of {len(rows)}"]  # fmt: skip

    found = {(row["method"], row["problem"], row["seed"]): row for row in records("conditional")}
    by_clock, all_kinds = ("ei-per-cost-measured", "log-ei-measured"), tuple(COSTS)
    ahead = [costs("ei-per-cost", "random", at, *all_kinds) for at in (25, 50)]
    total = sum(map(int, ahead[0].split("–")))
    seeds = _seeds_of_functions()
    high = list(runs("cost-aware", COSTS["over orders of magnitude"], "ei-per-cost").values())
    nothing = f"{sum(regret_at(row, 5) >= NOTHING for row in high)} of {len(high)}"
    rules = [(rule.removeprefix("stalled at "), branch_rules.row_of(rule)[-1:]) for rule in branch_rules.rows_by_rule()]
    shares = {kind: [row["suggest_cpu_seconds"] / row["cost"] for one in (COSTS.values() if kind == "all" else (kind,))
                     for row in runs("cost-aware", one, "ei-per-cost").values()]
              for kind in ("all", COSTS["good runs expensive"])}  # fmt: skip
    return Said(
        [
            Table("| after 30 | log-ei |", seeds),
            Table("| after 60 | log-ei |", seeds),
            Table("EIPerCost, which is told nothing:", rivals("ei-per-cost", TOLD_NOTHING)),
            Table("With a declared cheap end:", rivals("ei-per-cost-cheap", TOLD)),
            Table("the second half of a run brings less than 1 %:",
                  [(method, wrong(method)) for method in ("log-ei", "optuna-tpe", "random")]),
            Table("(benchmarks/results/tuning-conditional.jsonl.xz):", rules),
            Table("and noisy.jsonl.xz for the reported functions):", _noise()),
        ],
        [
            f"with trials of up to 3 ms {_cheap('CMAES', SHORT, NUMBERS)} with CMAES on three functions of numbers, "
            f"{_cheap('CMAES', SHORT, MIXED)} with it on two of numbers and categories, and "
            f"{_cheap('optuna-tpe', SHORT, (*NUMBERS, *MIXED))} with TPE on all five; from 30 ms on "
            f"{_cheap('CMAES', LONG, (*NUMBERS, *MIXED))} and {_cheap('optuna-tpe', LONG, (*NUMBERS, *MIXED))}.",
            f"Paired wins–ties–losses of LogEI after 30: {joined(30)}.",
            f"Paired wins–ties–losses of LogEI after 60: {joined(60)}.",
            f"LogEI has {evaluated('log-ei', 'random', 30, 'hpobench-mlp/')} against it after 30 and "
            f"{evaluated('log-ei', 'random', 60, 'hpobench-mlp/')} after 60, and on blood_transfusion "
            f"{evaluated('log-ei', 'random', 60, 'blood_transfusion')} at both",
            f"after 30 and after 60: optuna-tpe {branches('optuna-tpe', 30)} and {branches('optuna-tpe', 60)}, "
            f"random {branches('random', 30)} and {branches('random', 60)}.",
            f"the closest are svm/469 and svm-or-xgboost/41212 ({branches('optuna-tpe', 60, 'svm/469')} each after 60)",
            f"it took {percent(median(shares['all']), 1)} of them in the median, and "
            f"{percent(median(shares[COSTS['good runs expensive']]), 1)} on the recorded trainings",
            f"in {ahead[0].partition('–')[0]} of {total} pairs there and {ahead[1].partition('–')[0]} of {total} at 50",
            f"in {nothing} runs where costs differ most it has nothing to recommend",
            f"{costs('ei-per-cost-cheap', 'ei-per-cost', 5, all_kinds[0])} at 5 and "
            f"{costs('ei-per-cost-cheap', 'ei-per-cost', 25, all_kinds[0])} at 25 where costs differ most",
            f"It is level with LogEI, {costs('ei-per-cost', 'log-ei', 25)} at 25 and "
            f"{costs('ei-per-cost', 'log-ei', 50)} at 50 over all tables.",
            f"ten seeds: {evaluated('default-by-run', 'log-ei', 60)} after 60 evaluations.",
            f"EIPerCost against LogEI: {evaluated(*by_clock, 30)} after 30, "
            f"{evaluated(*by_clock, 60)} after 60.",
        ],
    )  # fmt: skip


def _seeds_of_functions() -> Rows:
    """The least and the most seeds that a method has, by function."""
    found: dict[str, dict[str, int]] = {}
    for row in records("sequential"):
        if row["contest"] == "functions":
            own = found.setdefault(row["problem"], {})
            own[row["method"]] = own.get(row["method"], 0) + 1
    return [(name, [f"{min(own.values())}–{max(own.values())}"]) for name, own in found.items()]


def _noise() -> Rows:
    def counts(suite: str, method: str, *at: float) -> list[str]:
        return [wtl(gaps(suite, NOISY, method, "log-ei", one)) for one in at]

    plain, by_mean = "log-ei-augmented", "log-ei-augmented-by-mean"
    return [
        ("augmented EI", [*counts("noisy-tuning", plain, 30, 40), *counts("noisy", plain, 40)]),
        ("augmented EI, recommended by the mean",
         [*counts("noisy-tuning", by_mean, 30, 40), *counts("noisy", by_mean, 40)]),
        ("CMA-ES", counts("noisy", "cmaes", 40)),
        ("random search (22 pairs)", counts("noisy", "random", 40)),
    ]  # fmt: skip


SHORT, LONG = (0.0, 0.003), (0.03, 0.3)
NUMBERS, MIXED = ("ackley-5", "hartmann-6", "rosenbrock-4"), ("mixed", "shifted")


def _cheap(other: str, seconds: Sequence[float], problems: Sequence[str]) -> str:
    """The default's, at equal CPU time; less than 1e-4 apart is a tie."""
    found = {
        (row["problem"], row["seconds"], row["seed"], row["method"]): row["regret"]
        for row in records("cheap-trials")
        if row["seconds"] in seconds and row["problem"] in problems
    }
    apart = [worth - found[*key, other] for (*key, method), worth in found.items() if method == "default"]
    return wtl(0.0 if abs(gap) < 1e-4 else gap for gap in apart)
