"""The baselines that model learning curves: what each of them chooses, and how far it trains it."""

from collections.abc import Callable

import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA, BOCAWithGap, FreezeThawEI, _information_gap, _telling_level
from benchmarks.baselines.curve_search import Option, curve_search
from farthing.acquisition.acquisition import FixedFeatures
from farthing.extending import Strategy
from farthing.strategies.multifidelity.bohb import _informed_rung
from farthing.strategies.multifidelity.halving import Rungs
from farthing.strategies.multifidelity.levels import Fidelities

TRACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})
SIZE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"data": ft.Fidelity(0.05, 1.0)})
BOTH = ft.Space(
    {"x": ft.Float(0, 1)}, fidelities={"data": ft.Fidelity(0.1, 1.0), "epochs": ft.Fidelity(1, 9, trace=True)}
)


def run(strategy: Strategy, space: ft.Space, trials: int, *, budget: ft.Budget | None = None) -> ft.Study:
    """Losses fall with the work done, to (x − 0.3)²; a unit of work costs 1, and continuing saves what was done."""
    study = ft.Study(space, minimize="error", strategy=strategy, seed=1)
    tops = space.full_fidelity
    for _ in range(trials):
        for trial in study.ask(1, budget=budget):
            share = float(np.prod([value / tops[name] for name, value in trial.fidelity.items()]))
            source = study.trials[trial.number].resume_from
            paid = 0.0 if source is None else study.history.reach(study.trials[source])
            is_saved = any(fidelity.trace for fidelity in space.fidelities.values())
            value = (trial.params["x"] - 0.3) ** 2 + 0.2 * (1.05 - share)
            study.tell(trial, value, cost=share - paid * is_saved + 0.001)
    return study


@pytest.mark.parametrize("strategy", [BOCA(), FreezeThawEI()], ids=["boca", "freeze-thaw"])
@pytest.mark.parametrize("space", [TRACE, SIZE, BOTH], ids=["trace", "size", "both"])
def test_it_finds_the_minimum_with_little_full_training(strategy: Strategy, space: ft.Space) -> None:
    study = run(strategy, space, 30)
    assert study.best.params["x"] == pytest.approx(0.3, abs=0.08)
    reach = [study.history.reach(trial) for trial in study.trials]
    assert min(reach) < 0.3
    assert max(reach) > min(reach)


def test_freeze_thaw_trains_one_level_further_at_a_time() -> None:
    study = run(FreezeThawEI(), TRACE, 25, budget=ft.Budget(trials=6))
    levels = Fidelities(TRACE).grid()[:, 0] * 27
    for trial in study.trials[5:]:
        source = trial.resume_from
        before = 0.0 if source is None else study.trials[source].fidelity["epochs"]
        step = levels[levels >= before + 0.1 * (27 - before) * (before > 0) - 1e-9]
        assert trial.fidelity["epochs"] == pytest.approx(step[step > before][0])
    assert any(trial.resume_from is not None for trial in study.trials)


def test_freeze_thaw_begins_with_full_data_where_runs_can_be_cut_short() -> None:
    study = run(FreezeThawEI(), BOTH, 15)
    assert all(trial.fidelity["data"] == 1.0 for trial in study.trials[5:] if trial.resume_from is None)


def test_boca_buys_more_fidelity_once_the_less_tells_nothing_new() -> None:
    trials = run(BOCA(), TRACE, 30).trials
    assert {trial.fidelity["epochs"] for trial in trials[5:]} - {1, 2, 27}, "only the ends were bought"


def test_boca_may_ask_for_a_gap_too() -> None:
    """The paper's other condition: below full fidelity it buys only where ξ > max ξ/√β."""
    search = curve_search(run(FreezeThawEI(), TRACE, 12).history)
    assert search is not None
    option = Option(np.array([0.77]), 0.0)
    gaps = _information_gap(search, option.x, np.column_stack([np.full(len(search.grid), 0.77), search.grid]))[0]
    assert np.all(np.diff(gaps) < 0.0), "the nearer to full fidelity, the less is left open"
    assert gaps[-1] == pytest.approx(0.0, abs=1e-6)
    assert _telling_level(search, option, beta=1.0)[0] == 1.0, "no gap is wider than the widest"
    assert _telling_level(search, option, beta=1e12)[0] == _telling_level(search, option)[0] < 1.0
    trials = run(BOCAWithGap(), TRACE, 20).trials
    assert {trial.fidelity["epochs"] for trial in trials[5:]} <= {1, 2, 27}, "with a β of two only the ends are left"


def test_an_acquisition_at_full_fidelity_has_the_gradient_of_its_values() -> None:
    from farthing.acquisition.confidence_bound import ConfidenceBound

    search = curve_search(run(FreezeThawEI(), TRACE, 12).history)
    assert search is not None
    function = FixedFeatures(ConfidenceBound(search.gp, 2.0), (1.0,))
    X = np.array([[0.2], [0.61]])
    value, gradient = function.value_and_gradient(X)
    assert value == pytest.approx(function(X))
    step = 1e-6
    numeric = (function(X + step) - function(X - step)) / (2 * step)
    assert gradient[:, 0] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def bohb_until(enough: Callable[[Rungs], bool]) -> ft.Study:
    study = ft.Study(TRACE, minimize="error", strategy=ft.BOHB(random_share=0.0), seed=2)
    for _ in range(200):
        if enough(Rungs(study.history, 3, "epochs")):
            return study
        trial = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2, cost=1.0)
    pytest.fail("no rung has filled")


def test_bohb_draws_until_a_rung_has_enough_and_then_goes_by_the_highest_that_has() -> None:
    study = bohb_until(lambda rungs: len(rungs.ended(0)) >= 3)
    first = study.trials
    assert [t.params for t in first] == [t.params for t in ft_hyperband(len(first))]
    rungs = Rungs(bohb_until(lambda rungs: len(rungs.ended(1)) >= 3).history, 3, "epochs")
    assert _informed_rung(rungs) == rungs.ended(1)


def ft_hyperband(trials: int) -> list[ft.Trial]:
    study = ft.Study(TRACE, minimize="error", strategy=ft.Hyperband(), seed=2)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2, cost=1.0)
    return study.trials


def test_bohb_comes_nearer_to_the_minimum_than_hyperband() -> None:
    def distance(strategy: Strategy) -> float:
        starts = [t for t in run(strategy, TRACE, 60).trials if t.resume_from is None]
        return min(abs(t.params["x"] - 0.3) for t in starts)

    assert distance(ft.BOHB()) < 0.1 * distance(ft.Hyperband())


def test_bohb_refuses_a_share_that_is_none() -> None:
    with pytest.raises(ft.FarthingError, match="random_share must be a number from 0 to 1"):
        ft.BOHB(random_share=1.5)


def test_expected_improvement_at_full_fidelity_ignores_shorter_runs() -> None:
    study = ft.Study(TRACE, minimize="error", strategy=ft.LogEI(initial=3), seed=0)
    for _ in range(6):
        trial = study.ask()
        assert trial.fidelity == {"epochs": 27}
        study.tell(trial, (trial.params["x"] - 0.3) ** 2, cost=1.0)
