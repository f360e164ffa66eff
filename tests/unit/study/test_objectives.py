"""Studies of several objectives, and under limits: what goes in, what is refused, and what comes out."""

import csv
import io
import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidValue, NoResult, StudyMismatch, WorkError
from farthing.trials.objectives import MeasuredFront

SPACE = ft.Space({"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)})
EPOCHS = {"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}
TWO = ["error", "latency"]
LIMITS = {"memory": ft.AtMost(0.9)}


def measure(params: Any) -> dict[str, float]:
    x, y = params["x"], params["y"]
    return {"error": x * x + 0.1 * y, "latency": (1 - x) ** 2 + 0.1 * y, "memory": x + y}


def work(trial: Any) -> dict[str, float]:
    return measure(trial.params)


def curve(trial: Any) -> None:
    for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
        values = measure(trial.params)
        trial.report(values | {"error": values["error"] + 1 / epoch}, epochs=epoch)


def told(points: list[tuple[float, float]], **settings: Any) -> ft.Study:
    """A study of two values that were measured without noise, at params that say nothing."""
    study = ft.Study(SPACE, **{"minimize": TWO, "noise": False, "strategy": ft.Random(), **settings})
    for place, (error, latency) in enumerate(points):
        study.add({"x": place / 100, "y": 0.5}, {"error": error, "latency": latency})
    return study


# ---- what goes in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_work_returns_a_mapping_with_all_names(executor: Any) -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints=LIMITS, strategy=ft.Random())
    study.run(work, budget=ft.Budget(trials=3), executor=executor)
    for trial in study.trials:
        assert {**trial.points[-1].metrics, "error": trial.value} == pytest.approx(measure(trial.params))


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_work_reports_all_values_along_its_way(executor: Any) -> None:
    space = ft.Space(SPACE.parameters, fidelities=EPOCHS)
    study = ft.Study(space, minimize=TWO, constraints=LIMITS)
    study.run(curve, budget=ft.Budget(trials=4), executor=executor)
    assert type(study.strategy) is ft.ParetoHalving
    for trial in study.history.done:
        assert all(set(point.metrics) == {"latency", "memory"} for point in trial.points)


def test_minimize_and_maximize_go_together() -> None:
    study = ft.Study(SPACE, minimize="error", maximize=["throughput", "recall"])
    assert study.problem.aim == "minimize error; maximize throughput, recall"
    assert type(study.strategy) is ft.LogEHVI
    assert "minimize error; maximize throughput, recall" in repr(study)


def test_the_helpers_take_several_values() -> None:
    both: list[tuple[Callable[..., ft.Study], float]] = [(ft.minimize, 1.0), (ft.maximize, -1.0)]
    for helper, sign in both:
        study = helper(
            work, SPACE, value=TWO, budget=ft.Budget(trials=3), constraints=LIMITS, strategy="Random", executor="inline"
        )
        assert [one.sign for one in study.problem.objectives] == [sign, sign]
        assert study.problem.constraints == LIMITS


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ({"error": 0.1}, "A result must have 'error', 'latency', got none called 'latency'"),
        ({"latency": 0.1}, "got none called 'error'"),
        (0.1, "got none called 'latency'. Return or report a mapping: {'error': …, 'latency': …}"),
        ({"error": 0.1, "latency": float("nan")}, "The value 'latency' must be finite, got nan"),
        ({"error": float("inf"), "latency": 1.0}, "The value 'error' must be finite, got inf"),
        ({"error": 0.1, "latency": "fast"}, "The value 'latency' must be a number, got 'fast'"),
        ({"error": 0.1, "latency": None}, "The value 'latency' must be a number, got None"),
        (None, "Work must return 'error' and 'latency' or report them"),
    ],
)
@pytest.mark.parametrize("reports", [False, True])
def test_a_wrong_result_fails_its_trial_and_nothing_else(returned: Any, reason: str, reports: bool) -> None:
    def wrong_at_first(trial: Any) -> Any:
        if trial.number:
            return work(trial)
        if reports and returned is not None:
            trial.report(returned)
        return None if reports else returned

    study = ft.Study(SPACE, minimize=TWO, strategy="Random")
    study.run(wrong_at_first, budget=ft.Budget(trials=2), executor="inline")
    first, second = study.trials
    assert first.state is ft.State.FAILED
    assert first.failure is not None
    assert reason in first.failure.reason
    assert second.state is ft.State.DONE


def test_trials_are_asked_for_told_added_and_enqueued() -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints=LIMITS, strategy="Random")
    asked = study.ask()
    for wrong in (0.1, {"error": 0.1, "latency": 1.0}):
        with pytest.raises(InvalidValue, match="got none called"):
            study.tell(asked, wrong)
    study.tell(asked, {"error": 0.1, "latency": 1.0, "memory": 0.3, "note": 7.0}, cost=2.0)
    study.tell(study.ask(), 0.2, metrics={"latency": 0.9, "memory": 0.4})
    study.add({"x": 0.5, "y": 0.5}, {"error": 0.3, "latency": 0.5, "memory": 0.2})
    study.enqueue({"x": 0.25})
    with pytest.raises(InvalidValue, match="got none called 'latency'"):
        study.add({"x": 0.5, "y": 0.5}, 0.3)
    assert [trial.points[-1].metrics.get("latency") for trial in study.history.done] == [1.0, 0.9, 0.5]
    assert study.trials[0].points[-1].metrics["note"] == 7.0
    assert study.trials[-1].params["x"] == 0.25


