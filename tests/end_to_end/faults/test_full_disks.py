"""A disk that is full says nothing about a trial: it is given back, and the run ends with the reason."""

from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import StorageError

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full, a disk that is always full")


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_trial_whose_disk_is_full_is_given_back_and_the_run_says_why_it_ends(tmp_path: Path, executor: str) -> None:
    (tmp_path / "full").touch()

    def work(trial: ft.RunningTrial) -> float:
        trial.report(trial.params["x"])
        target = FULL if trial.number == 2 and (tmp_path / "full").exists() else trial.checkpoint_dir / "weights"
        target.write_text("weights")
        return float(trial.params["x"])

    def study() -> ft.Study:
        return ft.Study(
            ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Sobol(), storage=tmp_path / "s.db", seed=0
        )

    with study() as first, pytest.raises(StorageError, match=r"Work needs room.*No space left.*from trial 2"):
        first.run(work, budget=ft.Budget(trials=4), executor=executor, progress=False)  # type: ignore[arg-type]
    with study() as second:
        states = [(trial.state, trial.attempt) for trial in second.trials]
        assert states == [(ft.State.DONE, 1), (ft.State.DONE, 1), (ft.State.PENDING, 2)]
        (tmp_path / "full").unlink()
        second.run(work, budget=ft.Budget(trials=4), executor=executor, progress=False)  # type: ignore[arg-type]
        assert [trial.state for trial in second.trials] == [ft.State.DONE] * 4
        assert [trial.attempt for trial in second.trials] == [1, 1, 2, 1]


def test_a_log_that_finds_no_room_gives_the_trial_back_too(tmp_path: Path) -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Sobol(), folder=tmp_path)
    log = study.checkpoints.log_path(0, 1)
    log.parent.mkdir(parents=True)
    log.symlink_to(FULL)

    def work(trial: ft.RunningTrial) -> float:
        print("at work", flush=True)
        return float(trial.params["x"])

    with pytest.raises(StorageError, match="Work needs room"):
        study.run(work, budget=ft.Budget(trials=1), progress=False)
    (trial,) = study.trials
    assert (trial.state, trial.attempt) == (ft.State.PENDING, 2)
