"""The work of a coordinator for each trial does not grow with the number of workers, counted in calls, not in time."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import farthing as ft
from farthing.extending import Strategy
from farthing.session import session_of
from farthing.session.upkeep import KEPT_FOR_EACH_TOO_MANY
from farthing.storage import MemoryStorage
from farthing.storage.storage import Changes
from farthing.testing import SimulatedExecutor

TRIALS = 120
PLAIN = ft.Space({"x": ft.Float(0.0, 1.0)})
CURVES = ft.Space({"x": ft.Float(0.0, 1.0)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})


class CountingStorage(MemoryStorage):
    """A storage that counts the trials it tells its readers."""

    told = 0

    def history(self, study: str, *, since: int = 0, running: bool = True) -> Changes:
        changes = super().history(study, since=since, running=running)
        self.told += len(changes.trials)
        return changes


def run(workers: int, *, space: ft.Space, strategy: Strategy, trials: int = TRIALS) -> tuple[float, float]:
    """For each trial of a study of tabulated work: calls of functions, and trials read from the storage."""
    executor = SimulatedExecutor(workers=workers, thinking=0.0)
    storage = CountingStorage(clock=executor.clock)
    study = ft.Study(space, minimize="loss", strategy=strategy, **{**executor.settings, "storage": storage})
    calls = counted(
        lambda: study.run(work_on(executor), executor=executor, budget=ft.Budget(trials=trials), progress=False)
    )
    return calls / len(study.trials), storage.told / len(study.trials)


def counted(steps: Callable[[], object]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        steps()
    finally:
        sys.setprofile(before)
    return calls


def work_on(executor: SimulatedExecutor) -> Callable[[ft.RunningTrial], float | None]:
    def work(trial: ft.RunningTrial) -> float | None:
        executor.spend(50.0 + 10.0 * trial.params["x"])
        if not trial.fidelity:
            return float(trial.params["x"])
        trial.report(trial.params["x"], epochs=int(trial.fidelity["epochs"]))
        trial.checkpoint_dir.joinpath("model").write_text("weights")
        return None

    return work


@pytest.mark.parametrize(("space", "strategy"), [(PLAIN, ft.Sobol()), (CURVES, ft.ASHA())])
def test_a_trial_takes_as_many_steps_with_many_workers_as_with_few(space: ft.Space, strategy: Strategy) -> None:
    run(1, space=space, strategy=strategy, trials=2)  # imports what is needed
    few, _ = run(4, space=space, strategy=strategy)
    many, read = run(100, space=space, strategy=strategy)
    assert many < 1.5 * few
    assert read < 4


def test_few_checkpoints_more_than_needed_lie_about_while_a_study_runs(tmp_path) -> None:
    executor = SimulatedExecutor(workers=4, thinking=0.0)
    study = ft.Study(CURVES, minimize="loss", strategy=ft.ASHA(), folder=tmp_path, **executor.settings)
    seen: list[tuple[int, int]] = []

    def look(study: ft.Study, trial: ft.Trial) -> None:
        history = session_of(study).records.history
        needed = study.strategy.resumable(history) | study.strategy.recommendable(history)
        seen.append((sum(one.checkpoint is not None for one in history if one.is_finished), len(needed)))

    study.run(work_on(executor), executor=executor, budget=ft.Budget(trials=TRIALS), progress=False, callbacks=[look])
    assert seen[-1][1] > KEPT_FOR_EACH_TOO_MANY
    for left, needed in seen:
        assert left <= needed + 1 + executor.workers + needed / KEPT_FOR_EACH_TOO_MANY
