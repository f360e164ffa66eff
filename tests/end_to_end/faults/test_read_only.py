"""What may not be written can still be read, all of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys
from pathlib import Path
import farthing as ft
from farthing.errors import StorageError

path, same = map(Path, sys.argv[1:])

def read(path):
    study = ft.Study.load("study", path)
    return [len(study.trials), study.best.value, study._storage.check(), len(study._storage.list_studies())]

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


@pytest.mark.parametrize("end", ["closed", "killed", "killed, without its index"])
def test_a_study_on_a_read_only_medium_is_read(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "medium"
    folder.mkdir()
    for parent in tmp_path.parents[:3]:
        if parent.stat().st_uid == tmp_path.stat().st_uid and parent != Path("/tmp"):
            parent.chmod(0o755)
    tmp_path.chmod(0o755)
    subprocess.run([sys.executable, "-c", MAKE, str(folder / "made.db"), end.split(",")[0]], check=True)
    path = folder / "study.db"
    for suffix in ("", "-wal") if "without" in end else ("", "-wal", "-shm"):
        if (made := folder / f"made.db{suffix}").exists():
            shutil.copy(made, f"{path}{suffix}")
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(folder / "made.db")], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    before, after, refusal = json.loads(finished.stdout)
    assert before == after == [3, before[1], [], 1]
    assert "A storage must be writable" in refusal
