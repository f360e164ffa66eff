"""A study that learns from earlier ones begins with their best configurations, frozen into its own history."""

from pathlib import Path

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.extending import Strategy
from farthing.knowledge.earlier import carried_over
from farthing.knowledge.portfolio import greedy_cover
from farthing.storage import MemoryStorage
from farthing.strategies.shared.starts import is_misled
from farthing.testing import check_replay
from farthing.trials import History, Suggestion

SPACE = ft.Space({"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)})
CURVES = ft.Space(
    {"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)},
    fidelities={"epochs": ft.Fidelity(1, 30, integer=True, trace=True)},
)


def error(params: dict[str, float], at: float = 0.3) -> float:
    return float((params["x"] - at) ** 2 + (params.get("y", at) - at) ** 2)


def tuned(name: str, storage: object, *, at: float = 0.3, trials: int = 8, space: ft.Space = SPACE) -> ft.Study:
    """A finished study whose optimum is at that place."""
    study = ft.Study(space, minimize="error", storage=storage, name=name, seed=len(name))  # type: ignore[arg-type]
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, error(dict(trial.params), at), cost=1.0 + trial.params["x"])
    return study


def told(study: ft.Study, count: int, *, at: float = 0.3) -> list[dict[str, float]]:
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, error(dict(trial.params), at), cost=2.0 + 2.0 * trial.params["x"])
    return [dict(trial.params) for trial in study.trials]


def test_the_best_of_earlier_studies_are_tried_first_and_say_where_they_come_from() -> None:
    storage = MemoryStorage()
    may, june = tuned("may", storage), tuned("june", storage, at=0.6)
    study = ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from=["may", "june"])
    told(study, 4)
    sources = {"may": may.best.params, "june": june.best.params}
    for place, trial in enumerate(study.trials[:2]):
        number, source = trial.note["learned"]
        assert (number, trial.params) == (place, sources[source])
        assert source in trial.note["why"]
    assert {trial.note["learned"][1] for trial in study.trials[:2]} == {"may", "june"}
    assert "learned" not in (study.trials[2].note or {})
    assert check_replay(study) == []


def test_before_any_result_the_best_is_the_first_start_with_its_source() -> None:
    earlier = tuned("may", None)
    study = ft.Study(SPACE, minimize="error", learn_from=earlier, name="july")
    assert study.best.params == earlier.best.params
    assert study.best.source == "may"
    assert "may" in repr(study.best)
    assert (study.best.value, study.best.trial, study.best.predicted) == (None, None, None)
    assert study.best == study.best
    assert not hasattr(study.best, "vlaue")
    assert study.best.to_json().keys() == earlier.best.to_json().keys()
    told(study, 1)
    assert study.best.source is None
    assert study.best.trial.number == 0


def test_a_study_can_be_named_in_another_database(tmp_path: Path) -> None:
    old = f"sqlite:///{tmp_path / 'old.db'}"
    with tuned("may", old) as earlier:
        expected = earlier.best.params
    with ft.Study(SPACE, minimize="error", name="july", learn_from=f"{old}#may") as study:
        assert study.best.params == expected


def test_all_takes_finished_studies_of_the_same_value_with_parameters_in_common() -> None:
    storage = MemoryStorage()
    tuned("may", storage)
    ft.Study(ft.Space({"z": ft.Float(0, 1)}), minimize="error", storage=storage, name="other space").add(
        {"z": 0.5}, 1.0
    )
    ft.Study(SPACE, maximize="error", storage=storage, name="other way").add({"x": 0.5, "y": 0.5}, 1.0)
    ft.Study(SPACE, minimize="loss", storage=storage, name="other value").add({"x": 0.5, "y": 0.5}, 1.0)
    ft.Study(SPACE, minimize="error", storage=storage, name="nothing done")
    tuned("running", storage).ask()
    study = ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from="all")
    assert study.history.learned is not None
    assert study.history.learned.sources == ("may",)


