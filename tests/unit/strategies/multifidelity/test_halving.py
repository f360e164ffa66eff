from collections.abc import Callable
from random import Random

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.extending import History
from farthing.strategies import Randomness, Strategy
from farthing.strategies.multifidelity.halving import Rungs
from farthing.trials import Problem

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})


def run(strategy: Strategy, trials: int, value: Callable[[ft.RunningTrial], float] | None = None) -> ft.Study:
    study = ft.Study(SPACE, minimize="error", strategy=strategy)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, value(trial) if value else trial.params["x"], cost=1.0)
    return study


def test_rungs_go_from_the_lowest_fidelity_to_the_highest_by_the_reduction_factor() -> None:
    assert Rungs(History(Problem(SPACE)), 3, "epochs").levels == [1, 3, 9, 27]
    odd = ft.Space({"x": ft.Float(0, 1)}, fidelities={"data": ft.Fidelity(0.1, 1.0)})
    assert Rungs(History(Problem(odd)), 4, "data").levels == pytest.approx([0.1, 0.4, 1.0])


def test_asha_promotes_the_best_third_of_a_rung_and_resumes_it() -> None:
    trials = run(ft.ASHA(), 4).trials
    best = min(trials[:3], key=lambda trial: trial.params["x"])
    assert trials[3].resume_from == best.number
    assert trials[3].params == best.params
    assert (trials[0].fidelity, trials[3].fidelity) == ({"epochs": 1}, {"epochs": 3})


@pytest.mark.parametrize(
    "strategy", [ft.ASHA(), ft.Hyperband(), ft.BOHB(random_share=1.0)], ids=lambda one: type(one).__name__
)
def test_what_is_kept_of_rungs_suggests_as_the_whole_history_does(strategy: Strategy) -> None:
    study, draw = ft.Study(SPACE, minimize="error", strategy=strategy, seed=0), Random(1)
    running: list[ft.RunningTrial] = []
    for _ in range(300):
        anew = History(study.history.problem, study.history, events=study.history.events)
        rng = Randomness(0)
        kept = strategy.suggest(study.history, Remaining(), 2, rng)
        assert kept == strategy.suggest(anew, Remaining(), 2, rng)
        assert strategy.resumable(study.history) == strategy.resumable(anew)
        running.append(study.ask())
        if len(running) > 5:
            trial = running.pop(draw.randrange(len(running)))
            if draw.random() < 0.1:
                study.tell(trial, failure="diverged")
            else:
                study.tell(trial, trial.params["x"] / trial.fidelity["epochs"] + draw.random() / 10)


def test_asha_spends_most_on_what_is_good() -> None:
    trials = run(ft.ASHA(), 200).trials
    full = [trial.params["x"] for trial in trials if trial.fidelity["epochs"] == 27]
    assert full
    assert max(full) < 0.25, "a poor configuration was trained to the end"


def test_asha_never_promotes_a_trial_twice() -> None:
    sources = [trial.resume_from for trial in run(ft.ASHA(), 200).trials if trial.resume_from is not None]
    assert len(sources) == len(set(sources))


def test_asha_counts_failures_as_the_worst_of_their_rung() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.ASHA())
    for _ in range(3):
        study.tell(study.ask(), failure="diverged")
    study.ask()
    assert study.trials[-1].resume_from is None, "a failed trial was promoted"


def test_asha_keeps_the_checkpoints_of_all_that_may_yet_be_promoted() -> None:
    study = run(ft.ASHA(), 4)
    promoted = study.trials[3].resume_from
    assert ft.ASHA().resumable(study.history) == {0, 1, 2, 3} - {promoted}


def test_hyperband_fills_its_brackets_as_published() -> None:
    """η = 3, R = 27: the brackets begin with 27, 12, 6 and 4 configurations (Li et al. 2018, Table 1 for R = 81)."""
    study = run(ft.Hyperband(), 27 + 9 + 3 + 1 + 12 + 4 + 1 + 6 + 2 + 4)
    counts: dict[tuple[int, float], int] = {}
    for trial in study.trials:
        key = (trial.note["bracket"], trial.fidelity["epochs"])
        counts[key] = counts.get(key, 0) + 1
    assert counts == {
        (0, 1): 27, (0, 3): 9, (0, 9): 3, (0, 27): 1,
        (1, 3): 12, (1, 9): 4, (1, 27): 1,
        (2, 9): 6, (2, 27): 2,
        (3, 27): 4,
    }  # fmt: skip


def test_hyperband_begins_the_next_bracket_while_a_rung_is_not_finished() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Hyperband())
    asked = study.ask(count=30)
    assert [trial.fidelity["epochs"] for trial in asked] == [1] * 27 + [3] * 3
    assert all(trial.resume_from is None for trial in study.trials)


def test_hyperband_lets_go_of_checkpoints_that_lost() -> None:
    study = run(ft.Hyperband(), 27)
    assert len(ft.Hyperband().resumable(study.history)) == 9


def test_hyperband_promotes_what_it_has_when_no_configuration_may_join() -> None:
    study = run(ft.Hyperband(), 6)
    suggestions = ft.Hyperband().suggest(study.history, Remaining(trials=0), 4, Randomness(0))
    best = sorted(study.trials, key=lambda trial: trial.params["x"])[:2]
    assert [suggestion.resume_from for suggestion in suggestions] == [trial.number for trial in best]


def test_results_added_from_elsewhere_take_part() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.ASHA())
    for x in (0.1, 0.2, 0.3):
        study.add({"x": x}, x, fidelity={"epochs": 1})
    study.ask()
    assert study.trials[-1].resume_from == 0


@pytest.mark.parametrize(
    "strategy", [ft.ASHA(), ft.Hyperband(), ft.BOHB(), ft.ParetoHalving(), ft.ASHA(fidelity="data")]
)
def test_a_space_without_a_fidelity_is_refused_with_what_to_do(strategy: Strategy) -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=strategy)
    with pytest.raises(InvalidArgument, match=r"needs a fidelity to halve, got a space without\. Declare one: fidel"):
        study.ask()


@pytest.mark.parametrize("strategy", [ft.ASHA(), ft.BOHB(), ft.ASHA(fidelity="data")])
def test_one_of_several_fidelities_is_to_be_named(strategy: Strategy) -> None:
    fidelities = {name: ft.Fidelity(1, 9) for name in ("epochs", "rows")}
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}, fidelities=fidelities), minimize="error", strategy=strategy)
    with pytest.raises(InvalidArgument, match=r"of epochs, rows\. Name it: fidelity='epochs'\."):
        study.ask()


def test_a_reduction_factor_below_two_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ASHA's reduction must be a whole number ≥ 2, got 1"):
        ft.ASHA(reduction=1)
