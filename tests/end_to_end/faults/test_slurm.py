"""The script of the guide to many machines under a real SLURM, Debian's, of one node on this machine."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import farthing as ft
from farthing.trials import State

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "cluster.md"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
PATH = f"{os.environ['PATH']}:/usr/sbin"

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES
"""

STUDY = """
[study]
name = "lasting"
minimize = "error"

[budget]
trials = 1

[space]
x = {float = [0.0, 1.0]}

[strategy]
name = "Random"

[work]
python = "train.py:train"
"""

TRAIN = """
import signal


def train(trial):
    if trial.attempt == 1:
        signal.pause()  # longer than the job may last
    return trial.params["x"]
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a cluster of one node, with its three daemons."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    if missing or os.getuid() != 0:
        pytest.skip(f"needs root and Debian's slurm-wlm, which make test-long installs; absent: {missing}")
    folder = tmp_path / "slurm"
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    text = CONFIGURATION.format(folder=folder, host=socket.gethostname(), ports=free_ports(2))
    (folder / "slurm.conf").write_text(text)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    with ExitStack() as running:
        start(running, ["munged", "--force", "--foreground", f"--socket={folder}/munge.socket", *files], environment)
        start(running, ["slurmctld", "-D"], environment)
        start(running, ["slurmd", "-D", "-N", "node"], environment)
        yield environment


def start(running: ExitStack, command: list[str], environment: dict[str, str]) -> None:
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    running.callback(daemon.wait)
    running.callback(daemon.kill)


def free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def script_of_the_guide() -> str:
    found = re.search(r'```bash title="workers.sh"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def submit(folder: Path, environment: dict[str, str]) -> int:
    """One worker of the array, on a node without a GPU, for three minutes; its exit code."""
    fewer = ["--array=1", "--gres=none", "--time=3", "--wait"]
    return subprocess.run(["sbatch", *fewer, "workers.sh"], cwd=folder, env=environment).returncode


@pytest.mark.long
def test_a_worker_whose_time_is_nearly_over_gives_its_trial_back(tmp_path: Path, slurm: dict[str, str]) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "workers.sh").write_text(script_of_the_guide())
    (tmp_path / "logs").mkdir()
    (tmp_path / ".venv").symlink_to(sys.prefix)
    environment = {**slurm, "FARTHING_STORAGE": "study.db"}
    said = submit(tmp_path, environment)
    log = next((tmp_path / "logs").glob("*.log")).read_text()
    assert said == 143, log
    shown = subprocess.run(
        ["scontrol", "show", "job", "1"], env=environment, capture_output=True, text=True, check=True
    )
    assert re.findall(r"JobState=(\w+)", shown.stdout) == ["FAILED"], "by the signal, and not at the end of its time"
    with ft.Study.load("lasting", tmp_path / "study.db") as study:
        assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.PENDING, 2)]
    assert submit(tmp_path, environment) == 0
    with ft.Study.load("lasting", tmp_path / "study.db") as study:
        assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.DONE, 2)]