def test_values_are_moved_into_the_bounds_of_today_and_missing_ones_filled_in() -> None:
    space = ft.Space(
        {
            "x": ft.Float(0.5, 1.0),
            "n": ft.Int(2, 8, step=2),
            "kind": ft.Choice("a", "b"),
            "depth": ft.Int(1, 3, when={"kind": "b"}),
            "new": ft.Float(0.0, 1.0),
        }
    )
    found = carried_over(
        {"x": 0.1, "n": 7.4, "kind": "c", "gone": 3}, space, fill={"kind": "b", "depth": 2, "new": 0.25}.__getitem__
    )
    assert found == {"x": 0.5, "n": 8, "kind": "b", "depth": 2, "new": 0.25}


def test_the_portfolio_covers_what_the_earlier_studies_knew() -> None:
    # Column 0 is best for two studies and bad for the third, 2 the other way round, and 1 is fair everywhere: once 0
    # is chosen, 2 covers the study that is left, whereas 1 would be the second best alone.
    R = np.array([[0.0, 0.4, 1.5], [0.1, 0.4, 1.5], [1.5, 0.4, 0.0]])
    assert greedy_cover(R) == [0, 2, 1]
    assert greedy_cover(R[:2]) == [0, 1, 2]


def test_the_portfolio_remembers_all_that_is_covered_not_only_by_its_last_start() -> None:
    # 0 and 1 are each the best of a study; 2 is nearly the same as 0, and only 3 does something for the third study.
    R = np.array([[0.0, 1.0, 0.05, 1.0], [1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.5]])
    assert greedy_cover(R) == [0, 1, 3, 2]


def test_a_start_that_is_bad_for_a_study_is_no_worse_for_it_than_no_start() -> None:
    R = np.array(
        [[0.0, 0.9], [1.5, 0.9], [1.5, 0.9]]
    )  # column 0 sums to more, and is the only one that is good anywhere
    assert greedy_cover(R) == [0, 1]


def test_a_program_that_is_killed_between_two_starts_goes_on_with_the_same_starts(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'all.db'}"
    for name, at in (("may", 0.3), ("june", 0.6), ("april", 0.8)):
        tuned(name, storage, at=at).close()
    names = ["may", "june", "april"]
    with ft.Study(SPACE, minimize="error", storage=storage, name="unbroken", learn_from=names) as study:
        unbroken = told(study, 6)
    with ft.Study(SPACE, minimize="error", storage=storage, name="killed", learn_from=names) as study:
        told(study, 1)
    for name in names:
        ft.delete_study(name, storage)
    with ft.Study(SPACE, minimize="error", storage=storage, name="killed", learn_from=names) as study:
        assert told(study, 5) == unbroken


def test_several_programs_that_begin_together_share_the_starts(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'all.db'}"
    for name, at in (("may", 0.3), ("june", 0.6), ("april", 0.8)):
        tuned(name, storage, at=at).close()
    with (
        ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from="all") as one,
        ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from="all") as other,
    ):
        trials = [study.ask() for study in (one, other, one, other)]
        assert [one.history[trial.number].note.get("learned", [None])[0] for trial in trials[:3]] == [0, 1, 2]
        assert "learned" not in one.history[3].note


def test_starts_that_are_worse_than_random_ones_were_are_left_off() -> None:
    storage = MemoryStorage()
    for place in range(4):
        tuned(f"past-{place}", storage, at=0.1 + 0.05 * place)
    study = ft.Study(SPACE, minimize="error", storage=storage, name="misled", learn_from="all")
    assert study.history.learned is not None
    assert len(study.history.learned.starts) == 4
    told(study, 4, at=3.0)
    assert ["learned" in (trial.note or {}) for trial in study.trials] == [True, True, False, False]
    assert check_replay(study) == []


def test_starts_that_were_misleading_are_made_up_for() -> None:
    storage = MemoryStorage()
    for place in range(4):
        tuned(f"past-{place}", storage, at=0.1 + 0.05 * place)
    study = ft.Study(
        SPACE, minimize="error", storage=storage, name="misled", learn_from="all", strategy=ft.LogEI(initial=4)
    )
    told(study, 7, at=3.0)
    notes = [one.note or {} for one in study.trials]
    kinds = ["learned" if "learned" in note else "model" if "theta" in note else "drawn" for note in notes]
    assert kinds == ["learned"] * 2 + ["drawn"] * 4 + ["model"]
    assert check_replay(study) == []


