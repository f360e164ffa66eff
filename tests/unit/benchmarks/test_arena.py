"""The arena of real trainings, on a made-up table whose curves and costs are known."""

import json
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from benchmarks import arena, paired, run
from benchmarks.methods import METHODS
from benchmarks.plan import Run
from benchmarks.problems import PROBLEMS, Problem
from benchmarks.problems.forests import NOISE, ForestCurves, forest_of
from benchmarks.problems.problem import random_params
from benchmarks.problems.recorded import Rows, read_runs, table_space
from benchmarks.records import Record, key_of, read_records
from benchmarks.resuming import make_missing
from benchmarks.suites import ARENAS, Contest

POINTS = 20
ROWS = 80
SPACE = {
    "lr": {"kind": "float", "low": 1e-4, "high": 1.0, "log": True},
    "one_minus_momentum": {"kind": "float", "low": 0.01, "high": 0.5, "log": True},
    "layers": {"kind": "int", "low": 1, "high": 4, "log": False},
    "width": {"kind": "choice", "low": 16, "high": 64, "log": True, "choices": [16.0, 32.0, 64.0]},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The best rate is 0.01; wide networks are better and cost more."""
    rng, path = np.random.default_rng(5), tmp_path_factory.mktemp("tables") / "made_up.npz"
    lr = 10 ** rng.uniform(-4, 0, ROWS)
    momentum = 1 - 10 ** rng.uniform(-2, np.log10(0.5), ROWS)
    layers, width = rng.integers(1, 5, ROWS), rng.choice([16.0, 32.0, 64.0], ROWS)
    end = 0.1 + 0.2 * np.abs(np.log10(lr) + 2) + 0.05 * np.log2(64 / width) + rng.normal(0, 0.01, ROWS)
    curves = end[:, None] * (1 + np.exp(-np.arange(1, POINTS + 1) / 6))
    arrays = {"lr": lr, "momentum": momentum, "layers": layers, "width": width, "curves": curves, "seconds": width / 16}
    np.savez(path, space=json.dumps(SPACE), **arrays)
    return str(path)


@pytest.fixture(scope="module")
def rows(table: str) -> Rows:
    return Rows("rows/made_up", table, table_space(table), "minimize")


@pytest.fixture(scope="module")
def forest(table: str) -> ForestCurves:
    pytest.importorskip("sklearn")
    return ForestCurves("forest/made_up", table, table_space(table))


def run_of(problem: Problem, method: str, *, budget: float, seed: int = 0) -> Run:
    contest = Contest("made up", (problem.name,), (method,), judged_at=(budget,), unit="mean full runs")
    return Run(contest, problem, METHODS[method], seed)


def record_of(problem: Problem, method: str, *, budget: float) -> Record:
    return arena.result_of(run_of(problem, method, budget=budget), suite="made-up")


def tried(record: Record) -> list[tuple[int, int]]:
    return list(zip(record["tried"][::2], record["tried"][1::2], strict=True))


# ---------------------------------------------------------------------------------------------------------- the table


def test_a_table_is_read_with_the_space_that_it_declares(table: str) -> None:
    runs, space = read_runs(table), table_space(table)
    with np.load(table) as stored:
        momentum = 1.0 - stored["momentum"]
    assert [params["one_minus_momentum"] for params in runs.params] == pytest.approx(momentum.tolist())
    assert {params["width"] for params in runs.params} == {16, 32, 64}
    assert space.full_fidelity == {"point": POINTS}
    # Costs are linear in the points, and wide networks cost four times as much as narrow ones.
    assert runs.costs[:, 4] == pytest.approx(runs.costs[:, -1] / 4)
    assert runs.costs[:, -1] == pytest.approx([params["width"] / 16 for params in runs.params])


def test_a_strategy_is_told_another_row_for_each_proposal_until_all_have_run(rows: Rows) -> None:
    begun = rows.for_run()
    proposal = random_params(rows, 1)[0]
    first = begun.nearest_free(proposal)
    assert begun.nearest_free(proposal) == first, "nothing is taken by asking"
    begun.evaluate(first, {"point": 1}, seed=0)
    second = begun.nearest_free(proposal)
    assert second != first
    begun.evaluate(second, {"point": 1}, seed=0)
    encoder = rows.space().encoder
    x, *told = encoder.encode([proposal, first, second])
    assert begun.distances == pytest.approx([float(np.linalg.norm(x - row)) for row in told])
    assert begun.nearest_free(first) == first, "a row that ran stands for itself"


# --------------------------------------------------------------------------------------------------------- the studies


@pytest.mark.parametrize("method", ["TraceKG", "asha", "bohb", "hyperband", "random"])
def test_what_was_tried_costs_what_the_table_says_and_no_more_than_the_budget(rows: Rows, method: str) -> None:
    record, runs = record_of(rows, method, budget=2), read_runs(rows.file)
    reached: dict[int, int] = {}
    paid = 0.0
    for row, point in tried(record):
        paid += runs.costs[row, point - 1] - (runs.costs[row, reached[row] - 1] if row in reached else 0.0)
        reached[row] = point
    assert record["spent"] == pytest.approx(paid / (2 * rows.mean_cost), abs=1e-4)
    assert 0 < record["spent"] <= 1
    assert record["configurations"] == len(reached)
    assert record["finished"] == sum(point == POINTS for point in reached.values())


def test_regret_is_that_of_the_recommended_row_on_the_scale_of_the_rows(rows: Rows) -> None:
    record, final = record_of(rows, "asha", budget=2), read_runs(rows.file).values[:, -1]
    regrets = (final - final.min()) / (np.median(final) - final.min())
    assert record["regret"] == pytest.approx(regrets[record["recommended"]], abs=1e-4)
    assert record["visited"] == pytest.approx(min(regrets[row] for row, _ in tried(record)), abs=1e-4)
    assert record["visited"] <= record["regret"] <= arena.MOST


def test_regret_is_capped_and_a_study_without_a_result_has_that_of_the_median(rows: Rows) -> None:
    worst = max(read_runs(rows.file).params, key=rows.full_value)
    assert rows.span.normalised(rows.full_value(worst)) > arena.MOST, "so that there is something to cap"
    records = [record_of(rows, "random", budget=budget) for budget in (0.01, 5)]
    assert (records[0]["regret"], records[0]["tried"]) == (arena.NOTHING, [])
    assert records[1]["regret"] <= arena.MOST


def test_the_trials_of_a_study_have_the_params_of_rows(rows: Rows) -> None:
    played, problem = arena.play(run_of(rows, "TraceKG", budget=2))
    known = read_runs(rows.file).params
    assert isinstance(problem, arena.WatchedRows)
    assert all(known[one.configuration] == one.params for one in played)
    assert played[-1].step.recommended in known
    assert fmean(problem.rows.distances) > 0.1, "proposals lie between the rows"


def test_peers_keep_their_proposals_or_are_told_the_row(rows: Rows) -> None:
    pytest.importorskip("optuna")
    played, _ = arena.play(run_of(rows, "optuna-tpe-hyperband", budget=3))
    known = read_runs(rows.file).params
    assert all(known[one.configuration] == pytest.approx(one.params) for one in played)
    assert {one.reached["point"] for one in played} - {POINTS}, "some were pruned, and count as far as they were paid"


def test_a_record_is_small_and_its_steps_are_listed(rows: Rows, forest: ForestCurves) -> None:
    of_rows, of_forest = record_of(rows, "TraceKG", budget=3), record_of(forest, "TraceKG", budget=3)
    assert "measured" not in of_rows, "the table tells"
    assert len(of_forest["measured"]) == len(tried(of_forest))
    assert min(of_forest["finals"]) == pytest.approx(1000 * of_forest["visited"], abs=1)
    assert max(len(json.dumps(one)) for one in (of_rows, of_forest)) < 1500


@pytest.mark.parametrize("processes", [1, 2])
def test_studies_are_continued_with_one_process_or_two(rows: Rows, tmp_path: Path, processes: int) -> None:
    runs = [run_of(rows, method, budget=budget) for budget in (1, 2) for method in ("asha", "random")]
    path = tmp_path / "results.jsonl"
    make = partial(make_missing, path, result_of=partial(arena.result_of, suite="made-up"), processes=processes)
    make(runs[:1])
    make(runs)
    records = read_records(path)
    assert [key_of(record) for record in records] == [key_of(run.identity) for run in runs]
    assert [record["tried"] for record in records] == [
        record_of(rows, run.method.name, budget=run.contest.allowance.amount)["tried"] for run in runs
    ]


# --------------------------------------------------------------------------------------------------------- the forests


def test_a_configuration_of_a_forest_has_one_curve_with_the_noise_of_a_whole_recorded_one(forest: ForestCurves) -> None:
    found, encoder = forest_of(forest.file), forest.space().encoder
    for params in random_params(forest, 20):
        curve = [point.value for point in forest.evaluate(params, {"point": POINTS}, seed=0).trace]
        noise = np.array(curve) - found.regressor.predict(encoder.encode([params]))[0, :POINTS]
        assert np.abs(NOISE * found.residuals - noise).max(axis=1).min() < 1e-9
        assert forest.evaluate(params, {"point": 7}, seed=1).value == curve[6], "the same in every study"


def test_a_forest_costs_and_scores_about_what_its_rows_do(forest: ForestCurves, rows: Rows) -> None:
    # A mean of logarithms lies below the mean. In a table this small most residuals are neighbours, so that the best of
    # 20 000 has a large one.
    assert forest.mean_cost == pytest.approx(rows.mean_cost, rel=0.2)
    assert arena.scale_of(forest).median == pytest.approx(rows.span.median, rel=0.2)
    assert arena.scale_of(forest).best == pytest.approx(rows.span.best, abs=0.2 * rows.span.median)


# ------------------------------------------------------------------------------------------------ suites and comparison


def test_what_is_reported_was_not_chosen_on() -> None:
    chosen, reported = (
        {name for contest in ARENAS[suite].contests for name in contest.problems}
        for suite in ("real-curves-tuning", "real-curves")
    )
    assert not chosen & reported
    assert not {name.partition("/")[2] for name in chosen} & {name.partition("/")[2] for name in reported}
    assert {"rows/lm_code", "forest/mixer_fashion", "opda-rows/deberta"} <= chosen
    assert {"opda-rows/convnext", "rbv2_svm/182", "lcbench/167152"} <= reported


def made_record(method: str, seed: int, regret: float, *, problem: str = "rows/a", budget: float = 5) -> Record:
    allowance = {"amount": budget, "unit": "mean full runs"}
    return {
        "problem": problem,
        "method": method,
        "seed": seed,
        "settings": {"allowance": allowance},
        "regret": regret,
        "visited": regret / 2,
    }


def test_differences_are_of_pairs_only(capsys: pytest.CaptureFixture[str]) -> None:
    own = [made_record("TraceKG", seed, regret) for seed, regret in enumerate([0.1, 0.2, 0.6])]
    theirs = [made_record("asha", seed, regret) for seed, regret in enumerate([0.3, 0.2, 0.2, 0.9])]
    paired.print_pairs([*own, *theirs, made_record("asha", 0, 0.5, problem="forest/b", budget=1)])
    printed = capsys.readouterr().out
    # Differences −.2, 0, +.4: mean .067, deviation .306, so that the error of three is .176 and the end .412.
    assert "+0.067 ± 0.176 (≤ +0.412) 1–1–1" in printed
    assert "0.300 (0.150) n 3" in printed
    assert "0.400 (0.200) n 4" in printed
    assert [line for line in printed.splitlines() if line.startswith("##")] == ["## rows", "## forest", "## all"]


def test_results_of_two_versions_are_told_apart_by_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, regret in (("before", 0.4), ("after", 0.3)):
        lines = [json.dumps(made_record("TraceKG", seed, regret + seed / 10)) for seed in range(3)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = [str(tmp_path / "before.jsonl"), str(tmp_path / "after.jsonl")]
    named = ["--method", "TraceKG@after", "--against", "TraceKG@before"]
    assert paired.main(["real-curves", "--input", *files, *named]) == 0
    assert "| TraceKG@after − TraceKG@before | -0.100 ± 0.000 (≤ -0.100) 3–0–0 |" in capsys.readouterr().out


def test_the_command_makes_the_studies_that_are_named(tmp_path: Path) -> None:
    if reason := PROBLEMS["rows/lm_code"].missing():
        pytest.skip(reason)
    path = tmp_path / "results.jsonl"
    named = ["--problems", "rows/lm_code", "--methods", "asha", "random", "--budgets", "1", "--output", str(path)]
    assert run.main(["real-curves-tuning", "--seeds", "2", *named]) == 0
    made = [(record["seed"], record["method"]) for record in read_records(path)]
    assert made == [(seed, method) for seed in (0, 1) for method in ("asha", "random")]
