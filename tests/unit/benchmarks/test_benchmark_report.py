"""The arithmetic of reports, on results small enough to work out by hand."""

import json
import math
from pathlib import Path

import pytest

from benchmarks.comparing import Wins, by_best_touched, in_mean_runs, judge, mean_scores, score_at
from benchmarks.report import Report, branches_table
from benchmarks.spread import Spread
from benchmarks.suites import Contest, Suite

CONTEST = Contest("toy", ("p", "q"), ("a", "b", "c"), judged_at=(2, 4), unit="evaluations")
SUITE = Suite("toy", (CONTEST,), seeds=2)


def step(spent: float, regret: float | None, loss: float = 0.0) -> dict:
    return {"spent": spent, "evaluations": spent, "regret": regret, "loss": loss, "params": {}}


def record(problem: str, method: str, seed: int, *regrets: tuple[float, float], amount: float = 4) -> dict:
    return {
        "contest": "toy",
        "problem": problem,
        "method": method,
        "seed": seed,
        "settings": {"method": {}, "allowance": {"amount": amount, "unit": "evaluations"}},
        "steps": [step(spent, regret) for spent, regret in regrets],
        "evaluations": 4,
        "suggest_cpu_seconds": 0.008,
        "versions": {"farthing": "1"},
        "commit": "abc",
        "dirty": False,
    }


RECORDS = [
    record("p", "a", 0, (1, 5.0), (3, 1.0)),
    record("p", "b", 0, (1, 4.0), (4, 2.0)),
    record("p", "c", 0, (1, 4.0)),
    record("p", "a", 1, (1, 7.0), (3, 3.0)),
    record("p", "b", 1, (3, 3.0)),  # nothing yet when 2 are spent
    record("p", "c", 1, (1, 8.0)),
    record("q", "a", 0, (1, 1.0)),
    record("q", "b", 0, (1, 2.0)),  # c has no result here: this pair does not count for ranks
]


def test_a_spread_is_the_median_between_the_quartiles() -> None:
    assert Spread.of([1, 2, 3, 4, 5]) == (3, 2, 4, 5)
    assert Spread.of([1, 2]) == (1.5, 1.25, 1.75, 2)
    assert str(Spread.of([0.12345, 0.12345])) == "0.123 [0.123, 0.123]"


def test_a_spread_knows_those_that_have_nothing() -> None:
    spread = Spread.of([1.0, math.inf, math.inf])
    assert (spread.median, spread.high) == (math.inf, math.inf)
    assert spread.to_json() == {"median": None, "low_quartile": None, "high_quartile": None, "n": 3}
    assert Spread.from_json(spread.to_json()).median == math.inf


def test_what_was_recommended_when_so_much_was_spent_counts() -> None:
    run = record("p", "a", 0, (1, 5.0), (3, 1.0))
    assert [score_at(run, spent) for spent in (0.5, 1, 2.9, 3, 9)] == [math.inf, 5.0, 5.0, 1.0, 1.0]


def test_where_the_best_is_unknown_the_loss_counts() -> None:
    assert score_at({"steps": [step(1, None, loss=-0.8)]}, 1) == -0.8


def test_spreads_wins_and_ranks_are_those_worked_out_by_hand() -> None:
    early = judge(RECORDS, CONTEST.methods, at=2)
    # seed 0: a 5, b 4, c 4 → ranks 3, 1.5, 1.5; seed 1: a 7, b none, c 8 → ranks 1, 3, 2
    assert early.pairs == 2
    assert early.average_rank == {"a": 2.0, "b": 2.25, "c": 1.75}
    assert early.wins["a", "b"] == Wins(2, 0, 1)
    assert early.wins["b", "c"] == Wins(0, 1, 1)
    assert early.spreads["p"]["a"] == Spread(6.0, 5.5, 6.5, 2)
    late = judge(RECORDS, CONTEST.methods, at=4)
    # seed 0: 1, 2, 4 → 1, 2, 3; seed 1: 3, 3, 8 → 1.5, 1.5, 3
    assert late.average_rank == {"a": 1.25, "b": 1.75, "c": 3.0}
    assert late.wins["a", "b"] == Wins(2, 1, 0)


def test_wins_mirror_each_other() -> None:
    wins = judge(RECORDS, CONTEST.methods, at=4).wins
    for (one, other), (won, tied, lost) in wins.items():
        assert wins[other, one] == (lost, tied, won)


def test_a_report_states_n_versions_commits_and_what_has_no_results() -> None:
    absent = [one for one in RECORDS if one["method"] != "c"]
    report = Report.of(SUITE, absent)
    assert report.without_results == ("c",)
    assert report.commits == ("abc",)
    text = report.to_markdown()
    assert "No results of: c." in text
    assert "over 3 pairs" in text
    assert "Versions: farthing 1. Commit: abc." in text
    assert "| p" in text
    assert "| 2 |" in text.replace("   ", " ").replace("  ", " ")


