"""Leases: what this process holds is renewed, and what others have taken over is let go."""

from contextlib import closing
from pathlib import Path

from farthing.costs import FakeClock
from farthing.session.leases import Leases, is_gone, this_process
from farthing.space import Float, Space
from farthing.storage import MemoryStorage, Storage, StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Problem, Suggestion, Trial

LEASE = 60.0


def opened(storage: Storage, count: int) -> list[Trial]:
    storage.create_study(StudyRecord("study", Problem(Space({"x": Float(0, 1)}))))
    suggestions = [Suggestion({"x": 0.5})] * count
    return storage.open_trials(
        "study", suggestions, owner=this_process(), lease=LEASE, retries=3, expected_trials=0, overhead=0.0
    )


def test_a_trial_that_another_has_taken_over_is_no_longer_held() -> None:
    storage = MemoryStorage(FakeClock())
    attempts = [Attempt(trial.number, trial.attempt) for trial in opened(storage, 3)]
    leases = Leases(storage, "study", seconds=LEASE)
    for attempt in attempts:
        leases.hold(attempt)
    storage.release_trial("study", attempts[1])
    taken = storage.claim_trial("study", owner="another", lease=LEASE)
    assert taken is not None
    assert (taken.number, taken.attempt) == (1, 2)
    leases.renew()
    assert leases.held == [attempts[0], attempts[2]]
    leases.close()


def test_a_renewed_lease_outlasts_one_that_is_not() -> None:
    clock = FakeClock()
    storage = MemoryStorage(clock)
    held, other = opened(storage, 2)
    leases = Leases(storage, "study", seconds=LEASE)
    leases.hold(Attempt(held.number, held.attempt))
    lost: list[int] = []
    for _ in range(4):
        lost += storage.sweep("study")
        clock.advance(LEASE / 2)
        leases.renew()
    assert lost == [other.number]
    leases.close()


def test_a_trial_whose_owner_elsewhere_renewed_once_and_died_is_taken_back(tmp_path: Path) -> None:
    clock = FakeClock()
    with closing(SqlStorage(tmp_path / "study.db", clock=clock)) as there:
        [trial] = opened(there, 1)
        with closing(SqlStorage(tmp_path / "study.db", clock=clock)) as here:
            found = [here.sweep("study")]
            clock.advance(LEASE / 2)
            there.renew("study", [Attempt(trial.number, trial.attempt)], lease=LEASE)
            for _ in range(3):
                found.append(here.sweep("study"))
                clock.advance(LEASE / 2)
            found.append(here.sweep("study"))
    assert found == [[], [], [], [trial.number], []]


def test_this_process_is_not_gone_and_of_other_machines_nothing_is_certain() -> None:
    machine, pid, start = this_process().rsplit(":", 2)
    assert not is_gone(this_process())
    assert is_gone(f"{machine}:{pid}:{start}0"), "another process had this number before"
    assert not is_gone(f"elsewhere:{pid}:{start}0")
    assert not is_gone("ada")
