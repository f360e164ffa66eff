"""What a trial costs the coordinator does not depend on how many run, nor on how many there were: counted in calls."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import farthing as ft
from farthing.extending import Strategy
from farthing.session import questions
from farthing.session.questions import Knowledge, running_then
from farthing.testing import SimulatedExecutor
from farthing.trials import History, State, Suggestion, Trial
from farthing.trials.memos import places_changed

PLAIN = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
CURVES = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities={"n": ft.Fidelity(1, 9, integer=True)})


def simulated(
    strategy: Strategy, space: ft.Space, *, workers: int, trials: int, budget: ft.Budget | None = None
) -> ft.Study:
    """It is stopped after so many trials, where it has another budget."""
    executor = SimulatedExecutor(workers=workers)

    def work(trial: ft.RunningTrial) -> float:
        executor.spend(10.0 + 10.0 * trial.params["x"])
        return float(trial.params["y"])

    study = ft.Study(space, minimize="error", strategy=strategy, seed=0, **executor.settings)
    limit, callbacks = (ft.Budget(trials=trials), []) if budget is None else (budget, [stop_after(trials)])
    study.run(work, executor=executor, budget=limit, progress=False, callbacks=callbacks)
    return study


def stop_after(trials: int) -> Callable[[ft.Study, Trial], None]:
    return lambda study, _: study.stop() if len(study.history) >= trials else None


def calls_of(function: Callable[[], Any]) -> int:
    """Calls of Python functions; each step of a generator is one."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("budget", [None, ft.Budget(cost=1e9)], ids=["trials", "cost"])
@pytest.mark.parametrize(("strategy", "space"), [(ft.Sobol(), PLAIN), (ft.ASHA(), CURVES)], ids=["Sobol", "ASHA"])
def test_a_trial_takes_as_many_steps_with_many_workers_as_with_few(
    strategy: Strategy, space: ft.Space, budget: ft.Budget | None
) -> None:
    def steps(workers: int) -> float:
        few = calls_of(lambda: simulated(strategy, space, workers=workers, trials=workers + 50, budget=budget))
        more = calls_of(lambda: simulated(strategy, space, workers=workers, trials=workers + 150, budget=budget))
        return (more - few) / 100

    assert steps(200) <= 1.5 * steps(20)


def test_asking_and_telling_takes_as_many_steps_with_many_in_flight_as_with_few() -> None:
    def steps(in_flight: int) -> float:
        study = ft.Study(PLAIN, minimize="error", strategy=ft.Sobol(), seed=0)
        asked = [study.ask() for _ in range(in_flight)]

        def turn_over() -> None:
            for one in asked[:50]:
                study.tell(one, 1.0)
                study.ask()

        return calls_of(turn_over) / 50

    assert steps(500) <= 1.5 * steps(50)


def test_a_history_knows_what_changed_since_one_that_it_grew_out_of() -> None:
    problem = ft.Study(PLAIN, minimize="error").problem
    trials = [Trial(number, Suggestion({"x": 0.5, "y": 0.5}), State.RUNNING) for number in range(100)]
    first = History(problem, trials)
    ended = Trial(7, trials[7].suggestion, State.DONE, value=1.0)
    second = first.updated([ended], version=1)
    third = second.updated([Trial(100, trials[0].suggestion, State.RUNNING)], version=2)
    branch = first.updated([Trial(3, trials[3].suggestion, State.DONE, value=2.0)], version=1)

    assert (places_changed(first, third), places_changed(second, third)) == ([7, 100], [100])
    assert third.places_changed_since(first) == [7, 100]
    assert branch.places_changed_since(second) is None, "it did not grow out of it"
    assert places_changed(second, branch) == [3, 7]
    assert calls_of(lambda: places_changed(first, third)) < 20


def test_a_note_says_what_ran_whoever_reads_the_notes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    study = simulated(ft.Sobol(), PLAIN, workers=20, trials=120)
    notes = [Knowledge.of(trial) for trial in study.history]
    monkeypatch.setattr(questions._LastNote, "was_for", lambda *_: False)
    read = simulated(ft.Sobol(), PLAIN, workers=20, trials=120)

    assert notes == [Knowledge.of(trial) for trial in read.history]
    assert any(note.since is not None for note in notes)
    assert len(running_then(study.history, 100)) == 19
