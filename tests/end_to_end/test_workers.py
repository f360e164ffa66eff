"""`farthing worker`: processes that share one study, its queue and its budget."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.testing import check_replay

STUDY = """
[study]
name = "shared"
minimize = "error"
seed = 3
[budget]
trials = TRIALS
[space]
x = {float = [0.0, 1.0]}
y = {float = [0.0, 1.0]}
[strategy]
name = "STRATEGY"
[work]
python = "shared_work.py:work"
"""

WORK = """
import time
from pathlib import Path

def work(trial):
    if Path("slow").exists():
        Path("began").touch()
        time.sleep(600)
    time.sleep(0.02)
    return (trial.params["x"] - 0.3) ** 2 + trial.params["y"]

def cost(params, fidelity):
    return 1.0 + params["x"]
"""


EARLY = """
import os, signal, sys
from farthing.cli import main

class Importing:
    def find_spec(self, name, path, target=None):
        if name == "farthing.cli.working":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Importing())
main()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "shared_work", raising=False)
    (tmp_path / "shared_work.py").write_text(WORK)
    return tmp_path


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts workers, and ends those that a test leaves."""
    processes: list[subprocess.Popen] = []

    def start(*arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "farthing", "worker", *arguments, "--storage", "shared.db", "--quiet"]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def write_study(folder: Path, *, strategy: str = "Sobol", trials: int = 12) -> str:
    (folder / "study.toml").write_text(STUDY.replace("TRIALS", str(trials)).replace("STRATEGY", strategy))
    return "study.toml"


def run_here(*arguments: str) -> str:
    """A worker in this process; what it prints."""
    finished = CliRunner().invoke(program, ["worker", *arguments, "--storage", "shared.db"], catch_exceptions=False)
    assert finished.exit_code == 0, finished.output
    return finished.output


def loaded() -> ft.Study:
    return ft.Study.load("shared", "shared.db")


def wait_for(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + 100
    while not happens():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.05)


@pytest.mark.parametrize("strategy", ["Sobol", "Random"])
def test_workers_run_the_same_trials_as_one_coordinator(folder: Path, started, strategy: str) -> None:
    write_study(folder, strategy=strategy, trials=24)
    for worker in [started("study.toml", "--until-idle") for _ in range(3)]:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors
    study = loaded()
    alone = ft.Study(study.space, minimize="error", strategy=strategy, seed=3)
    alone.run(lambda trial: 0.0, budget=ft.Budget(trials=24), executor="inline")
    assert [trial.params for trial in study.trials] == [trial.params for trial in alone.trials]
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    assert study.ledger.to_json()["waiting_seconds"] > 0.0


EPOCHS = """
def work(trial):
    first = int((trial.resume_dir / "epoch").read_text()) + 1 if trial.resume_dir else 1
    for epoch in range(first, int(trial.fidelity.get("epochs", 1)) + 1):
        loss = abs(trial.params["x"] - 0.3) + trial.params["y"] + 1 / epoch
        trial.report(loss, **{name: epoch for name in trial.fidelity})
    (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity.get("epochs", 1))))

def cost(params, fidelity):
    return (1.0 + params["x"]) * fidelity.get("epochs", 1.0)
