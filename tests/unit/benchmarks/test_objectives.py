"""Problems of several objectives and under constraints: their fronts, their judgement, and the methods on them."""

import json
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.hypervolume import front_of, hypervolume
from benchmarks.methods import METHODS
from benchmarks.problems import PROBLEMS
from benchmarks.problems.data import missing_package
from benchmarks.problems.objectives import Found, WithObjectives, aims_of
from benchmarks.problems.problem import random_params
from benchmarks.problems.vector_functions import (
    CONSTRAINED_FUNCTIONS,
    LIMITED_FUNCTIONS,
    VECTOR_FUNCTIONS,
    VectorFunction,
    c2_dtlz2_front,
    mw7_front,
    osy_front,
    zdt1,
    zdt2,
    zdt3,
    zdt_front,
)
from benchmarks.problems.vector_tables import (
    LIMITED_CURVES,
    LIMITED_CURVES_FOR_TUNING,
    LIMITED_TABLES,
    VECTOR_CURVES,
    VECTOR_TABLES,
)
from benchmarks.records import read_records, results_path
from benchmarks.suites import SUITES, Allowance
from benchmarks.trajectory import changes, trajectory
from farthing.acquisition import hypervolume as ours

FUNCTIONS = {problem.name: problem for problem in (*VECTOR_FUNCTIONS, *CONSTRAINED_FUNCTIONS, *LIMITED_FUNCTIONS)}


def usable(problem: WithObjectives) -> WithObjectives:
    if reason := problem.missing():
        pytest.skip(reason)
    return problem


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_judge_and_the_strategy_agree_on_hypervolumes(m: int) -> None:
    """They are separate programs: one by definition, one for speed."""
    rng = np.random.default_rng(m)
    for n in (1, 5, 40):
        rows = np.round(rng.random((n, m)), 1)
        reference = np.full(m, 0.9)
        assert hypervolume(rows, reference) == pytest.approx(ours.hypervolume(rows, reference), abs=1e-12)
        np.testing.assert_array_equal(front_of(rows), np.unique(rows[ours.non_dominated(rows)], axis=0))


@pytest.mark.parametrize(
    ("name", "front"),
    [
        ("zdt1-10", zdt_front(zdt1, points=4001)),
        ("zdt2-8", zdt_front(zdt2, points=4001)),
        ("zdt3-6", zdt_front(zdt3, points=4001)),
        ("c2-dtlz2-6", c2_dtlz2_front(points=4001)),
        ("osy", osy_front(points=2001)),
        ("mw7-6", mw7_front(points=4001)),
    ],
)
def test_the_whole_is_the_hypervolume_of_the_true_front(name: str, front: np.ndarray) -> None:
    """Points of a curve fill a little less than the curve."""
    problem = FUNCTIONS[name]
    filled = hypervolume(front, problem.reference)
    assert problem.whole * (1 - 1e-3) < filled < problem.whole * (1 + 1e-5)


