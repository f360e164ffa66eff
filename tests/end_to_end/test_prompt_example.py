"""The prompt that is tuned for five dollars: the example ends within its budget, whatever its seed."""

import re
import sys
from pathlib import Path
from subprocess import run

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "5_prompt.py"


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 20))])
def test_five_dollars_are_not_exceeded(seed: int, tmp_path: Path) -> None:
    ended = run(
        [sys.executable, str(EXAMPLE), "--seed", str(seed)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = re.search(r"^spent +total +([\d.]+) dollars", ended.stdout, re.MULTILINE)
    assert found, ended.stdout
    assert 4.0 <= float(found[1]) <= 5.0, "most of it is used, and no more"
    low, high = re.search(r"By \d+ questions (\d+)% to (\d+)% of the answers are wrong", ended.stdout).groups()  # type: ignore[union-attr]
    assert int(low) <= 20
    assert int(high) <= 35, "the plain prompt of the small model has 38 wrong of 100"
