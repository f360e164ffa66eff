"""A study stored with a baseline that left the package is read by it alone; who continues it is told where it went."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
