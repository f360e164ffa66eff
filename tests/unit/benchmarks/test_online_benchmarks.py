"""The suites that are played in rounds."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.online.playing import play
from benchmarks.online.report import report
from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.online.worlds import ARMS, SYNTHETIC, fitted_facts
from benchmarks.records import read_records
from benchmarks.run import main
from farthing.online import CEGPUCB
from farthing.rules import Every


def test_a_world_is_the_same_for_every_strategy_and_seed() -> None:
    world = ARMS[2]
    first = world.truth(3).F.copy()
    world.truth(4)
    np.testing.assert_array_equal(world.truth(3).F, first)


def test_the_drifting_world_keeps_its_variance() -> None:
    """f_{t+1} = √(1−ε) f_t + √ε g has the variance of g; over 500 rounds of 1000 points to within a third."""
    F = SYNTHETIC[-1].truth(0).F
    assert F.shape == (500, 1000)
    assert float(np.var(F[-200:])) == pytest.approx(1.0, abs=0.33)


def test_the_first_measurement_is_not_counted() -> None:
    score = play(CEGPUCB(kernel="independent", noise=0.01, forgetting=0.01, scale=1.0, rule=Every(1)), ARMS[0], seed=0)
    assert score.queries == ARMS[0].rounds - 1
    assert score.regret >= 0.0


def test_forgetting_is_found_in_earlier_readings() -> None:
    rng = np.random.default_rng(0)
    Z = np.zeros((4000, 3))
    for t in range(1, 4000):
        Z[t] = np.sqrt(0.9) * Z[t - 1] + np.sqrt(0.1) * rng.standard_normal(3)
    # correlations of 4000 steps with memory 20 are good to about 5 %
    assert fitted_facts(Z)["forgetting"] == pytest.approx(0.1, rel=0.3)


def test_a_suite_is_run_through_the_one_command_and_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "arms.jsonl"
    arguments = ["online-arms", "--quick", "--json", "--seeds", "1", "--problems", "sine", "--output", str(file)]
    assert main([*arguments, "--methods", "UCB1*"]) == 0
    capsys.readouterr()
    assert main([*arguments, "--methods", "UCB1*", "softmax"]) == 0
    records = read_records(file)
    assert [record["method"] for record in records] == ["UCB1, forgetting", "softmax"]
    shown = json.loads(capsys.readouterr().out)
    assert set(shown["worlds"][0]["rows"]) == {"UCB1, forgetting", "softmax"}


def test_curves_are_compared_at_equal_cost() -> None:
    suite = ONLINE_SUITES["online-synthetic"]
    games = {"CE κ=0.6": (10, 4.0), "CE κ=0.7": (1000, 2.0), "default": (100, 2.0)}
    records = [
        {"problem": "ε", "method": name, "seed": seed, "regret": regret, "queries": queries, "cpu_ms_a_round": 1.0}
        | {"commit": "c", "dirty": False}
        for name, (queries, regret) in games.items()
        for seed in range(3)
    ]
    (against,) = report(suite, records)["worlds"][0]["at_equal_cost"]
    assert against["their_value"] == pytest.approx(3.0)
    assert against["below_by"] == pytest.approx(1 / 3)
