"""Problems whose answers are known: the functions' minima, and the figures of shared/data/README.md."""

from typing import Any

import numpy as np
import pytest

from benchmarks.pipelines.sklearn import SKLEARN_TABLES
from benchmarks.pipelines.synthetic import STAGED_FUNCTIONS, StagedFunction
from benchmarks.problems import PROBLEMS, Problem, regret
from benchmarks.problems.augmented import AUGMENTED, FROM_ZERO
from benchmarks.problems.conditional import (
    CONDITIONAL,
    CONDITIONAL_FOR_TUNING,
    Basins,
    OnBranches,
    best_by_branch,
)
from benchmarks.problems.curves import LearningCurves
from benchmarks.problems.forests import FORESTS
from benchmarks.problems.kernel_learning import KERNEL_LEARNING, likelihood
from benchmarks.problems.noisy import DEVIATION, NOISY, NOISY_FOR_TUNING, Noisy
from benchmarks.problems.problem import for_one_run, random_params, span_of
from benchmarks.problems.recorded import RECORDED, ROWS
from benchmarks.problems.synthetic import FUNCTIONS, MORE_FUNCTIONS, TUNING_FUNCTIONS, Function, branin
from benchmarks.problems.tables import CELLS, TABLES, Table
from benchmarks.problems.training_size import SIZES
from benchmarks.problems.vector_functions import (
    CONSTRAINED_FUNCTIONS,
    LIMITED_FUNCTIONS,
    VECTOR_FUNCTIONS,
    VECTOR_FUNCTIONS_FOR_TUNING,
)
from benchmarks.problems.vector_tables import (
    LIMITED_CURVES,
    LIMITED_CURVES_FOR_TUNING,
    LIMITED_TABLES,
    VECTOR_CURVES,
    VECTOR_TABLES,
)
from benchmarks.suites import Allowance

TABLE_FIGURES = {  # best mean, its cost in seconds, median of the means
    "fcnet/naval_propulsion": (3.1911e-05, 183.3, 0.1445),
    "fcnet/parkinsons_telemonitoring": (0.0067059, 66.0, 0.2051),
    "fcnet/protein_structure": (0.22138, 792.4, 0.4004),
    "hpobench-mlp/australian": (0.94467, 749.2, 0.8981),
    "hpobench-mlp/blood_transfusion": (0.74669, 133.5, 0.6238),
    "hpobench-mlp/credit_g": (0.88527, 1.02, 0.8115),
    "hpobench-mlp/phoneme": (0.94447, 34252, 0.8031),
    "hpobench-mlp/segment": (0.96851, 1674, 0.9090),
}


def usable(problem: Problem) -> Problem:
    if reason := problem.missing():
        pytest.skip(reason)
    return problem


EVERY_FUNCTION = (*FUNCTIONS, *MORE_FUNCTIONS, *TUNING_FUNCTIONS)


def params_at(function: Function | StagedFunction, x: tuple[float, ...]) -> dict[str, float]:
    return {f"x{i}": number for i, number in enumerate(x, start=1)}


@pytest.mark.parametrize("function", EVERY_FUNCTION, ids=lambda function: function.name)
def test_the_known_optimum_has_the_known_value_and_lies_in_the_space(function: Function) -> None:
    params = params_at(function, function.optimum)
    assert function.space().check(params) == params
    value, cost, trace, *_ = function.evaluate(params, {}, seed=0)
    # The minimisers are given to six digits; the functions are flat there, so values agree to more.
    assert value == pytest.approx(function.best_value, abs=1e-8)
    assert (cost, trace) == (1.0, ())


@pytest.mark.parametrize("function", EVERY_FUNCTION, ids=lambda function: function.name)
def test_no_random_point_beats_the_known_optimum(function: Function) -> None:
    encoder = function.space().encoder
    drawn = encoder.decode(encoder.from_unit(np.random.default_rng(0).random((2000, encoder.dimension))))
    losses = [regret(function, function.full_value(params)) for params in drawn]
    assert min(loss for loss in losses if loss is not None) > 0