def test_a_told_trace_has_all_values_at_every_point() -> None:
    space = ft.Space(SPACE.parameters, fidelities=EPOCHS)
    study = ft.Study(space, minimize=TWO, strategy="Random")
    trace = [({"epochs": 1}, {"error": 0.5, "latency": 2.0}), ({"epochs": 9}, {"error": 0.2, "latency": 2.5})]
    done = study.tell(study.ask(), trace=trace)
    assert [(point.value, point.metrics["latency"]) for point in done.points] == [(0.5, 2.0), (0.2, 2.5)]
    with pytest.raises(InvalidValue, match="got none called 'latency'"):
        study.tell(study.ask(), trace=[({"epochs": 1}, 0.5)])


class Net(ft.Trainable):
    def setup(self, params: Any) -> None:
        self.params, self.steps = params, 0

    def step(self) -> dict[str, float]:
        self.steps += 1
        return measure(self.params) | {"latency": float(self.steps)}

    def save(self, folder: Path) -> None:
        (folder / "steps").write_text(str(self.steps))

    def load(self, folder: Path) -> None:
        self.steps = int((folder / "steps").read_text())


def test_a_trainable_returns_all_values_of_a_step() -> None:
    space = ft.Space(SPACE.parameters, fidelities=EPOCHS)
    study = ft.Study(space, minimize=TWO, constraints=LIMITS, strategy=ft.ASHA())
    study.run(Net, budget=ft.Budget(trials=6), executor="inline")
    assert study.history.done
    for trial in study.history.done:
        assert trial.points[-1].metrics["latency"] == trial.fidelity["epochs"]


PRINTS_JSON = """
import json, sys
x, y = map(float, sys.argv[1:3])
print(json.dumps({"error": x * x, "latency": 1 - x}))
"""
PRINTS_TEXT = """
import sys
x, y = map(float, sys.argv[1:3])
for epoch in range(3):
    print(f"epoch {epoch + 1}")
    print(f"latency: {1 - x}")
    print(f"error: {x * x + epoch}")
"""
PATTERN = [r"error: (?P<value>\S+)", r"latency: (?P<latency>\S+)"]


