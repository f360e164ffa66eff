"""A step of anybody's wall clock ends no lease and changes no budget."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from farthing.costs import FakeClock
from farthing.space import Float, Space
from farthing.storage import StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Measurement, Outcome, Problem, State, Suggestion
from tests.conftest import started
from tests.postgres import PostgresServer

STEPS = ["+3600", "-3600", "+1000d", "-1000d"]
LEASE = 60.0
MINUTE = 60.0
"""More than any of these programs needs by a factor of ten, and less than any step."""

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))

PROGRAM = """
import json, sys, time
from pathlib import Path
import farthing as ft
from farthing.session import session_of

database, offset, steps = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]

def step(to):
    before = time.time()
    offset.with_suffix(".new").write_text(to)
    offset.with_suffix(".new").rename(offset)
    return abs(time.time() - before)

def work(trial):
    jumped = step(steps[trial.number % len(steps)])
    assert jumped > 1000 or trial.number, jumped
    trial.report(1.0)
    watcher.sweep("study")
    step("+0")
    trial.report(0.5)
    watcher.sweep("study")
    session_of(study).records.leases.renew()

study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage=database, strategy=ft.Random())
watcher = session_of(ft.Study.load("study", database)).records.storage
stopped = study.run(work, budget=ft.Budget(trials=8, seconds=3000), executor="inline")
trials = [(trial.state, trial.attempt, trial.cost) for trial in study.trials]
print(json.dumps([str(stopped), session_of(study).records.storage.seconds_run("study"), trials]))
"""


def test_a_step_of_a_programs_clock_is_no_time(step_clock, tmp_path: Path) -> None:
    offset = step_clock.environment["FAKETIME_TIMESTAMP_FILE"]
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "study.db"), offset, *STEPS],
        env={**os.environ, **step_clock.environment},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    reason, seconds, trials = json.loads(finished.stdout)
    assert reason == "the budget is spent"
    assert 0 < seconds < MINUTE
    assert [(state, attempt) for state, attempt, _ in trials] == [("done", 1)] * 8
    assert sum(cost for _, _, cost in trials) < MINUTE


def test_a_step_of_a_servers_clock_is_no_time(step_clock) -> None:
    for server in started(PostgresServer(durable=False, environment=step_clock.environment)):
        url = server.new_database()
        owner, watcher = SqlStorage(url), SqlStorage(url)
        owner.create_study(StudyRecord("study", PROBLEM))
        run = owner.start_run("study", lease=LEASE)
        for number, step in enumerate(STEPS):
            owner.open_trials("study", [Suggestion({"x": 0.5})], owner="ada", lease=LEASE)
            watcher.sweep("study")
            before = watcher.now()
            step_clock.set(step)
            assert abs(watcher.now() - before) > MINUTE
            assert watcher.sweep("study") == []
            assert watcher.history("study").trials[number].state is State.RUNNING
            owner.record("study", Attempt(number, 1), [Measurement(0.5)], lease=LEASE)
            owner.renew("study", [Attempt(number, 1)], lease=LEASE)
            owner.touch_run("study", run)
            step_clock.set("+0")
            assert watcher.sweep("study") == []
            owner.release_trial("study", Attempt(number, 1))
            claimed = owner.claim_trial("study", owner="ada", lease=LEASE)
            assert claimed is not None
            owner.close_trial("study", Attempt(number, 2), Outcome(State.DONE, value=0.5))
        owner.touch_run("study", run, ends=True)
        assert owner.seconds_run("study") < MINUTE
        assert sum(trial.cost for trial in owner.history("study").trials) < MINUTE
        assert owner.check() == []
        owner.close()
        watcher.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_who_comes_from_another_machine_waits_one_lease(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The owner is gone for hours, but who has only just come has not seen it being silent."""
    address = str(tmp_path / "study.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    owners, ours = FakeClock(500.0), FakeClock(1_000_000_000.0)
    owner, newcomer = SqlStorage(address, clock=owners), SqlStorage(address, clock=ours)
    owner.create_study(StudyRecord("study", PROBLEM))
    owner.open_trials("study", [Suggestion({"x": 0.5})], owner="ada", lease=LEASE, retries=1)
    owners.advance(7.0)
    owner.renew("study", [Attempt(0, 1)], lease=LEASE)
    assert newcomer.sweep("study") == []
    ours.advance(LEASE - 1)
    assert newcomer.sweep("study") == []
    assert newcomer.claim_trial("study", owner="bob", lease=LEASE) is None
    ours.advance(1)
    claimed = newcomer.claim_trial("study", owner="bob", lease=LEASE)
    assert claimed is not None
    assert (claimed.attempt, claimed.costs) == (2, {"failed": 7.0})
    owner.close()
    newcomer.close()


def test_an_owner_that_renews_is_never_silent(tmp_path: Path) -> None:
    """Seen rarely, but with another renewal each time."""
    owners, ours = FakeClock(), FakeClock()
    owner, watcher = (SqlStorage(tmp_path / "study.db", clock=clock) for clock in (owners, ours))
    owner.create_study(StudyRecord("study", PROBLEM))
    owner.open_trials("study", [Suggestion({"x": 0.5})], owner="ada", lease=LEASE)
    for _ in range(5):
        assert watcher.sweep("study") == []
        ours.advance(100 * LEASE)
        owners.advance(LEASE / 3)
        owner.renew("study", [Attempt(0, 1)], lease=LEASE)
    owner.close()
    watcher.close()
