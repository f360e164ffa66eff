"""Contests of pipelines in which all strategies begin with the same random configurations."""

from itertools import islice

from benchmarks.baselines.staged import StagedBO
from benchmarks.drivers.staged import Staged
from benchmarks.pipelines.synthetic import HARTMANN, StagedFunction
from farthing.costs import Budget
from farthing.strategies.pipeline.lambo import LaMBO

PROBLEM = StagedFunction("small", HARTMANN, (2, 2, 2), (40.0, 10.0, 1.0))


def test_contests_with_equal_starts_begin_with_the_same_random_configurations() -> None:
    """They are those that `LaMBO.paper()` draws itself; from then on each strategy decides."""
    begun = {}
    for name, first, strategy in (
        ("paper", 3, LaMBO.paper(initial=3)),
        ("its own", 0, LaMBO.paper(initial=3)),
        ("ei", 3, StagedBO(cost="none")),
        ("none", 0, StagedBO(cost="none")),
    ):
        run = Staged(name, strategy, first=first).run(PROBLEM, budget=Budget(cost=500.0), seed=0)
        begun[name] = [step.tallies["regret"] for step in islice(run, 5)]
    assert begun["paper"] == begun["its own"]
    assert begun["ei"][:3] == begun["paper"][:3]
    assert begun["ei"][3:] != begun["paper"][3:]
    assert begun["none"][:3] != begun["ei"][:3]
