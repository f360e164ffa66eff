"""What the page on pipelines counts."""

from collections.abc import Mapping
from statistics import median

from benchmarks.evidence.counts.counting import (
    Rows,
    Said,
    Table,
    gaps,
    wtl,
)
from benchmarks.evidence.papers import pairs, records, regret_at, runs
from benchmarks.pipelines.summary import geometric_mean
from benchmarks.tuning import rent_rules

STAGED = {
    "cost-cooled EI": "staged-ei-cooled",
    "EEIPU": "eeipu",
    "LaMBO": "lambo",
    "EI, cost-blind": "staged-ei",
    "max-value entropy search, cost-blind": "staged-mes",
    "random": "staged-random",
}
REAL = {
    "EI per cost, per prefix class": "staged-ei-per-price",
    "LaMBO": "lambo",
    "Optuna's TPE, same cache": "staged-tpe",
    "EI, cost-blind": "staged-ei",
    "random": "staged-random",
}


SEARCHES = ("search-optuna-tpe", "search-randomized")
FREE, COUNTED = "full runs", "seconds with suggesting"
"""What the four seconds of a search count."""


def pipelines() -> Said:
    def rows(contest: str, methods: Mapping[str, str], *at: float, suite: str = "pipeline-synthetic") -> Rows:
        return [
            (label, [wtl(gaps(suite, contest, "prefix-ei", method, one)) for one in at])
            for label, method in methods.items()
        ]

    two, three = "places, two stages, noise", "places, three stages, noise"
    older = {'cost-cooled EI, StagedBO(cost="cooled")': "staged-ei-cooled"} | {
        label: method for label, method in STAGED.items() if method not in ("staged-ei-cooled", "staged-mes")
    }
    searches = [(f"after {at} s", [wtl(_searched(FREE, other, at)) for other in SEARCHES]) for at in (1, 2, 4)]
    paying = [(f"after {at} s", [wtl(_searched(COUNTED, other, at)) for other in SEARCHES]) for at in (1, 2, 4)]
    before = {(row["problem"], row["seed"]): row for row in runs("pipeline-synthetic", "shifted", "prefix-ei").values()}
    again = runs("pipeline-synthetic-again", "shifted", "prefix-ei")
    unchanged = wtl(regret_at(row, 20) - regret_at(before[key], 20) for key, row in again.items() if key in before)
    tpe = wtl(gaps("pipeline-sklearn", "CPU seconds", "search-prefix-ei", "search-optuna-tpe", 4))
    centred = {
        (ours, other): pairs("pipeline-synthetic", "centred", ours, other, "20", "[6,2]")
        for ours in ("lambo", "lambo-paper")
        for other in ("staged-ei", "staged-ei-cooled", "prefix-ei")
    }
    won, lost = map(int, centred["lambo", "staged-ei"].split("–"))
    return Said(
        [
            Table("| than after four times the price", _renting()),
            Table("| no noise, 50 pairs", rows(f"{two} 0", STAGED, 12, 18, 28)),
            Table("| noise of 0.005, 50 pairs", rows(f"{two} 0.005", STAGED, 12, 18, 28)),
            Table("| noise of 0.02, 50 pairs", rows(f"{two} 0.02", STAGED, 12, 18, 28)),
            Table("| no noise, 6 pairs", rows(f"{three} 0", STAGED, 12, 18)),
            Table("| noise of 0.005, 6 pairs", rows(f"{three} 0.005", STAGED, 12, 18)),
            Table("| noise of 0.02, 6 pairs", rows(f"{three} 0.02", STAGED, 12, 18)),
            Table("Regret and rank at 5 / 10 / 20 full evaluations:", rows("shifted", older, 5, 10, 20)),
            Table(
                "within 5 % of the best score found (0.851):",
                rows("Fashion-MNIST", REAL, 2, 4, 8, suite="pipeline-real"),
            ),
            Table(
                "–: not within twenty):",
                rows("nuclei", REAL | {"LaMBO.paper()": "lambo-paper"}, 6, 10, 20, suite="pipeline-real"),
            ),
            Table("medians of eight paired seeds, and how often PrefixEI was better, equal and worse:", searches),
            Table(f"paired seeds of each table, {len(_searched(COUNTED, SEARCHES[0], 4))} pairs:", paying),
        ],
        [
            "geometric means of the regret at 18: {}, {} and {} against {}".format(*at_the_end("ackley-8 [2,2,4]", 2)),
            "they harm ({}, {} and {} against {})".format(*at_the_end("rastrigin-6 [2,2,2]", 3)),
            f"it suggested for {seconds_worked('Fashion-MNIST')} on Fashion-MNIST and for "
            f"{seconds_worked('nuclei')} on the nuclei",
            f"and was .379 / .193 / .0402; {unchanged} at 20.",
            f"was level with TPE (pipeline-sklearn.jsonl.xz, whose program was not kept, {tpe}).",
            f"beats cost-blind EI in {won} of {won + lost} pairs, and is level with cooled EI "
            f"({centred['lambo', 'staged-ei-cooled']}) and PrefixEI ({centred['lambo', 'prefix-ei']})",
            f"behind cost-blind EI on every one ({centred['lambo-paper', 'staged-ei']})",
        ],
    )


def _renting() -> Rows:
    """Of each rule beside the default, with three stages and with two."""
    usual, *others = rent_rules.RULES
    sizes = {problem.name: len(problem.sizes) for problem in rent_rules.PROBLEMS}
    found = {(row["method"], row["problem"], row["seed"]): row["regret"] for row in records("tuning-rent-rules")}

    def counted(rule: str, stages: int, at: float) -> str:
        pairs = [key for method, *key in found if method == rule and sizes[key[0]] == stages]
        return wtl(found[rule, *key][f"{at:g}"] - found[usual, *key][f"{at:g}"] for key in pairs)

    return [(rule, [counted(rule, stages, at) for stages in (3, 2) for at in rent_rules.JUDGED_AT]) for rule in others]


def at_the_end(problem: str, digits: int) -> list[str]:
    """The geometric means of the regret of all rules, the default's last."""
    usual, *others = rent_rules.RULES
    own = [row for row in records("tuning-rent-rules") if problem in row["problem"]]
    regrets = [[row["regret"]["18"] for row in own if row["method"] == rule] for rule in (*others, usual)]
    return [f"{geometric_mean(found):.{digits}f}".removeprefix("0") for found in regrets]


def seconds_worked(contest: str) -> str:
    """The medians of the seconds of suggesting and of work."""
    own = runs("pipeline-real", contest, "prefix-ei").values()
    suggested, worked = (median(row[name] for row in own) for name in ("suggest_cpu_seconds", "cost"))
    return f"{suggested:.1f} seconds beside {worked:.1f} of work"


def _searched(unit: str, other: str, at: float) -> list[float]:
    found = {
        (row["method"], row["problem"], row["seed"]): regret_at(row, at)
        for row in records("pipeline-real")
        if row["contest"].startswith("PipelineSearchCV") and row["settings"]["allowance"]["unit"] == unit
    }
    return [
        error - found[other, *key]
        for (method, *key), error in found.items()
        if method == "search-prefix-ei" and (other, *key) in found
    ]
