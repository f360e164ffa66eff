"""docs/papers.md, from `papers.md` beside this file: `python -m benchmarks.evidence.papers` fills in what is recorded.

A placeholder is `{{function;argument;…}}`. The papers' own figures stand in the template, and in the tables below;
ours come from the records alone. `{{verdict;…}}` in the last cell of a row judges the wins and losses that stand in its
second cell, `{{standing}}` those of its third.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from math import sqrt
from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np
from scipy.stats import spearmanr

from benchmarks.evidence.verdicts import SURE, is_ahead, listed, standing, verdict
from benchmarks.pipelines import near_best
from benchmarks.problems.data import REPOSITORY
from benchmarks.records import Record, label_of, read_records, results_path
from benchmarks.tuning import smooth_drift
from benchmarks.tuning import table_a2 as readings_of_a2

TEMPLATE, PAGE = Path(__file__).with_name("papers.md"), REPOSITORY / "docs" / "papers.md"
NOT_RUN, NOTHING = "not run", 1e300
PLACEHOLDER = re.compile(r"\{\{([^}]*)\}\}")

# ------------------------------------------------------------
# The papers' tables: R_T/T, and C_T after the stroke.

EPSILONS = ("0.003", "0.005", "0.01", "0.03", "0.05")
TABLE_A2 = {
    "R-GP-UCB": (".352 .371 .425 .516 .581", "R-GP-UCB"),
    "TV-GP-UCB, all feedback": (".094 .126 .184 .305 .392", "TV-GP-UCB"),
    "TV-GP-UCB Ber(0.2)": (".231/99 .275/99 .350/97 .561/100 .694/100", "TV-GP-UCB, Ber(0.2)"),
    "TV-GP-UCB Ber(0.3)": (".176/147 .218/150 .312/144 .485/150 .592/153", "TV-GP-UCB, Ber(0.3)"),
    "TV-GP-UCB Ber(0.4)": (".147/200 .186/200 .275/201 .428/203 .522/203", "TV-GP-UCB, Ber(0.4)"),
    "TV-GP-UCB Ber(0.5)": (".121/247 .160/249 .241/252 .382/249 .480/250", "TV-GP-UCB, Ber(0.5)"),
    "TV-GP-UCB Ber(0.6)": (".119/296 .144/300 .230/298 .363/298 .452/298", "TV-GP-UCB, Ber(0.6)"),
    "TV-GP-UCB Ber(0.7)": (".112/348 .151/348 .209/348 .335/350 .429/350", "TV-GP-UCB, Ber(0.7)"),
    "TV-GP-UCB Ber(0.8)": (".102/401 .140/399 .198/399 .328/400 .415/400", "TV-GP-UCB, Ber(0.8)"),
    "TV-GP-UCB Ber(0.9)": (".098/450 .132/449 .196/448 .311/448 .404/449", "TV-GP-UCB, Ber(0.9)"),
    "CE κ = 0.6": (".535/8 .558/12 .600/20 .642/53 .680/85", "CE κ=0.6"),
    "CE κ = 0.7": (".410/16 .435/21 .442/41 .504/91 .533/134", "CE κ=0.7"),
    "CE κ = 0.75": (".341/22 .367/34 .368/62 .441/117 .484/167", "CE κ=0.75"),
    "CE κ = 0.8": (".286/31 .297/51 .304/76 .387/146 .451/200", "CE κ=0.8"),
    "CE κ = 0.85": (".226/51 .248/78 .266/101 .356/180 .416/235", "CE κ=0.85"),
    "CE κ = 0.9": (".188/82 .202/101 .238/140 .322/233 .400/291", "CE κ=0.9"),
    "CE κ = 0.95": (".157/125 .161/163 .210/207 .307/310 .397/371", "CE κ=0.95"),
    "CE κ = 0.99": (".112/292 .128/309 .176/363 .295/435 .386/468", "CE κ=0.99"),
    r"CE @\*": (".103/386 .126/414 .168/442 .292/482 .384/492", "CE @*"),
    "our default": ("", "default"),
}
ARMS = ("sine", "gaussian", "piecewise")
TABLE_A1 = {
    "EXP3.S": (".384/201 .257/200 .437/201", "EXP3.S"),
    "EXP3.R (in the paper with networks only)": ("", "EXP3.R"),
    "ε-greedy": (".167/198 .145/200 .196/199", "ε-greedy"),
    "softmax": (".132/199 .159/201 .256/198", "softmax"),
    "UCB, here with forgetting": (".084/200 .112/201 .172/202", "UCB1, forgetting"),
    "GP-UCB as published, an RBF in time": (".104/200 .139/200 .122/201", "GP-UCB as published, RBF in time"),
    "GP-UCB, an RBF in time, exploiting in silence": ("", "GP-UCB, RBF in time"),
    "GP-UCB that forgets nothing": ("", "GP-UCB that forgets nothing"),
    "TV-GP-UCB": ("", "TV-GP-UCB"),
    "TV-GP-EI": ("", "TV-GP-EI"),
    "TV-GP-PI": ("", "TV-GP-PI"),
    "R-GP-UCB, blocks of 200": ("", "R-GP-UCB"),
    "CE-GP-UCB as published, κ = 0.95, an RBF in time": (
        ".017/52 .038/53 .028/52",
        "CE κ=0.95, as published, RBF in time",
    ),
    "as published, an RBF by maximum likelihood": (
        ".017/52 .038/53 .028/52",
        "CE κ=0.95, as published, RBF by maximum likelihood",
    ),
    "as published, forgetting exponentially: `CEGPUCB.paper(0.95)`": (
        ".017/52 .038/53 .028/52",
        "CE κ=0.95, as published",
    ),
    "its rule, exploiting in silence, an RBF in time": ("", "CE κ=0.95, RBF in time"),
    "its rule, exploiting in silence, forgetting exponentially": ("", "CE κ=0.95"),
    "our default": ("", "default"),
    "our default's rule, an RBF in time": ("", "default's rule, RBF in time"),
    "our default's rule, the likelier of both drifts": ("", "default's rule, the likelier drift"),
}
FIGURE_A2 = (
    "EXP3.S",
    "EXP3.R",
    "ε-greedy",
    "softmax",
    "UCB1, forgetting",
    "GP-UCB as published, RBF in time",
    "CE κ=0.95, as published, RBF in time",
    "CE κ=0.95, as published",
    "default",
)
SENSORS = ("metr-la", "intel", "cmu-light")
TABLE_A3 = {
    "EXP3.R, Ber(0.2)": ".847",
    "ε-greedy, Ber(0.2)": ".873",
    "softmax, Ber(0.2)": ".852",
    "UCB, Ber(0.2)": ".871",
    "GP-UCB, Ber(0.2)": ".870",
    "CE κ=0.8": ".881",
    "CE-GP-UCB.paper()": "",
    "default": "",
    "random params": "",
    "keep the start": "",
}
"""Test accuracies of VGG16 on CIFAR-10, arms of a self-tuning network."""
ARMED_RULE = "CE κ=0.8"
ARMED = {
    "few digits, two policies, light start, price 0.1": "augmentation, light start",
    "few digits, two policies, strong start, price 0.1": "strong start",
    "letters, two rates, high start, price 0.1": "learning rate, high start",
    "letters, two rates, low start, price 0.1": "low start",
}
CELLS = {("TV-GP-UCB, Ber(0.5)", "0.05"): (0.480, 0.058), ("CE κ=0.9", "0.005"): (0.202, 0.080)}
"""Mean and deviation of 50 trials, of cells that we miss."""
LAMBDA = 0.1
"""λ of LaMBO's experiments (Section 5)."""


