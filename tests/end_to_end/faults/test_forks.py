"""A study on both sides of a fork, as in a DataLoader's workers or under gunicorn: each process answers for its own."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("forked_study.py")
SCENES = [
    "owner_is_the_child",
    "leases_are_renewed_in_the_child",
    "the_parent_keeps_its_own_trials",
    "a_living_child_of_a_dead_parent_keeps_its_trial",
    "a_dead_childs_trial_is_offered_at_once",
    "children_run_together",
    "forks_in_the_midst_of_transactions",
]


def play(scene: str, *storage: str) -> None:
    # From Python 3.12 on a fork beside other threads is warned of; that it works all the same is what is tested here.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(PROGRAM), scene, *storage]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("scene", SCENES)
def test_a_study_is_used_on_both_sides_of_a_fork_on_sqlite(scene: str, tmp_path: Path) -> None:
    play(scene, f"sqlite:///{tmp_path}/forked.db")


@pytest.mark.parametrize("scene", SCENES)
def test_a_study_is_used_on_both_sides_of_a_fork_on_postgresql(scene: str, postgres_url: str) -> None:
    play(scene, postgres_url)


def test_a_study_in_memory_is_used_on_both_sides_of_a_fork() -> None:
    play("forks_in_the_midst_of_work_in_memory")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_forks_in_the_midst_of_transactions(tmp_path: Path) -> None:
    for number in range(50):
        play("forks_in_the_midst_of_transactions", f"sqlite:///{tmp_path}/forked-{number}.db")
