"""`docs/papers.md` is what the committed records make of its template, which has no number of ours."""

import re

import pytest

from benchmarks.evidence.papers import PAGE, PLACEHOLDER, TEMPLATE, made_page, mean_regret, pairs

ROW = re.compile(r"^\| .* \|$")
LINK_OR_CODE = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")
CONDITION = re.compile(r"cost [\d. /]+|from 0\.\d+|of 960|λ = [\d.]+")
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
OURS = {"as published": 1, "by default": 2}
"""The columns of a table that has six."""


def test_the_page_is_made_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == made_page(), "run python -m benchmarks.evidence.papers"


def rows_of_six() -> list[list[str]]:
    text = PLACEHOLDER.sub("made", TEMPLATE.read_text(encoding="utf-8")).replace(r"\|", "/")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if ROW.match(line)]
    return [row for row in cells if len(row) == 6 and not row[0].startswith(("---", "in the paper"))]


@pytest.mark.parametrize("column", OURS)
def test_no_result_of_ours_is_typed(column: str) -> None:
    """Conditions of a comparison are typed, such as the cost at which it is made; what came out is not."""
    cells = {row[0]: LINK_OR_CODE.sub("", row[OURS[column]]) for row in rows_of_six()}
    results = {name: found for name, cell in cells.items() if (found := NUMBER.findall(CONDITION.sub("", cell)))}
    assert not results


def test_each_row_has_a_verdict() -> None:
    verdicts = (
        "reproduced",
        "at a smaller scale",
        "not reproduced",
        "not run",
        "as pictures",
    )
    rows = rows_of_six()
    assert len(rows) >= 25
    assert all(row[5].startswith(verdicts) for row in rows), [row[5] for row in rows if not row[5].startswith(verdicts)]


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
