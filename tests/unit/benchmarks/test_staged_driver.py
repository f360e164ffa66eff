"""The simulated cache of the pipelines' benchmark, and the summary over its results."""

from dataclasses import replace
from itertools import islice

import pytest

from benchmarks.drivers.staged import Staged
from benchmarks.pipelines.summary import geometric_mean, summary
from benchmarks.pipelines.synthetic import HARTMANN, STAGED_FUNCTIONS, TUNING, StagedFunction
from benchmarks.plan import Run
from benchmarks.run import result_of
from benchmarks.suites import SUITES, Contest
from benchmarks.tuning import rent_rules
from farthing.costs import Budget
from farthing.strategies.pipeline.prefix_ei import PrefixEI
from farthing.strategies.plain.random import Random

PROBLEM = StagedFunction("small", HARTMANN, (2, 2, 2), (40.0, 10.0, 1.0))


def test_what_was_computed_before_is_not_paid_again_but_the_last_stage_is() -> None:
    steps = list(islice(Staged("ours", PrefixEI()).run(PROBLEM, budget=Budget(cost=500.0), seed=0), 8))
    assert steps[0].cost == 51.0
    assert {step.cost for step in steps} <= {51.0, 11.0, 1.0}
    assert 1.0 in {step.cost for step in steps}


def test_movement_is_what_differs_from_the_configuration_before_without_the_last_stage() -> None:
    steps = list(islice(Staged("random", Random()).run(PROBLEM, budget=Budget(cost=500.0), seed=0), 3))
    assert [step.tallies["movement"] for step in steps] == [50.0, 50.0, 50.0]
    assert all(0.0 < step.tallies["regret"] <= 1.0 for step in steps)


def test_results_have_tallies_where_they_are_judged_and_the_summary_shows_them() -> None:
    contest = Contest("shifted", ("small",), ("one", "two"), judged_at=(2, 4), unit="full runs")
    records = [
        result_of(Run(contest, PROBLEM, Staged(name, PrefixEI(initial=2)), seed), suite="s")
        for name in ("one", "two")
        for seed in (0, 1)
    ]
    assert list(records[0]["tallies"]) == ["2", "4"]
    tallies = [records[0]["tallies"][at] for at in ("2", "4")]
    assert tallies[0]["movement"] < tallies[1]["movement"]  # going back moves, but is not paid
    assert tallies[0]["evaluations"] < tallies[1]["evaluations"]
    centred = replace(contest, name="centred", problems=("small", "not run yet"))
    assert "not run yet" in summary(centred, records)
    text = summary(contest, records)
    assert "Over 2 pairs" in text
    assert "1.50" in text  # the same method twice shares its ranks


def test_geometric_means_are_not_ruled_by_zeros_nor_by_what_has_nothing_yet() -> None:
    assert geometric_mean([0.0, 1.0]) == pytest.approx(1e-3)
    assert geometric_mean([float("inf"), 0.01]) == pytest.approx(0.1)


def test_rules_are_chosen_on_other_places_than_those_that_are_reported() -> None:
    names = {name for contest in SUITES["pipeline-synthetic"].contests for name in contest.problems}
    reported = [problem for problem in STAGED_FUNCTIONS if problem.name in names]
    assert len(reported) == len(names)
    for chosen_on in (TUNING, rent_rules.PROBLEMS):
        assert chosen_on
        assert not {problem.name for problem in chosen_on} & names
        assert not {problem.place for problem in chosen_on} & {problem.place for problem in reported}
