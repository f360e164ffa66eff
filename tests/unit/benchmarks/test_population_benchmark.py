"""The made-up tasks of populations, how they are played, and what is made of the results."""

import json
from pathlib import Path

import pytest

import farthing as ft
from benchmarks.population import synthetic
from benchmarks.population.playing import play
from benchmarks.population.report import report, sign_test
from benchmarks.population.tasks import TASKS, TUNING, Drifting, Task, Toy


@pytest.mark.parametrize("task", [*TASKS, *TUNING], ids=lambda task: task.name)
def test_every_task_can_be_played_by_every_population(task: Task) -> None:
    for strategy in (ft.Clone(population=3, interval=1), ft.PBT(population=3, interval=1)):
        outcome = play(strategy, task, population=3, seed=0)
        assert outcome.trials == 3 * task.intervals
        assert outcome.best_regret <= outcome.regret


def test_random_search_trains_as_many_whole_runs_as_there_are_members() -> None:
    assert play(ft.Random(), Toy(), population=5, seed=0).trials == 5


def test_the_same_seed_is_the_same_run_and_another_is_another() -> None:
    task = Drifting("drift", dimension=2, intervals=4, width=0.3, drift=0.2, noise=0.1)
    one, same, other = (play(ft.PBT(population=4, interval=1), task, population=4, seed=s).regret for s in (0, 0, 1))
    assert one == same != other


def test_the_toy_has_the_best_schedule_of_the_paper() -> None:
    """With h = (1, 1) throughout, each θ shrinks by 0.98 a step."""
    toy = Toy()
    state = toy.start(0)
    for interval in range(1, toy.intervals + 1):
        state = toy.train(state, {"h0": 1.0, "h1": 1.0}, interval, 0)
    assert state[0] == pytest.approx(0.9 * 0.98 ** (4 * 50))
    assert toy.regret(state, 0) == pytest.approx(-3.30, abs=0.01)


def test_the_regret_of_the_best_params_is_zero() -> None:
    task = Drifting("drift", dimension=3, intervals=20, width=0.3, drift=0.2, noise=0.1)
    state = task.start(4)
    for interval, centre in enumerate(task._landscape(4).centres, start=1):
        assert ((centre >= 0.05) & (centre <= 0.95)).all()
        state = task.train(state, {f"x{j}": float(x) for j, x in enumerate(centre)}, interval, 4)
    assert task.regret(state, 4) == pytest.approx(0.0)


def test_a_suite_is_continued_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.jsonl"
    command = ["population-synthetic", "--output", str(path), "--problems", "drift, B = 4", "--methods", "PBT", "Clone"]
    assert synthetic.main([*command, "--seeds", "1"]) == 0
    assert synthetic.main([*command, "--seeds", "2", "--json"]) == 0
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(record["method"], record["seed"]) for record in records] == [
        ("Clone", 0),
        ("PBT", 0),
        ("Clone", 1),
        ("PBT", 1),
    ]
    assert '"drift, B = 4"' in capsys.readouterr().out


def test_wins_are_counted_on_the_same_seeds() -> None:
    def record(method: str, seed: int, regret: float) -> dict[str, object]:
        facts = {"suggest_cpu_seconds": 0.1, "commit": "abc", "dirty": False, "versions": {}}
        return {"problem": "p", "method": method, "seed": seed, "regret": regret, **facts}

    records = [record("ours", seed, 1.0) for seed in range(3)] + [record("PBT", 0, 2.0), record("PBT", 1, 0.5)]
    against = report("s", records, ours="ours", order=("PBT", "ours"))["problems"]["p"]["PBT"]["against"]
    assert (against["wins"], against["losses"], against["n"]) == (1, 1, 2)


def test_the_sign_test_is_that_of_a_fair_coin() -> None:
    assert sign_test(5, 0) == pytest.approx(2 / 32)
    assert sign_test(3, 3) == 1.0
    assert sign_test(15, 5) == pytest.approx(0.0414, abs=1e-4)


def test_ray_is_left_out_where_there_are_categories() -> None:
    from benchmarks.population.ray_pb2 import missing

    assert missing(ft.Space({"kind": ft.Choice("a", "b")})) == "Ray's PB2 takes no categories"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_ray_would_choose_params_of_the_space() -> None:
    pytest.importorskip("ray")
    from benchmarks.population.ray_pb2 import RayPB2

    task = Drifting("drift", dimension=2, intervals=4, width=0.3, drift=0.2, noise=0.1)
    strategy = RayPB2(population=2, interval=1)
    assert play(strategy, task, population=2, seed=0).trials == 8
