"""The example of the demo on a cluster runs as its reader would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import farthing as ft

pytestmark = pytest.mark.ray

EXAMPLE = Path(__file__).parents[2] / "examples" / "on_ray.py"


def test_the_demos_script_runs_on_a_cluster(address, tmp_path):
    ended = subprocess.run(
        [sys.executable, str(EXAMPLE), "--seconds", "60", "--trials", "3"],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    study = ft.Study.load("digits", f"sqlite:///{tmp_path}/on_ray.db")
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    assert study.best.params
    study.close()
