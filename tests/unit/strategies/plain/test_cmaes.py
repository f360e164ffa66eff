"""CMA-ES: generations ride in notes, nobody waits, and a suggestion looks at the last generation alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.extending import Strategy, Suggestion
from farthing.strategies import Randomness
from farthing.trials import History, Measurement, Problem, State, Trial

SPACE = ft.Space({f"x{i}": ft.Float(-5.0, 5.0) for i in range(4)})


def ellipsoid(params: Any) -> float:
    return sum(10.0**i * (params[f"x{i}"] - 1.0) ** 2 for i in range(4))


def tuned(strategy: Strategy, *, trials: int, seed: int = 0) -> ft.Study:
    study = ft.Study(SPACE, minimize="error", strategy=strategy, seed=seed)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, ellipsoid(trial.params), cost=1.0)
    return study


def generations(study: ft.Study) -> list[int]:
    """The trials that began one."""
    return [trial.number for trial in study.trials if "state" in trial.note["cmaes"]]


def test_it_finds_a_bent_optimum_that_random_search_does_not() -> None:
    found = [tuned(ft.CMAES(), trials=250, seed=seed).best.value for seed in range(2)]
    at_random = [tuned(ft.Random(), trials=250, seed=seed).best.value for seed in range(2)]
    assert max(found) < 1.0 < min(at_random)


def test_a_generation_begins_when_the_results_of_the_last_are_there() -> None:
    study = tuned(ft.CMAES(population=6), trials=20)
    assert generations(study) == [0, 6, 12, 18]
    assert [study.trials[n].note["cmaes"]["state"]["generation"] for n in (0, 6, 12, 18)] == [0, 1, 2, 3]


def test_nobody_waits_and_results_may_come_in_any_order() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.CMAES(population=4), seed=1)
    first = study.ask(count=10)
    assert len(first) == 10
    for trial in [first[7], first[2], first[9]]:
        study.tell(trial, ellipsoid(trial.params))
    study.ask()
    assert generations(study) == [0]
    study.tell(first[0], ellipsoid(first[0].params))
    study.ask()
    assert generations(study) == [0, 11]
    for trial in first[3:6]:
        study.tell(trial, ellipsoid(trial.params))
    study.ask()
    assert generations(study) == [0, 11]


def test_failures_are_the_worst_of_a_generation_but_a_generation_of_failures_teaches_nothing() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.CMAES(population=4), seed=1)
    for number in range(12):
        trial = study.ask()
        if number in (8, 11):
            study.tell(trial, ellipsoid(trial.params))
        else:
            study.tell(trial, failure="diverged")
    assert generations(study) == [0]
    study.ask()
    assert generations(study) == [0, 12]


def test_the_search_begins_again_once_it_has_converged() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.CMAES(population=4, sigma=2e-9), seed=0)
    for _ in range(80):
        trial = study.ask()
        study.tell(trial, sum(abs(value) for value in trial.params.values()), cost=1.0)
    means = [study.trials[number].note["cmaes"]["state"]["mean"] for number in generations(study)]
    assert max(abs(mean[0] - 0.5) for mean in means) > 0.01


@pytest.mark.parametrize("space", [ft.Space({"x": ft.Float(0, 1)}), ft.Space({"kind": ft.Choice("a", "b", "c")})])
def test_it_works_in_one_dimension(space: ft.Space) -> None:
    study = ft.Study(space, minimize="error", strategy=ft.CMAES(), seed=0)
    for _ in range(30):
        trial = study.ask()
        study.tell(trial, len(str(trial.params)), cost=1.0)
    assert len(study.trials) == 30


WIDER = ft.Space(
    {**SPACE.parameters, "x0": ft.Float(-5.0, 15.0), "kind": ft.Choice("a", "b", "c"), "y": ft.Float(0.0, 2.0)}
)


@pytest.mark.parametrize("before", [3, 40])
def test_an_extended_space_is_searched_from_the_best_of_before(before: int) -> None:
    """The points of the generations so far are those of another cube."""
    study = tuned(ft.CMAES(population=6), trials=before)
    study.extend(WIDER, fill={"kind": "b", "y": 1.0})
    best = study.best.params
    trials = [study.ask() for _ in range(8)]
    assert generations(study)[-1] == before
    mean = study.trials[before].note["cmaes"]["state"]["mean"]
    at_mean = WIDER.encoder.decode_unit(np.array([mean]))[0]
    assert at_mean == {name: pytest.approx(value) if name != "kind" else value for name, value in best.items()}
    for trial in trials:
        study.tell(trial, ellipsoid(trial.params) + abs(trial.params["y"] - 1.0), cost=1.0)
    study.ask()
    assert generations(study)[-1] == before + 8
    repeated = study.strategy.suggest(study.history.before(before + 3), Remaining(), 1, Randomness(0))
    assert repeated[0].params == study.trials[before + 3].params


def test_a_study_extended_before_its_first_result_begins_in_the_middle() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.CMAES(), seed=0)
    study.ask()
    study.extend(WIDER, fill={"kind": "a", "y": 0.0})
    study.ask()
    assert study.trials[1].note["cmaes"]["state"]["mean"] == [0.5] * 6


class CountingHistory(History):
    """Counts which trials are looked at."""

    looked_at = 0

    def __getitem__(self, index: Any) -> Any:
        self.looked_at += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Trial]:
        raise AssertionError("a suggestion must not read the whole history")


@pytest.mark.parametrize("count", [100, 5000])
def test_a_suggestion_looks_at_the_last_generation_alone(count: int) -> None:
    strategy, problem = ft.CMAES(population=8), Problem(SPACE, value="error")
    history = CountingHistory(problem, _long_history(strategy, problem, count))
    [suggestion] = strategy.suggest(history, Remaining(), 1, Randomness(0))
    assert suggestion.note["cmaes"]["state"]["generation"] == 1
    assert history.looked_at <= 8


def _long_history(strategy: Strategy, problem: Problem, count: int) -> list[Trial]:
    """Trials of others, then one generation: it is as far from the beginning as that of a long search."""
    [first, *others] = strategy.suggest(History(problem, []), Remaining(), 8, Randomness(0))
    before = [Suggestion(first.params) for _ in range(count - 8)]
    return [_done(number, each) for number, each in enumerate([*before, first, *others])]


def _done(number: int, suggestion: Suggestion) -> Trial:
    measured = Measurement(value=ellipsoid(suggestion.params))
    return Trial(number, suggestion, state=State.DONE, value=measured.value, measurements=(measured,))
