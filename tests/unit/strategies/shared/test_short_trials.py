"""Which studies are of many short trials, so that the default does not ask its model."""

import math
import time

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.extending import Randomness
from farthing.strategies.plain.bayesian import MANY, short_trials
from farthing.strategies.shared.evolution import NOTE, is_evolving
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.events import DURATION, duration_due
from farthing.trials.history import Event

SPACE = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
ENOUGH = 10 * MANY


class Quick(ft.EIPerCost):
    thinking = 0.001


def history(*, seconds: float = 0.001, trials: int = 12, problem: Problem | None = None) -> History:
    """Trials of so many seconds that a model suggested, as a study that has decided how long they are."""
    made = [
        Trial(
            number,
            Suggestion({"x": number / trials, "y": 0.5}, note={"theta": [0.0], "fitted_on": number}),
            State.DONE,
            measurements=(Measurement(value=float(number), cost={"training": seconds}),),
            value=float(number),
            opened_at=100.0,
            finished_at=100.0 + seconds,
        )
        for number in range(trials)
    ]
    undecided = History(problem or Problem(SPACE), made)
    due = duration_due(undecided)
    return undecided if due is None else undecided.updated([], events=[Event(DURATION, due)], version=1)


def test_many_short_trials_are_recognised_and_said() -> None:
    found = short_trials(ft.EIPerCost(), history(), Remaining(seconds=ENOUGH * 0.001))
    assert found is not None
    assert "trials take about 1 ms, a model 20 ms for each" in found.why


@pytest.mark.parametrize(
    ("made", "left", "why"),
    [
        ({"seconds": 0.05}, Remaining(seconds=1e6), "trials are long"),
        ({}, Remaining(seconds=0.03), "only some are left"),
        ({}, Remaining(trials=1000), "the model takes 20 s for all of them"),
        ({}, Remaining(), "nobody knows how many are left"),
        ({"trials": 3}, Remaining(seconds=1e6), "nothing is known yet"),
    ],
)
def test_a_model_suggests_where_it_pays(made: dict[str, float], left: Remaining, why: str) -> None:
    assert short_trials(ft.EIPerCost(), history(**made), left) is None, why  # type: ignore[arg-type]


def test_a_model_that_is_quick_suggests() -> None:
    assert short_trials(Quick(), history(seconds=0.02), Remaining(seconds=1e6)) is None
    assert short_trials(ft.EIPerCost(), history(seconds=0.02), Remaining(seconds=1e6)) is not None


def test_a_budget_of_trials_is_large_if_the_model_would_take_too_long_for_it() -> None:
    assert short_trials(ft.EIPerCost(), history(), Remaining(trials=10_000)) is not None


def test_a_cost_that_no_clock_measured_says_nothing_of_time() -> None:
    dollars = Problem(SPACE, cost_unit="dollars", measures_cost=False)
    assert short_trials(ft.EIPerCost(), history(problem=dollars), Remaining(trials=10_000)) is None


def test_the_default_evolves_where_trials_are_short_and_says_so_in_its_note() -> None:
    suggested = ft.EIPerCost().suggest(history(), Remaining(seconds=1.0), 2, Randomness(0))
    assert [
        NOTE in each.note and each.note["why"].startswith("evolution: trials take about") for each in suggested
    ] == [True] * 2
    assert not any(
        NOTE in each.note for each in ft.LogEI().suggest(history(), Remaining(seconds=1.0), 2, Randomness(0))
    )


def test_a_run_of_many_short_trials_goes_on_by_evolution() -> None:
    study = ft.Study(SPACE, minimize="value", seed=1)
    began = time.process_time()

    def work(trial: ft.RunningTrial) -> float:
        if time.process_time() - began > 20.0:
            study.stop()
        return (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.6) ** 2

    study.run(work, budget=ft.Budget(trials=100_000), executor="inline", callbacks=[_stop_after(400)], progress=False)
    evolving = [trial.number for trial in study.trials if is_evolving(trial)]
    assert evolving, "a model was asked although it took longer than all trials together"
    assert evolving == list(range(evolving[0], len(study.trials)))
    assert study.best.value < 1e-6
    assert math.isfinite(study.ledger.overhead)


def _stop_after(trials: int):  # type: ignore[no-untyped-def]
    def callback(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number >= trials:
            study.stop()

    return callback
