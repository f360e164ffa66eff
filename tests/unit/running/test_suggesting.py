"""Suggestions of a run with worker processes: made in a thread, so that reports are recorded meanwhile."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

import farthing as ft
from farthing.costs import EFFORT_LEVELS, Remaining
from farthing.extending import Randomness, Strategy
from farthing.models.linalg import one_thread
from farthing.running.suggestions import AnsweringThread
from farthing.session.questions import KNEW, Knowledge, Question, running_then
from farthing.session.turns import Answer
from farthing.testing import check_replay
from farthing.trials import History, Problem, Suggestion

SQUARE = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
LIMIT = 300.0
"""Seconds that nothing here comes near to, on a busy machine either."""


@dataclass(frozen=True)
class SlowEI(ft.LogEI):
    """Thinks about its third suggestion, by fitting models again and again, until a report is acknowledged."""

    folder: str = ""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        if len(history) == 2:
            (Path(self.folder) / "thinking").touch()
            until = time.monotonic() + LIMIT
            while not (Path(self.folder) / "acknowledged").exists():
                assert time.monotonic() < until, "no report was recorded while the strategy thought"
                ft.LogEI(initial=1).suggest(history, budget, 1, rng)
        return super().suggest(history, budget, count, rng)


def test_a_report_is_acknowledged_while_the_strategy_thinks(tmp_path: Path) -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 2, integer=True, trace=True)})

    def work(trial: ft.RunningTrial) -> float:
        if trial.number == 1:
            while not (tmp_path / "thinking").exists():
                time.sleep(0.01)
            trial.report(trial.params["x"], epochs=1)
            (tmp_path / "acknowledged").touch()
        return float(trial.params["x"])

    study = ft.Study(space, minimize="value", strategy=SlowEI(folder=str(tmp_path)))
    study.run(work, budget=ft.Budget(trials=4), workers=2, progress=False)
    assert len(study.history.done) == 4


@dataclass(frozen=True)
class Broken(Strategy):
    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        if len(history) >= 2:
            raise ZeroDivisionError("the strategy is broken")
        return [Suggestion({"x": 0.5, "y": 0.5})][:count]


def test_an_error_of_the_strategy_ends_the_run(tmp_path: Path) -> None:
    study = ft.Study(SQUARE, minimize="value", strategy=Broken())
    with pytest.raises(ZeroDivisionError, match="the strategy is broken"):
        study.run(_bowl, budget=ft.Budget(trials=9), workers=2, progress=False)
    assert all(trial.is_finished or trial.state == "pending" for trial in study.trials), "what ran is given back"


@dataclass(frozen=True)
class InPairs(Strategy):
    """Suggests the second of a pair once the first has ended; has nothing while one runs."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        if history.in_flight or len(history) >= 6:
            return []
        return [Suggestion({"x": 0.1 * len(history), "y": 0.5})]


def test_a_strategy_that_waits_for_a_trial_is_asked_again_when_it_has_ended() -> None:
    """An empty answer from before the trial ended must not end the run."""
    study = ft.Study(SQUARE, minimize="value", strategy=InPairs())
    stopped = study.run(_bowl, budget=ft.Budget(trials=20), workers=2, progress=False)
    assert stopped.reason is ft.StopReason.STRATEGY_FINISHED
    assert len(study.history.done) == 6


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_runs_with_worker_processes_are_replayed_exactly(workers: int) -> None:
    study = ft.Study(SQUARE, minimize="value", strategy=ft.LogEI(), seed=workers)
    study.run(_bowl, budget=ft.Budget(trials=25), workers=workers, progress=False)
    assert check_replay(study) == []
    assert all(Knowledge.of(trial).effort in EFFORT_LEVELS for trial in study.trials)
    known = [(Knowledge.of(trial).trials, trial.number) for trial in study.trials]
    assert [knew is not None and knew <= number for knew, number in known] == [True] * 25


def _train_in_parts(trial: ft.RunningTrial) -> None:
    done = int((trial.resume_dir / "epochs").read_text()) if trial.resume_dir else 0
    for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
        trial.charge(60 * (1 + trial.params["x"]))
        trial.report(_bowl(trial) + 0.5 / epoch, epochs=epoch)
    (trial.checkpoint_dir / "epochs").write_text(str(int(trial.fidelity["epochs"])))


