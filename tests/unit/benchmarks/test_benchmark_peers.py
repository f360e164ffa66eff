"""Peers that promote: what they pay, what they are told, and how our own run in batches and with gradients."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

import farthing as ft
from benchmarks.drivers.cheap import cheap_space
from benchmarks.drivers.dehb import VERSION
from benchmarks.drivers.elsewhere import DEHB, NEPS
from benchmarks.drivers.flaml import cheapest
from benchmarks.drivers.ours import Ours
from benchmarks.drivers.paying import added_cost
from benchmarks.drivers.promoting import Incumbent, PausedRuns, plain_value, rounded
from benchmarks.method import Method, Step
from benchmarks.methods import METHODS
from benchmarks.problems import Evaluation, Params, Point, Problem
from benchmarks.problems.data import REPOSITORY
from benchmarks.problems.kernel_learning import KERNEL_LEARNING
from benchmarks.suites import Allowance
from benchmarks.trajectory import trajectory


@dataclass(frozen=True)
class Work:
    """A loss that falls with the work, which costs what it is; a trace or not. `kind` b has a parameter of its own."""

    trace: bool
    name: str = "work"
    direction: str = "minimize"
    best_value: float = 0.0
    full_cost: float = 9.0

    def missing(self) -> None:
        return None

    def space(self) -> ft.Space:
        return ft.Space(
            {
                "x": ft.Float(0, 1),
                "kind": ft.Choice("a", "b"),
                "size": ft.Choice(1, 2, 4, ordered=True),
                "only_b": ft.Float(0, 1, when={"kind": "b"}),
            },
            fidelities={"work": ft.Fidelity(1, 9, integer=True, trace=self.trace)},
        )

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        assert self.space().check(params) == params
        value, work = self.full_value(params) + 1.0 - fidelity["work"] / 9, fidelity["work"]
        trace = [Point({"work": w}, self.full_value(params) + 1.0 - w / 9, float(w)) for w in range(1, int(work) + 1)]
        return Evaluation(value, float(work), trace if self.trace else ())

    def full_value(self, params: Params) -> float:
        return abs(params["x"] - 0.3) + 0.1 * (params["kind"] == "a") + 0.01 * params["size"]


def steps(method: Method, problem: Problem, count: int) -> list[Step]:
    if reason := method.missing():
        pytest.skip(reason)
    return list(islice(method.run(problem, budget=ft.Budget(cost=1000), seed=0), count))


PARAMS = {"x": 0.5, "kind": "a", "size": 2}


@pytest.mark.parametrize(("trace", "paid"), [(True, [1.0, 2.0, 6.0]), (False, [1.0, 3.0, 9.0])])
def test_a_promotion_pays_for_what_it_adds_along_a_trace_and_for_everything_without_one(
    trace: bool, paid: list[float]
) -> None:
    runs = PausedRuns(Work(trace), seed=0)
    assert [runs.evaluate(PARAMS, {"work": work})[1] for work in (1, 3, 9)] == paid
    assert runs.evaluate(PARAMS | {"x": 0.6}, {"work": 3})[1] == 3.0, "another configuration has no start"


def test_a_run_with_another_amount_of_something_that_is_no_trace_starts_from_nothing() -> None:
    from benchmarks.problems.augmented import AUGMENTED

    [rosenbrock] = [problem for problem in AUGMENTED if problem.name.endswith("rosenbrock-3")]
    params = dict.fromkeys(rosenbrock.space().parameters, 1.0)

    def added(before: dict[str, float], after: dict[str, float]) -> float:
        evaluation = rosenbrock.evaluate(params, after, seed=0)
        return added_cost(rosenbrock, params, evaluation, after, before, seed=0)

    assert added({"s1": 0.5, "s2": 0.4}, {"s1": 0.5, "s2": 1.0}) == pytest.approx(0.3)
    assert added({"s1": 0.4, "s2": 0.4}, {"s1": 0.5, "s2": 1.0}) == pytest.approx(0.51)


def test_the_incumbent_is_the_best_of_those_that_went_furthest() -> None:
    best = Incumbent(Work(True))
    for x, work, value in ((0.1, 1, 0.0), (0.2, 9, 0.5), (0.3, 9, 0.4), (0.4, 3, 0.1)):
        best.see({"x": x}, Point({"work": work}, value, 1.0))
    assert best.params == {"x": 0.3}


def test_amounts_and_indices_of_peers_become_ours() -> None:
    space = Work(True).space()
    assert [rounded(space, amount) for amount in (0.9, 2.9, 9.2)] == [{"work": 1}, {"work": 3}, {"work": 9}]
    assert plain_value(space, "size", 2) == 4
    assert plain_value(space, "kind", "b") == "b"


@pytest.mark.parametrize("trace", [True, False], ids=["trace", "no-trace"])
@pytest.mark.parametrize("name", ["smac-multi-fidelity", "neps", "neps-asha", "optuna-tpe-hyperband", "dehb"])
def test_a_peer_is_driven_through_its_own_interface(name: str, trace: bool) -> None:
    found = steps(METHODS[name], Work(trace), 40)
    costs = {step.cost for step in found}
    assert min(costs - {0.0}) == 1.0, "nothing was begun at the least fidelity; a repeat is free along a trace"
    assert len(costs) > 1, "nothing was trained further"
    assert Work(trace).full_value(found[-1].recommended) <= Work(trace).full_value(found[0].recommended)


def test_without_a_curve_the_pruner_pays_for_every_rung() -> None:
    paid = {step.cost for step in steps(METHODS["optuna-tpe-hyperband"], Work(False), 40)}
    assert paid <= {1.0, 4.0, 13.0}  # work of 1; of 1 and 3; of 1, 3 and 9
    assert len(paid) > 1


@dataclass(frozen=True)
class Wide(Work):
    """The same, named as a family whose cheap ends are known: costs rise with the number of rounds."""

    name: str = "rbv2_xgboost/made-up"

    def space(self) -> ft.Space:
        return ft.Space({"x": ft.Float(0, 1), "nrounds": ft.Int(1, 1000, log=True), "max_depth": ft.Int(1, 9)})

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        assert self.space().check(params) == params
        return Evaluation(self.full_value(params), float(params["nrounds"]))

    def full_value(self, params: Params) -> float:
        return abs(params["x"] - 0.3) + 1.0 / params["nrounds"]


@pytest.mark.parametrize("name", ["ei-per-cost-cheap", "flaml-cfo", "flaml-blendsearch"])
def test_a_method_that_is_told_the_cheap_ends_begins_there(name: str) -> None:
    found = steps(METHODS[name], Wide(False), 30)
    assert found[0].cost <= 1000**0.25 + 1
    assert max(step.cost for step in found) > 100, "it leaves them"
    assert Wide(False).full_value(found[-1].recommended) < Wide(False).full_value(found[0].recommended)


def test_both_are_told_the_same_ends() -> None:
    declared = {name: one.cheap_values for name, one in cheap_space(Wide(False)).parameters.items()}
    assert declared == {"x": (), "nrounds": (1,), "max_depth": (1,)}
    assert cheapest(Wide(False)) == {"nrounds": 1, "max_depth": 1}


@pytest.mark.parametrize(("name", "folder"), [("neps", ".bench-venv"), ("dehb", ".dehb-venv")])
def test_an_absent_environment_of_a_peer_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, folder: str
) -> None:
    variable = f"FARTHING_{name.upper()}_PYTHON"
    monkeypatch.setenv(variable, str(tmp_path / "python"))
    assert METHODS[name].missing() == f"{tmp_path / 'python'} is not there; make bench-setup"
    monkeypatch.delenv(variable)
    assert {"neps": NEPS, "dehb": DEHB}[name].interpreter.parts[-3:] == (folder, "bin", "python")


def test_another_version_of_dehb_than_the_recorded_one_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "bin" / "python"
    information = tmp_path / "lib" / "python3.11" / "site-packages" / "dehb-0.0.7.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: dehb\nVersion: 0.0.7\n")
    python.parent.mkdir()
    python.touch()
    monkeypatch.setenv("FARTHING_DEHB_PYTHON", str(python))
    assert METHODS["dehb"].missing() == "DEHB 0.1.2 is compared, got 0.0.7; make bench-setup"


def test_what_is_installed_with_ours_needs_no_numpy_below_2() -> None:
    """`dehb` does; with it no version satisfied both it and constraints.txt."""
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]
    assert not [each for each in declared["bench"] if each.startswith("dehb")]
    makefile = (REPOSITORY / "Makefile").read_text()
    assert f"dehb=={VERSION}" in makefile


def test_a_batch_is_one_step_that_costs_as_much_as_its_dearest() -> None:
    [first, *_] = steps(Ours("batch", ft.Random(), batch=4), Work(True), 2)
    assert (first.evaluations, first.cost) == (4, 9.0)
    standings = list(
        trajectory(Ours("batch", ft.Random(), batch=4), Work(True), allowance=Allowance(18, "cost"), seed=0)
    )
    assert [(standing.evaluations, standing.spent) for standing in standings] == [(4, 9.0), (8, 18.0)]


def test_gradients_are_told_where_they_are_asked_for() -> None:
    seen: list[bool] = []

    @dataclass(frozen=True)
    class Watching(ft.Random):
        def suggest(self, history, budget, count, rng):
            seen[:] = [any(point.gradient for point in trial.measurements) for trial in history]
            return super().suggest(history, budget, count, rng)

    for is_told in (True, False):
        method = Ours("watching", Watching(), gradients=is_told)
        list(islice(method.run(KERNEL_LEARNING[0], budget=ft.Budget(cost=100), seed=0), 3))
        assert seen == [is_told] * 2
