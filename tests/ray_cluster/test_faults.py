"""Faults at random moments on a Ray cluster: nothing acknowledged is lost, nothing is stuck, no process is left."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from killed_study import Train
from ray_nodes import KINDS, Nodes
from ray_study import MARK, study_in
from test_kills import lost_of

import farthing as ft
from farthing.storage import open_storage
from tests.postgres import PostgresServer

pytestmark = pytest.mark.ray

PROGRAM = Path(__file__).with_name("ray_study.py")
FAULTS = PROGRAM.parents[1] / "end_to_end" / "faults"
LIMIT = 300.0
"""Seconds after which a test stops waiting: ten times what is needed."""


class Target:
    """One study: its program, which is the coordinator, its database, and what was acknowledged to it."""

    def __init__(
        self, storage: str, address: str, folder: Path, *, strategy: str, workers: int, trials: int, lease: float = 60.0
    ) -> None:
        self.storage, self.strategy, self.trials = storage, strategy, trials
        self.folder = folder
        self.mark = uuid4().hex
        self.acknowledged = folder / "acknowledged"
        self.acknowledged.touch()
        self._told = {
            "storage": storage,
            "strategy": strategy,
            "folder": str(folder),
            "lease": lease,
            "trials": trials,
            "workers": workers,
            "address": address,
            "mark": self.mark,
        }

    def start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [str(FAULTS), str(PROGRAM.parent), os.environ.get("PYTHONPATH")]))
        with open(self.folder / "errors", "ab") as errors:
            return subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(self._told)],
                stderr=errors,
                stdout=errors,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path},
            )

    def lines(self) -> list[str]:
        return self.acknowledged.read_text().splitlines()

    @property
    def is_finished(self) -> bool:
        return "finished" in self.lines()

    def workers(self) -> list[int]:
        return [pid for pid, command in self._processes() if "farthing.execution.worker" in command]

    def places(self) -> list[int]:
        return [pid for pid, command in self._processes() if command.startswith("ray::")]

    def everything(self) -> list[str]:
        return [f"{pid} {command}" for pid, command in self._processes()]

    def _processes(self) -> list[tuple[int, str]]:
        """All processes on the nodes that carry the study's mark in their environment.

        One that Ray is still starting has nothing of ours: if its node is killed then, it ends after three minutes.
        """
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    variables, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if f"{MARK}={self.mark}".encode() in variables and b"default_worker.py" not in command:
                    found.append((int(entry.name), command.replace(b"\0", b" ").decode(errors="replace")))
        return found


def wait_until(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until, f"in vain: {what}"
        time.sleep(0.02)


class Faults:
    """Makes things go wrong for one study, each kind once in turn, in random order and at random moments."""

    def __init__(self, target: Target, nodes: Nodes, server: PostgresServer, rng: random.Random) -> None:
        self.target, self.nodes, self.server, self.rng = target, nodes, server, rng
        self.made: list[str] = []
        self.program = target.start()

    def run(self, count: int) -> None:
        kinds: list[Callable[[], None]] = []
        while len(self.made) < count and not self.target.is_finished:
            if not kinds:
                kinds = [self.worker, self.place, self.node, self.coordinator, self.database]
                self.rng.shuffle(kinds)
            self._let_it_get_on()
            if not self.target.is_finished:
                fault = kinds.pop()
                fault()
                self.made.append(fault.__name__)
        wait_until(lambda: self.program.poll() is not None, "the end of the program")
        assert self.program.returncode == 0, (self.target.folder / "errors").read_text()

    def _let_it_get_on(self) -> None:
        seen = len(self.target.lines()) + self.rng.randint(3, 15)
        wait_until(lambda: len(self.target.lines()) >= seen or self.program.poll() is not None, "progress")
        time.sleep(self.rng.random() * 0.1)

    def worker(self) -> None:
        self._kill_one_of(self.target.workers())

    def place(self) -> None:
        self._kill_one_of(self.target.places())

    def node(self) -> None:
        self.nodes.kill(self.rng.randrange(len(KINDS)))
        self.nodes.repair()

    def coordinator(self) -> None:
        left = self.target.everything()
        self.program.kill()
        self.program.wait()
        wait_until(lambda: not set(self.target.everything()) & set(left), "the end of a dead coordinator's workers")
        self.program = self.target.start()

    def database(self) -> None:
        self.server.crash()
        time.sleep(self.rng.random())
        self.server.resume()

    def _kill_one_of(self, pids: list[int]) -> None:
        if pids:
            os.kill(self.rng.choice(pids), signal.SIGKILL)


def check(target: Target) -> None:
    storage = open_storage(target.storage)
    assert storage.check() == []
    study = ft.Study.load("study", storage)
    trials = study.trials
    assert [trial for trial in trials if not trial.is_finished] == []
    assert lost_of(target, trials) == []
    assert_same_as_unbroken(target, trials)
    study.close()
    storage.close()
    wait_until(lambda: not target.everything(), f"the end of {target.everything()}")


def assert_same_as_unbroken(target: Target, trials: list[ft.Trial]) -> None:
    unbroken = study_in(None, target.strategy)
    unbroken.run(Train(), budget=ft.Budget(trials=target.trials), executor="inline")
    found = [(trial.params, trial.fidelity, trial.resume_from, trial.value) for trial in trials]
    assert found == [(trial.params, trial.fidelity, trial.resume_from, trial.value) for trial in unbroken.trials]


def make_faults(
    nodes: Nodes, server: PostgresServer, folder: Path, *, strategy: str, workers: int, trials: int, faults: int
) -> None:
    rng = random.Random(f"{strategy} {workers} {faults}")
    done = 0
    while done < faults:
        place = folder / str(done)
        place.mkdir(parents=True)
        nodes.repair()
        target = Target(server.new_schema(), nodes.address, place, strategy=strategy, workers=workers, trials=trials)
        made = Faults(target, nodes, server, rng)
        made.run(faults - done)
        check(target)
        done += len(made.made)


@pytest.fixture
def server():
    """A server of its own, as it is crashed; durable, as what was committed must survive that."""
    with PostgresServer() as started:
        yield started


@pytest.mark.parametrize(("strategy", "workers", "trials", "faults"), [("Sobol", 4, 40, 5), ("TraceKG", 1, 10, 3)])
def test_nothing_is_lost_when_parts_of_a_cluster_die(nodes, server, tmp_path, strategy, workers, trials, faults):
    make_faults(nodes, server, tmp_path, strategy=strategy, workers=workers, trials=trials, faults=faults)


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize(("strategy", "workers", "trials", "faults"), [("Sobol", 4, 60, 30), ("TraceKG", 1, 12, 10)])
def test_nothing_is_lost_when_parts_of_a_cluster_die_many_times(
    nodes, server, tmp_path, strategy, workers, trials, faults
):
    make_faults(nodes, server, tmp_path, strategy=strategy, workers=workers, trials=trials, faults=faults)


def test_a_coordinator_that_was_taken_for_dead_is_refused(nodes, server, tmp_path):
    """It stands still for longer than its lease, and another finishes its trials: what its workers then say is late."""
    nodes.repair()
    target = Target(server.new_schema(), nodes.address, tmp_path, strategy="Sobol", workers=1, trials=6, lease=2.0)
    first = target.start()
    wait_until(lambda: any(line.startswith("report") for line in target.lines()), "a first report")
    os.kill(first.pid, signal.SIGSTOP)
    second = target.start()
    wait_until(lambda: target.is_finished, "the second coordinator")
    second.wait()
    os.kill(first.pid, signal.SIGCONT)
    first.wait()
    assert (first.returncode, second.returncode) == (0, 0), (tmp_path / "errors").read_text()
    check(target)
