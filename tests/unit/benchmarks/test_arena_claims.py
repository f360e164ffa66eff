"""What the page on multi-fidelity search says of real trainings is what the arena recorded."""

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.records import read_records, results_path
from benchmarks.tuning.constants import NOW, named_at
from benchmarks.tuning.curve_rules import AGAIN, DEFAULT, IN_TIME, LATER, RESERVED, SINCE, TODAY

PAGE = (Path(__file__).parents[3] / "docs" / "systems" / "multifidelity.md").read_text()
BUDGETS = (1, 2, 3, 5, 10)
METHODS = {"TraceKG": "`TraceKG`", "asha": "ASHA", "bohb": "BOHB", "random": "random, full trainings"}
PEERS = {
    **METHODS,
    "dehb": "DEHB",
    "optuna-tpe-hyperband": "Optuna, TPE and Hyperband pruner",
    "neps-priorband": "NePS, PriorBand",
}
SIZES = ("rbv2_svm", "rbv2_xgboost", "iaml_glmnet")


def paired(budget: float, *, sizes: bool) -> list[Mapping[str, float]]:
    """The regrets of all four methods on each problem and seed that all of them have."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for row in read_records(results_path("real-curves")):
        is_size = str(row["problem"]).partition("/")[0] in SIZES
        if row["settings"]["allowance"]["amount"] == budget and is_size == sizes:
            found.setdefault((row["problem"], row["seed"]), {})[row["method"]] = row["regret"]
    return [one for one in found.values() if METHODS.keys() <= one.keys()]


def short(number: float) -> str:
    return f"{number:.3f}".replace("0.", ".", 1)


def signed(number: float) -> str:
    return f"{number:+.3f}".replace("0.", ".", 1).replace("-", "−")


def mean_row(method: str, *, sizes: bool) -> str:
    means = [fmean(one[method] for one in paired(budget, sizes=sizes)) for budget in BUDGETS]
    return " | ".join(["", METHODS[method], *map(short, means), ""]).strip()


def difference(other: str, budget: float) -> tuple[float, float]:
    """Of the default to another method: its mean and standard error."""
    gaps = [one["TraceKG"] - one[other] for one in paired(budget, sizes=False)]
    return fmean(gaps), stdev(gaps) / math.sqrt(len(gaps))


def difference_row(other: str) -> str:
    cells = [f"{signed(mean)} ± {short(error)}" for mean, error in (difference(other, b) for b in BUDGETS)]
    return " | ".join(["", f"`TraceKG` − {METHODS[other]}", *cells, ""]).strip()


def test_means_of_whole_studies_are_those_recorded() -> None:
    for sizes in (False, True):
        for method in METHODS:
            assert mean_row(method, sizes=sizes) in PAGE.replace("**", "")
    counts = ", ".join(str(len(paired(budget, sizes=False))) for budget in BUDGETS)
    assert f"Pairs: {counts}." in PAGE


def test_differences_to_the_baselines_are_those_recorded() -> None:
    for other in ("asha", "bohb"):
        assert difference_row(other) in PAGE


def test_the_default_does_no_harm_on_real_trainings() -> None:
    """The upper end of each interval of 95 % is below .05, as the page says, and worst runs beat random's."""
    for budget in BUDGETS:
        runs = paired(budget, sizes=False)
        ninety = {name: sorted(one[name] for one in runs)[int(0.9 * len(runs))] for name in ("TraceKG", "random")}
        assert ninety["TraceKG"] < ninety["random"]
    for other in ("asha", "bohb"):
        differences = {budget: difference(other, budget) for budget in BUDGETS}
        assert max(mean + 1.96 * error for mean, error in differences.values()) <= 0.05
        assert max(differences[budget][0] for budget in (5, 10)) < 0


def test_means_beside_other_libraries_are_those_recorded() -> None:
    found: dict[float, dict[tuple[str, int], dict[str, float]]] = {}
    for row in read_records(results_path("real-curves")):
        pair = (row["problem"], row["seed"])
        found.setdefault(row["settings"]["allowance"]["amount"], {}).setdefault(pair, {})[row["method"]] = row["regret"]
    common = {budget: [one for one in pairs.values() if PEERS.keys() <= one.keys()] for budget, pairs in found.items()}
    counts = ", ".join(str(len(common[budget])) for budget in BUDGETS)
    assert f"problems and seeds that all of them have ({counts}):" in PAGE
    for method, name in PEERS.items():
        means = [fmean(one[method] for one in common[budget]) for budget in BUDGETS]
        assert " | ".join(["", name, *map(short, means), ""]).strip() in PAGE.replace("**", "")