def test_curves_are_compared_at_the_fidelity_of_the_starts() -> None:
    storage = MemoryStorage()
    earlier = ft.Study(CURVES, minimize="error", storage=storage, name="may", seed=1)
    for _ in range(8):
        trial = earlier.ask()
        earlier.tell(trial, error(dict(trial.params)) + 1.0 / trial.fidelity["epochs"], cost=trial.fidelity["epochs"])
    study = ft.Study(CURVES, minimize="error", storage=storage, name="june", learn_from="may")
    first = study.ask()
    assert first.params == earlier.best.params
    assert first.fidelity == earlier.trials[0].fidelity


@pytest.mark.parametrize(("value", "expected"), [(0.5, False), (0.95, True)])
def test_starts_mislead_only_if_they_are_worse_than_random_ones_of_every_study(value: float, expected: bool) -> None:
    storage = MemoryStorage()
    for name, found in (("may", 0.1), ("june", 0.9)):
        earlier = ft.Study(SPACE, minimize="error", storage=storage, name=name, strategy=ft.Random(), seed=len(name))
        for _ in range(6):
            earlier.tell(earlier.ask(), found, cost=1.0)
    study = ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from=["may", "june"])
    for _ in range(2):
        study.tell(study.ask(), value, cost=1.0)
    assert is_misled(study.history) is expected


def test_two_bad_starts_are_enough_while_a_third_is_under_way() -> None:
    storage = MemoryStorage()
    for place, name in enumerate(("may", "june", "august")):
        tuned(name, storage, at=0.2 + 0.3 * place)
    names = ["may", "june", "august"]
    study = ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from=names)
    first, second, third = study.ask(count=3)
    assert study.trials[third.number].note["learned"][0] == 2
    study.tell(first, 9.0, cost=1.0)
    assert not is_misled(study.history)
    study.tell(second, 9.0, cost=1.0)
    assert is_misled(study.history)


def test_costs_of_earlier_studies_predict_the_first_trials() -> None:
    study = ft.Study(SPACE, minimize="error", learn_from=tuned("may", None), name="july")
    study.ask()
    first = study.trials[0]
    expected = first.suggestion.predicted_cost
    assert expected is not None
    assert expected.mean == pytest.approx(1.0 + first.params["x"], rel=0.1)
    study.tell(0, 0.1, cost=2.0 * expected.mean)
    study.ask()
    second = study.trials[1]
    assert second.suggestion.predicted_cost is not None
    assert second.suggestion.predicted_cost.mean == pytest.approx(2.0 * (1.0 + second.params["x"]), rel=0.1)


def test_costs_are_learnt_from_as_many_trials_of_each_study_spread_over_all_of_it() -> None:
    storage = MemoryStorage()
    for name, first in (("may", 1.0), ("june", 1001.0)):
        study = ft.Study(SPACE, minimize="error", storage=storage, name=name, strategy=ft.Random(), seed=0)
        for number in range(100):
            study.tell(study.ask(), 0.5, cost=first + number)
    later = ft.Study(SPACE, minimize="error", storage=storage, name="july", learn_from=["may", "june"])
    later.ask()
    assert later.history.learned is not None
    found = [one.cost for one in later.history.learned.costs]
    assert found == [first + number for first in (1.0, 1001.0) for number in range(0, 100, 4)]


def test_only_costs_of_runs_from_nothing_are_learnt() -> None:
    earlier = ft.Study(CURVES, minimize="error", name="may", strategy=ft.ASHA(), seed=0)
    for number in range(20):
        trial = earlier.ask()
        earlier.tell(trial, error(dict(trial.params)) + 1 / trial.fidelity["epochs"], cost=1.0 + number)
    later = ft.Study(CURVES, minimize="error", name="july", learn_from=earlier)
    later.ask()
    assert later.history.learned is not None
    expected = [trial.cost for trial in earlier.trials if trial.resume_from is None]
    assert [one.cost for one in later.history.learned.costs] == expected
    assert len(expected) < 20


def test_costs_of_earlier_studies_refuse_no_first_trial() -> None:
    """Of another machine or other data, they may be wrong by any factor as long as nothing was paid here."""
    study = ft.Study(SPACE, minimize="error", learn_from=tuned("may", None), name="july", cost_unit="seconds")
    [trial] = study.ask(count=1, budget=ft.Budget(cost=0.5))
    study.tell(trial, 0.1, cost=0.01)
    [second] = study.ask(count=1, budget=ft.Budget(cost=0.5))
    assert study.trials[second.number].suggestion.predicted_cost.mean < 0.1  # type: ignore[union-attr]


