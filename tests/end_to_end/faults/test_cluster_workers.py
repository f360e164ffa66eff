"""Many `farthing worker` processes on one PostgreSQL study, killed and terminated at random moments."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import farthing as ft

STUDY = """
[study]
name = "cluster"
minimize = "error"
seed = 11
cost_unit = "credits"
[budget]
cost = 1e6
[space]
x = {float = [0.0, 1.0]}
[strategy]
name = "Sobol"
[work]
python = "cluster_work.py:work"
"""

WORK = """
import time

def work(trial):
    time.sleep(0.2)
    trial.charge(1.0)
    with open("ended", "a") as file:
        file.write(f"{trial.number}\\n")
    return trial.params["x"]
"""


class Fleet:
    """Keeps a number of workers going, however they end."""

    def __init__(self, folder: Path, url: str, *, size: int, seed: int) -> None:
        self._command = [sys.executable, "-m", "farthing", "worker", "study.toml", "--storage", url]
        self._folder = folder
        self._random = random.Random(seed)
        self.log = (folder / "log").open("w+")
        self.workers = [self._start() for _ in range(size)]
        self.codes: list[int] = []

    def _start(self) -> subprocess.Popen:
        return subprocess.Popen(
            [*self._command, "--until-idle"], cwd=self._folder, stdout=self.log, stderr=subprocess.STDOUT
        )

    def hit_one(self, how: signal.Signals) -> None:
        place = self._random.randrange(len(self.workers))
        self.workers[place].send_signal(how)
        self.codes.append(self.workers[place].wait(120))
        self.workers[place] = self._start()

    def harass(self, *, seconds: float, between: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(self._random.uniform(0.5, 1.5) * between)
            self.hit_one(self._random.choice([signal.SIGKILL, signal.SIGTERM]))

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.log.close()


def check_fleet(
    request: pytest.FixtureRequest, folder: Path, url: str, *, size: int, seconds: float, between: float, seed: int
) -> None:
    (folder / "study.toml").write_text(STUDY)
    (folder / "cluster_work.py").write_text(WORK)
    fleet = Fleet(folder, url, size=size, seed=seed)
    try:
        study = begun(url, seconds=120)
        request.addfinalizer(study.close)
        while len(study.history.done) < 2 * size:
            assert any(worker.poll() is None for worker in fleet.workers), "all workers have ended"
            time.sleep(0.2)
        fleet.harass(seconds=seconds, between=between)
        limit = study.history.cost + 3 * size
        study.set_budget(ft.Budget(cost=limit))
        codes = [worker.wait(300) for worker in fleet.workers]
    finally:
        fleet.log.seek(0)
        text = fleet.log.read()
        fleet.end()
    assert codes == [0] * size, text[-3000:]
    assert set(fleet.codes) <= {-signal.SIGKILL, 128 + signal.SIGTERM, -signal.SIGTERM}, text[-3000:]

    trials = study.trials
    states = {trial.state for trial in trials}
    assert [trial.number for trial in trials] == list(range(len(trials))), "numbers are dense"
    assert states <= {ft.State.DONE, ft.State.PENDING}, "none is lost, fails or is left running"
    done = [trial for trial in trials if trial.state is ft.State.DONE]
    assert {trial.number for trial in done} <= set(map(int, (folder / "ended").read_text().split())), "each was run"
    assert limit <= study.history.cost <= limit + size, "overspent by no more than the trials in flight"
    assert [trial.cost for trial in done] == [1.0] * len(done), "each has one result"

    alone = ft.Study(study.space, minimize="error", strategy=ft.Sobol(), seed=11)
    alone.run(lambda trial: 0.0, budget=ft.Budget(trials=len(trials)), executor="inline")
    assert [trial.params for trial in trials] == [trial.params for trial in alone.trials], "as one coordinator suggests"


def begun(url: str, *, seconds: float) -> ft.Study:
    """The study, once a worker has made it."""
    until = time.monotonic() + seconds
    while "cluster" not in [found.record.name for found in ft.studies(url)]:
        assert time.monotonic() < until, "no worker began the study"
        time.sleep(0.2)
    return ft.Study.load("cluster", url)


def test_four_workers_lose_nothing_when_they_are_killed_and_terminated(
    request, tmp_path: Path, postgres_url: str
) -> None:
    check_fleet(request, tmp_path, postgres_url, size=4, seconds=15, between=2.0, seed=1)


@pytest.mark.long
def test_sixteen_workers_lose_nothing_in_two_minutes_of_kills(request, tmp_path: Path, postgres_url: str) -> None:
    check_fleet(request, tmp_path, postgres_url, size=16, seconds=120, between=1.0, seed=2)


@pytest.mark.long
def test_sixteen_workers_on_three_connections_lose_nothing_in_a_minute_of_kills(
    request, tmp_path: Path, pgbouncer_url: str
) -> None:
    check_fleet(request, tmp_path, pgbouncer_url, size=16, seconds=60, between=1.0, seed=3)


ALONE = """
[study]
name = "alone"
minimize = "error"
seed = 11
cost_unit = "epochs"
[budget]
trials = 12
[space]
x = {{float = [0.0, 1.0]}}
y = {{float = [0.0, 1.0]}}
[fidelities]
epochs = {{int = [1, 9], trace = true}}
[strategy]
name = "{strategy}"
[work]
python = "curve_work.py:work"
"""

CURVE_WORK = """
def work(trial):
    start = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
    for epoch in range(start + 1, int(trial.fidelity["epochs"]) + 1):
        trial.charge(1.0)
        trial.report(abs(trial.params["x"] - 0.3) + trial.params["y"] + 1 / epoch, epochs=epoch)
    (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epochs"])))
"""


@pytest.mark.parametrize("strategy", ["LogEI", "TraceKG"])
def test_one_worker_makes_the_trials_that_one_program_makes(tmp_path: Path, strategy: str) -> None:
    (tmp_path / "study.toml").write_text(ALONE.format(strategy=strategy))
    (tmp_path / "curve_work.py").write_text(CURVE_WORK)
    worker = [sys.executable, "-m", "farthing", "worker", "study.toml", "--storage", "study.db", "--until-idle"]
    ran = subprocess.run(worker, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr

    work: dict[str, Any] = {}
    exec(CURVE_WORK, work)
    with ft.Study.load("alone", tmp_path / "study.db") as study:
        here = ft.Study(study.space, minimize="error", strategy=getattr(ft, strategy)(), seed=11, cost_unit="epochs")
        here.run(work["work"], budget=ft.Budget(trials=12), executor="inline")
        found = [
            [(trial.params, trial.fidelity, trial.resume_from, trial.value) for trial in one.trials]
            for one in (study, here)
        ]
    assert len(found[0]) >= 12
    assert found[0] == found[1]
