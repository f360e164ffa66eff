"""Real pipelines as benchmark problems."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Queue

import numpy as np
import pytest

from benchmarks.comparing import paired_wins, scores_at
from benchmarks.drivers.sklearn import Randomized, Search
from benchmarks.drivers.staged import Staged, StagedTPE
from benchmarks.pipelines import fashion, nuclei
from benchmarks.pipelines.near_best import report, within
from benchmarks.pipelines.nuclei import Nuclei, NucleiInTwo
from benchmarks.pipelines.sklearn import Table
from benchmarks.problems import Evaluation, Params
from benchmarks.records import append_record, read_records, results_path
from benchmarks.report import current_records
from benchmarks.suites import COUNTING, SEARCHES, SUITES
from farthing.costs import Budget
from farthing.space import Int, Space
from farthing.strategies.plain.random import Random


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table without the shared data: two classes that a kernel tells apart."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 10))
    monkeypatch.setattr(Table, "data", (X, (np.sum(X**2, axis=1) > 9).astype(int)))
    return Table("sklearn/none", "none")


@pytest.mark.parametrize("method", [Search("ours", Random()), Search("optuna"), Randomized("randomized")], ids=str)
def test_a_search_is_paid_for_what_it_did_and_recommends_the_best_it_saw(
    table: Table, method: Search | Randomized
) -> None:
    if reason := method.missing():
        pytest.skip(reason)
    steps = list(islice(method.run(table, budget=Budget(cost=10), seed=1), 4))
    assert all(step.cost > 0 for step in steps)
    assert len(table.seen) == 4
    assert table.full_value(steps[-1].recommended) == min(table.seen.values())


def test_searches_agree_on_the_value_of_a_configuration(table: Table) -> None:
    steps = list(islice(Search("ours", Random()).run(table, budget=Budget(cost=10), seed=1), 3))
    search, params = table.search(), dict(steps[-1].recommended)
    for name in ("scale", "map"):
        search.estimator.set_params(**{name: search.alternatives[name][params.pop(name)]})
    from sklearn.model_selection import cross_val_score

    scores = cross_val_score(search.estimator.set_params(**params), *table.data, cv=search.cv)
    assert min(table.seen.values()) == pytest.approx(1.0 - scores.mean(), abs=1e-12)


CALLS: Queue[str] = Queue()
"""What is in a queue is no part of the version of the code that uses it."""


class _Example:
    """Stages that need no images, in the place of the example's."""

    @staticmethod
    def load() -> float:
        return 1.0

    @staticmethod
    def denoise(source: float, *, sigma: float, window: int, radius: int) -> float:
        CALLS.put("denoise")
        return source + sigma

    @staticmethod
    def train(previous: float, *, rate: float, units: int) -> float:
        CALLS.put("train")
        return previous * units

    @staticmethod
    def clean(previous: float, *, cut: float, opening: int, area: int) -> float:
        CALLS.put("clean")
        return 1.0 / (previous + cut)


def test_a_prefix_is_measured_once_for_all_methods_and_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.queue.clear()
    monkeypatch.setattr(nuclei, "example", _Example)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    params = {"sigma": 1.0, "window": 1, "radius": 3, "rate": -2.0, "units": 3, "cut": 0.5, "opening": 0, "area": 0}
    first = Nuclei(table=tmp_path / "table.jsonl")
    costs, value = first.stage_costs(params), first.full_value(params)
    assert value == 1.0 - 1.0 / (2.0 * 8 + 0.5)
    assert len(costs) == 3
    again = Nuclei(table=tmp_path / "table.jsonl")
    assert (again.stage_costs(params), again.full_value(params)) == (costs, value)
    assert list(CALLS.queue) == ["denoise", "train", "clean"]
    again.full_value({**params, "cut": 0.1})
    assert list(CALLS.queue) == ["denoise", "train", "clean", "clean"]
    steps = list(islice(Staged("random", Random()).run(again, budget=Budget(cost=10), seed=0), 3))
    assert again.full_value(steps[-1].recommended) <= again.full_value(steps[0].recommended)
    in_two = NucleiInTwo(in_three=again)
    assert in_two.stage_costs(params) == (costs[0] + costs[1], costs[2])
    assert in_two.full_value(params) == value
    assert set(in_two.space().parameters) == set(again.space().parameters)