@pytest.mark.parametrize("function", STAGED_FUNCTIONS, ids=lambda function: function.name)
def test_a_staged_function_has_its_minimum_at_its_place_and_values_of_unit_scale(function: StagedFunction) -> None:
    place = np.array(function.base.optimum or (0.5,) * sum(function.sizes)) + function._shift
    params = params_at(function, tuple(place))
    assert function.space().check(params) == params
    assert function.full_value(params) == pytest.approx(0.0, abs=1e-8)
    encoder = function.space().encoder
    drawn = encoder.decode(np.random.default_rng(0).random((500, encoder.dimension)))
    values = [function.full_value(point) for point in drawn]
    assert min(values) > 0.0
    assert max(values) < 2.0


@pytest.mark.parametrize("noisy", NOISY, ids=lambda noisy: noisy.name)
def test_noise_is_about_the_true_value_and_the_same_for_every_method(noisy: Noisy) -> None:
    drawn = random_params(noisy, 400)
    values = np.array([noisy.full_value(params) for params in drawn])
    noise = np.array([noisy.evaluate(params, {}, seed=1).value for params in drawn]) - values
    assert np.median(values) == pytest.approx(1.0, abs=0.25)  # of 400 configurations, five times its deviation
    assert noise.mean() == pytest.approx(0.0, abs=5 * DEVIATION / 20)
    assert noise.std() == pytest.approx(DEVIATION, rel=0.2)
    assert noisy.evaluate(drawn[0], {}, seed=1) == noisy.evaluate(drawn[0], {}, seed=1)
    assert noisy.evaluate(drawn[0], {}, seed=1) != noisy.evaluate(drawn[0], {}, seed=2)


def test_branin_has_three_minima() -> None:
    for minimiser in ((-np.pi, 12.275), (np.pi, 2.275), (9.42478, 2.475)):
        assert branin(np.array(minimiser)) == pytest.approx(0.397887, abs=1e-6)


def test_names_are_those_in_the_registry_and_differ() -> None:
    assert all(problem.name == name for name, problem in PROBLEMS.items())
    assert (
        len(PROBLEMS)
        == len(
            (
                *EVERY_FUNCTION,
                *NOISY,
                *NOISY_FOR_TUNING,
                *TABLES,
                *CELLS,
                *AUGMENTED,
                *FROM_ZERO,
                *KERNEL_LEARNING,
                *SIZES,
                *CONDITIONAL,
                *CONDITIONAL_FOR_TUNING,
                *RECORDED,
                *ROWS,
                *FORESTS,
                *STAGED_FUNCTIONS,
                *SKLEARN_TABLES,
                *VECTOR_FUNCTIONS,
                *VECTOR_FUNCTIONS_FOR_TUNING,
                *CONSTRAINED_FUNCTIONS,
                *LIMITED_FUNCTIONS,
                *VECTOR_TABLES,
                *LIMITED_TABLES,
                *VECTOR_CURVES,
                *LIMITED_CURVES,
                *LIMITED_CURVES_FOR_TUNING,
            )
        )
        + 27
    )


def test_absent_data_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("FARTHING_DATA", str(tmp_path))
    for name in TABLE_FIGURES:
        reason = PROBLEMS[name].missing()
        assert reason is not None
        assert str(tmp_path) in reason
        assert "FARTHING_DATA" in reason


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables_have_the_figures_of_the_data_readme(table: Table) -> None:
    usable(table)
    best, seconds, typical = TABLE_FIGURES[table.name]
    means, times = table._means, table._grid["train_time"].mean(axis=1)
    best_rows = np.isclose(means, table.best_value, rtol=1e-6)  # three of `segment` differ by single precision only
    assert table.best_value == pytest.approx(best, rel=1e-4)
    assert np.isclose(times[best_rows], seconds, rtol=1e-2).any()
    assert np.median(means) == pytest.approx(typical, rel=1e-3)