@pytest.mark.parametrize("halving", [True, False])
@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_runs_whose_checkpoints_are_deleted_are_replayed_exactly(executor: Any, halving: bool) -> None:
    """A checkpoint is deleted once its run went on: what was suggested before knew that it was there."""
    epochs = {"epochs": ft.Fidelity(1, 12, integer=True, trace=True)}
    space = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities=epochs)
    strategy = ft.TraceKG(halving=halving)
    study = ft.Study(space, minimize="value", strategy=strategy, seed=1, cost_unit="$")
    workers = 1 if executor == "inline" else 3
    study.run(_train_in_parts, budget=ft.Budget(cost=10_000), executor=executor, workers=workers, progress=False)
    assert any(trial.resume_checkpoint for trial in study.trials)
    assert any(trial.checkpoint is None for trial in study.history.done)
    assert check_replay(study) == []


@pytest.mark.parametrize("strategy", [ft.ASHA(), ft.Hyperband()], ids=lambda one: type(one).__name__)
def test_notes_with_many_workers_have_what_changed_and_are_replayed_exactly(strategy: Strategy) -> None:
    epochs = {"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}, fidelities=epochs), minimize="value", strategy=strategy, seed=0)
    draw, running = Random(0), list[ft.RunningTrial]()
    for _ in range(300):
        running.append(study.ask())
        if draw.random() < 0.3:
            draw.choice(running).report(draw.random(), epochs=1)
        if len(running) > 60:
            study.tell(running.pop(draw.randrange(len(running))), draw.random())
    assert check_replay(study) == []
    full = [trial for trial in study.trials[1:] if "since" not in trial.note[KNEW]]
    assert len(full) < 300 / 30
    assert fmean(len(json.dumps(trial.note[KNEW])) for trial in study.trials[100:]) < 150
    assert len(running_then(study.history, 299)) == 60


def test_one_worker_that_runs_here_notes_only_that_it_knew_a_new_budget_and_suggests_as_before() -> None:
    """What a single worker knows goes without saying: all trials before."""
    study = ft.Study(SQUARE, minimize="value", strategy=ft.LogEI(), cost=lambda params, fidelity: 1.0)
    study.run(_bowl, budget=ft.Budget(trials=8), executor="inline", progress=False)
    told = ft.Study(SQUARE, minimize="value", strategy=ft.LogEI(), cost=lambda params, fidelity: 1.0)
    for _ in range(8):
        trial = told.ask()
        told.tell(trial, _bowl(trial))
    assert [trial.params for trial in study.trials] == [trial.params for trial in told.trials]
    assert not any(KNEW in (trial.note or {}) for trial in [*study.trials[1:], *told.trials])
    assert study.trials[0].note[KNEW]["left"] == {"trials": 8}


def test_a_budget_is_kept_with_suggestions_made_ahead() -> None:
    study = ft.Study(SQUARE, minimize="value", strategy=ft.LogEI(), cost=lambda params, fidelity: 1.0)
    study.run(_bowl, budget=ft.Budget(cost=17.0), workers=3, progress=False)
    assert study.ledger.total == 17.0


@dataclass(frozen=True)
class Listing(Strategy):
    """Its notes are lists, as a user's may be."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return [Suggestion({"x": 0.5, "y": 0.5}, note=[len(history), i]) for i in range(count)]


def test_a_note_that_is_no_mapping_stays_as_it_is() -> None:
    study = ft.Study(SQUARE, minimize="value", strategy=Listing())
    study.run(_bowl, budget=ft.Budget(trials=4), workers=2, progress=False)
    assert all(isinstance(trial.note, list) for trial in study.trials)


def test_what_was_known_survives_the_storage(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    with ft.Study(SQUARE, minimize="value", strategy=ft.LogEI(), storage=storage) as study:
        study.run(_bowl, budget=ft.Budget(trials=12), workers=2, progress=False)
        notes = [json.loads(json.dumps(trial.note)) for trial in study.trials]
    with ft.Study.load("study", storage) as loaded:
        assert [trial.note for trial in loaded.trials] == notes
        assert check_replay(loaded) == []


def test_one_thread_answers_all_questions_and_ends_with_the_run() -> None:
    answered, threads = threading.Semaphore(0), []

    def suggest(question: Question) -> Answer:
        threads.append(threading.current_thread())
        return Answer(question, ())

    thinking = AnsweringThread(suggest, lambda: answered.release())
    for count in (1, 2, 3):
        question = Question(History(Problem(SQUARE)), Remaining(), count)
        thinking.ask(question)
        assert answered.acquire(timeout=LIMIT)
        assert thinking.is_busy
        assert thinking.take() == Answer(question, ())
        assert not thinking.is_busy
        assert thinking.take() is None
    thinking.close(waits=True)
    assert len(set(threads)) == 1
    assert not threads[0].is_alive()


FIRST_OF_A_STUDY = """
import sys
import farthing as ft

space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"n": ft.Fidelity(1, 9, integer=True, trace=True)})
study = ft.Study(space, minimize="error", seed=0)
trial = study.ask()
print("scipy" in sys.modules)
"""

IN_A_RUN = """
import sys
import farthing as ft

