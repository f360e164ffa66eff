"""SIGKILL at random moments, to workers and coordinator: nothing acknowledged is lost, nothing is left running."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from killed_study import BUDGET, Train, study_in

import farthing as ft
from farthing.storage import open_storage

PROGRAM = Path(__file__).with_name("killed_study.py")
ORPHANED = 300.0
"""Seconds after the death of its program in which a worker has ended, however busy the machine."""


class Target:
    """One killed study: its program, its database and what was acknowledged to it."""

    def __init__(
        self, storage: str, strategy: str, *, seed: int, workers: int, folder: Path, program: Path = PROGRAM
    ) -> None:
        self.storage, self.strategy, self.seed, self.workers = storage, strategy, seed, workers
        self.program = program
        self.folder = folder
        self.folder.mkdir(parents=True)
        self.acknowledged = folder / "acknowledged"
        self.acknowledged.touch()
        self.orphans: list[int] = []

    def start(self) -> subprocess.Popen[bytes]:
        arguments = [self.storage, self.strategy, str(self.seed), str(self.workers), str(self.folder)]
        with open(self.folder / "errors", "ab") as errors:
            return subprocess.Popen(
                [sys.executable, str(self.program), *arguments], stderr=errors, start_new_session=True
            )

    def lines(self) -> list[str]:
        return self.acknowledged.read_text().splitlines()

    @property
    def is_finished(self) -> bool:
        return "finished" in self.lines()


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_until(condition: Callable[[], bool], *, seconds: float = math.inf) -> None:
    """Returns when the condition holds, or after so long."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)


def kill_once(target: Target, program: subprocess.Popen[bytes], rng: random.Random) -> bool:
    """Lets the program get some way, then kills a worker or the program itself; False when it had ended by then."""
    seen = len(target.lines()) + rng.randint(1, 12)
    wait_until(lambda: len(target.lines()) >= seen or program.poll() is not None)
    time.sleep(rng.random() * 0.02)
    workers = children_of(program.pid)
    victim = rng.choice(workers) if workers and rng.random() < 0.5 else program.pid
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return False
    if victim == program.pid:
        program.wait()
        wait_until(lambda: not any(_is_alive(worker) for worker in workers), seconds=ORPHANED)
        target.orphans += [worker for worker in workers if _is_alive(worker)]
    return True


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_repeatedly(target: Target, rng: random.Random, *, most: int) -> int:
    """Kills until the study has finished, or `most` times; then lets it finish. Returns the number of kills."""
    kills = 0
    while not target.is_finished:
        program = target.start()
        while kills < most and program.poll() is None:
            kills += kill_once(target, program, rng)
        program.wait()
        assert program.returncode in (0, -signal.SIGKILL), (target.folder / "errors").read_text()
    return kills


@dataclass(frozen=True)
class Harm:
    """What kills have done to a study."""

    lost: list[str]
    """Lines that were acknowledged and are not stored."""
    stuck: list[int]
    orphans: list[int]
    wrong: list[str]


def harm_to(target: Target) -> Harm:
    with closing(open_storage(target.storage)) as storage, closing(ft.Study.load("study", storage)) as study:
        trials = study.trials
        same = [] if is_as_unbroken(target, trials) else ["the study is not the unbroken one"]
        return Harm(
            lost=lost_of(target, trials),
            stuck=[trial.number for trial in trials if not trial.is_finished],
            orphans=target.orphans,
            wrong=[*storage.check(), *same],
        )


def lost_of(target: Target, trials: list[ft.Trial]) -> list[str]:
    kept = {
        (trial.number, point.fidelity["epochs"], point.value)
        for trial in trials
        for point in trial.measurements
        if point.value is not None
    }
    lost = []
    for line in target.lines():
        word, *rest = line.split()
        if word == "report" and (int(rest[0]), int(rest[1]), float(rest[2])) not in kept:
            lost.append(line)
        if word == "end" and rest[1] == "done":
            trial = trials[int(rest[0])]
            lost += [] if trial.state is ft.State.DONE and repr(trial.value) == rest[2] else [line]
    return lost


def is_as_unbroken(target: Target, trials: list[ft.Trial]) -> bool:
    unbroken = study_in(None, target.strategy, target.seed)
    unbroken.run(Train(), budget=BUDGET, executor="inline")
    found = [(trial.params, trial.fidelity, trial.resume_from, trial.value) for trial in trials]
    return found == [(trial.params, trial.fidelity, trial.resume_from, trial.value) for trial in unbroken.trials]


SETUPS = [("ASHA", 1), ("LogEI", 1), ("Sobol", 2), ("TraceKG", 1)]