def test_the_best_median_is_in_bold() -> None:
    rows = Report.of(SUITE, RECORDS).to_markdown().splitlines()
    late = [row for row in rows if row.startswith("| p")][-1]
    assert "**2 [1.5, 2.5]**" in late
    assert late.count("**") == 2


def test_a_report_is_plain_json() -> None:
    report = json.loads(json.dumps(Report.of(SUITE, RECORDS).to_json(), allow_nan=False))
    late = report["contests"][0]["judged"][1]
    assert late["regret"]["p"]["b"] == {"median": 2.5, "low_quartile": 2.25, "high_quartile": 2.75, "n": 2}
    assert late["wins_ties_losses"]["a against b"] == [2, 1, 0]
    assert report["contests"][0]["suggest_cpu_ms"]["a"] == pytest.approx(2.0)


def test_the_last_result_of_a_run_counts_and_other_allowances_do_not() -> None:
    stale = record("q", "a", 0, (1, 100.0), amount=9)
    again = record("q", "a", 0, (1, 0.5))
    report = Report.of(SUITE, [*RECORDS, stale, again])
    assert report.contests[0].judgements[0].spreads["q"]["a"] == Spread(0.5, 0.5, 0.5, 1)


def test_mixed_commits_are_said() -> None:
    other = {**RECORDS[0], "commit": "def", "dirty": True, "seed": 9}
    assert Report.of(SUITE, [*RECORDS, other]).commits == ("abc", "def with changes")


def test_a_report_without_results_says_how_to_make_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.report import main

    assert main(["foundation", "--input", str(tmp_path / "none.jsonl")]) == 1
    assert "python -m benchmarks.run foundation" in capsys.readouterr().err


def test_normalised_scores_are_averaged_by_family_and_nothing_counts_as_the_median() -> None:
    scores = {
        ("lcbench/1", 0): {"a": 0.2, "b": 0.4},
        ("lcbench/2", 0): {"a": 0.0, "b": math.inf},
        ("opda/x", 0): {"a": 0.4, "b": 0.1},
        ("opda/x", 1): {"a": 9.0},
    }
    means = mean_scores(scores, ("a", "b"))
    assert means["all"] == pytest.approx({"a": 0.2, "b": 0.5})
    assert means["lcbench"] == pytest.approx({"a": 0.1, "b": 0.7})
    assert means["opda"] == pytest.approx({"a": 0.4, "b": 0.1})


def test_the_best_that_anybody_touched_is_the_other_end_of_the_scale() -> None:
    span = {"best": 1.0, "median": 3.0}
    records = [
        {"problem": "p", "method": "a", "seed": 0, "span": span, "steps": [{"spent": 1, "loss": 2.0, "regret": None}]},
        {"problem": "p", "method": "b", "seed": 0, "span": span, "steps": [{"spent": 1, "loss": 0.5, "regret": None}]},
        {"problem": "q", "method": "a", "seed": 0, "span": span, "steps": [{"spent": 1, "loss": 2.0, "regret": None}]},
    ]
    assert [score_at(record, 1) for record in by_best_touched(records)] == [0.6, 0.0, 0.5]


def test_a_score_is_normalised_where_the_record_says_by_what() -> None:
    steps = [{"spent": 1, "loss": -0.5, "regret": 0.3}]
    assert score_at({"steps": steps, "span": {"best": -0.9, "median": -0.1}}, 1) == pytest.approx(0.5)
    assert score_at({"steps": steps, "span": None}, 1) == 0.3


def test_records_of_usual_runs_can_be_counted_in_mean_ones() -> None:
    steps = [{"spent": 1.0, "cost": 70.0, "loss": 2.0, "regret": None}]
    [converted] = in_mean_runs([{"problem": "p", "steps": steps}], {"p": 100.0})
    assert converted["steps"][0]["spent"] == pytest.approx(0.7)
    assert steps[0]["spent"] == 1.0, "the record itself is as it was"


def test_where_a_space_has_branches_wrong_ones_and_second_halves_without_a_gain_are_counted() -> None:
    def branched(seed: int, *steps: tuple[float, float, bool]) -> dict:
        found = record("p", "a", seed)
        return {**found, "steps": [step(spent, regret) | {"right": right} for spent, regret, right in steps]}

    records = [
        branched(0, (1, 5.0, False), (3, 1.0, True)),
        branched(1, (1, 5.0, False), (3, 4.96, False)),  # less than 1 % in the second half
        branched(2, (1, 5.0, True)),
    ]
    assert branches_table(CONTEST, ("a",), RECORDS) is None
    text = Report.of(SUITE, records).to_markdown()
    [row] = [line for line in text.splitlines() if line.startswith("| a ") and " of 3" in line]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["a", "2 of 3", "1 of 3", "2 of 3"]