"""


@pytest.mark.parametrize(
    ("strategy", "fidelities"),
    [("LogEI", ""), ("TraceKG", "[fidelities]\nepochs = {int = [1, 9], trace = true}\n")],
)
def test_one_worker_makes_the_trials_that_one_program_makes(
    folder: Path, started, strategy: str, fidelities: str
) -> None:
    (folder / "shared_work.py").write_text(EPOCHS)
    write_study(folder, strategy=strategy, trials=12)
    text = (folder / "study.toml").read_text()
    declared = 'seed = 3\ncost = "shared_work.py:cost"\ncost_unit = "credits"'
    (folder / "study.toml").write_text(
        text.replace("seed = 3", declared).replace("[strategy]", f"{fidelities}[strategy]")
    )
    worker = started("study.toml", "--until-idle")
    _, errors = worker.communicate()
    assert worker.returncode == 0, errors
    study, given = loaded(), {}
    exec(EPOCHS, given)
    alone = ft.Study(study.space, minimize="error", strategy=strategy, seed=3, cost=given["cost"], cost_unit="credits")
    alone.run(given["work"], budget=ft.Budget(trials=12), executor="inline")
    made, expected = (
        [(trial.params, trial.fidelity, trial.resume_from, trial.value, trial.cost) for trial in each.trials]
        for each in (study, alone)
    )
    assert made == expected
    assert len(made) >= 12


def test_what_a_model_suggested_for_all_is_repeated_from_what_it_knew(folder: Path, started) -> None:
    write_study(folder, strategy="EIPerCost", trials=20)
    for worker in [started("study.toml", "--until-idle") for _ in range(3)]:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors
    study = loaded()
    assert len(study.trials) == 20
    assert any("knew" in trial.note for trial in study.trials)
    assert check_replay(study) == []


def test_a_worker_gives_its_trial_back_on_sigterm(folder: Path, started) -> None:
    write_study(folder)
    (folder / "slow").touch()
    worker = started("study.toml")
    wait_for((folder / "began").exists)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert worker.returncode == 128 + signal.SIGTERM
    given_back = loaded().trials[0]
    assert (given_back.state, given_back.attempt, given_back.owner) == (ft.State.PENDING, 2, None)
    assert given_back.costs["failed"] > 0.0, "pre-empted work is failed work"

    (folder / "slow").unlink()
    run_here("study.toml", "--until-idle", "--max-trials", "1")
    assert loaded().trials[0].state is ft.State.DONE


def test_a_worker_heeds_a_sigterm_that_comes_while_it_is_still_being_imported() -> None:
    ended = subprocess.run([sys.executable, "-c", EARLY, "worker", "study.toml"], capture_output=True, text=True)
    assert ended.returncode == 128 + signal.SIGTERM
    assert ended.stderr == "Ended by a signal, before it took a trial.\n"


def test_a_worker_runs_the_strategy_that_a_program_created_the_study_with_and_says_so() -> None:
    space = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
    with ft.Study(space, minimize="error", storage="shared.db", name="shared", seed=7, strategy=ft.Sobol()) as study:
        study.set_budget(ft.Budget(trials=4))
        study.enqueue({"x": 0.125, "y": 0.25})
    output = run_here("shared", "--work", "shared_work.py:work", "--until-idle")
    assert output.splitlines()[0] == "shared: this worker runs trials of Sobol()."
    assert [trial.state for trial in loaded().trials] == [ft.State.DONE] * 4
    assert loaded().trials[0].params == {"x": 0.125, "y": 0.25}
    assert check_replay(loaded()) == []
    assert loaded().strategy == ft.Sobol()


def test_a_worker_starts_as_many_trials_as_it_may(folder: Path) -> None:
    write_study(folder)
    assert "this worker ended: 3 trials were started here." in run_here("study.toml", "--max-trials", "3")
    assert sum(trial.state is ft.State.DONE for trial in loaded().trials) == 3
    assert "seconds are over" in run_here("study.toml", "--hours", "1e-9")
    assert sum(trial.state is ft.State.DONE for trial in loaded().trials) == 3


def test_a_worker_waits_for_a_larger_budget_until_it_is_asked_to_stop(folder: Path, started) -> None:
    write_study(folder, trials=2)
    worker = started("study.toml")
    wait_for(lambda: (folder / "shared.db").exists())
    wait_for(lambda: "shared" in [found.record.name for found in ft.studies("shared.db")])
    study = loaded()
    wait_for(lambda: len(study.history.done) == 2)
    CliRunner().invoke(program, ["budget", "shared", "--storage", "shared.db", "--trials", "5"])
    wait_for(lambda: len(study.history.done) == 5)
    assert worker.poll() is None
    CliRunner().invoke(program, ["stop", "shared", "--storage", "shared.db"])
    assert worker.wait(60) == 0


def test_a_request_to_stop_holds_for_workers_that_start_later(folder: Path) -> None:
    write_study(folder)
    run_here("study.toml", "--max-trials", "1")
    loaded().request_stop()
    assert "this worker ended: stopped on request." in run_here("study.toml")
    assert sum(trial.state is ft.State.DONE for trial in loaded().trials) == 1


def test_a_worker_without_the_declared_cost_only_runs_what_others_suggest(folder: Path) -> None:
    space = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
    with ft.Study(
        space,
        minimize="error",
        storage="shared.db",
        name="shared",
        strategy=ft.Random(),
        cost_unit="credits",
        cost=lambda params, fidelity: 1.0 + params["x"],
    ) as study:
        study.set_budget(ft.Budget(trials=3))
        study.enqueue({"x": 0.25, "y": 0.5})
        said = run_here("shared", "--work", "shared_work.py:work", "--until-idle")
        assert "no trial waits, and others suggest" in said
        assert [trial.state for trial in study.trials] == [ft.State.DONE]

        named = ("--work", "shared_work.py:work", "--declared-cost", "shared_work.py:cost")
        assert "the budget is spent" in run_here("shared", *named, "--until-idle")
        assert [round(trial.cost - trial.params["x"], 9) for trial in study.trials[1:]] == [1.0, 1.0]


def test_a_study_file_may_declare_the_cost(folder: Path) -> None:
    write_study(folder, trials=2)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("seed = 3", 'cost = "shared_work.py:cost"\ncost_unit = "credits"'))
    run_here("study.toml", "--until-idle")
    CliRunner().invoke(program, ["resume", "shared", "--storage", "shared.db", "--trials", "1", "--inline", "--quiet"])
    study = loaded()
    assert [round(trial.cost - trial.params["x"], 9) for trial in study.trials] == [1.0, 1.0, 1.0]


def test_work_that_always_fails_ends_the_worker_with_an_error(folder: Path) -> None:
    write_study(folder)
    (folder / "shared_work.py").write_text("def work(trial):\n    raise ValueError('broken on purpose')\n")
    finished = CliRunner().invoke(program, ["worker", "study.toml", "--storage", "shared.db"])
    assert finished.exit_code == 1
    assert "broken on purpose" in finished.output


def test_a_worker_of_a_study_without_a_budget_says_what_is_missing(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace("trials = TRIALS", "").replace("STRATEGY", "Random"))
    finished = CliRunner().invoke(program, ["worker", "study.toml", "--storage", "shared.db"])
    assert finished.exit_code == 1
    assert "needs a budget" in finished.output
    assert os.path.exists("shared.db")


PRICES = """
[prices]
gpu = 3600.0
per = "hour"
[resources]
gpu = 1
"""


def test_a_worker_says_its_price_and_its_label_and_pays_for_what_was_lost_with_it(folder: Path, started) -> None:
    write_study(folder, trials=4)
    (folder / "study.toml").write_text((folder / "study.toml").read_text() + PRICES)
    (folder / "slow").touch()
    spot = started("study.toml", "--price", "gpu=1800", "--spot")
    wait_for((folder / "began").exists)
    spot.send_signal(signal.SIGTERM)
    assert spot.communicate(timeout=60) == ("", "Ended by a signal; its trials were given back.\n")
    (folder / "slow").unlink()
    run_here("study.toml", "--until-idle", "--max-trials", "2")
    run_here("study.toml", "--until-idle", "--price", "gpu=1800", "--spot")

    trials, bill = loaded().trials, loaded().ledger
    assert [trial.labels for trial in trials] == [("spot", None), (), ("spot",), ("spot",)]
    rates = {point.rate for trial in trials for point in trial.measurements if point.cost}
    assert rates <= {0.5, 1.0}
    assert bill.labels["spot"] == pytest.approx(sum(trial.costs_by_label.get("spot", 0.0) for trial in trials))
    assert 0.0 < trials[0].costs["failed"] == trials[0].costs_by_label["spot"]
    assert sum(bill.labels.values()) == pytest.approx(bill.total)
    assert "on       spot" in str(bill)


@pytest.mark.parametrize(
    ("prices", "price", "said"),
    [
        ("", "gpu=1", "A worker's price needs a study with prices, got {'gpu': 1.0}"),
        (PRICES, "tpu=1", "must be among 'gpu', got 'tpu'"),
        (PRICES, "gpu=much", "A price must be NAME=AMOUNT, got 'gpu=much'"),
        (PRICES, "gpu=-1", "price of gpu must"),
    ],
)
def test_a_price_that_cannot_be_is_refused(folder: Path, prices: str, price: str, said: str) -> None:
    write_study(folder)
    (folder / "study.toml").write_text((folder / "study.toml").read_text() + prices)
    ended = CliRunner().invoke(program, ["worker", "study.toml", "--storage", "shared.db", "--price", price])
    assert ended.exit_code == 1
    assert said in ended.stderr
