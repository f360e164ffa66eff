"""The tables of recorded trainings are what their page says."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

FOLDER = Path(__file__).parents[3] / "benchmarks" / "data"
ROWS = re.findall(
    r"^\| `(\w+)` \|.*\| (\d+) \| ([\d.]+) \| ([\d. ]+) \| ([\d.]+) \|$", (FOLDER / "README.md").read_text(), re.M
)


@pytest.mark.parametrize(("name", "rows", "factor", "correlations", "dear"), ROWS, ids=[row[0] for row in ROWS])
def test_a_table_is_what_its_page_says(name: str, rows: str, factor: str, correlations: str, dear: str) -> None:
    table = np.load(FOLDER / f"{name}.npz")
    curves, seconds = table["curves"], table["seconds"]
    assert curves.shape == (int(rows), 20)
    assert np.isfinite(curves).all()
    assert (seconds > 0).all()
    assert set(json.loads(str(table["space"]))) == set(table.files) - {"curves", "seconds", "space", "meta"}
    assert seconds.max() / seconds.min() == pytest.approx(float(factor), abs=0.05)
    found = [spearmanr(curves[:, point - 1], curves[:, -1]).statistic for point in (1, 2, 4)]
    assert found == pytest.approx([float(one) for one in correlations.split()], abs=0.005)
    best = np.argsort(curves[:, -1], kind="stable")[:20]
    assert seconds[best].mean() / seconds.mean() == pytest.approx(float(dear), abs=0.005)


def test_every_table_has_a_row_on_the_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.npz")} == {row[0] for row in ROWS}
