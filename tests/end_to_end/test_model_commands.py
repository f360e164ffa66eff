"""A study from a terminal, from its run to a model of its results."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUDY = """
[study]
name = "bowl"
minimize = "loss"
[budget]
trials = 8
[space]
x = {float = [-1.0, 1.0]}
y = {float = [-1.0, 1.0]}
[strategy]
name = "LogEI"
[work]
python = "bowl.py:bowl"
"""
WORK = "def bowl(trial):\n    return trial.params['x'] ** 2 + 0.01 * trial.params['y']\n"


def test_a_study_is_run_and_its_model_read_and_drawn(tmp_path: Path) -> None:
    (tmp_path / "bowl.toml").write_text(STUDY)
    (tmp_path / "bowl.py").write_text(WORK)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}

    def farthing(*arguments: str) -> str:
        line = [sys.executable, "-m", "farthing", *arguments]
        return subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    farthing("run", "bowl.toml", "--inline", "--quiet")
    form = json.loads(farthing("show", "--model", "--json"))
    farthing("plot", "--kind", "model")

    assert len(form["trials"]) == 8
    assert next(iter(form["importance"])) == "x"
    assert (tmp_path / "bowl.png").read_bytes().startswith(b"\x89PNG")
