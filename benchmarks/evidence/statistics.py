"""Statistics of records that pages tell and that the records' own pages do not have.

Each function gives text: numbers that belong together stand in one cell, row or column of a table, or in one line.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median, stdev
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import binomtest

from benchmarks.comparing import score_at
from benchmarks.evidence.counts.counting import after, ends
from benchmarks.evidence.counts.pipelines import at_the_end, seconds_worked
from benchmarks.evidence.papers import records, regret_at, runs
from benchmarks.first_hour import SHARED
from benchmarks.markdown import table
from benchmarks.online.training_bars import of_default
from benchmarks.online.training_report import KEPT, calibration, guess_table
from benchmarks.online.trainings import TO_REPORT
from benchmarks.pipelines import near_best, summary
from benchmarks.records import Record, results_path
from benchmarks.report import current_records
from benchmarks.suites import SUITES
from benchmarks.tuning import branch_rules, probe_rules, races

Runs: TypeAlias = Mapping[tuple[str, int], float]
"""The regret of each problem and seed."""

ByBudget: TypeAlias = Mapping[str, Mapping[float, Runs]]
"""By method and budget."""


def line(numbers: Iterable[float]) -> str:
    return " ".join(f"{number:.4f}" for number in numbers)


# ------------------------------------------------------------
# Regret after several budgets.


def family_of(problem: str) -> str:
    return "curves" if problem.startswith("curves of") else problem.partition("/")[0]


def by_family(found: ByBudget, *families: frozenset[str]) -> str:
    """Of each family, of these together and of all: means of each method, and paired differences of any two."""
    problems = {family_of(key[0]) for runs in found.values() for own in runs.values() for key in own}
    kinds = {frozenset({one}) for one in problems} | {frozenset(problems)} | {one & problems for one in families}
    return "\n".join(text for kind in kinds for text in _of_family(found, kind))


def _of_family(found: ByBudget, kind: frozenset[str]) -> Iterator[str]:
    budgets = sorted({budget for runs in found.values() for budget in runs})
    keys = sorted({key for runs in found.values() for own in runs.values() for key in own if family_of(key[0]) in kind})
    methods = [method for method, runs in found.items() if any(key in own for own in runs.values() for key in keys)]
    regrets = np.array([[[found[one].get(budget, {}).get(key, math.nan) for key in keys] for budget in budgets]
                        for one in methods])  # fmt: skip
    means = [[at[np.isfinite(at)].mean() if np.isfinite(at).any() else math.inf for at in own] for own in regrets]
    yield from map(line, means)
    yield from (line(at) for at in zip(*means, strict=True) if len(methods) < SEVERAL)
    for one, other in combinations(regrets, 2):
        gaps = [at[np.isfinite(at)] for at in one - other]
        known = [gap for gap in gaps if len(gap) > 1]
        yield line(number for gap in known for number in (gap.mean(), gap.std(ddof=1) / math.sqrt(len(gap))))
        both = [np.isfinite(at) for at in one - other]
        for mine in (one, other):
            yield line(at[shared].mean() for at, shared in zip(mine, both, strict=True) if shared.any())


def by_budget(rows: Iterable[Record], method: str, regret: Callable[[Record], Mapping[float, float]]) -> ByBudget:
    found: dict[str, dict[float, dict[tuple[str, int], float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        for budget, worth in regret(row).items():
            found[row[method]][budget][row["problem"], row["seed"]] = worth
    return found


SEVERAL = 20
"""Methods that are told in one sentence are fewer; the rules of a record are more."""
ROWS = frozenset({"taskset-rows", "opda-rows"})
SIZES = frozenset({"rbv2_svm", "rbv2_xgboost", "iaml_glmnet"})
TABLES = frozenset({"rows", "forest"})


def tuning_curve_rules() -> str:
    return by_family(by_budget(records("tuning-curve-rules"), "method", _of_its_budget), TABLES)


def tuning_arena_before() -> str:
    """The studies of the arena before two rules changed, beside those of today."""
    now = [row for row in records("real-curves") if row["method"] == "TraceKG"]
    before = [{**row, "method": "before"} for row in records("tuning-arena-before")]
    return by_family(by_budget([*now, *before], "method", _of_its_budget), TABLES)


def _of_its_budget(row: Record) -> Mapping[float, float]:
    return {row["settings"]["allowance"]["amount"]: row["regret"]}


def real_curves() -> str:
    """On the problems and seeds that all have: of our methods, of all; on real trainings, sizes, and both."""
    found = by_budget(records("real-curves"), "method", _of_its_budget)
    ours = ("TraceKG", "asha", "bohb", "random")
    everyone = (*ours, "dehb", "optuna-tpe-hyperband", "neps-priorband")
    kinds: Sequence[Callable[[str], bool]] = (lambda one: one in SIZES, lambda one: one not in SIZES, lambda one: True)
    return "\n".join(by_family(_common(found, methods, kind)) for methods in (ours, everyone) for kind in kinds)


def _common(found: ByBudget, methods: Sequence[str], kind: Callable[[str], bool]) -> ByBudget:
    """As one family."""
    chosen: dict[str, dict[float, dict[tuple[str, int], float]]] = defaultdict(dict)
    for budget in found[methods[0]]:
        keys = set.intersection(*({key for key in found[one].get(budget, {}) if kind(family_of(key[0]))}
                                  for one in methods))  # fmt: skip
        for one in methods:
            chosen[one][budget] = {(f"all/{key[0]}", key[1]): found[one][budget][key] for key in keys}
    return chosen


def of_suite(suite: str) -> Callable[[], str]:
    """Of each contest, at the costs where it is judged: normalised regrets by family, and medians by problem."""

    def text() -> str:
        parts = []
        for contest in dict.fromkeys(row["contest"] for row in records(suite)):
            own = [row for row in records(suite) if row["contest"] == contest]
            parts.append(by_family(by_budget(own, "method", _judged), ROWS))
            parts.append(_medians(own))
        return "\n".join(parts)

    return text


def _judged(row: Record) -> Mapping[float, float]:
    """A run that has nothing to recommend yet counts as 1."""
    return {at: score if math.isfinite(score := score_at(row, at)) else 1.0 for at in row["judged_at"]}


def _medians(rows: Sequence[Record]) -> str:
    """Of each problem and method at all costs; of each problem and cost by all methods."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in rows:
        found[row["problem"], row["method"]].append(row)
    return "\n".join(" ".join(f"{median(regret_at(row, at) for row in own):.7f}" for at in own[0]["judged_at"])
                     for own in found.values())  # fmt: skip


