"""SIGKILL while 32 coroutines are in flight: every acknowledged report is there, and the study goes on."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from async_study import STEPS, TRIALS, WORKERS

import farthing as ft

PROGRAM = Path(__file__).with_name("async_study.py")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 8))])
def test_after_kills_with_32_in_flight_nothing_acknowledged_is_lost(seed: int, tmp_path: Path) -> None:
    rng, acknowledged = random.Random(seed), tmp_path / "acknowledged"
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    acknowledged.touch()
    kills, most_in_flight = 0, 0
    while "finished" not in acknowledged.read_text():
        program = subprocess.Popen([sys.executable, str(PROGRAM), storage, str(acknowledged)], start_new_session=True)
        seen = len(acknowledged.read_text().splitlines()) + rng.randint(20, 90)
        while program.poll() is None and (kills == 4 or len(acknowledged.read_text().splitlines()) < seen):
            time.sleep(0.005)
        if program.poll() is None:
            os.kill(program.pid, signal.SIGKILL)
            kills += 1
        assert program.wait() in (0, -signal.SIGKILL)
        with closing(ft.Study.load("killed", storage)) as study:
            most_in_flight = max(most_in_flight, len(study.history.in_flight))
            _check(study, acknowledged)
    assert kills == 4
    assert most_in_flight >= WORKERS / 2, "they were killed while many ran"
    with closing(ft.Study.load("killed", storage)) as study:
        done = [trial for trial in study.trials if trial.state is ft.State.DONE]
        assert len(done) == TRIALS
        assert study.ledger.total >= 0.25 * STEPS * TRIALS


def _check(study: ft.Study, acknowledged: Path) -> None:
    """Every line is a report that is stored, of its attempt, with its value and the cost up to it."""
    stored = {
        (trial.number, point.attempt, point.step): point.value for trial in study.trials for point in trial.measurements
    }
    lines = [line.split() for line in acknowledged.read_text().splitlines() if line != "finished"]
    for number, attempt, step, value in lines:
        assert stored[int(number), int(attempt), int(step)] == float(value)
    reports = len({tuple(line[:3]) for line in lines})
    assert study.ledger.total >= 0.25 * reports - 1e-9
