"""`docs/papers.md` is what the committed records make of its template, which has no number of ours."""

import re
import shlex
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from statistics import fmean, median, stdev

import pytest
from scipy.stats import binomtest

from benchmarks.evidence.papers import (
    ARMS,
    PAGE,
    PLACEHOLDER,
    SENSORS,
    TEMPLATE,
    better,
    by_method,
    made_page,
    mean_regret,
    nearest_reading,
    pairs,
    records,
    runs,
)
from benchmarks.evidence.verdicts import verdict
from benchmarks.population import real
from benchmarks.run import OTHER_RUNNERS
from benchmarks.suites import SUITES
from benchmarks.tuning import smooth_drift, table_a2

LINK_OR_CODE = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")
CONDITION = re.compile(r"cost [\d. /]+|from 0\.\d+|of 960|[λεκ] = [\d.]+|20 000 images|4800 trainings")
NUMBER = re.compile(r"(?<![\w^·])\d*\.\d+|\b\d{3,}\b")
CENTRED = ("pipeline-synthetic", "centred")
CUTS = (
    "hartmann-6 [3,3]",
    "rastrigin",
    "ackley-8 [2,6]",
    "ackley-8 [4,4]",
    "ackley-8 [6,2]",
    "ackley-8 [2,2,4]",
    "griewank",
)
PIPELINE = {
    "lambo": "`LaMBO`",
    "lambo-paper": "`LaMBO.paper()`",
    "staged-ei": "EI, cost-blind",
    "staged-lcb": "GP-UCB, cost-blind",
    "staged-mes": "max-value entropy search, cost-blind",
    "staged-ei-cooled": "cost-cooled EI",
    "prefix-ei": "`PrefixEI`",
}
OURS = {"as published": 1, "by default": 2, "verdict": 5}
"""The columns of a table that has six."""
VERDICTS = ("reproduced", "at a smaller scale", "not reproduced", "not run")
COUNT = re.compile(r"\d+–\d+|\d+ of \d+|\d+ %")


def test_the_page_is_made_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == made_page(), "run python -m benchmarks.evidence.papers"


def rows_of_six(text: str = "") -> list[list[str]]:
    """Of the template, with *made* for each placeholder, or of another text."""
    text = (text or PLACEHOLDER.sub("made", TEMPLATE.read_text(encoding="utf-8"))).replace(r"\|", "/")
    found, is_ours = [], False
    for line in text.splitlines():
        is_ours = line.startswith("| in the paper |") or (is_ours and line.startswith("|"))
        if is_ours and not line.startswith(("| in the paper |", "|---")):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


@pytest.mark.parametrize("column", OURS)
def test_no_result_of_ours_is_typed(column: str) -> None:
    """Conditions of a comparison are typed, such as the cost at which it is made; what came out is not."""
    cells = {row[0]: LINK_OR_CODE.sub("", row[OURS[column]]) for row in rows_of_six()}
    results = {name: found for name, cell in cells.items() if (found := NUMBER.findall(CONDITION.sub("", cell)))}
    assert not results


def test_no_count_of_ours_is_typed() -> None:
    """Of wins and losses, of runs or in percent: neither in a row nor in the text between tables."""
    text = LINK_OR_CODE.sub("", PLACEHOLDER.sub("", TEMPLATE.read_text(encoding="utf-8")))
    for condition in ("best of 960", "errors of 12 % and 5 %", "C_T = 499 of 500", "within 5 %"):
        assert condition in text
        text = text.replace(condition, "")
    assert COUNT.findall(text) == []


def test_each_row_has_a_verdict() -> None:
    rows = rows_of_six(made_page())
    assert len(rows) >= 25
    assert all(row[5].startswith(VERDICTS) for row in rows), [row[5] for row in rows if not row[5].startswith(VERDICTS)]


def test_each_number_of_runs_is_counted() -> None:
    """By a function of the template; a bracket has the paper's. None, and no command, where nothing was run."""
    for row in rows_of_six():
        if row[1] == row[2] == "not run":
            assert row[3:5] == ["0", "none"], row[0]
        else:
            assert "made" in row[3], row[0]
            assert re.sub(r"\(\d+\)", "", row[3].replace("made-up", "")).strip(", defaultm-p") == "", row[3]