def program(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(text)
    return f"{sys.executable} {folder / 'train.py'} {{x}} {{y}}"


def test_a_command_prints_all_values_in_one_line_of_json(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=TWO, strategy="Random")
    study.run(ft.Command(program(tmp_path, PRINTS_JSON)), budget=ft.Budget(trials=2))
    for trial in study.trials:
        x = trial.params["x"]
        assert (trial.value, trial.points[-1].metrics["latency"]) == pytest.approx((x * x, 1 - x))


def test_a_line_that_lacks_a_value_fails_the_trial(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=[*TWO, "size"], strategy="Random")
    study.run(ft.Command(program(tmp_path, PRINTS_JSON)), budget=ft.Budget(trials=1))
    failure = study.trials[0].failure
    assert failure is not None
    assert "got none called 'size'" in failure.reason


def test_patterns_find_each_value_in_a_line_of_its_own(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=TWO, strategy="Random")
    study.run(ft.Command(program(tmp_path, PRINTS_TEXT), pattern=PATTERN), budget=ft.Budget(trials=1))
    [trial] = study.trials
    x = trial.params["x"]
    assert [point.value for point in trial.points] == pytest.approx([x * x, x * x + 1, x * x + 2])
    assert [point.metrics["latency"] for point in trial.points] == pytest.approx([1 - x] * 3)


@pytest.mark.parametrize(
    ("printed", "measured"),
    [
        ("l3 e5 e4 e3", [(5, 3), (4, 3), (3, 3)]),
        ("e5 e4 e3 l3", [(3, 3)]),
        ("e5 l3 e4 e3 e2", [(5, 3), (4, 3), (3, 3), (2, 3)]),
        ("e5 l3 e4 l2 e3 l1", [(5, 3), (4, 2), (3, 1)]),
        ("e5 l3 l2 e4 e3 l1", [(5, 3), (4, 2), (3, 1)]),
        ("e5 e4 l3 e3 e2 l2", [(4, 3), (3, 3), (2, 3), (2, 2)]),
        ("l3 e5 e4 l2 e3 e2 l1", [(5, 3), (4, 2), (3, 2), (2, 1)]),
        ("l3 e5", [(5, 3)]),
    ],
)
@pytest.mark.parametrize("limit", [{"minimize": TWO}, {"minimize": "error", "constraints": {"latency": ft.AtMost(9)}}])
def test_a_value_that_is_not_printed_again_holds_on(
    tmp_path: Path, limit: dict[str, Any], printed: str, measured: list[tuple[float, float]]
) -> None:
    lines = printed.replace("e", "error: ").replace("l", "latency: ").replace(": ", ":").split()
    study = ft.Study(SPACE, strategy="Random", **limit)
    command = ft.Command(
        program(tmp_path, f"print(*{lines}, sep=chr(10))"),
        pattern=[r"error:(?P<error>\S+)", r"latency:(?P<latency>\S+)"],
    )
    study.run(command, budget=ft.Budget(trials=1))
    [trial] = study.trials
    assert [(point.value, point.metrics["latency"]) for point in trial.points] == measured
    assert trial.value == measured[-1][0]


def test_another_epoch_ends_what_the_last_one_printed(tmp_path: Path) -> None:
    lines = ["latency: 3", "epoch 1", "error: 5", "epoch 2", "error: 4", "epoch 3", "error: 3"]
    study = ft.Study(ft.Space(SPACE.parameters, fidelities=EPOCHS), minimize=TWO, strategy="Random")
    text = f"print(*{lines}, sep=chr(10))"
    line = f"{program(tmp_path, text)} {{epochs}}"
    study.run(ft.Command(line, pattern=[*PATTERN, r"epoch (?P<epochs>\d+)"]), budget=ft.Budget(trials=1))
    [trial] = study.trials
    assert [(point.fidelity["epochs"], point.value) for point in trial.points] == [(1, 5), (2, 4), (3, 3)]


def test_a_pattern_is_needed_for_each_value(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=TWO, strategy="Random")
    with pytest.raises(WorkError, match="must have a group for the value 'latency'"):
        study.run(ft.Command(program(tmp_path, PRINTS_TEXT), pattern=PATTERN[:1]), budget=ft.Budget(trials=1))


def test_a_group_has_underscores_for_what_no_group_may_be_called(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=["val/error", "p99.9"], constraints={"peak-memory": ft.AtMost(9)})
    printed = program(tmp_path, "print('error 0.5'); print('p99.9 3'); print('peak 7')")
    command = ft.Command(
        printed, pattern=[r"error (?P<val_error>\S+)", r"p99.9 (?P<p99_9>\S+)", r"peak (?P<peak_memory>.+)"]
    )
    study.run(command, budget=ft.Budget(trials=1))
    [trial] = study.trials
    assert (trial.value, trial.points[-1].metrics) == (0.5, {"p99.9": 3.0, "peak-memory": 7.0})


@pytest.mark.parametrize(
    ("values", "pattern", "advice"),
    [
        (["val/error", "lat-ms"], r"(?P<value>\S+)", r"'lat-ms=(?P<lat_ms>\S+)'"),
        (["a", "value"], r"(?P<value>\S+)", r"'a=(?P<a>\S+)'"),
        (["a", "b-c", "b_c"], r"(?P<a>.) (?P<b_c>.)", "Rename it: 'b_c' is the group of another value."),
    ],
)
def test_the_advice_for_a_pattern_that_is_missing_works(
    tmp_path: Path, values: list[str], pattern: str, advice: str
) -> None:
    study = ft.Study(SPACE, minimize=values)
    with pytest.raises(WorkError) as refusal:
        study.run(ft.Command(program(tmp_path, "pass"), pattern=pattern), budget=ft.Budget(trials=1))
    assert advice in str(refusal.value)


def test_a_program_that_prints_no_value_is_told_of_groups_that_can_be(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=["val/error", "lat-ms"])
    study.run(ft.Command(program(tmp_path, "pass")), budget=ft.Budget(trials=1))
    failure = study.trials[0].failure
    assert failure is not None
    assert "a group (?P<value>…) and (?P<lat_ms>…)" in failure.reason


def test_a_command_that_prints_nothing_is_told_all_that_it_lacks(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize=TWO, strategy="Random")
    study.run(ft.Command(program(tmp_path, "print('ready')")), budget=ft.Budget(trials=1))
    failure = study.trials[0].failure
    assert failure is not None
    assert "got no 'error' and no 'latency'" in failure.reason
    assert '{"error": 0.5, "latency": 0.5}' in failure.reason


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"minimize": ["error", "error"]}, "Each value must be named once"),
        ({"minimize": "error", "maximize": "error"}, "Each value must be named once"),
        ({"minimize": ["error", "x"]}, "must have a name of its own, got 'x'"),
        ({"minimize": ["error", "two words"]}, "must be one word"),
        ({"minimize": [1, 2]}, "minimize= must be"),
        ({"minimize": ["gradient", "b"]}, "must not be called 'gradient', which has derivatives, got it in minimize="),
        ({"maximize": "gradient"}, "Rename it, for example to 'my_gradient'."),
        ({"minimize": "error", "constraints": {"gradient": ft.AtMost(1)}}, "got it in constraints="),
        ({"minimize": "error", "constraints": {"y": ft.AtMost(1)}}, "must have a name of its own, got 'y'"),
        ({"minimize": "error", "constraints": {"memory": 8e9}}, "must be AtMost, AtLeast or Succeeds"),
        ({"minimize": "error", "constraints": ["memory"]}, "constraints must map names to values"),
        ({"minimize": TWO, "strategy": "TraceKG"}, "TraceKG optimises one value without limits"),
        ({"minimize": TWO, "strategy": "EIPerCost"}, "EIPerCost optimises one value without limits"),
        ({"minimize": TWO, "strategy": "CMAES"}, "CMAES optimises one value without limits"),
        ({"minimize": TWO, "strategy": ft.PB2(population=4, interval=1, steps=4)}, "PB2 optimises one value"),
        ({"minimize": TWO, "strategy": ft.PBT(population=4, interval=1, steps=4)}, "PBT optimises one value"),
        ({"minimize": "error", "constraints": LIMITS, "strategy": "LogEI"}, "LogEI optimises one value"),
    ],
)
def test_what_makes_no_sense_is_refused_at_creation(settings: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        ft.Study(SPACE, **settings)
    assert reason in str(refusal.value)


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), np.array(0.5)], ids=repr)
def test_a_bound_from_numpy_is_a_plain_number(tmp_path: Path, number: Any) -> None:
    assert [repr(kind(number)) for kind in (ft.AtMost, ft.AtLeast)] == ["AtMost(bound=0.5)", "AtLeast(bound=0.5)"]
    limits = {"memory": ft.AtMost(number)}
    study = ft.Study(SPACE, minimize="error", constraints=limits, storage=tmp_path / "a.db", seed=np.int64(3))
    assert study.problem == ft.Study.load("study", tmp_path / "a.db").problem
    assert type(study.problem.seed) is int