@pytest.mark.parametrize("problem", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_no_random_configurations_are_better_than_the_whole(problem: VectorFunction) -> None:
    found = Found(problem)
    score = found._best
    for params in random_params(problem, 300):
        score = found.after(params)
    if len(problem.objectives) > 1:
        assert 0.0 <= score <= 1.0
    else:
        assert score >= problem.whole


def test_the_gramacy_minimum_is_where_its_first_limit_holds_just_so() -> None:
    values = FUNCTIONS["gramacy"].true_values({"x1": 0.19540, "x2": 0.40440})
    assert values["f1"] == pytest.approx(0.599788, abs=1e-4)
    assert abs(values["c1"]) < 1e-3


def test_beyond_a_limit_nothing_is_found_and_it_is_counted() -> None:
    problem = FUNCTIONS["c2-dtlz2-6"]
    found = Found(problem)
    far = {f"x{i}": 1.0 for i in range(1, 7)}
    end = {f"x{i}": 0.5 for i in range(1, 7)}
    assert (found.after(far), found.infeasible, found.params) == (0.0, 1, {})
    assert found.after(end) > 0.0
    assert (found.infeasible, found.params) == (1, end)
    assert found.after({}) == found.after(far), "a run that was not trained in full brings nothing"


@pytest.mark.parametrize("problem", VECTOR_TABLES, ids=lambda one: one.name)
def test_a_table_has_one_repeat_of_everything_and_is_judged_by_means(problem) -> None:
    problem = usable(problem)
    [params] = random_params(problem, 1)
    first, again = (problem.evaluate(params, {}, seed=3) for _ in range(2))
    assert first == again
    assert {problem.objectives[0].name, *first.metrics} == problem.true_values(params).keys()
    assert first.cost > 0.0
    losses = np.array([problem.losses(problem.true_values(one)) for one in random_params(problem, 200)])
    assert 0.0 < hypervolume(losses, problem.scale.reference) < problem.scale.whole


@pytest.mark.parametrize("problem", LIMITED_TABLES, ids=lambda one: one.name)
def test_a_table_under_a_limit_is_judged_by_the_best_that_keeps_it(problem) -> None:
    problem = usable(problem)
    found = Found(problem)
    drawn = random_params(problem, 200)
    after = [found.after(params) for params in drawn]
    true = [problem.true_values(params) for params in drawn]
    [(name, limit)] = problem.constraints.items()
    kept = [values["val_loss"] for values in true if values[name] <= limit.bound]
    assert after[-1] == min(kept) >= problem.best_value
    assert found.infeasible == len(true) - len(kept) > 0
    assert problem.evaluate(drawn[0], {}, seed=0).metrics.keys() == {name}


def test_no_stored_study_is_beyond_the_best_front_known() -> None:
    """Of several objectives; the rounding of six digits is left to those that found all there is."""
    ends = [row["steps"][-1] for row in read_records(results_path("objectives")) if row["best_value"] == 1.0]
    assert len(ends) > 100
    assert min(end["regret"] for end in ends) > -1e-5
    assert all(abs(end["value"] + end["regret"] - 1.0) < 1e-5 for end in ends)


def test_the_best_front_of_learning_curves_is_beyond_random_search() -> None:
    problem = VECTOR_CURVES[0]
    usable(problem)
    drawn = problem._losses(np.random.default_rng(1).random((1000, problem.space().encoder.dimension)))
    assert 0.0 < hypervolume(drawn, problem.scale.reference) < 0.9 * problem.scale.whole


def test_learning_curves_bring_their_seconds_along() -> None:
    problem = usable(VECTOR_CURVES[0])
    [params] = random_params(problem, 1)
    found = problem.evaluate(params, {"epoch": 12}, seed=0)
    assert [point.metrics["seconds"] for point in found.trace] == [point.cost for point in found.trace]
    assert aims_of(problem) == {"maximize": ["accuracy"], "minimize": ["seconds"], "constraints": {}}


def test_a_tenth_of_random_configurations_keeps_the_limits_of_learning_curves() -> None:
    for problem in (*LIMITED_CURVES, *LIMITED_CURVES_FOR_TUNING):
        usable(problem)
        drawn = random_params(problem, 100)
        ends = [problem.true_values(params) for params in drawn]
        keeps = [problem.is_feasible(end) for end in ends]
        assert 0.02 < np.mean(keeps) < 0.25
        kept = [end["accuracy"] for end, is_kept in zip(ends, keeps, strict=True) if is_kept]
        assert max(kept) <= problem.best_value


def test_limited_learning_curves_bring_both_quantities_along() -> None:
    problem = LIMITED_CURVES[0]
    usable(problem)
    [params] = random_params(problem, 1)
    found = problem.evaluate(params, {"epoch": 12}, seed=0)
    assert [set(point.metrics) for point in found.trace] == [{"seconds", "cross_entropy"}] * 11
    assert found.metrics == found.trace[-1].metrics
    assert found.metrics["cross_entropy"] == problem.curves.cross_entropies(params)[10]
    assert aims_of(problem) == {"maximize": ["accuracy"], "constraints": problem.constraints}


def _standings(method: str, problem: str, evaluations: int = 12):
    allowance = Allowance(evaluations, "evaluations")
    return list(trajectory(METHODS[method], PROBLEMS[problem], allowance=allowance, seed=0))


@pytest.mark.parametrize("method", ["random", "log-ehvi", "optuna-tpe", "optuna-nsga2"])
@pytest.mark.parametrize("problem", ["dtlz2-6", "osy", "gramacy"])
def test_a_trajectory_counts_everything_evaluated(method: str, problem: str) -> None:
    if method.startswith("optuna") and (reason := missing_package("optuna")):
        pytest.skip(reason)
    standings = _standings(method, problem)
    assert len(standings) == 12
    regrets = [one.regret for one in standings]
    assert all(after <= before for before, after in pairwise(regrets))
    limited = bool(FUNCTIONS[problem].constraints)
    assert ("infeasible" in standings[-1].tallies) == limited
    json.dumps([one.to_json() for one in changes(standings)], allow_nan=False)


def test_only_what_was_trained_in_full_counts() -> None:
    usable(VECTOR_CURVES[0])
    standings = _standings("asha", VECTOR_CURVES[0].name, evaluations=8)
    assert standings[2].value == 0.0, "the first runs are short"


def test_every_problem_and_method_of_the_suite_is_there() -> None:
    for contest in SUITES["objectives"].contests:
        assert set(contest.problems) <= PROBLEMS.keys()
        assert set(contest.methods) <= METHODS.keys()


@pytest.mark.parametrize("name", ["c2-dtlz2-6", "nasbench201-of-2/cifar10"])
def test_botorch_suggests_numbers_and_categories_after_its_design(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("botorch", reason="botorch is not installed; make bench-setup")
    compiled = tmp_path_factory.getbasetemp() / "compiled"  # where a killed process leaves no lock behind
    compiled.mkdir(exist_ok=True)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(compiled))
    problem = usable({one.name: one for one in (*CONSTRAINED_FUNCTIONS, *VECTOR_TABLES)}[name])
    steps = METHODS["botorch-qlognehvi"].run(problem, budget=Allowance(12, "evaluations").budget(problem), seed=0)
    found = [next(steps).recommended for _ in range(12)]
    assert all(problem.space().check(params) == params for params in found)
    assert len({tuple(params.values()) for params in found}) == 12