def is_loaded():
    return "farthing.strategies.multifidelity.screening" in sys.modules

def work(trial):
    trial.report(0.5, n=trial.fidelity["n"])

if __name__ == "__main__":
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"n": ft.Fidelity(1, 9, integer=True, trace=True)})
    study = ft.Study(space, minimize="error", seed=0)
    study.run(work, budget=ft.Budget(trials=1), workers=2, progress=False)
    print(is_loaded())
"""


def test_the_first_suggestions_do_without_what_the_model_needs() -> None:
    assert printed_by(FIRST_OF_A_STUDY) == "False"


def test_what_the_model_needs_is_loaded_while_the_first_trials_run(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(IN_A_RUN, encoding="utf-8")
    assert printed_by(program) == "True"


def test_the_thread_goes_on_without_a_module_that_is_absent() -> None:
    answered = threading.Semaphore(0)
    thinking = AnsweringThread(lambda question: Answer(question, ()), answered.release, imports_later="absent_module")
    for count in (1, 2):
        thinking.ask(Question(History(Problem(SQUARE)), Remaining(), count))
        assert answered.acquire(timeout=LIMIT)
        assert thinking.take() is not None
    thinking.close(waits=True)


def printed_by(program: str | Path) -> str:
    called = [program] if isinstance(program, Path) else ["-c", program]
    return subprocess.run([sys.executable, *called], capture_output=True, text=True, check=True).stdout.strip()


def test_a_thread_that_nothing_was_asked_of_can_be_closed() -> None:
    AnsweringThread(lambda question: Answer(question, ()), lambda: None).close(waits=True)


def test_the_thread_goes_on_after_an_error() -> None:
    answered = threading.Semaphore(0)

    def suggest(question: Question) -> Answer:
        if question.count == 1:
            raise ZeroDivisionError("once")
        return Answer(question, ())

    thinking = AnsweringThread(suggest, lambda: answered.release())
    thinking.ask(Question(History(Problem(SQUARE)), Remaining(), 1))
    assert answered.acquire(timeout=LIMIT)
    with pytest.raises(ZeroDivisionError, match="once"):
        thinking.take()
    thinking.ask(Question(History(Problem(SQUARE)), Remaining(), 2))
    assert answered.acquire(timeout=LIMIT)
    assert thinking.take() is not None
    thinking.close(waits=True)


def test_one_thread_of_linear_algebra_lasts_until_the_last_block_ends() -> None:
    """A thread that suggests must not lose its limit when another one has recommended."""
    from threadpoolctl import threadpool_info, threadpool_limits

    def limits() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    inside, go_on = threading.Event(), threading.Event()

    def suggesting() -> None:
        with one_thread():
            inside.set()
            go_on.wait(LIMIT)

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=suggesting)
        thread.start()
        inside.wait(LIMIT)
        with one_thread():
            pass
        still = limits()
        go_on.set()
        thread.join()
        assert (still, limits()) == ({1}, {2})


def _bowl(trial: ft.RunningTrial) -> float:
    return float((trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.6) ** 2)