def kill_many(storages: Iterator[str], folder: Path, *, kills: int, strategy: str, workers: int) -> None:
    rng = random.Random(f"{strategy} {kills}")
    done, seed = 0, 0
    while done < kills:
        target = Target(next(storages), strategy, seed=seed, workers=workers, folder=folder / str(seed))
        done += kill_repeatedly(target, rng, most=kills - done)
        assert harm_to(target) == Harm([], [], [], [])
        seed += 1


def three_programs(storages: Iterator[str], folder: Path, *, kills: int) -> None:
    """Three programs share a study and its budget; any of them is killed and started again."""
    rng = random.Random(f"three {kills}")
    done, seed = 0, 0
    while done < kills:
        storage = next(storages)
        targets = [
            Target(storage, "Sobol", seed=seed, workers=1, folder=folder / f"{seed}-{place}") for place in range(3)
        ]
        done += kill_any(targets, rng, most=kills - done)
        check_shared(targets)
        seed += 1


def kill_any(targets: list[Target], rng: random.Random, *, most: int) -> int:
    """Kills until all have finished, or `most` times; then lets them finish. Returns the number of kills."""
    kills, programs = 0, {target: target.start() for target in targets}
    while unfinished := [target for target in targets if not target.is_finished]:
        target = rng.choice(unfinished)
        if kills < most:
            kills += kill_once(target, programs[target], rng)
        if kills >= most or programs[target].poll() is not None:
            programs[target].wait()
            assert programs[target].returncode in (0, -signal.SIGKILL), (target.folder / "errors").read_text()
            programs[target] = programs[target] if target.is_finished else target.start()
    for program in programs.values():
        program.wait()
    return kills


def check_shared(targets: list[Target]) -> None:
    storage = open_storage(targets[0].storage)
    assert storage.check() == []
    study = ft.Study.load("study", storage)
    assert [trial.state for trial in study.trials] == [ft.State.DONE] * int(BUDGET.trials or 0)
    for target in targets:
        assert lost_of(target, study.trials) == []
    study.close()
    storage.close()


def sqlite_files(folder: Path) -> Iterator[str]:
    for number in range(10_000):
        yield f"sqlite:///{folder}/study-{number}.db"


@pytest.mark.parametrize(("strategy", "workers"), SETUPS)
def test_nothing_is_lost_under_kills_on_sqlite(tmp_path: Path, strategy: str, workers: int) -> None:
    kill_many(sqlite_files(tmp_path), tmp_path, kills=3, strategy=strategy, workers=workers)


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("strategy", ["LogEI", "TraceKG"])
def test_thirty_kills_leave_the_study_that_a_model_makes_unbroken(tmp_path: Path, strategy: str) -> None:
    kill_many(sqlite_files(tmp_path), tmp_path, kills=30, strategy=strategy, workers=1)


def test_nothing_is_lost_when_programs_that_share_a_study_are_killed(tmp_path: Path) -> None:
    three_programs(sqlite_files(tmp_path), tmp_path, kills=4)


def test_nothing_is_lost_when_programs_that_share_a_study_on_postgresql_are_killed(
    tmp_path: Path, postgres_urls: Iterator[str]
) -> None:
    three_programs(postgres_urls, tmp_path, kills=4)


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_nothing_is_lost_when_programs_that_share_a_study_are_killed_many_times(
    tmp_path: Path, postgres_urls: Iterator[str]
) -> None:
    three_programs(sqlite_files(tmp_path), tmp_path / "sqlite", kills=60)
    three_programs(postgres_urls, tmp_path / "postgresql", kills=30)


def test_nothing_is_lost_under_kills_on_postgresql(tmp_path: Path, postgres_urls: Iterator[str]) -> None:
    kill_many(postgres_urls, tmp_path, kills=4, strategy="ASHA", workers=1)


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_nothing_is_lost_under_many_kills_on_postgresql(tmp_path: Path, postgres_urls: Iterator[str]) -> None:
    kill_many(postgres_urls, tmp_path, kills=50, strategy="ASHA", workers=1)


def test_nothing_is_lost_when_programs_that_share_a_pool_of_connections_are_killed(
    tmp_path: Path, pgbouncer_urls: Iterator[str]
) -> None:
    three_programs(pgbouncer_urls, tmp_path, kills=4)


def test_nothing_is_lost_under_kills_by_way_of_a_pool(tmp_path: Path, pgbouncer_urls: Iterator[str]) -> None:
    kill_many(pgbouncer_urls, tmp_path, kills=4, strategy="ASHA", workers=1)


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_nothing_is_lost_under_many_kills_by_way_of_a_pool(tmp_path: Path, pgbouncer_urls: Iterator[str]) -> None:
    kill_many(pgbouncer_urls, tmp_path / "one", kills=50, strategy="ASHA", workers=1)
    three_programs(pgbouncer_urls, tmp_path / "three", kills=30)