@pytest.mark.parametrize("table", [TABLES[0], TABLES[3]], ids=lambda table: table.name)
def test_a_table_judges_by_the_mean_of_what_evaluations_show(table: Table) -> None:
    usable(table)
    params = {name: parameter.options[-1] for name, parameter in table.space().parameters.items()}
    last = table._grid[table.values][-1]
    seen = {table.evaluate(params, {}, seed=seed).value for seed in range(100)}
    assert seen == set(last.tolist())
    assert table.evaluate(params, {}, seed=3) == table.evaluate(params, {}, seed=3)
    assert table.full_value(params) == pytest.approx(last.mean())


def test_numbers_in_a_table_are_ordered_choices_and_words_are_not() -> None:
    parameters = usable(TABLES[0]).space().parameters
    assert parameters["batch_size"].ordered
    assert not parameters["activation_fn_1"].ordered


def test_curves_name_the_package_they_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.problems.data.find_spec", lambda name: None)
    assert PROBLEMS["lcbench/3945"].missing() == "onnxruntime is not installed; make bench-setup"


@pytest.mark.parametrize(
    ("instance", "at_52", "at_10"),
    [
        (3945, (90.65, 155.8), (88.69, 49.1)),
        (126025, (85.34, 110.5), (81.99, 33.6)),
        (167104, (92.32, 70.6), (88.92, 23.1)),
    ],
)
def test_curves_have_the_figures_of_the_data_readme(
    instance: int, at_52: tuple[float, float], at_10: tuple[float, float]
) -> None:
    problem = usable(LearningCurves(instance))
    params = {"batch_size": 64, "learning_rate": 1e-2, "momentum": 0.9, "weight_decay": 1e-3}
    params |= {"num_layers": 3, "max_units": 256, "max_dropout": 0.2}
    full = problem.evaluate(params, {"epoch": 52}, seed=0)
    assert (full.value, full.cost) == pytest.approx(at_52, abs=0.06)
    assert problem.evaluate(params, {"epoch": 10}, seed=0)[:2] == pytest.approx(at_10, abs=0.06)
    assert [point.fidelity["epoch"] for point in full.trace] == list(range(2, 53))
    assert problem.full_value(params) == full.value


@pytest.mark.parametrize(
    ("table", "best", "typical"), [(CELLS[0], 91.607, 87.31), (CELLS[1], 73.493, 65.17)], ids=["cifar10", "cifar100"]
)
def test_cells_that_were_not_trained_three_times_have_the_repeats_there_are(
    table: Table, best: float, typical: float
) -> None:
    usable(table)
    assert table.best_value == pytest.approx(best, abs=5e-4)
    assert np.median(table._means) == pytest.approx(typical, abs=5e-3)
    row = int(np.isnan(table._grid["val_acc"]).sum(axis=1).argmax())
    fewest = table._grid["val_acc"][row]
    options = list(table._options.items())
    picks = np.unravel_index(row, [len(values) for _, values in options])
    params = {name: values[pick] for (name, values), pick in zip(options, picks, strict=True)}
    for seed in range(10):
        assert table.evaluate(params, {}, seed=seed).value in fewest[~np.isnan(fewest)]


def random_configuration(problem: Problem) -> dict[str, object]:
    return random_params(problem, 1)[0]


@pytest.mark.parametrize("function", AUGMENTED, ids=lambda function: function.name)
def test_an_augmented_function_has_its_minimum_at_full_fidelity_and_costs_what_the_paper_says(function) -> None:
    params = {f"x{i}": number for i, number in enumerate(function.optimum, start=1)}
    space = function.space()
    assert function.evaluate(params, space.full_fidelity, seed=0).value == pytest.approx(function.best_value, abs=1e-8)
    half = dict.fromkeys(space.fidelities, 0.5)
    value, cost, trace, *_ = function.evaluate(params, half, seed=0)
    assert cost == pytest.approx(0.01 + 0.5 ** len(half))
    assert (trace[-1].fidelity, trace[-1].value, trace[-1].cost) == (half, value, cost)
    assert value != function.full_value(params)


@pytest.mark.parametrize("function", AUGMENTED, ids=lambda function: function.name)
def test_the_trace_of_an_augmented_function_is_that_of_shorter_runs(function) -> None:
    params, fidelity = random_configuration(function), dict.fromkeys(function.space().fidelities, 0.7)
    trace = function.evaluate(params, fidelity, seed=0).trace
    assert [point.cost for point in trace] == sorted({point.cost for point in trace})
    for point in trace:
        shorter = function.evaluate(params, point.fidelity, seed=0)
        assert (shorter.value, shorter.cost) == (point.value, point.cost)