def test_runs_are_counted_of_the_suite_and_of_a_method_that_the_row_is_about() -> None:
    rows = rows_of_six(TEMPLATE.read_text(encoding="utf-8"))
    asked = {row[0]: [one.split(";") for one in PLACEHOLDER.findall(row[3])] for row in rows}
    assert sum(map(len, asked.values())) > 25
    for row in rows:
        for _, suite, contest, method in asked[row[0]]:
            assert f"benchmarks.run {suite}" in row[4], row[0]
            others = [one.split(";") for cell in row[1:3] for one in PLACEHOLDER.findall(cell) if suite in one]
            assert not others or any(method in one for one in others), (row[0], method)
            assert not others or any(contest in one or contest.partition(", ")[2] in one for one in others), row[0]


def test_each_command_runs_what_the_row_says() -> None:
    commands = [one for row in rows_of_six() for one in re.findall(r"`([^`]*)`", row[4])]
    assert len(commands) >= 25
    for command in commands:
        module, suite, *options = shlex.split(command)
        assert module == "benchmarks.run", command
        assert suite in SUITES or suite in OTHER_RUNNERS, command
        for option, pattern in zip(options[::2], options[1::2], strict=True):
            assert any(fnmatch(name, pattern) for name in names_of(suite, option)), command


def names_of(suite: str, option: str) -> list[str]:
    if suite == real.SUITE:
        return list(real.HOPPERS)
    contests = SUITES[suite].contests
    return [name for one in contests for name in (one.problems if option == "--problems" else one.methods)]


def counted(cell: str) -> dict[str, list[tuple[int, int]]]:
    """The wins and losses that stand in a cell, by the words before them."""
    found: dict[str, list[tuple[int, int]]] = {}
    for part in re.split(r"[,;]|against|: (?=\D)", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)):
        if match := re.fullmatch(r"(.*?):? (\d+)–(\d+)", part.strip()):
            found.setdefault(match[1], []).append((int(match[2]), int(match[3])))
    return found


def test_verdicts_agree_with_the_wins_and_losses_of_their_rows() -> None:
    """Judged here once more, from the page: what is said of each rival, and what follows for the row."""
    judged = 0
    for name, published, default, _, _, last in rows_of_six(made_page()):
        ours, _, later = last.partition("by default")
        for cell, said in ((published, ours), (default, later)):
            if not said or not counted(cell):
                continue
            words = said_of_rivals(said)
            for rival, found in counted(cell).items():
                for won, lost in found:
                    sure = binomtest(won, won + lost).pvalue <= 0.1
                    expected = "undecided against" if not sure else "ahead of" if won > lost else "behind"
                    assert expected in words[rival], (name, rival, won, lost, last)
                    judged += 1
        leads = [won > lost and binomtest(won, won + lost).pvalue <= 0.1 for own in counted(published).values()
                 for won, lost in own]  # fmt: skip
        if leads:
            assert last.startswith("not reproduced") != all(leads), (name, last)
        if published == "not run":
            assert last.startswith("not run"), name
    assert judged > 60


WORD = re.compile(r"(ahead of|undecided against|behind) (.*?)(?=, ahead of|, undecided against|, behind|;|$)")


def said_of_rivals(text: str) -> dict[str, set[str]]:
    """The words that are said of each."""
    found: dict[str, set[str]] = {}
    for word, names in WORD.findall(text):
        for rival in re.split(r", | and ", names):
            found.setdefault(rival, set()).add(word)
    return found


def test_a_verdict_is_reproduced_only_if_every_rival_is_beaten() -> None:
    assert verdict(" pairs against EI 27–13, KG 32–8 ", "reproduced") == "reproduced: ahead of EI and KG"
    assert verdict("against EI 5–0, KG at cost 2: 20–20", "reproduced") == (
        "not reproduced: ahead of EI, undecided against KG at cost 2"
    )
    assert verdict("EI 13–27", "reproduced", "or level") == "not reproduced: behind EI"
    assert verdict("EI 18–22", "at a smaller scale", "or level") == "at a smaller scale: undecided against EI"


# ------------------------------------------------------------
# What the text between the tables says in words.


def regrets(method: str, arm: str) -> tuple[float, float, float]:
    """Mean, its standard error and C_T."""
    rows = by_method("online-arms", arm, method)
    found = [row["regret"] for row in rows]
    return fmean(found), stdev(found) / len(found) ** 0.5, fmean(row["queries"] for row in rows)


