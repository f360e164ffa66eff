"""A study stored with a baseline that left the package is read by it alone; who continues it is told where it went."""

import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import farthing as ft
from benchmarks.baselines.bandits import EXP3S, ArmBandit, EpsilonGreedy, GPBandit

DATA = Path(__file__).parents[1] / "data"
READ = """
import farthing as ft
study = ft.Study.load({name!r}, {storage!r})
print(len(study.trials), study.best.params is not None, len(study.export(format="csv").splitlines()))
"""
CONTINUE = """
import farthing as ft
ft.Study.load({name!r}, {storage!r}).ask(count=1)
"""


def by_the_package_alone(program: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """In a folder from which the repository's `benchmarks` cannot be imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["boca", "freeze-thaw", "staged", "eeipu"])
def test_it_opens_shows_and_exports_and_continuing_says_where_it_went(name: str, tmp_path: Path) -> None:
    shutil.copy(DATA / "stored_studies.db", tmp_path / "stored.db")
    storage = f"sqlite:///{tmp_path}/stored.db"
    read = by_the_package_alone([sys.executable, "-c", READ.format(name=name, storage=storage)], tmp_path)
    assert read.stdout.split()[:2] == ["14", "True"], read.stderr
    shown = by_the_package_alone([sys.executable, "-m", "farthing", "show", name, "--storage", storage], tmp_path)
    assert shown.returncode == 0, shown.stderr
    asked = by_the_package_alone([sys.executable, "-c", CONTINUE.format(name=name, storage=storage)], tmp_path)
    assert "benchmarks/baselines in Farthing's repository" in asked.stderr
    assert "InvalidArgument" in asked.stderr


READ_ONLINE = """
import farthing as ft
study = ft.Study.load("run", {storage!r})
print(len(study.trials), len(study.trials[0].measurements), len(study.export(format="csv").splitlines()))
"""
CONTINUE_ONLINE = """
import farthing as ft
arms = ft.Space({{"arm": ft.Choice("a", "b")}})
for _ in ft.OnlineTuner(arms, rounds=9, seed=1, minimize="loss", storage={storage!r}, name="run", overhead=None):
    pass
"""


@pytest.mark.parametrize("bandit", [GPBandit(), EpsilonGreedy(), EXP3S()])
def test_an_online_run_with_a_bandit_does_too(bandit: ft.CEGPUCB | ArmBandit, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/stored.db"
    space = ft.Space({"arm": ft.Choice("a", "b")})
    settings = {"strategy": bandit, "minimize": "loss", "storage": storage, "name": "run", "overhead": None}
    for decision in islice(ft.OnlineTuner(space, rounds=9, seed=1, **settings), 4):
        decision.observe(0.5)
    read = by_the_package_alone([sys.executable, "-c", READ_ONLINE.format(storage=storage)], tmp_path)
    assert read.stdout.split() == ["1", "4", "2"], read.stderr
    shown = by_the_package_alone([sys.executable, "-m", "farthing", "show", "run", "--storage", storage], tmp_path)
    assert shown.returncode == 0, shown.stderr
    continued = by_the_package_alone([sys.executable, "-c", CONTINUE_ONLINE.format(storage=storage)], tmp_path)
    assert "benchmarks/baselines in Farthing's repository" in continued.stderr