@pytest.mark.parametrize("problem", [*SIZES, *RECORDED], ids=lambda problem: problem.name)
def test_a_problem_judges_one_configuration_as_it_judges_many(problem) -> None:
    usable(problem)
    drawn = random_params(problem, 5)
    full = problem.space().full_fidelity
    expected = pytest.approx([problem.evaluate(params, full, seed=0).value for params in drawn], rel=1e-5)
    assert problem.full_values(drawn).tolist() == expected
    assert [problem.full_value(params) for params in drawn] == expected


@pytest.mark.parametrize("problem", RECORDED, ids=lambda problem: problem.name)
def test_a_recorded_run_is_seen_where_it_was_recorded(problem) -> None:
    usable(problem)
    runs = problem._runs
    [(name, fidelity)] = problem.space().fidelities.items()
    params = problem.space().check(runs.params[7])
    trace = problem.evaluate(params, {name: fidelity.high}, seed=0).trace
    assert [point.value for point in trace] == runs.values[7].tolist()
    assert [point.cost for point in trace] == runs.costs[7].tolist() == sorted(runs.costs[7])
    assert np.isfinite(runs.values).all()


@pytest.mark.parametrize("problem", ROWS[-2:], ids=lambda problem: problem.name)
def test_every_proposal_to_a_problem_of_rows_is_a_run_of_its_own(problem) -> None:
    """Next to each other, as a local search proposes; the same params again are the same run."""
    usable(problem)
    run: Any = for_one_run(problem)
    other = for_one_run(problem)
    [(name, _)] = problem.space().fidelities.items()
    proposals = [problem.space().check(problem._runs.params[7])]
    encoded = problem.space().encoder.encode(proposals)
    near = problem.space().encoder.decode(np.clip(encoded + 1e-6 * np.arange(1, 9)[:, None], 0, 1))
    values = [run.evaluate(params, {name: 3}, seed=0).trace for params in (*proposals, *near)]
    rows = [run._nearest([params])[0] for params in (*proposals, *near)]
    assert len(set(rows)) == 9
    assert rows[0] == 7, "the nearest row is the first to be given"
    assert run.evaluate(proposals[0], {name: 3}, seed=1).trace == values[0]
    assert other.evaluate(near[0], {name: 3}, seed=0).trace == values[0], "another tuning begins with all rows free"
    assert run.full_value(near[3]) == problem._runs.values[rows[4], -1]
    assert problem.full_value(near[3]) == problem._runs.values[7, -1], "the problem itself is as it was"


def test_once_all_rows_are_taken_a_proposal_is_its_nearest_one() -> None:
    run: Any = for_one_run(usable(PROBLEMS["opda-rows/convnext"]))
    count = len(run._runs.params)
    for params in random_params(run, count):
        run.evaluate(params, {"twentieths": 1}, seed=0)
    assert sorted(run._taken.values()) == list(range(count))
    last = run.space().check(run._runs.params[3])
    run.evaluate(last, {"twentieths": 1}, seed=0)
    assert run._nearest([last])[0] == 3


@pytest.mark.parametrize("name", ["lcbench/3945", "rbv2_svm/182", "opda-rows/convnext"])
def test_the_mean_cost_is_above_the_median_and_is_the_unit_of_mean_full_runs(name: str) -> None:
    problem: Any = usable(PROBLEMS[name])
    assert problem.mean_cost > problem.full_cost
    assert Allowance(10, "mean full runs").budget(problem).cost == pytest.approx(10 * problem.mean_cost)
    assert Allowance(10, "mean full runs").spent(problem, evaluations=3, cost=problem.mean_cost) == 1.0


def test_recorded_runs_have_the_figures_of_the_data_readme() -> None:
    figures = {"taskset/imdb_patch32_GRU64_avg_bs128": 0.44565, "taskset/imdb_patch32_LSTM128_bs128": 0.5301}
    for name, best in (figures | {"opda/convnext": 0.74888}).items():
        assert usable(PROBLEMS[name]).best_value == pytest.approx(best, abs=5e-5)