def test_differences_to_other_rules_are_those_recorded() -> None:
    found: dict[tuple[str, float], dict[tuple[str, int], float]] = {}
    for row in read_records(results_path("tuning-curve-rules")):
        key = (row["method"], row["settings"]["allowance"]["amount"])
        found.setdefault(key, {})[row["problem"], row["seed"]] = row["regret"]
    for rule in {method for method, _ in found} - {DEFAULT, IN_TIME, TODAY}:
        later = {**dict.fromkeys(LATER, IN_TIME), **dict.fromkeys(AGAIN, TODAY), **dict.fromkeys(SINCE, RESERVED)}
        cells, default = [], later.get(rule, DEFAULT)
        for budget in BUDGETS:
            own, others = found.get((default, budget), {}), found.get((rule, budget), {})
            gaps = [own[key] - others[key] for key in own.keys() & others.keys()]
            if len(gaps) > 1:
                cells.append(f"{signed(fmean(gaps))} ± {short(stdev(gaps) / math.sqrt(len(gaps)))}")
        assert f"| {', '.join(cells)} |" in PAGE, rule


def test_families_that_are_behind_beyond_error_are_those_recorded() -> None:
    """The table has each family, other method and budget whose interval of 95 % lies above zero, and no other."""
    regrets: dict[tuple[str, str, float], dict[tuple[str, int], float]] = {}
    for row in (*read_records(results_path("real-curves")), *read_records(results_path("folds"))):
        key = (row["method"], str(row["problem"]).partition("/")[0], row["settings"]["allowance"]["amount"])
        regrets.setdefault(key, {})[row["problem"], row["seed"]] = row["regret"]
    behind = []
    for (method, family, budget), own in regrets.items():
        for other in ("asha", "bohb"):
            theirs = regrets.get((other, family, budget), {})
            gaps = [own[pair] - theirs[pair] for pair in own.keys() & theirs.keys()]
            if method == "TraceKG" and (error := stdev(gaps) / math.sqrt(len(gaps))) * 1.96 < fmean(gaps):
                behind.append(f"| {family} | {METHODS[other]} | {budget:g} | {signed(fmean(gaps))} ± {short(error)} |")
    table = PAGE.partition("| family | to | budget |")[2].partition("\n\n")[0]
    assert sorted(behind) == sorted(table.splitlines()[2:])


def test_what_the_rules_for_short_budgets_and_sizes_changed_is_recorded() -> None:
    regrets: dict[str, dict[tuple[float, str, int], float]] = {}
    for suite in ("tuning-arena-before", "real-curves"):
        for row in read_records(results_path(suite)):
            if row["method"] == "TraceKG":
                key = (row["settings"]["allowance"]["amount"], row["problem"], row["seed"])
                regrets.setdefault(suite, {})[key] = row["regret"]
    before, now = regrets["tuning-arena-before"], regrets["real-curves"]

    def change(budget: float, family: str = "") -> list[float]:
        return [now[key] - before[key] for key in before if key[0] == budget and key[1].startswith(family)]

    def shown(gaps: list[float]) -> str:
        return f"{signed(fmean(gaps))} ± {short(stdev(gaps) / math.sqrt(len(gaps)))}"

    assert f"at 1 / 2 / 3 / 5 / 10 by {', '.join(shown(change(budget)) for budget in BUDGETS)} (" in PAGE
    assert f"{', '.join(str(len(change(budget))) for budget in BUDGETS)} pairs)" in PAGE
    worse = change(10, "rbv2_xgboost")
    assert f"got worse by {shown(worse).removeprefix('+')}\n({len(worse)} pairs)" in PAGE


def test_the_default_gets_no_more_numbers_and_options() -> None:
    """Sixty-two numbers and ten options before it was judged on real trainings; whoever adds one takes another away."""
    found = named_at(NOW)
    assert len(found.numbers) <= 61
    assert len(found.options) <= 6