def test_a_lease_from_numpy_is_renewed(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize="error", storage=tmp_path / "a.db", lease=np.float32(30))
    study.run(work, budget=ft.Budget(trials=1), executor="inline")
    assert study.history.done


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), "8 GB", None])
def test_a_bound_is_a_finite_number(bound: Any) -> None:
    for kind in (ft.AtMost, ft.AtLeast):
        with pytest.raises(InvalidArgument, match=f"The bound of {kind.__name__} must be a number"):
            kind(bound)


def test_a_pipeline_has_one_value() -> None:
    space = ft.Space(stages={"first": {"a": ft.Float(0, 1)}, "second": {"b": ft.Float(0, 1)}})
    with pytest.raises(InvalidArgument, match="A pipeline has one value and no limits, got error, latency"):
        ft.Study(space, minimize=TWO)


def test_an_online_run_has_one_value() -> None:
    with pytest.raises(InvalidArgument, match="An online tuner has one value, got error, latency"):
        ft.OnlineTuner(SPACE, minimize=TWO, rounds=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [{"patience": 5.0}, {"worth": {"value": 0.1, "per": 1.0}}])
def test_a_budget_that_judges_one_value_is_refused(limit: Any) -> None:
    study = ft.Study(SPACE, minimize="error", constraints=LIMITS, strategy="Random")
    budget = ft.Budget(trials=3, **limit)
    with pytest.raises(InvalidArgument, match=r"judge one value without limits, got minimize error; memory ≤ 0\.9"):
        study.run(work, budget=budget, executor="inline")
    with pytest.raises(InvalidArgument, match="judge one value"):
        study.set_budget(budget)
    assert not study.trials


def test_what_is_of_one_value_asks_which() -> None:
    study = told([(0.1 * i, 1.0 - 0.1 * i) for i in range(8)])
    with pytest.raises(InvalidArgument, match=r"Say which: study.importance\('error'\)"):
        study.importance()
    with pytest.raises(InvalidArgument, match=r"Say which: study.diagnose\('error'\)"):
        study.diagnose()
    with pytest.raises(NoResult, match="An outlook is of one value without limits"):
        study.outlook()
    with pytest.raises(InvalidArgument, match="ranks them by one value without limits"):
        study.verify(work, top=2)
    assert study.diagnose("latency").value == "latency"
    assert study.importance("latency")["x"].share > 0.9


def test_a_study_is_continued_with_the_objectives_and_limits_it_has(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    ft.Study(SPACE, minimize=TWO, constraints=LIMITS, storage=where).close()
    ft.Study(SPACE, minimize=TWO, constraints=LIMITS, storage=where).close()
    with pytest.raises(StudyMismatch, match="continued with the objectives it began with"):
        ft.Study(SPACE, minimize="error", storage=where)
    with pytest.raises(StudyMismatch, match="continued with the constraints it began with"):
        ft.Study(SPACE, minimize=TWO, storage=where)
    loaded = ft.Study.load("study", storage=where)
    assert loaded.problem.aim == "minimize error, latency; memory ≤ 0.9"


# ---- what comes out ----------------------------------------------------------------------------------------------


def test_the_front_has_what_nothing_dominates() -> None:
    study = told([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0), (2.5, 2.5), (2.0, 2.0), (3.0, 3.0)])
    assert [point.trial.number for point in study.front] == [0, 1, 4, 2]
    assert [point.trial.number for point in study.front.others] == [3, 5]
    assert study.front.reference == pytest.approx({"error": 3.2, "latency": 3.2})
    assert study.front.hypervolume == pytest.approx(0.2 * 2.2 + 1.0 * 1.2 + 1.0 * 0.2)


def test_the_front_of_maximised_values_has_the_largest() -> None:
    study = told([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0), (2.5, 2.5)], minimize="latency", maximize="error")
    assert [point.trial.number for point in study.front] == [2]
    assert study.front.reference["error"] < 3.0


def test_a_lucky_measurement_makes_no_point_of_the_front() -> None:
    """All have the same error on average; one configuration is measured ten times and is once very lucky."""
    study = ft.Study(SPACE, minimize=TWO, strategy="Random")
    errors = [1.02, 0.97, 1.05, 0.99, 0.3, 1.01, 0.96, 1.03, 1.0, 1.04]
    for i, error in enumerate(errors):
        study.add({"x": 0.5, "y": 0.5}, {"error": error, "latency": 2.0 + 0.01 * (i % 2)})
        study.add({"x": 0.1 * i, "y": 0.1}, {"error": 1.0 + 0.03 * (-1) ** i, "latency": 1.0 + 0.1 * i})
    lucky = next(trial for trial in study.trials if trial.value == 0.3)
    assert lucky.number in [trial.number for trial in MeasuredFront.of(study.history).trials]
    point = next(one for one in [*study.front, *study.front.others] if one.params == lucky.params)
    assert point.predicted["error"].mean > 0.8


def noisy(seed: int, *, results: int, constraints: Any = None, **settings: Any) -> ft.Study:
    """Results at places of which none is repeated, with noise of a deviation of 0.2 on values that differ by one."""
    rng = random.Random(seed)
    study = ft.Study(SPACE, seed=seed, strategy="Random", constraints=constraints, **settings)
    for _ in range(results):
        x, y = rng.random(), rng.random()
        study.add({"x": x, "y": y}, {"a": x + y + rng.gauss(0, 0.2), "b": 1 - x + y + rng.gauss(0, 0.2)})
    return study