def test_normalised_regret_is_zero_at_the_best_random_configuration_and_one_at_the_median() -> None:
    problem = usable(PROBLEMS["taskset/imdb_patch32_GRU64_avg_bs128"])
    span = span_of(problem)
    assert (span.normalised(span.best), span.normalised(span.median)) == (0.0, 1.0)
    assert span.best == pytest.approx(0.44565, abs=5e-5)


def test_the_likelihood_of_kernel_learning_is_that_of_its_approximate_prior_and_has_its_gradient() -> None:
    rng, theta, m = np.random.default_rng(1), np.array([0.3, -0.5, -2.0]), 12
    x, y = rng.uniform(-5, 5, 40), rng.standard_normal(40)
    value, gradient = likelihood(theta, x, y, m)
    v, length, s = np.exp(theta)
    u = np.linspace(-5, 5, m)
    Kuu = v * np.exp(-0.5 * (u[:, None] - u) ** 2 / length**2) + 1e-8 * v * np.eye(m)
    Kfu = v * np.exp(-0.5 * (x[:, None] - u) ** 2 / length**2)
    Q = Kfu @ np.linalg.solve(Kuu, Kfu.T) + s * np.eye(40)
    dense = 0.5 * (np.linalg.slogdet(2 * np.pi * Q)[1] + y @ np.linalg.solve(Q, y)) / 40
    assert value == pytest.approx(dense, rel=1e-6)
    steps = 1e-5 * np.eye(3)
    numeric = [(likelihood(theta + h, x, y, m)[0] - likelihood(theta - h, x, y, m)[0]) / 2e-5 for h in steps]
    assert gradient == pytest.approx(numeric, rel=1e-4, abs=1e-7)


def test_kernel_learning_with_gradients_tells_them_in_units_of_the_params_and_costs_more() -> None:
    problem: Any = KERNEL_LEARNING[0]
    params, fidelity = random_configuration(problem), {"points": 256, "inducing": 24}
    plain, sloped = (one.evaluate(params, fidelity, seed=0) for one in (problem, problem.with_gradient()))
    assert (sloped.value, sloped.cost) == (plain.value, 2.5 * plain.cost)
    assert plain.gradient is None
    more = params | {"noise": params["noise"] * (1 + 1e-5)}
    change = problem.evaluate(more, fidelity, seed=0).value - plain.value
    assert sloped.gradient["noise"] == pytest.approx(change / (params["noise"] * 1e-5), rel=1e-3)
    assert problem.best_value < problem.full_value(params)


EVERY_BRANCHED = (*CONDITIONAL, *CONDITIONAL_FOR_TUNING)


def test_rules_for_branches_are_chosen_on_other_problems_than_reported() -> None:
    assert len(CONDITIONAL) >= 6
    assert not {problem.name for problem in CONDITIONAL} & {problem.name for problem in CONDITIONAL_FOR_TUNING}


@pytest.mark.parametrize("problem", EVERY_BRANCHED, ids=lambda problem: problem.name)
def test_random_configurations_reach_every_branch_and_none_beats_the_best_of_its_own(problem: OnBranches) -> None:
    usable(problem)
    params = random_params(problem, 100)
    best = best_by_branch()[problem.name]
    assert {problem.branch(one) for one in params} == set(best)
    assert problem.best_value == min(best.values()) == best[problem.best_branch]
    for one, value in zip(params, problem.full_values(params).tolist(), strict=True):
        assert value >= best[problem.branch(one)] - 1e-6  # six digits are stored


def test_the_best_branch_of_made_up_basins_looks_bad() -> None:
    late = PROBLEMS["basins/late"]
    assert isinstance(late, Basins)
    params = random_params(late, 200)
    values = late.full_values(params)
    usual = {
        branch: float(np.median([v for v, one in zip(values, params, strict=True) if late.branch(one) == branch]))
        for branch in "abcd"
    }
    assert usual[late.best_branch] > min(usual.values()) + 0.1