def test_tpe_has_the_same_cache_and_pays_for_new_prefixes_alone() -> None:
    method = StagedTPE("tpe")
    if reason := method.missing():
        pytest.skip(reason)
    space = Space(stages={"one": {"a": Int(0, 1)}, "two": {"b": Int(0, 9)}})

    @dataclass(frozen=True)
    class Small:
        name: str = "small"
        direction: str = "minimize"
        best_value: float | None = 0.0
        full_cost: float = 11.0

        def missing(self) -> str | None:
            return None

        def space(self) -> Space:
            return space

        def stage_costs(self, params: Params) -> tuple[float, ...]:
            return (10.0, 1.0)

        def full_value(self, params: Params) -> float:
            return float(params["a"] + params["b"])

        def evaluate(self, params: Params, fidelity: object, *, seed: int) -> Evaluation:
            return Evaluation(self.full_value(params), 11.0)

    problem = Small()
    steps = list(islice(method.run(problem, budget=Budget(cost=100), seed=0), 12))
    assert sorted({step.cost for step in steps}) == [1.0, 11.0]
    assert sum(step.cost == 11.0 for step in steps) == 2, "each value of the first stage is paid for once"
    assert problem.full_value(steps[-1].recommended) <= problem.full_value(steps[0].recommended)


def test_stages_of_fashion_are_pure_and_tell_classes_apart() -> None:
    """On made-up images: stripes in ten directions."""
    rng = np.random.default_rng(0)
    down, across = np.mgrid[0 : fashion.SIDE, 0 : fashion.SIDE]
    labels = np.arange(fashion.TRAIN + fashion.VALIDATION) % fashion.CLASSES
    angle = np.pi * labels[:, None, None] / fashion.CLASSES
    images = np.sin(0.9 * (np.cos(angle) * across + np.sin(angle) * down)) + 0.1 * rng.standard_normal(
        (len(labels), fashion.SIDE, fashion.SIDE)
    )
    rows = fashion.features(images, blur=1.0, cell=14, orientations=10, power=1.0)
    assert rows.shape == (len(labels), 40)
    small = fashion.decompose(rows, components=20, whiten=False)
    assert small.shape == (len(labels), 20)
    assert small[: fashion.TRAIN, 0].std() == pytest.approx(1.0)
    np.testing.assert_array_equal(fashion.decompose(rows, components=20, whiten=False), small)


def test_the_time_to_come_near_the_best_is_that_of_the_first_step_there() -> None:
    steps = [{"cost": 1.0, "value": 0.5}, {"cost": 4.0, "value": 0.22}, {"cost": 9.0, "value": 0.2}]
    records = [{"method": "a", "seed": 0, "steps": steps}, {"method": "b", "seed": 0, "steps": steps[:1]}]
    assert within(records, 0.05, 0.2) == {"a": {0: 4.0}, "b": {0: float("inf")}}


def test_the_report_says_who_was_near_the_best_first(tmp_path: Path) -> None:
    for method, cost in (("a", 2.0), ("b", 6.0)):
        for seed in range(2):
            steps = [{"cost": 1.0, "value": 0.5}, {"cost": cost + seed, "value": 0.2}]
            record = {"problem": "nuclei", "method": method, "seed": seed, "steps": steps}
            append_record(tmp_path / "records.jsonl", record)
    append_record(tmp_path / "records.jsonl", {**record, "problem": "other", "steps": [{"cost": 1.0, "value": 0.0}]})
    said = report(tmp_path / "records.jsonl", "nuclei")
    assert "the best known score, 0.800" in said
    assert "| b | 6.5 | 6.0, 7.0 | 2 of 2 |" in " ".join(said.split())


@pytest.mark.parametrize("name", [SEARCHES[0], COUNTING[0]])
def test_the_page_says_who_won_how_many_pairs_of_searches(name: str) -> None:
    """Wins, ties and losses of `PrefixEI` against the others after 1, 2 and 4 seconds."""
    contest = next(one for one in SUITES["pipeline-real"].contests if one.name == name)
    records = current_records(contest, read_records(results_path("pipeline-real")))
    page = (Path(__file__).parents[3] / "docs" / "systems" / "pipeline.md").read_text(encoding="utf-8")
    first, *others = contest.methods
    for at in contest.judged_at:
        wins = paired_wins(scores_at(records, at), contest.methods)
        assert f"| after {at} s | | {' | '.join(str(wins[first, other]) for other in others)} |" in page