# ------------------------------------------------------------
# The records.


@cache
def records(suite: str) -> tuple[Record, ...]:
    return tuple(read_records(results_path(suite)))


def runs(suite: str, contest: str, method: str) -> dict[tuple[str, int], Record]:
    """By problem and seed; of what was run again, the later one."""
    return {
        (row["problem"], row["seed"]): row
        for row in records(suite)
        if row["contest"] == contest and row["method"] == method
    }


def regret_at(row: Record, spent: float) -> float:
    """The value where the best one is not known."""
    step = next((step for step in reversed(row["steps"]) if step["spent"] <= spent + 1e-9), None)
    if step is None:
        return NOTHING
    return float(step["value"] if step["regret"] is None else step["regret"])


def shown(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1.0 else f"{value:.3g}"


def small(value: float) -> str:
    """Two digits, without an exponent; *none* where there was nothing to recommend yet."""
    return "none" if value >= NOTHING else f"{float(f'{value:.2g}'):.12f}".rstrip("0").rstrip(".")


def by_method(suite: str, problem: str, method: str) -> list[Record]:
    """Of a suite of rounds or populations, by seed."""
    found = {row["seed"]: row for row in records(suite) if row["problem"] == problem and row["method"] == method}
    return list(found.values())


# ------------------------------------------------------------
# What a template may ask for.


def regret(suite: str, contest: str, method: str, problem: str, *at: str) -> str:
    """Median regrets at these costs."""
    rows = [row for (name, _), row in runs(suite, contest, method).items() if name == problem]
    return " / ".join(small(median(regret_at(row, float(spent)) for row in rows)) for spent in at) if rows else NOT_RUN


def count(suite: str, contest: str, method: str) -> str:
    """The seeds of each problem, and the most that one has where they differ."""
    seeds: dict[str, int] = {}
    for problem, _ in runs(suite, contest, method):
        seeds[problem] = seeds.get(problem, 0) + 1
    least, most = min(seeds.values(), default=0), max(seeds.values(), default=0)
    return str(least) if least == most else f"{least} to {most}"


def commits(suite: str, contest: str, method: str) -> str:
    return " and ".join(sorted({row["commit"][:7] for row in runs(suite, contest, method).values()}))


def pairs(suite: str, contest: str, one: str, other: str, at: str, *without: str) -> str:
    """Wins and losses in pairs of problem and seed."""
    mine, theirs = runs(suite, contest, one), runs(suite, contest, other)
    both = [key for key in mine.keys() & theirs.keys() if not any(part in key[0] for part in without)]
    if not both:
        return NOT_RUN
    won = sum(regret_at(mine[key], float(at)) < regret_at(theirs[key], float(at)) for key in both)
    lost = sum(regret_at(mine[key], float(at)) > regret_at(theirs[key], float(at)) for key in both)
    return f"{won}–{lost}"


def better(suite: str, one: str, other: str, part: str, measure: str = "regret") -> str:
    """Wins and losses in pairs of problem and seed by the regret at the end, of the problems whose names end so.

    Of any other measure more is better.
    """
    sign = 1.0 if measure == "regret" else -1.0
    found = {(row["problem"], row["seed"], row["method"]): sign * row[measure] for row in records(suite)}
    gaps = [
        regret - found[problem, seed, other]
        for (problem, seed, method), regret in found.items()
        if method == one and problem.endswith(part) and (problem, seed, other) in found
    ]
    return f"{sum(gap < 0 for gap in gaps)}–{sum(gap > 0 for gap in gaps)}" if gaps else NOT_RUN


def mean_regret(suite: str, contest: str, method: str, at: str, *parts: str) -> str:
    """Mean regrets of the problems whose names have these parts."""
    found = runs(suite, contest, method)
    return " / ".join(
        shown(fmean(regret_at(row, float(at)) for (name, _), row in found.items() if part in name)) for part in parts
    )


def middle(suite: str, problem: str, method: str, measure: str, scale: str = "1", digits: str = "0") -> str:
    """The median of a measure over seeds."""
    found = [float(row[measure]) * float(scale) for row in by_method(suite, problem, method)]
    return f"{median(found):.{digits}f}"


def as_many(one: str, family: str) -> str:
    """Wins and losses over seeds at ε = 0.01 against a family, at as many measurements as `one` takes, interpolated."""
    problem, members = "ε = 0.01", {row["method"] for row in records("online-synthetic")}
    curves: dict[int, list[tuple[float, float]]] = {}
    for member in members:
        if re.fullmatch(rf"{re.escape(family)} [\d.]+", member):
            for row in by_method("online-synthetic", problem, member):
                curves.setdefault(row["seed"], []).append((row["queries"], row["regret"]))
    gaps = []
    for row in by_method("online-synthetic", problem, one):
        asked, regrets = zip(*sorted(curves[row["seed"]]), strict=True)
        gaps.append(row["regret"] - float(np.interp(row["queries"], asked, regrets)))
    return f"{sum(gap < 0 for gap in gaps)}–{sum(gap > 0 for gap in gaps)}"


def near(problem: str, method: str) -> str:
    """The median of the seconds until within a twentieth of the best."""
    own = [row for row in records(near_best.SUITE) if row["problem"] == problem]
    best = min(step["value"] for row in own for step in row["steps"])
    return small(median(near_best.within(own, near_best.SHARE, best)[method].values())).replace("inf", "never")


def sure() -> str:
    return f"{SURE:g}"


def trials_of_readings() -> str:
    return str(readings_of_a2.TRIALS)


def number(suite: str, problem: str, method: str) -> str:
    return str(len(by_method(suite, problem, method)))


def made_at(suite: str, problem: str, method: str) -> str:
    """The commits of the code that ran."""
    return " and ".join(sorted({str(row["commit"])[:7] for row in by_method(suite, problem, method)}))


def deviation(method: str, epsilon: str) -> str:
    """z of our mean against the paper's, in a cell of Table A2."""
    found = [row["regret"] for row in by_method("online-synthetic", f"ε = {epsilon}", method)]
    mean, spread = CELLS[method, epsilon]
    return f"{(fmean(found) - mean) / sqrt(stdev(found) ** 2 / len(found) + spread**2 / 50):+.1f}".replace("-", "−")


# ------------------------------------------------------------
# Tables.


def table_a2() -> str:
    rows = [_bandit_row("online-synthetic", label, *row, [f"ε = {one}" for one in EPSILONS]) for label, row in
            TABLE_A2.items()]  # fmt: skip
    return _table(["", f"ε = {EPSILONS[0]}", *EPSILONS[1:]], rows)


def table_a1() -> str:
    rows = [_bandit_row("online-arms", label, *row, ARMS) for label, row in TABLE_A1.items()]
    return _table(["", "sine", "Gaussian", "piecewise"], rows)


A2_IN_READINGS = {"all feedback": "TV-GP-UCB, all feedback", "CE κ=0.9": "CE κ = 0.9"}
"""Rows of Table A2 by their names in `benchmarks.tuning.table_a2`, where the coins have those of the paper."""


def readings() -> str:
    """Other readings of the paper on cells of Table A2: R_T/T and C_T, and how far R_T/T is from the paper's."""
    cells = [(epsilon, method) for epsilon in readings_of_a2.EPSILONS for method in readings_of_a2.METHODS]
    rows = [["the paper", *(_printed_in_a2(*cell) for cell in cells), ""]]
    for name in readings_of_a2.READINGS:
        found = [readings_of_a2.rows_of(name, method, epsilon) for epsilon, method in cells]
        means = [(fmean(row["regret"] for row in own), fmean(row["queries"] for row in own)) for own in found]
        away = f"{100.0 * _distance(name):.0f} %"
        rows.append([name, *(f"{shown(lost)}/{asked:.0f}" for lost, asked in means), away])
    head = ["", *(f"{method}, ε = {epsilon:g}" for epsilon, method in cells), "away"]
    return _table(head, rows)


def nearest_reading() -> str:
    return min(readings_of_a2.READINGS, key=_distance)


def _printed_in_a2(epsilon: float, method: str) -> str:
    row = A2_IN_READINGS.get(method, f"TV-GP-UCB {method}")
    return TABLE_A2[row][0].split()[EPSILONS.index(f"{epsilon:g}")]


def _distance(name: str) -> float:
    """The mean of |ours/the paper's − 1| over the cells."""
    found = []
    for epsilon in readings_of_a2.EPSILONS:
        for method in readings_of_a2.METHODS:
            mean = fmean(row["regret"] for row in readings_of_a2.rows_of(name, method, epsilon))
            found.append(abs(mean / float(_printed_in_a2(epsilon, method).partition("/")[0]) - 1.0))
    return fmean(found)


def cells_near() -> str:
    """How many cells of Table A2 have an R_T/T within a tenth of the paper's."""
    near = []
    for printed, method in TABLE_A2.values():
        for epsilon, known in zip(EPSILONS, printed.split(), strict=bool(printed)):
            mean = fmean(row["regret"] for row in by_method("online-synthetic", f"ε = {epsilon}", method))
            near.append(abs(mean / float(known.partition("/")[0]) - 1.0) <= 0.1)
    return f"{sum(near)} of {len(near)}"


def orders() -> str:
    """The least and the most rank correlation of our R_T/T with the paper's, over the rows of Table A2 at each ε."""
    found = []
    for place, epsilon in enumerate(EPSILONS):
        rows = [(printed.split()[place], method) for printed, method in TABLE_A2.values() if printed]
        theirs = [float(known.partition("/")[0]) for known, _ in rows]
        ours = [fmean(row["regret"] for row in by_method("online-synthetic", f"ε = {epsilon}", one)) for _, one in rows]
        found.append(float(spearmanr(theirs, ours).statistic))
    return f"{shown(min(found))} to {shown(max(found))}"


BANDITS = ("EXP3.S", "ε-greedy", "softmax", "UCB1, forgetting", "GP-UCB as published, RBF in time")
"""Those of Table A1 of the paper."""


def arms_verdict() -> str:
    """Table A1, arm by arm: CE-GP-UCB against each bandit in pairs of seeds, and its C_T beside the paper's."""
    own, label = "CE κ=0.95, as published, RBF in time", "CE-GP-UCB as published, κ = 0.95, an RBF in time"
    said, holds = [], []
    for arm, name, printed in zip(ARMS, ("sine", "Gaussian", "piecewise"), TABLE_A1[label][0].split(), strict=True):
        level = [one for one in BANDITS if not is_ahead(*map(int, better("online-arms", own, one, arm).split("–")))]
        theirs = int(printed.partition("/")[2])
        asked = fmean(row["queries"] for row in by_method("online-arms", arm, own))
        holds.append(not level and asked <= 1.1 * theirs)
        rest = f" but {listed(level)}" if level else ""
        said.append(f"on {name} ahead of every bandit{rest}, with {asked:.0f} measurements ({theirs})")
    return f"{'reproduced' if all(holds) else 'not reproduced'}: {'; '.join(said)}"


def figure_a2() -> str:
    """R_t/t after an eighth, a quarter, a half and all of the rounds."""
    rows = []
    for method in FIGURE_A2:
        paths = [[row["path"] for row in by_method("online-arms", arm, method) if "path" in row] for arm in ARMS]
        rows.append([method, *(" ".join(shown(fmean(at)) for at in zip(*path, strict=True)) for path in paths)])
    return _table(["", "sine", "Gaussian", "piecewise"], rows)


def drifts() -> str:
    """What a smooth drift changes at equal measurements."""
    rows = [row for world in SENSORS for row in smooth_drift.report(world)]
    return _table(["", *(name for name, _, _ in smooth_drift.COLUMNS)], rows)


def plays() -> str:
    return " / ".join(str(len(smooth_drift.plays(world))) for world in SENSORS)


def table_a3() -> str:
    """Test accuracies at the end, and validations."""
    rows = []
    for method, theirs in TABLE_A3.items():
        found = [by_method("online-two-arms", problem, method) for problem in ARMED]
        cells = [
            f"{shown(fmean(row['accuracy'] for row in own))}/{fmean(row['validations'] for row in own):.0f}"
            for own in found
        ]
        rows.append([label_of(method), theirs, *cells])
    return _table(["", "the paper's", *ARMED.values()], rows)


def movement(method: str, problem: str, at: str) -> str:
    """R⁺/t of Eq. 7 of LaMBO with the λ of its Section 5, and costs as they stand there, 10 and 1."""
    return shown(fmean(_movements(method, problem, at).values()))


def less_movement(one: str, other: str, problem: str, at: str) -> str:
    """Wins and losses over seeds by R⁺/t."""
    mine, theirs = (_movements(method, problem, at) for method in (one, other))
    gaps = [mine[seed] - theirs[seed] for seed in mine.keys() & theirs.keys()]
    return f"{sum(gap < 0 for gap in gaps)}–{sum(gap > 0 for gap in gaps)}"


def _movements(method: str, problem: str, at: str) -> dict[int, float]:
    rows = runs("pipeline-synthetic", "centred", method).items()
    tallies = {seed: row["tallies"][at] for (name, seed), row in rows if name == problem}
    return {seed: (one["regret"] + LAMBDA * one["movement"]) / one["evaluations"] for seed, one in tallies.items()}


def armed_standing() -> str:
    """Table A3: CE-GP-UCB against each bandit in pairs of problem and seed, by accuracy, and the most validations."""
    rivals = [method for method in TABLE_A3 if method.endswith("Ber(0.2)")]
    counts = [f"{one.partition(',')[0]} {better('online-two-arms', ARMED_RULE, one, '', 'accuracy')}" for one in rivals]
    return f"pairs against {', '.join(counts)}, {standing(', '.join(counts))}"


def _bandit_row(suite: str, label: str, paper: str, method: str, problems: Iterable[str]) -> list[str]:
    theirs = paper.split() or [""] * 5
    cells = []
    for problem, known in zip(problems, theirs, strict=False):
        found = by_method(suite, problem, method)
        mine = shown(fmean(row["regret"] for row in found))
        asked = "" if known and "/" not in known else f"/{fmean(row['queries'] for row in found):.0f}"
        cells.append(f"{mine}{asked} ({known})" if known else f"{mine}{asked}")
    return [label, *cells]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


FUNCTIONS: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        *(
            regret,
            count,
            commits,
            pairs,
            better,
            mean_regret,
            middle,
            number,
            made_at,
            deviation,
            movement,
            less_movement,
            as_many,
            near,
        ),
        *(sure, trials_of_readings, armed_standing),
        *(table_a1, table_a2, table_a3, figure_a2, drifts, plays),
        *(readings, nearest_reading, cells_near, orders, arms_verdict),
    )
}
OF_THE_ROW = ("verdict", "standing")


def made_page() -> str:
    return "\n".join(_made_line(line) for line in TEMPLATE.read_text(encoding="utf-8").split("\n"))


def _made_line(line: str) -> str:
    def filled(found: re.Match[str]) -> str:
        name, *arguments = found[1].split(";")
        return found[0] if name in OF_THE_ROW else FUNCTIONS[name](*arguments)

    def judged(found: re.Match[str]) -> str:
        name, *arguments = found[1].split(";")
        return verdict(cells[2], *arguments) if name == "verdict" else standing(cells[3])

    made = PLACEHOLDER.sub(filled, line)
    cells = made.replace(r"\|", "/").split("|")
    return PLACEHOLDER.sub(judged, made)


if __name__ == "__main__":
    PAGE.write_text(made_page(), encoding="utf-8")
    print(f"Wrote {PAGE}.")