def test_of_a_few_results_the_noise_is_not_taken_for_none() -> None:
    """Each prediction was the measurement ± 0.001, so that the front was the lucky ones."""
    for seed in range(4):
        front = noisy(seed, results=10, minimize=["a", "b"]).front
        points = [(point, name) for point in [*front, *front.others] for name in ("a", "b")]
        beside = [abs(point.values[name] - point.predicted[name].mean) for point, name in points]
        sure = [point.predicted[name].deviation for point, name in points]
        assert max(beside) > 0.05
        assert min(sure) > 0.01


def test_a_limit_that_was_once_measured_as_kept_is_not_kept_for_certain() -> None:
    said, missed = [], []
    for seed in range(12):
        front = noisy(seed, results=10, minimize="a", constraints={"b": ft.AtMost(0.5)}).front
        for point in [*front, *front.others]:
            predicted, true = point.predicted["b"], 1 - point.params["x"] + point.params["y"]
            said.append(point.feasibility)
            missed.append(((true - predicted.mean) / predicted.deviation) ** 2)
    assert min(said) > 0.0  # type: ignore[type-var]
    assert max(said) < 1.0  # type: ignore[type-var]
    # Of a known noise the mean is 1, and it is more of one that is learnt; it was 157² with no noise at all.
    assert sum(missed) / len(missed) < 3.0**2


def test_a_value_that_repeats_is_taken_as_it_was_measured() -> None:
    study = ft.Study(SPACE, minimize="error", constraints={"memory": ft.AtMost(0.5)}, strategy="Random")
    for x, error in [(0.2, 0.9), (0.4, 0.5), (0.4, 0.7), (0.8, 0.3)]:
        study.add({"x": x, "y": 0.5}, {"error": error, "memory": x})
    chances = {point.params["x"]: point.feasibility for point in [*study.front, *study.front.others]}
    assert chances == {0.2: 1.0, 0.4: 1.0, 0.8: 0.0}
    assert all(point.predicted["error"].deviation > 0.0 for point in study.front), "of errors, repeats differ"


def test_the_best_of_several_is_the_knee_and_says_so() -> None:
    study = told([(0.0, 10.0), (0.1, 2.0), (1.0, 0.0), (0.9, 5.0)])
    best = study.best
    assert best.trial.number == 1
    assert best.values == {"error": 0.1, "latency": 2.0}
    assert "The knee of a front of 3 (trial 1)" in repr(best)
    assert "error" in repr(best)
    assert "latency" in repr(best)
    assert best.to_json()["values"] == {"error": 0.1, "latency": 2.0}
    assert len(best.to_json()["front"]["points"]) == 3  # type: ignore[index,call-overload,arg-type]


def test_a_choice_weighs_or_limits() -> None:
    study = told([(0.0, 10.0), (0.1, 2.0), (1.0, 0.0), (0.9, 5.0)])
    assert study.pick(error=1, latency=0.001).trial.number == 0
    assert study.pick(error=1, latency=0.02).trial.number == 1
    assert study.pick(error=1, latency=10).trial.number == 2
    assert study.pick(latency=ft.AtMost(5)).trial.number == 1
    assert study.pick(latency=ft.AtMost(1)).trial.number == 2
    assert study.pick(latency=1, error=ft.AtMost(0.5)).trial.number == 1
    assert "The best error within latency ≤ 5 (trial 1)" in repr(study.pick(latency=ft.AtMost(5)))
    with pytest.raises(NoResult, match="expected to keep 'latency ≤ -1', got none of 4 configurations"):
        study.pick(latency=ft.AtMost(-1))


def test_a_choice_counts_maximised_values_with_a_minus() -> None:
    study = told([(1.0, 1.0), (5.0, 2.0)], minimize="latency", maximize="error")
    assert study.pick(error=1, latency=1).trial.number == 1
    assert study.pick(error=1, latency=5).trial.number == 0
    assert study.pick(error=ft.AtLeast(4)).trial.number == 1


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({}, "needs weights or limits, got none"),
        ({"speed": 1}, "must be among 'error', 'latency', got 'speed'"),
        ({"error": -1}, "The weight of 'error' must be a number ≥ 0, got -1"),
        ({"error": "much"}, "The weight of 'error' must be a number ≥ 0, got 'much'"),
        ({"error": 0, "latency": 0.0}, "At least one weight must be above 0, got error=0, latency=0"),
    ],
)
def test_a_wrong_choice_is_refused(wishes: Any, reason: str) -> None:
    study = told([(0.0, 10.0), (0.1, 2.0)])
    with pytest.raises(InvalidArgument) as refusal:
        study.pick(**wishes)
    assert reason in str(refusal.value)


def test_under_limits_the_best_is_the_best_that_keeps_them() -> None:
    study = ft.Study(SPACE, minimize="error", constraints={"memory": ft.AtMost(5)}, noise=False, strategy="Random")
    for error, memory in [(0.1, 6.0), (0.3, 4.0), (0.2, 5.0), (0.4, 1.0)]:
        study.add({"x": error, "y": 0.5}, {"error": error, "memory": memory})
    assert study.best.trial.number == 2
    assert study.best.feasibility == 1.0
    assert "Best error within the limits (trial 2)" in repr(study.best)
    assert [point.trial.number for point in study.front] == [2]


def test_the_chance_of_keeping_limits_is_the_models() -> None:
    study = ft.Study(SPACE, minimize="error", constraints={"memory": ft.AtLeast(0.5)}, strategy="Random")
    for i in range(12):
        x = i / 11
        study.add({"x": x, "y": 0.5}, {"error": x, "memory": x + 0.08 * (-1) ** i})
    points = sorted([*study.front, *study.front.others], key=lambda point: point.params["x"])
    chances = [point.feasibility for point in points]
    assert chances[0] < 0.05
    assert chances[-1] > 0.95
    assert study.best.feasibility is not None
    assert 0.5 <= study.best.feasibility <= 1.0


