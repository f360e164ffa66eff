"""SIGKILL at random moments to a program that tunes online: its next start goes on as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killed_online import STRATEGIES, train, tuner_in
from test_kills import wait_until

import farthing as ft
from farthing.storage import MemoryStorage, open_storage
from farthing.trials import Params
from farthing.trials.measurement import played_rounds

PROGRAM = Path(__file__).with_name("killed_online.py")


class Program:
    """One killed program: its database and what was acknowledged to it."""

    def __init__(self, strategy: str, *, seed: int, rounds: int, folder: Path) -> None:
        self.strategy, self.seed, self.rounds = strategy, seed, rounds
        self.storage = f"sqlite:///{folder}/{strategy}-{seed}.db"
        self.acknowledged = folder / f"{strategy}-{seed}.txt"
        self.acknowledged.touch()
        self.errors = folder / "errors"

    def start(self) -> subprocess.Popen[bytes]:
        arguments = [self.storage, self.strategy, str(self.seed), str(self.rounds), str(self.acknowledged)]
        with open(self.errors, "ab") as errors:
            return subprocess.Popen([sys.executable, str(PROGRAM), *arguments], stderr=errors)

    def lines(self) -> list[str]:
        return self.acknowledged.read_text().splitlines()

    @property
    def is_finished(self) -> bool:
        return "finished" in self.lines()


def kill_once(program: Program, rng: random.Random) -> None:
    """Lets it start and observe some more, then kills it."""
    running = program.start()
    seen = len(program.lines()) + rng.randint(1, 12)
    wait_until(lambda: len(program.lines()) >= seen or running.poll() is not None)
    time.sleep(rng.random() * 0.01)
    running.kill()
    assert running.wait() in (0, -signal.SIGKILL), program.errors.read_text()


def check(program: Program) -> None:
    """A program that was killed after its last round, but before it could say so, has played a second run."""
    storage = open_storage(program.storage)
    assert storage.check() == []
    unbroken = unbroken_rounds(program)
    for trial in storage.history("online").trials:
        rounds = played_rounds(trial)
        assert trial.state is ft.State.DONE
        assert [point.step for point in rounds] == list(range(1, program.rounds + 1))
        assert [(point.params, point.value) for point in rounds] == unbroken
    for line in program.lines():
        word, *rest = line.split()
        assert word != "observed" or unbroken[int(rest[0]) - 1][1] == float(rest[1]), f"lost: {line}"
    storage.close()


def unbroken_rounds(program: Program) -> list[tuple[Params, float | None]]:
    storage = MemoryStorage()
    train(tuner_in(storage, program.strategy, program.seed, rounds=program.rounds), os.devnull)
    (trial,) = storage.history("online").trials
    return [(point.params or {}, point.value) for point in trial.measurements]


def kill_many(strategy: str, folder: Path, *, kills: int, rounds: int) -> None:
    rng = random.Random(f"{strategy} {kills}")
    done, seed = 0, 0
    while done < kills:
        program = Program(strategy, seed=seed, rounds=rounds, folder=folder)
        while done < kills and not program.is_finished:
            kill_once(program, rng)
            done += 1
        if not program.is_finished:
            assert program.start().wait() == 0, program.errors.read_text()
        check(program)
        seed += 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_killed_online_run_goes_on_as_the_unbroken_one(tmp_path: Path, strategy: str) -> None:
    kill_many(strategy, tmp_path, kills=2, rounds=25)


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_killed_many_times_goes_on_as_the_unbroken_one(tmp_path: Path, strategy: str) -> None:
    kill_many(strategy, tmp_path, kills=60, rounds=150)
