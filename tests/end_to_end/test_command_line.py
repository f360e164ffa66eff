"""The program as a user has it: real processes, real files, a program of its own as work."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from farthing.cli.app import farthing as program

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "examples" / "study.toml"
PNG = b"\x89PNG"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An activated virtual environment, in which `python` is the one that runs the tests."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": programs, "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}


@pytest.fixture
def farthing(tmp_path: Path, environment: dict[str, str]):
    """Runs the program in an empty folder."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "farthing", *map(str, arguments)]
        ended = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended

    return run


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command that reads, in this process, which saves the time to import everything again."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(program, ["--debug", *arguments], catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    return run


def test_the_example_runs_is_read_in_every_way_and_resumed(farthing, read, tmp_path: Path) -> None:
    ended = farthing("run", STUDY, "--trials", "3").stdout
    assert "digits ended: " in ended
    assert "warm starts" in ended, "continued runs start from their checkpoints"

    (listed,) = json.loads(read("list", "--json"))
    assert listed["name"] == "digits"
    assert listed["trials"] == {"done": 4}, "three configurations, the best of which is carried on"

    assert "error by epochs" in read("show")

    best = json.loads(read("best", "--json"))
    assert best["fidelity"] == {"epochs": 9}
    assert best["value"] < 0.2, "a linear classifier misreads about 5 % of the digits"

    rows = list(csv.DictReader(io.StringIO(read("export", "--format", "csv"))))
    assert len(rows) == 4

    read("plot", "--output", "digits.png")
    assert (tmp_path / "digits.png").read_bytes().startswith(PNG)

    resumed = json.loads(farthing("resume", "--trials", "1", "--json").stdout)
    assert resumed["ledger"]["trials"] == {"done": 5}
    assert read("check") == "digits.db is intact.\n"


def test_sigterm_gives_trials_back_and_says_how_to_go_on(tmp_path: Path, environment: dict[str, str], farthing) -> None:
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "slow"\nminimize = "error"\nworkers = 2\n[budget]\ntrials = 2\n'
        '[space]\nx = {float = [0.0, 1.0]}\n[work]\npython = "slow_work.py:work"\n'
    )
    (tmp_path / "slow_work.py").write_text(
        "import time\n"
        "from pathlib import Path\n"
        "def work(trial):\n"
        "    Path('started').touch()\n"
        "    time.sleep(3600 if trial.attempt == 1 else 0)\n"
        "    return trial.params['x']\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-m", "farthing", "run", "study.toml"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "started").exists():
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate()

    assert running.returncode == 130
    assert "Traceback" not in said
    assert "farthing resume slow" in said
    states = {trial["state"] for trial in json.loads(farthing("show", "--json").stdout)["trials"]}
    assert states == {"pending"}
    assert json.loads(farthing("resume", "--json").stdout)["ledger"]["trials"] == {"done": 2}


def demo_until(part: str, farthing, *arguments: str) -> str:
    """What the first demo that is long enough to show `part` prints: a busy machine does little in six seconds."""
    for seconds in ("6", "60", "600"):
        said = farthing("demo", *arguments, "--seconds", seconds).stdout
        if part in said:
            break
    return said


def test_the_pipeline_example_uses_outputs_again(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "4_pipeline_digits.py"
    for seconds in ("6", "60", "600"):  # a busy machine does little in six seconds
        ended = subprocess.run(
            [sys.executable, str(program), "--seconds", seconds],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        saved = re.search(r"Outputs used again saved (\d+)%", ended.stdout)
        assert saved, ended.stdout
        if saved[1] != "0":
            break
    assert saved[1] != "0", ended.stdout
    assert (tmp_path / "pipeline.png").read_bytes().startswith(PNG)


def test_the_demo_tunes_a_real_model(farthing, tmp_path: Path) -> None:
    said = demo_until("warm starts", farthing)

    for part in (
        "digits-",
        "Best error:",
        "Test accuracy:",
        "warm starts",
        "demo-output/digits-",
        "farthing show",
    ):
        assert part in said
    assert (tmp_path / "demo-output" / "digits-1.png").read_bytes().startswith(PNG)