def test_what_most_models_expect_beyond_a_limit_is_not_the_best_within_it() -> None:
    """Trial 0 was measured beyond it; one model that takes that for noise brings the mean within."""

    def measured(trial: Any) -> dict[str, float]:
        x, y = trial.params["x"], trial.params["y"]
        return {"error": 1.0 - x * y, "mem": x + y + 0.15 * math.sin(9.0 * x)}

    space = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
    study = ft.Study(space, minimize="error", constraints={"mem": ft.AtMost(1.0)}, seed=8, strategy="Random")
    study.run(measured, budget=ft.Budget(trials=4), executor="inline", progress=False)
    assert study.trials[0].measurements[-1].metrics["mem"] > 1.0
    assert study.best.trial.number != 0
    assert study.best.feasibility > 0.5
    assert all(point.feasibility > 0.5 for point in study.front)


def test_before_anything_keeps_the_limits_the_likeliest_is_named() -> None:
    study = ft.Study(SPACE, minimize="error", constraints={"memory": ft.AtMost(1)}, noise=False, strategy="Random")
    for error, memory in [(0.1, 6.0), (0.3, 2.0), (0.2, 5.0)]:
        study.add({"x": error, "y": 0.5}, {"error": error, "memory": memory})
    assert len(study.front) == 0
    assert study.best.trial.number == 1
    assert "No configuration is expected to keep the limits yet" in repr(study.best)
    assert "None of 3 configurations is expected to keep the limits yet" in repr(study.front)


def test_failures_may_be_learnt_as_a_limit() -> None:
    def fails_beyond(trial: Any) -> float:
        if trial.params["x"] > 0.5:
            raise ValueError("diverged")
        return -float(trial.params["x"])

    study = ft.Study(SPACE, minimize="error", constraints={"runs": ft.Succeeds()})
    study.run(fails_beyond, budget=ft.Budget(trials=14), executor="inline", keep_going=True)
    assert 0.3 < study.best.params["x"] <= 0.5


def test_the_chance_of_success_is_the_models() -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints={"runs": ft.Succeeds()}, strategy="Random")
    for i in range(24):
        x, y = i / 23, (7 * i % 24) / 23
        if x > 0.6:
            study.enqueue({"x": x, "y": y})
            study.tell(study.ask(), failure="it diverged")
        else:
            study.add({"x": x, "y": y}, {"error": x, "latency": 1.0 - x})
    study.add({"x": x, "y": y}, {"error": x, "latency": 1.0 - x})
    chances = {point.params["x"]: point.feasibility for point in [*study.front, *study.front.others]}
    assert chances[0.0] is not None
    assert chances[0.0] > 0.9
    assert chances[1.0] is not None
    assert 0.05 < chances[1.0] < 0.6, "it failed there, and then succeeded"
    assert "keeps limits" in str(study.front)
    assert "It keeps the limits with probability" in repr(study.best)


def test_nothing_is_said_of_success_before_anything_has_failed() -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints={"runs": ft.Succeeds()}, strategy="Random")
    study.add({"x": 0.5, "y": 0.5}, {"error": 1.0, "latency": 1.0})
    assert study.best.feasibility is None
    assert "keeps limits" not in str(study.front)


def test_before_any_result_there_is_no_front() -> None:
    study = ft.Study(SPACE, minimize=TWO)
    for ask in (lambda: study.front, lambda: study.best, lambda: study.pick(error=1)):
        with pytest.raises(NoResult):
            ask()


def test_one_result_is_a_front() -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints=LIMITS)
    study.run(work, budget=ft.Budget(trials=1), executor="inline")
    assert len(study.front) + len(study.front.others) == 1
    assert study.front.hypervolume >= 0.0


def test_short_runs_are_no_rivals_of_full_ones() -> None:
    space = ft.Space(SPACE.parameters, fidelities=EPOCHS)
    study = ft.Study(space, minimize=TWO, noise=False, strategy="Random")
    study.add({"x": 0.1, "y": 0.1}, {"error": 0.1, "latency": 0.1}, fidelity={"epochs": 1})
    assert not study.front.is_full
    assert not study.best.is_full
    study.add({"x": 0.2, "y": 0.1}, {"error": 0.5, "latency": 0.5}, fidelity={"epochs": 9})
    assert [point.trial.number for point in study.front] == [1]
    assert study.front.is_full
    assert study.best.is_full


def test_everything_that_is_printed_has_all_values() -> None:
    study = told([(0.0, 10.0), (0.1, 2.0), (1.0, 0.0), (0.9, 5.0)])
    texts = [str(study), repr(study.front), repr(study.top(3)), repr(study.best)]
    pages = [study._repr_html_(), study.front._repr_html_(), study.top(3)._repr_html_(), study.best._repr_html_()]
    for text in [*texts, *pages]:
        assert "error" in text
        assert "latency" in text
    assert study.export().splitlines()[0].split(",").count("metric.latency") == 1
    assert json.loads(study.export(format="json"))["problem"]["further"] == [["latency", True]]


