"""What may not be written can still be read, all of it."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys
from pathlib import Path
import farthing as ft
from farthing.session import session_of
from farthing.errors import StorageError

path, same = map(Path, sys.argv[1:])

def read(path):
    study = ft.Study.load("study", path)
    storage = session_of(study).records._storage
    return [len(study.trials), study.best.value, storage.check(), len(storage.list_studies())]

before = read(same)  # imports all there is to import, while that is allowed
for name in os.listdir(path.parent):
    os.chmod(path.parent / name, 0o444)
os.chmod(path.parent, 0o555)
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)  # nobody: to root everything is writable
after = read(path)
try:
    ft.Study.load("study", path).add({"x": 0.5}, 0.5)
except StorageError as error:
    print(json.dumps([before, after, str(error)]))
"""

MAKE = """
import sys
import farthing as ft
study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage=sys.argv[1], strategy=ft.Random())
study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=3), executor="inline")
if sys.argv[2] == "killed":
    import os
    os._exit(0)
study.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter: pytest keeps its own to itself."""
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        inner = Path(outer) / "medium"
        inner.mkdir()
        yield inner
        inner.chmod(0o755)


@pytest.mark.parametrize("end", ["closed", "killed", "killed, without its index"])
def test_a_study_on_a_read_only_medium_is_read(folder: Path, end: str) -> None:
    made, path = folder / "made.db", folder / "study.db"
    subprocess.run([sys.executable, "-c", MAKE, str(made), end.split(",")[0]], check=True)
    for suffix in ("", "-wal") if "without" in end else ("", "-wal", "-shm"):
        if Path(f"{made}{suffix}").exists():
            shutil.copy(f"{made}{suffix}", f"{path}{suffix}")
    command = [sys.executable, "-c", PROGRAM, str(path), str(made)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    before, after, refusal = json.loads(finished.stdout)
    assert before == after == [3, before[1], [], 1]
    assert "A storage must be writable" in refusal
