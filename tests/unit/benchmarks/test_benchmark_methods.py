"""Methods as they are driven: what they pay, what they recommend, and what they say when they cannot run."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, pairwise

import pytest

import farthing as ft
from benchmarks.drivers.ours import Ours
from benchmarks.methods import METHODS
from benchmarks.problems import Evaluation, Params, Point
from benchmarks.problems.synthetic import FUNCTIONS
from benchmarks.suites import Allowance
from benchmarks.trajectory import changes, trajectory

BRANIN = FUNCTIONS[0]


@dataclass(frozen=True)
class Slopes:
    """A learning curve x·epochs that costs 10 to set up and 1 an epoch."""

    name: str = "slopes"
    direction: str = "maximize"
    best_value: float = 9.0
    full_cost: float = 19.0

    def missing(self) -> None:
        return None

    def space(self) -> ft.Space:
        return ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        trace = [Point({"epochs": e}, params["x"] * e, 10.0 + e) for e in range(1, int(fidelity["epochs"]) + 1)]
        return Evaluation(trace[-1].value, trace[-1].cost, trace)

    def full_value(self, params: Params) -> float:
        return 9.0 * params["x"]


def test_every_method_names_itself() -> None:
    assert all(method.name == name for name, method in METHODS.items())


@pytest.mark.parametrize("name", ["random", "sobol"])
def test_a_trajectory_ends_with_its_evaluations_and_never_gets_worse_without_noise(name: str) -> None:
    standings = list(trajectory(METHODS[name], BRANIN, allowance=Allowance(12, "evaluations"), seed=0))
    assert [standing.evaluations for standing in standings] == list(range(1, 13))
    assert standings[-1].cost == standings[-1].spent == 12
    regrets = [standing.regret for standing in standings]
    assert regrets == sorted(regrets, reverse=True)
    assert standings[-1].value == BRANIN.full_value(standings[-1].params)


def test_what_a_user_has_by_run_is_judged_like_any_method() -> None:
    standings = list(trajectory(METHODS["default-by-run"], BRANIN, allowance=Allowance(7, "evaluations"), seed=0))
    assert [standing.evaluations for standing in standings] == list(range(1, 8))
    assert standings[-1].value == BRANIN.full_value(standings[-1].params)
    assert standings[-1].suggest_seconds > 0.0


def test_the_same_seed_repeats_a_trajectory_and_another_does_not() -> None:
    def params(seed: int) -> list[Params]:
        return [
            s.params for s in trajectory(METHODS["random"], BRANIN, allowance=Allowance(5, "evaluations"), seed=seed)
        ]

    assert params(1) == params(1) != params(2)


@pytest.mark.parametrize("name", ["asha", "hyperband"])
def test_a_continued_run_pays_only_for_what_it_adds(name: str) -> None:
    steps = list(islice(METHODS[name].run(Slopes(), budget=ft.Budget(cost=1000), seed=0), 13))
    started = {11.0}  # the first rung of a new run
    continued = {2.0, 6.0}  # from 1 epoch to 3, from 3 to 9
    assert {step.cost for step in steps} <= started | continued
    assert {step.cost for step in steps} & continued


def test_a_study_gets_the_points_of_the_curve_that_a_trial_adds() -> None:
    seen: list[list[float]] = []

    @dataclass(frozen=True)
    class Watching(ft.ASHA):
        def suggest(self, history, budget, count, rng):
            seen[:] = [[point.fidelity["epochs"] for point in trial.points] for trial in history]
            return super().suggest(history, budget, count, rng)

    list(islice(Ours("watching", Watching()).run(Slopes(), budget=ft.Budget(cost=1000), seed=0), 5))
    assert seen[:4] == [[1.0], [1.0], [1.0], [2.0, 3.0]]


def test_what_is_spent_in_full_runs_ends_a_trajectory_before_the_first_evaluation_beyond() -> None:
    standings = list(trajectory(METHODS["random"], Slopes(), allowance=Allowance(2.5, "full runs"), seed=0))
    assert [standing.spent for standing in standings] == [1.0, 2.0]


def test_only_changes_of_the_recommendation_are_kept() -> None:
    standings = list(trajectory(METHODS["random"], BRANIN, allowance=Allowance(20, "evaluations"), seed=0))
    kept = changes(standings)
    assert kept[0] is standings[0]
    assert len(kept) < len(standings)
    assert kept[-1].params == standings[-1].params
    assert all(before.params != after.params for before, after in pairwise(kept))


def test_a_missing_peer_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.problems.data.find_spec", lambda name: None)
    assert METHODS["optuna-tpe"].missing() == "optuna is not installed; make bench-setup"
    assert METHODS["random"].missing() is None


def test_botorch_tunes_after_its_design() -> None:
    pytest.importorskip("botorch", reason="botorch is not installed; make bench-setup")
    standings = list(trajectory(METHODS["botorch-log-ei"], BRANIN, allowance=Allowance(14, "evaluations"), seed=0))
    regrets = [standing.regret for standing in standings if standing.regret is not None]
    assert len(regrets) == 14
    assert all(after <= before for before, after in pairwise(regrets))
    assert standings[0].suggest_seconds < standings[-1].suggest_seconds


def test_optuna_is_given_the_whole_space() -> None:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed; make bench-setup")
    from benchmarks.drivers.optuna import suggest

    space = ft.Space(
        {
            "rate": ft.Float(1e-3, 1.0, log=True),
            "units": ft.Int(16, 64, step=16),
            "size": ft.Choice("s", "m", "l", ordered=True),
            "optimizer": ft.Choice("sgd", "adam"),
            "momentum": ft.Float(0.0, 0.9, when={"optimizer": "sgd"}),
        }
    )
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [suggest(study.ask(), space) for _ in range(40)]
    assert {params["size"] for params in drawn} == {"s", "m", "l"}
    assert {params["units"] for params in drawn} == {16, 32, 48, 64}
    assert all(("momentum" in params) == (params["optimizer"] == "sgd") for params in drawn)
    assert all(space.check(params) == params for params in drawn)


def test_optuna_pays_up_to_where_it_prunes_and_recommends_among_the_furthest_runs() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed; make bench-setup")
    problem = Slopes()
    steps = list(islice(METHODS["optuna-tpe-hyperband"].run(problem, budget=ft.Budget(cost=1000), seed=0), 30))
    assert {step.cost for step in steps} <= {10.0 + epochs for epochs in range(1, 10)}
    assert min(step.cost for step in steps) < 19.0  # some were pruned
    values = [problem.full_value(step.recommended) for step in steps if step.cost == 19.0]
    assert values == sorted(values)