def test_a_stored_study_is_read_with_its_values(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    with ft.Study(
        SPACE, minimize="error", maximize="speed", constraints={"memory": ft.AtMost(1)}, storage=where
    ) as one:
        for i in range(6):
            one.add({"x": i / 5, "y": 0.2}, {"error": i / 5, "speed": float(i), "memory": 0.4 * i})
        front, best = one.front.to_json(), one.best.to_json()
    with ft.Study.load("study", storage=where) as again:
        assert again.front.to_json() == front
        assert again.best.to_json() == best


def test_a_run_that_is_resumed_suggests_what_an_uninterrupted_one_does(tmp_path: Path) -> None:
    def paid(trial: Any) -> dict[str, float]:
        trial.charge(1.0)  # measured seconds are those of each run, and the strategy weighs them
        return work(trial)

    def params_of(pauses: list[int], name: str) -> list[Any]:
        settings: Any = {"minimize": TWO, "constraints": LIMITS, "cost_unit": "runs", "seed": 3}
        for trials in pauses:
            with ft.Study(SPACE, storage=str(tmp_path / name), **settings) as study:
                study.run(paid, budget=ft.Budget(trials=trials), executor="inline")
        return [trial.params for trial in study.trials]

    assert params_of([13], "whole.db") == params_of([5, 11, 13], "parts.db")


def starts_under(constraints: dict[str, Any], earlier: ft.Study, **settings: Any) -> list[float]:
    settings = {"minimize": ["error", "latency"], "seed": 0} | settings
    later = ft.Study(earlier.space, constraints=constraints, learn_from=earlier, name="later", **settings)
    assert later.history.learned is not None
    return [start.params["x"] for start in later.history.learned.starts]


def test_what_is_learnt_keeps_the_limits_of_today() -> None:
    earlier = ft.Study(
        SPACE, minimize=["error", "latency"], constraints={"memory": ft.AtMost(0.9)}, noise=False, seed=0
    )
    for i in range(11):
        x = i / 10
        values = {"error": (1 - x) ** 2, "latency": x + 1, "memory": x, "size": 9 * x}
        earlier.add({"x": x, "y": 0.5}, values)
    assert max(starts_under({}, earlier)) == 1.0, "the limit that it had is none today"
    assert max(starts_under({"latency": ft.AtMost(1.55)}, earlier)) == 0.5
    assert max(starts_under({"memory": ft.AtMost(0.35)}, earlier)) == 0.3
    assert max(starts_under({"size": ft.AtMost(4)}, earlier)) == 0.4, "it was measured without a limit"
    assert max(starts_under({"power": ft.AtMost(4), "runs": ft.Succeeds()}, earlier)) == 1.0, "nothing is known of it"


def test_a_limit_of_cost_says_nothing_of_a_study_that_paid_in_another_unit() -> None:
    aims: Any = {"minimize": ["error", "cost"], "cost_unit": "$", "seed": 0}
    earlier = ft.Study(SPACE, noise=False, **aims)
    for i in range(11):
        earlier.add({"x": i / 10, "y": 0.5}, (1 - i / 10) ** 2, cost=1 + i)
    assert max(starts_under({"cost": ft.AtMost(3.5)}, earlier, **aims)) == 0.2
    assert max(starts_under({"cost": ft.AtMost(3.5)}, earlier, **(aims | {"cost_unit": "€"}))) == 1.0


def test_a_limit_of_today_may_be_called_like_a_parameter_of_before() -> None:
    space = ft.Space({"x": ft.Float(0.0, 1.0), "size": ft.Float(0.0, 1.0)})
    earlier = ft.Study(space, minimize="error", noise=False, seed=0)
    for i in range(4):
        earlier.add({"x": i / 4, "size": 0.5}, 1 - i / 4)
    later = ft.Study(
        SPACE, minimize="error", constraints={"size": ft.AtMost(9)}, learn_from=earlier, name="later", seed=0
    )
    assert later.history.learned is not None
    assert later.history.learned.starts[0].params["x"] == 0.75


def test_a_space_that_grows_keeps_its_objectives() -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints=LIMITS)
    study.run(work, budget=ft.Budget(trials=6), executor="inline")
    study.extend(ft.Space({**SPACE.parameters, "z": ft.Float(0.0, 1.0)}), fill={"z": 0.5})
    study.run(work, budget=ft.Budget(trials=9), executor="inline")
    assert len(study.history.done) == 9
    assert study.problem.named == ("error", "latency", "memory")
    assert all(point.params["z"] is not None for point in study.front)