# ------------------------------------------------------------
# Others.


def groups_of(suite: str, *keys: str) -> Iterator[tuple[tuple[str, ...], list[Record]]]:
    found: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for row in records(suite):
        found[tuple(str(row.get(key)) for key in keys)].append(row)
    yield from found.items()


def live() -> str:
    """Means of the methods over the seeds of a task and of its parts, differences to the default, and single runs.

    Of the first seeds the default is asked what it would recommend by the present rule.
    """
    found: dict[tuple[str, str], dict[tuple[str, int], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in records("real-live"):
        code, method = row["code"], row["method"]
        found[row["task"], code][code, row["seed"]][method] = row["verified_error"]
        if code.startswith("now") and (method != "default" or code != "now"):
            key = code.replace("now, recommending what measured best", "now"), row["seed"]
            found[row["task"], "all of now"][key][method] = row["verified_error"]
    compared = [text for own in found.values() for text in _compared(list(own.values()))]
    return "\n".join([*compared, *(line(row["verified_error"] for row in own)
                                   for _, own in groups_of("real-live", "task", "method"))])  # fmt: skip


def _compared(seeds: Sequence[Mapping[str, float]]) -> Iterator[str]:
    common = [one for one in seeds if len(one) == 4]
    if len(common) > 1:
        yield line(fmean(one[method] for one in common) for method in common[0])
        gaps = [[one["default"] - one[other] for one in common] for other in sorted(common[0].keys() - {"default"})]
        yield line(number for own in gaps for number in (fmean(own), stdev(own) / math.sqrt(len(own))))


def predictions() -> str:
    """Factors by which predicted costs are off."""
    return "\n".join(f"{math.exp(median(row['rms'] for row in own)):.4f}"
                     for _, own in groups_of("predictions", "method", "kind"))  # fmt: skip


FIRST = 5
"""Seeds that are told apart where a slower method has no others."""


def of_seeds(suite: str, *measures: str, scale: float = 1.0) -> Callable[[], str]:
    """Of each problem and method the value of each seed, their median, mean and deviation; of the first five too."""

    def text() -> str:
        found = [own for _, own in groups_of(suite, "problem", "method")]
        first = [[row for row in own if row["seed"] < FIRST] for own in found]
        return "\n".join(_of_seeds(own, measures, scale) for own in [*found, *first])

    return text


def _of_seeds(rows: Sequence[Record], measures: Sequence[str], scale: float) -> str:
    values = [[scale * row[measure] for row in rows if measure in row] for measure in measures]
    return "\n".join(line([*own, median(own), fmean(own), *([stdev(own)] if len(own) > 1 else [])])
                     for own in values if own)  # fmt: skip


def by_method(suite: str, *measures: str) -> Callable[[], str]:
    """The means of each method over the problems, in one row; a column has the methods on one problem."""

    def text() -> str:
        return "\n\n".join(_means(suite, measure) for measure in measures)

    return text


def _means(suite: str, measure: str) -> str:
    found = {key: fmean(row[measure] for row in own) for key, own in groups_of(suite, "method", "problem")}
    problems = list(dict.fromkeys(problem for _, problem in found))
    rows = [[method, *(f"{found[method, one]:.5f}" if (method, one) in found else "" for one in problems)]
            for method in dict.fromkeys(method for method, _ in found)]  # fmt: skip
    return table([["", *problems], *rows])


def trainings() -> str:
    """Gains from guesses on the tasks that nothing was chosen on; and how well the default's predictions fit."""
    rows, reported = records("online-training"), tuple(f"{task.name}," for task in TO_REPORT)
    tasks = list(of_default(rows).values())
    by_form = [[row for row in own if ("save and restore" in row["method"]) == undoes]
               for undoes in (True, False) for own in tasks]  # fmt: skip
    guessed = guess_table(rows, lambda problem: problem.startswith(reported), price=0.1)
    fitted = [calibration(own) for own in [*tasks, *by_form]]
    return "\n\n".join([guessed, *(line(one.values()) for one in fitted), line(one["z2_mean"] for one in fitted)])


def pipelines() -> str:
    rows = records(summary.SUITE)
    own = [(contest, current_records(contest, rows)) for contest in SUITES[summary.SUITE].contests]
    parts = [summary.summary(contest, found) for contest, found in own if found]
    parts += [
        line(fmean(regret_at(row, 20.0) for row in by) for by in _by(found, "method")) for _, found in own if found
    ]
    return "\n\n".join([*parts, *stalled()])


def stalled() -> Iterator[str]:
    """Of each method the medians of the functions in two stages and in three, and the worst runs."""
    for own in _by([row for row in records(summary.SUITE) if row["contest"] == "stalling"], "method"):
        by_stages = [
            [regret_at(row, 18.0) for row in own if ("[2,2,2]" in row["problem"]) == cut] for cut in (False, True)
        ]
        yield line(measure(found) for measure in (median, max) for found in by_stages)


def _by(rows: Sequence[Record], key: str) -> list[list[Record]]:
    return [[row for row in rows if row[key] == name] for name in dict.fromkeys(row[key] for row in rows)]


def pipelines_again() -> str:
    """Geometric means at each cost, of the runs that were made again, now and before."""
    again = runs("pipeline-synthetic-again", "shifted", "prefix-ei")
    before = runs("pipeline-synthetic", "shifted", "prefix-ei")
    both = sorted(again.keys() & before.keys())
    return "\n".join(line(summary.geometric_mean([regret_at(rows[key], at) for key in both]) for at in (5, 10, 20))
                     for rows in (again, before))  # fmt: skip


def real_pipelines() -> str:
    """The seconds until a score is near the best, and medians after all seconds where each contest is judged."""
    near = [near_best.report(results_path(near_best.SUITE), name) for name in near_best.PROBLEMS]
    return "\n\n".join([*near, of_suite("pipeline-real")(), searches()])


def searches() -> str:
    """Medians over seeds after four seconds by table; and of the seconds of work and of suggesting, over all tables."""
    by_table: dict[tuple[str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for row in records("pipeline-real"):
        if row["method"].startswith("search-"):
            for problem in (row["problem"], "all"):
                by_table[row["settings"]["allowance"]["unit"], problem][row["method"]].append(row)
    parts = []
    for own in by_table.values():
        parts += [line(median(regret_at(row, at) for row in rows) for rows in own.values()) for at in (1, 2, 4)]
        parts += [line(median(row[name] for row in rows) for name in ("cost", "suggest_cpu_seconds"))
                  for rows in own.values()]  # fmt: skip
    return "\n".join(parts)


def shares_of_suggesting() -> str:
    """In percent of the costs, in the median: over all tables, and on the recorded trainings."""
    rows = [row for row in records("cost-aware") if row["method"] == "ei-per-cost"]
    short = [row for row in rows if row["contest"] == "good runs are expensive ones"]
    return line(100.0 * median(row["suggest_cpu_seconds"] / row["cost"] for row in own) for own in (rows, short))


def recommended() -> str:
    """What rules would have recommended, and how well the ends of runs are foreseen."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in records("tuning-recommended"):
        if "rule" in row:
            found[row["rule"], row["records"]].append(row)
    changes = [line(row[key] for row in own for key in ("difference", "error")) for own in found.values()]
    ends = [" ".join(str(row[key]) for key in ("bias", "rms", "order, predicted", "order, measured"))
            for row in records("tuning-recommended") if "trained to" in row]  # fmt: skip
    return "\n".join([*changes, *ends])


def gains(suite: str) -> Callable[[], str]:
    """Of each method over the problems: the median and the worst gain over keeping the start."""

    def text() -> str:
        kept = {(row["problem"], row["seed"]): row["accuracy"] for row in records(suite) if row["method"] == KEPT}
        found = [[row["accuracy"] - kept[row["problem"], row["seed"]] for row in own
                  if (row["problem"], row["seed"]) in kept]
                 for _, own in groups_of(suite, "method", "problem")]  # fmt: skip
        names = [key for key, _ in groups_of(suite, "method", "problem")]
        by_method: dict[str, list[list[float]]] = defaultdict(list)
        for (method, _), own in zip(names, found, strict=True):
            by_method[method] += [own] if own else []
        return "\n".join(line(measure(own) for own in each) for each in by_method.values() for measure in (median, min))

    return text


def bounds() -> str:
    """Of sensors: a random arm, the best fixed one, the oracle."""
    return "\n".join(line(row["bounds"].values()) for row in records("online-sensors") if row.get("bounds"))


def gradients() -> str:
    """Medians with and without gradients, after some evaluations, and as if gradients were free."""
    contest, own = "with and without gradients", ("TraceKG-gradients", "TraceKG")
    mine, theirs = (runs("mf-gradients", contest, method) for method in own)
    parts = []
    for count in (8, 10, 12):
        both = [key for key in mine.keys() & theirs.keys()
                if min(mine[key]["evaluations"], theirs[key]["evaluations"]) >= count]  # fmt: skip
        parts.append([median(after(rows[key], count) for key in both) for rows in (mine, theirs)])
    free = [[median(regret_at(row, 2.5 * at) for row in mine.values()),
             median(regret_at(row, at) for row in theirs.values())] for at in (0.5, 0.8)]  # fmt: skip
    return "\n".join(map(line, [*zip(*parts, strict=True), *parts, *free]))


def beside_botorch() -> str:
    """Single runs at cost 4."""
    found = [own for _, own in groups_of("mf-synthetic", "contest", "problem", "method")]
    return "\n".join(line(regret_at(row, 4.0) for row in own if row["seed"] < most) for own in found for most in (2, 3))


def lost_by_stopping() -> str:
    """In single runs."""
    return "\n".join(f"{row['lost']:.4f}" for row in records("stopping"))


def first_hours() -> str:
    """How much more error than others the default has on each problem, and in percent what it spends on suggesting."""
    problems = tuple(dict.fromkeys(row["problem"] for row in records("first-hour")))
    more = [ends("first-hour", "default", other, problem, "-verified_error")
            for other in ("model forced", "ASHA") for problem in problems]  # fmt: skip
    errors = [figure for gaps in more for figure in (fmean(gaps), stdev(gaps) / math.sqrt(len(gaps)))]
    default = [own for key, own in groups_of("first-hour", "method", "problem") if key[0] in ("default", SHARED)]
    shares = [median(100.0 * row["suggesting_share"] for row in own) for own in default]
    return "\n".join(map(line, (errors, shares)))


def edge_of_a_limit() -> str:
    """Where gain times probability is largest if the gain grows with the distance beyond a limit, and how probable."""
    found = minimize_scalar(lambda z: -z * ndtr(-z), bounds=(0.0, 3.0), method="bounded").x
    return line([found, ndtr(-found)])


def sign_tests_of_the_sampler() -> str:
    rows = {(row["method"], row["problem"], row["seed"]): row for row in records("optuna-sampler")}
    found = []
    for at in (15.0, 30.0):
        gaps = [regret_at(row, at) - regret_at(rows["log-ei-in-optuna", *key], at)
                for (method, *key), row in rows.items()
                if method == "log-ei" and ("log-ei-in-optuna", *key) in rows]  # fmt: skip
        won, lost = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
        found.append(float(binomtest(won, won + lost).pvalue))
    return line(found)


def rules_of_branches() -> str:
    return "\n".join(" ".join(branch_rules.row_of(rule)[2:4]) for rule in branch_rules.rows_by_rule())


def noise() -> str:
    """The logarithm of regret relative to that of LogEI: mean and standard error."""
    parts = []
    for suite in ("noisy-tuning", "noisy"):
        found = {(row["method"], row["problem"], row["seed"]): row for row in records(suite)}
        for method in dict.fromkeys(method for method, *_ in found):
            for at in (20, 30, 40):
                gaps = [math.log(regret_at(row, at) / regret_at(found["log-ei", *key[1:]], at))
                        for key, row in found.items() if key[0] == method and ("log-ei", *key[1:]) in found
                        and regret_at(row, at) > 0.0 and regret_at(found["log-ei", *key[1:]], at) > 0.0]  # fmt: skip
                if len(gaps) > 1:
                    parts.append(line([fmean(gaps), stdev(gaps) / math.sqrt(len(gaps))]))
    return "\n".join(parts)


STATISTICS: Mapping[str, Callable[[], str]] = {
    "cost-aware": shares_of_suggesting,
    "conditional": rules_of_branches,
    "demo-digits": of_seeds("demo-digits", "validation_error", "test_error"),
    "first-hour": first_hours,
    "lightgbm-rounds": of_seeds("lightgbm-rounds", "test_loss"),
    "mf-curves": of_suite("mf-curves"),
    "mf-curves-mean": of_suite("mf-curves-mean"),
    "mf-gradients": lambda: f"{of_suite('mf-gradients')()}\n{gradients()}",
    "mf-synthetic": lambda: f"{of_suite('mf-synthetic')()}\n{beside_botorch()}",
    "noisy": noise,
    "objectives": edge_of_a_limit,
    "online-arms": by_method("online-arms", "regret", "queries"),
    "online-fashion-mnist": of_seeds("online-fashion-mnist", "accuracy", "seconds"),
    "online-augmentation": gains("online-augmentation"),
    "online-sensors": lambda: f"{by_method('online-sensors', 'reward', 'queries')()}\n{bounds()}",
    "online-synthetic": by_method("online-synthetic", "regret", "queries"),
    "online-training": trainings,
    "optuna-sampler": sign_tests_of_the_sampler,
    "pipeline-real": lambda: f"{real_pipelines()}\n{seconds_worked('Fashion-MNIST')} {seconds_worked('nuclei')}",
    "pipeline-synthetic": lambda: (
        f"{pipelines()}\n{' '.join(at_the_end('ackley-8 [2,2,4]', 2))}\n"
        f"{' '.join(at_the_end('rastrigin-6 [2,2,2]', 3))}"
    ),
    "pipeline-synthetic-again": pipelines_again,
    "population-cifar": of_seeds("population-cifar", "test_accuracy", scale=100.0),
    "population-real": of_seeds("population-real", "score", "regret"),
    "population-synthetic": of_seeds("population-synthetic", "regret"),
    "predictions": predictions,
    "real-curves": real_curves,
    "real-live": live,
    "stopping": lost_by_stopping,
    "tuning-arena-before": tuning_arena_before,
    "tuning-curve-rules": tuning_curve_rules,
    "tuning-probe-rules": lambda: probe_rules.summary(records("tuning-probe-rules")),
    "tuning-races": races.summary,
    "tuning-recommended": recommended,
}
"""By the name of a record."""