def is_level(one: str, other: str, arm: str) -> bool:
    (mine, error, _), (theirs, other_error, _) = regrets(one, arm), regrets(other, arm)
    return abs(mine - theirs) <= 2.0 * (error**2 + other_error**2) ** 0.5


def is_better(model: str, world: str) -> bool:
    """Than exponential forgetting at equal measurements, by the rule or by coins, beyond two errors."""
    found = [smooth_drift.compared(model, other, world, at=at) for _, other, at in smooth_drift.COLUMNS[:2]]
    return any(one is not None and one.change < -2.0 * one.error for one in found)


def is_near(reading: str, method: str, epsilon: float, paper: float) -> bool:
    """Within a tenth."""
    return abs(fmean(row["regret"] for row in table_a2.rows_of(reading, method, epsilon)) / paper - 1.0) <= 0.1


def explains_both(reading: str) -> bool:
    return is_near(reading, "Ber(0.5)", 0.05, 0.480) and is_near(reading, "CE κ=0.9", 0.005, 0.202)


def asks(reading: str, epsilon: float) -> float:
    return fmean(row["queries"] for row in table_a2.rows_of(reading, "CE κ=0.9", epsilon))


def leads(other: str, ours: str, *, among: str) -> dict[str, int]:
    """Wins less losses by problem."""
    found = {}
    for problem in {row["problem"] for row in records("population-synthetic") if among in row["problem"]}:
        won, lost = map(int, better("population-synthetic", ours, other, problem).split("–"))
        found[problem] = won - lost
    return found


def medians(suite: str, method: str, problem: str) -> float:
    measure, sign = ("regret", 1.0) if suite == "population-real" else ("test_accuracy", -1.0)
    return median(sign * row[measure] for row in by_method(suite, problem, method))