def test_a_study_that_learnt_passes_on_what_random_starts_had() -> None:
    june = ft.Study(SPACE, minimize="error", learn_from=tuned("may", None), name="june", strategy=ft.LogEI(initial=1))
    told(june, 4)
    july = ft.Study(SPACE, minimize="error", learn_from=june, name="july")
    assert july.history.learned is not None
    assert {result.source for result in july.history.learned.random} == {"may"}


def test_a_space_that_grows_takes_the_starts_along() -> None:
    earlier = [tuned("may", None), tuned("june", None, at=0.6)]
    study = ft.Study(SPACE, minimize="error", learn_from=earlier, name="july")
    told(study, 1)
    study.extend(ft.Space({**SPACE.parameters, "z": ft.Float(0.0, 1.0)}), fill={"z": 0.5})
    trial = study.ask()
    assert trial.params["z"] == 0.5
    assert study.history[1].note["learned"][0] == 1


class Corner(Strategy):
    """Knows nothing of starts."""

    def suggest(self, history: History, budget: object, count: int, rng: object) -> list[Suggestion]:
        return [Suggestion({"x": 1.0, "y": 1.0 / (1 + len(history))}, history.problem.space.full_fidelity)]


@pytest.mark.parametrize("space", [SPACE, CURVES])
def test_a_strategy_that_knows_nothing_of_starts_is_asked_after_them(space: ft.Space) -> None:
    storage = MemoryStorage()
    expected = [tuned(name, storage, at=at, space=space).best.params for name, at in (("may", 0.3), ("june", 0.6))]
    study = ft.Study(
        space, minimize="error", storage=storage, name="july", learn_from=["may", "june"], strategy=Corner()
    )
    told(study, 4)
    starts, others = study.trials[:2], study.trials[2:]
    assert sorted(one.params["x"] for one in starts) == sorted(one["x"] for one in expected)
    assert [one.note["learned"][0] for one in starts] == [0, 1]
    assert all(one.fidelity == space.full_fidelity for one in starts)
    assert [one.params["x"] for one in others] == [1.0, 1.0]
    assert check_replay(study) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learn_from": 3}, "names or studies"),
        ({"learn_from": ["july"]}, "its own name"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(settings: dict[str, object], words: str) -> None:
    storage = MemoryStorage()
    tuned("may", storage)
    with pytest.raises(InvalidArgument, match=words):
        ft.Study(SPACE, minimize="error", storage=storage, name="july", **settings)  # type: ignore[arg-type]


def test_a_study_of_another_value_or_of_no_common_parameter_is_refused() -> None:
    other = ft.Study(ft.Space({"z": ft.Float(0, 1)}), minimize="error", name="other")
    with pytest.raises(InvalidArgument, match="parameters in common"):
        ft.Study(SPACE, minimize="error", learn_from=other)
    with pytest.raises(InvalidArgument, match="same value"):
        ft.Study(SPACE, maximize="accuracy", learn_from=tuned("may", None))


def test_a_study_that_has_begun_learns_no_more() -> None:
    storage = MemoryStorage()
    tuned("may", storage)
    tuned("july", storage)
    with pytest.raises(InvalidArgument, match="before its first trial"):
        ft.Study(SPACE, minimize="error", storage=storage, name="july", seed=4, learn_from="may")


def test_an_online_run_begins_with_what_earlier_studies_found(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'all.db'}"
    with tuned("may", storage) as earlier:
        expected = earlier.best.params
    tuner = ft.OnlineTuner(SPACE, rounds=20, minimize="error", storage=storage, name="run", learn_from="may")
    decision = next(tuner)
    assert decision.params == expected
    decision.observe(error(dict(decision.params)))
    tuner.close()
    again = ft.OnlineTuner(SPACE, rounds=20, minimize="error", storage=storage, name="run", learn_from="may")
    assert (list(again), again.round) == ([], 1)
    with pytest.raises(InvalidArgument, match=r"got initial=.* and learn_from='may'"):
        ft.OnlineTuner(SPACE, rounds=20, minimize="error", initial={"x": 0.1, "y": 0.1}, learn_from="may")