def test_a_study_begins_with_the_fronts_of_earlier_ones(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    for name, shift in (("may", 0.0), ("june", 0.05)):
        with ft.Study(SPACE, minimize=TWO, noise=False, strategy="Random", storage=where, name=name) as one:
            for x, error, latency in [(0.1, 0.0, 9.0), (0.2, 0.1, 2.0), (0.3, 1.0, 0.0), (0.4, 2.0, 9.0)]:
                one.add({"x": x + shift, "y": 0.5}, {"error": error, "latency": latency}, cost=3.0)
    study = ft.Study(SPACE, minimize=TWO, storage=where, name="july", learn_from=["may", "june"])
    assert study.history.learned is not None
    xs = [start.params["x"] for start in study.history.learned.starts]
    assert xs == pytest.approx([0.2, 0.25, 0.1, 0.15, 0.3])
    assert study.best.source == "may"
    assert study.ask().params["x"] == pytest.approx(0.2)
    limited = ft.Study(
        ft.Space(SPACE.parameters, fidelities=EPOCHS),
        minimize=TWO,
        constraints=LIMITS,
        storage=where,
        name="august",
        learn_from="all",
    )
    assert [trial.params["x"] for trial in limited.ask(2)] == pytest.approx([0.25, 0.2])  # by name
    with pytest.raises(InvalidArgument, match="studies of the same value, got 'may', which has minimize='error', min"):
        ft.Study(SPACE, minimize="error", storage=where, name="one", learn_from=["may"])


def test_the_order_in_which_objectives_are_named_hides_no_earlier_study(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    with ft.Study(SPACE, minimize=TWO, noise=False, strategy="Random", storage=where, name="may") as one:
        for x, error, latency in [(0.1, 0.0, 9.0), (0.2, 0.1, 2.0), (0.3, 1.0, 0.0)]:
            one.add({"x": x, "y": 0.5}, {"error": error, "latency": latency}, cost=3.0)
    for name, given in (("named", ["may"]), ("all", "all")):
        study = ft.Study(SPACE, minimize=TWO[::-1], storage=where, name=name, learn_from=given)
        assert study.history.learned is not None
        assert [start.params["x"] for start in study.history.learned.starts] == pytest.approx([0.2, 0.1, 0.3])
    with pytest.raises(InvalidArgument, match="studies of the same value"):
        ft.Study(SPACE, minimize="error", maximize="latency", storage=where, name="other", learn_from=["may"])


def test_the_knee_is_trained_to_the_end() -> None:
    space = ft.Space(SPACE.parameters, fidelities=EPOCHS)
    study = ft.Study(space, minimize=TWO, noise=False, strategy=ft.Random())
    for x in (0.2, 0.5, 0.8):
        study.add({"x": x, "y": 0.1}, {"error": x * x, "latency": (1 - x) ** 2}, fidelity={"epochs": 3})
    trained = study.verify(curve, executor="inline")
    assert (trained.params["x"], trained.fidelity) == (0.5, {"epochs": 9})
    assert study.best.trial.number == trained.number


def test_a_study_is_not_taken_over_by_a_strategy_of_one_value(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    ft.Study(SPACE, minimize=TWO, storage=where).close()
    with pytest.raises(InvalidArgument, match="LogEI optimises one value without limits, got error, latency"):
        ft.Study.load("study", storage=where, strategy="LogEI")


def test_failed_and_pruned_trials_are_on_no_front() -> None:
    study = ft.Study(SPACE, minimize=TWO, noise=False, strategy="Random")
    study.tell(study.ask(), failure="diverged")
    study.tell(study.ask(), trace=[({"step": 1}, {"error": 0.0, "latency": 0.0})], pruned=True)
    study.tell(study.ask(), {"error": 1.0, "latency": 1.0})
    assert [point.trial.number for point in study.front] == [2]
    assert not study.front.others


def test_conditional_parameters_and_repeats_are_one_configuration_each() -> None:
    space = ft.Space({"kind": ft.Choice("tree", "net"), "rate": ft.Float(0.1, 1.0, when={"kind": "net"})})
    study = ft.Study(space, minimize=TWO, strategy="Random")
    for error in (0.9, 1.1):
        study.add({"kind": "tree"}, {"error": error, "latency": 1.0})
        study.add({"kind": "net", "rate": 0.5}, {"error": error - 0.5, "latency": 3.0})
    front = study.front
    assert len(front) + len(front.others) == 2
    assert {point.trial.number for point in [*front, *front.others]} == {2, 3}  # the latest of each


def test_an_export_names_every_objective_with_its_prediction_and_says_what_is_on_the_front() -> None:
    study = ft.Study(SPACE, minimize=TWO, constraints=LIMITS, seed=0, noise=False)
    study.run(work, budget=ft.Budget(trials=9), executor="inline")
    study.enqueue({"x": 0.5, "y": 0.5})
    open_trial = study.ask()
    rows = list(csv.DictReader(io.StringIO(study.export())))
    assert list(rows[0])[-6:] == [
        "comment",
        "metric.error",
        "predicted.latency",
        "predicted_deviation.latency",
        "front",
        "feasibility",
    ]
    assert all(row["metric.error"] == row["value"] for row in rows)
    on_front = {point.trial.number for point in study.front}
    assert {int(row["number"]) for row in rows if row["front"] == "True"} == on_front
    assert {row["feasibility"] for row in rows[:9]} == {"0.0", "1.0"}
    assert (rows[open_trial.number]["front"], rows[open_trial.number]["feasibility"]) == ("", "")
    by_model = [row for row in rows[:9] if row["predicted_value"]]
    noted = study.trials[int(by_model[0]["number"])].note
    assert [float(by_model[0][f"predicted{kind}.latency"]) for kind in ("", "_deviation")] == noted["predicted"][
        "latency"
    ]  # type: ignore[index,call-overload]
    nothing = list(csv.reader(io.StringIO(ft.Study(SPACE, minimize=TWO).export())))
    assert nothing[0][-2:] == ["predicted_deviation.latency", "front"]


def test_the_words_of_others_are_answered_with_ours() -> None:
    with pytest.raises(AttributeError, match=r"Write study\.front\."):
        ft.Study(SPACE, minimize=TWO).best_trials  # type: ignore[attr-defined]  # noqa: B018


def test_a_quantity_without_noise_keeps_its_limit_for_certain() -> None:
    """The best under a limit lies at its edge, where a model alone would be unsure of what was measured."""
    study = ft.Study(SPACE, minimize="error", constraints={"memory": ft.AtMost(0.5)}, strategy="Random")
    for x in [0.05 * i for i in range(20)]:
        study.add({"x": x, "y": 0.5}, {"error": 1 - x, "memory": x * x})
    best = study.best
    assert best.params["x"] == pytest.approx(0.7)
    assert best.feasibility == 1.0
    assert {point.feasibility for point in study.front.others} == {0.0, 1.0}