RBF, PLAIN = "CE κ=0.95, as published, RBF in time", "CE κ=0.95, as published"
LIKELIEST = "CE κ=0.95, as published, RBF by maximum likelihood"
GP_UCB, EXPLOITING = "GP-UCB as published, RBF in time", "GP-UCB, RBF in time"
OWN, OWN_RBF, LIKELIER = "default", "default's rule, RBF in time", "default's rule, the likelier drift"
NEAREST = "β grows with observations"
IN_WORDS: Mapping[str, Callable[[], bool]] = {
    "so does the row *BOCA*, which is the better one here": lambda: (
        int(pairs("mf-synthetic", "one at a time", "boca", "boca-gap", "8").partition("–")[0]) > 20
    ),
    "at cost 1, where it ends, KG and EI have made a single training": lambda: all(
        row["evaluations"] == 1
        for method in ("kg", "log-ei")
        for row in runs("mf-sizes", "training size and epochs", method).values()
    ),
    "R-GP-UCB is better here than in the paper, at every ε": lambda: all(
        fmean(row["regret"] for row in by_method("online-synthetic", f"ε = {epsilon}", "R-GP-UCB")) < paper
        for epsilon, paper in (("0.003", 0.352), ("0.005", 0.371), ("0.01", 0.425), ("0.03", 0.516), ("0.05", 0.581))
    ),
    "With it Ber(0.2) is as in the paper, but Ber(0.5) at ε = 0.05 and κ = 0.9 at ε = 0.005 are not": lambda: (
        nearest_reading() == NEAREST
        and is_near(NEAREST, "Ber(0.2)", 0.005, 0.275)
        and is_near(NEAREST, "Ber(0.2)", 0.05, 0.694)
        and not is_near(NEAREST, "Ber(0.5)", 0.05, 0.480)
        and not is_near(NEAREST, "CE κ=0.9", 0.005, 0.202)
    ),
    "no other reading explains those two together": lambda: not any(map(explains_both, table_a2.READINGS)),
    "asks too seldom for κ = 0.9, and so does a time that counts observations": lambda: all(
        asks(reading, epsilon) < paper / 4.0
        for reading in ("silent rounds freeze mean and deviation", "time counts observations")
        for epsilon, paper in ((0.005, 101.0), (0.05, 291.0))
    ),
    "the published rule asks as often as the paper says on the Gaussian arms": lambda: (
        abs(regrets(RBF, "gaussian")[2] / 53.0 - 1.0) < 0.05
    ),
    "less than half as often as with exponential forgetting on the smooth ones": lambda: all(
        regrets(RBF, arm)[2] < 0.5 * regrets(PLAIN, arm)[2] for arm in ("sine", "gaussian")
    ),
    "on steps it asks less, with as much regret within error": lambda: (
        regrets(RBF, "piecewise")[2] < regrets(PLAIN, "piecewise")[2] and is_level(RBF, PLAIN, "piecewise")
    ),
    "By maximum likelihood alone it is fragile: it asks less, for at least three times the regret": lambda: all(
        regrets(LIKELIEST, arm)[2] < regrets(RBF, arm)[2] and regrets(LIKELIEST, arm)[0] >= 3.0 * regrets(RBF, arm)[0]
        for arm in ARMS
    ),
    "GP-UCB with it has less than a quarter of the regret of GP-UCB as published on the smooth arms": lambda: all(
        regrets(EXPLOITING, arm)[0] < 0.25 * regrets(GP_UCB, arm)[0] for arm in ("sine", "gaussian")
    ),
    "an RBF halves the measurements on sine for somewhat more regret": lambda: (
        0.45 < regrets(OWN_RBF, "sine")[2] / regrets(OWN, "sine")[2] < 0.55
        and 1.1 < regrets(OWN_RBF, "sine")[0] / regrets(OWN, "sine")[0] < 1.5
    ),
    "is level on the Gaussian arms and a little worse on steps": lambda: (
        is_level(OWN_RBF, OWN, "gaussian")
        and 1.0 < regrets(OWN_RBF, "piecewise")[0] / regrets(OWN, "piecewise")[0] < 1.25
    ),
    "choosing the likelier of both drifts at each fit is hardly different": lambda: all(
        is_level(OWN_RBF, LIKELIER, arm) for arm in ARMS
    ),
    "at equal measurements it is not better beyond error on any set of sensors": lambda: (
        not any(is_better(model, world) for model in ("smooth", "likelier") for world in SENSORS)
    ),
    "there the published method is clearly ahead of PBT": lambda: all(
        lead >= 0 for lead in leads("PBT", "PB2.paper()", among="").values()
    ),
    "our default ahead of or level with the published method but on the toy": lambda: all(
        (lead < 0) if name.startswith("toy") else lead >= -2
        for name, lead in leads("PB2.paper()", "PB2", among="").items()
    ),
    "on several of our tasks it has a better median than PBT": lambda: (
        (
            sum(
                medians("population-real", "Clone", name) < medians("population-real", "PBT", name)
                for name in ("digits, B = 16", "pendulum, B = 8", "pendulum, B = 16")
            )
            + (
                medians("population-cifar", "clone", "cifar-10-half")
                < medians("population-cifar", "pbt", "cifar-10-half")
            )
        )
        >= 3
    ),
    "`LaMBO()` is fourth of six": lambda: (
        sorted(
            ("prefix-ei", "staged-ei-cooled", "eeipu", "lambo", "staged-ei", "staged-random"),
            key=lambda method: float("0" + mean_regret("pipeline-synthetic", "shifted", method, "20", "shifted")),
        ).index("lambo")
        == 3
    ),
}


@pytest.mark.parametrize("sentence", IN_WORDS)
def test_what_the_text_says_in_words_is_recorded(sentence: str) -> None:
    text = " ".join(TEMPLATE.read_text(encoding="utf-8").split())
    assert sentence in text
    assert IN_WORDS[sentence]()


def test_the_page_on_pipelines_has_the_same_of_the_papers_figure() -> None:
    page = (PAGE.parent / "systems" / "pipeline.md").read_text(encoding="utf-8").replace("**", "")
    for method, label in PIPELINE.items():
        cells = mean_regret(*CENTRED, method, "20", *CUTS).replace(" / ", " | ")
        assert f"| {label} | {cells} |" in page
    ei, cooled, prefix = (
        pairs(*CENTRED, "lambo", other, "20", "[6,2]") for other in ("staged-ei", "staged-ei-cooled", "prefix-ei")
    )
    won, lost = map(int, ei.split("–"))
    assert f"beats cost-blind EI in {won} of {won + lost} pairs, and is level with cooled EI ({cooled})" in page
    assert f"`PrefixEI` ({prefix})" in page
    assert f"({pairs(*CENTRED, 'lambo-paper', 'staged-ei', '20', '[6,2]')}): of 20 full evaluations" in page
