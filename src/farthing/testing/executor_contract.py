"""The contract of every executor, as a test suite to inherit from.

    class TestMine(ExecutorContract):
        def executor(self):
            return MyExecutor(workers=1)

It has one worker. One that is given its work when it is made overrides `started` instead.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from farthing.costs import Budget, Remaining
from farthing.errors import Pruned, StaleAttempt, StorageError, TrialFinished
from farthing.execution import Checkpoints, Executor, Job, RunningTrial, as_work
from farthing.execution.executor import Checkpointed, News
from farthing.execution.work import Work
from farthing.running.loop import GivesBack
from farthing.running.suggestions import GivesTimeToThink
from farthing.session.questions import Question
from farthing.session.turns import Answer
from farthing.space import Fidelity, Float, Space
from farthing.strategies.plain.random import Random
from farthing.study import Study
from farthing.trials import Attempt, History, Measurement, Outcome, Problem, State
from farthing.trials.prefixes import Eviction

PLAIN = Problem(Space({"lr": Float(0.0, 1.0)}), value="error")
TRACED = Problem(
    Space({"lr": Float(0.0, 1.0)}, fidelities={"epochs": Fidelity(1, 10, integer=True, trace=True)}), value="error"
)

Start: TypeAlias = Callable[..., Executor]


class Heard:
    """A listener that writes down what it is told, or refuses it."""

    def __init__(self, *, refusal: Exception | None = None, on_report: Callable[[], object] = lambda: None) -> None:
        self.reports: list[tuple[Attempt, Measurement]] = []
        self.checkpoints: list[tuple[Attempt, str]] = []
        self.evictions: list[tuple[Attempt, Eviction]] = []
        self._refusal = refusal
        self._on_report = on_report

    def on_news(self, attempt: Attempt, news: News) -> None:
        if self._refusal:
            raise self._refusal
        match news:
            case Measurement():
                self.reports.append((attempt, news))
                self._on_report()
            case Checkpointed(checkpoint):
                self.checkpoints.append((attempt, checkpoint))
            case Eviction():
                self.evictions.append((attempt, news))


def job(number: int = 0, attempt: int = 1, *, lr: float = 0.5, **settings: Any) -> Job:
    return Job(Attempt(number, attempt), {"lr": lr}, settings.pop("fidelity", {}), **settings)


def outcomes(executor: Executor, *jobs: Job, listener: Heard | None = None) -> list[Outcome | None]:
    """The outcomes of these jobs, one after the other; an executor may return from waiting before a job has ended."""
    found: list[Outcome | None] = []
    for each in jobs:
        executor.submit(each)
        while not (ended := executor.wait(listener or Heard())):
            continue
        assert [one.attempt for one in ended] == [each.attempt]
        found.append(ended[0].outcome)
    return found


def outcome(executor: Executor, one: Job, *, listener: Heard | None = None) -> Outcome:
    [found] = outcomes(executor, one, listener=listener)
    assert found is not None
    return found


class ExecutorContract:
    """Inherit, and define `executor`, or `started` where an executor is given its work when it is made."""

    def executor(self) -> Any:
        """A new executor with one worker, which `take_up` tells what to run."""
        raise NotImplementedError

    def started(self, work: Work, problem: Problem, *, checkpoints: Checkpoints) -> Executor:
        executor = self.executor()
        executor.take_up(as_work(work), problem, checkpoints=checkpoints)
        assert isinstance(executor, Executor)
        return executor

    @pytest.fixture
    def checkpoints(self, tmp_path: Path) -> Checkpoints:
        return Checkpoints(tmp_path / "files")

    @pytest.fixture
    def start(self, checkpoints: Checkpoints) -> Iterator[Start]:
        """Makes executors, and ends them after the test."""
        made: list[Executor] = []

        def make(work: Work, problem: Problem = PLAIN) -> Executor:
            made.append(self.started(work, problem, checkpoints=checkpoints))
            return made[-1]

        yield make
        for executor in made:
            executor.close()

    def test_a_returned_value_is_the_outcome(self, start: Start) -> None:
        found = outcomes(start(lambda trial: trial.params["lr"]), job(0, lr=0.1), job(1, lr=0.2))
        assert [one and (one.state, one.value) for one in found] == [(State.DONE, 0.1), (State.DONE, 0.2)]

    def test_a_job_takes_the_free_place_until_it_has_ended(self, start: Start) -> None:
        executor = start(lambda trial: 0.5)
        assert (executor.workers, executor.free, executor.running) == (1, 1, ())
        executor.submit(job(7, 2))
        assert (executor.free, executor.running) == (0, (Attempt(7, 2),))
        executor.wait(Heard())
        assert (executor.free, executor.running) == (1, ())

    def test_the_work_sees_its_trial(self, start: Start) -> None:
        def describe(trial: RunningTrial) -> float:
            assert (trial.number, trial.attempt, trial.fidelity, trial.resume_dir) == (7, 2, {"epochs": 3}, None)
            return float(trial.params["lr"])

        assert outcome(start(describe, TRACED), job(7, 2, fidelity={"epochs": 3})).value == 0.5

    def test_a_report_is_durable_when_it_returns(self, start: Start, tmp_path: Path) -> None:
        """The work sees what the listener did with its report."""
        written = tmp_path / "durable"

        def work(trial: RunningTrial) -> float:
            trial.report(0.5)
            return 1.0 if written.exists() else 0.0

        assert outcome(start(work), job(), listener=Heard(on_report=written.touch)).value == 1.0

    def test_reports_come_in_order_with_their_attempt(self, start: Start) -> None:
        def work(trial: RunningTrial) -> None:
            for epoch in (1, 2, 3):
                trial.report(1 / epoch, epochs=epoch, metrics={"auc": 0.5})

        heard = Heard()
        found = outcome(start(work, TRACED), job(3, 2, fidelity={"epochs": 3}), listener=heard)
        assert [attempt for attempt, _ in heard.reports] == [Attempt(3, 2)] * 3
        assert [report.fidelity for _, report in heard.reports] == [{"epochs": 1}, {"epochs": 2}, {"epochs": 3}]
        assert [report.sequence for _, report in heard.reports] == [0, 1, 2]
        assert found.value == 1 / 3
        assert [(point.value, point.sequence) for point in found.measurements] == [(None, 3)], "the last one's cost"

    @pytest.mark.parametrize("error", [ValueError("no data"), SystemExit(0), MemoryError(), StopIteration()])
    def test_whatever_is_raised_ends_one_job(self, start: Start, error: BaseException) -> None:
        def work(trial: RunningTrial) -> float:
            if trial.number == 0:
                raise error
            return 0.5

        bad, good = outcomes(start(work), job(0), job(1))
        assert bad is not None
        assert bad.failure is not None
        assert good is not None
        assert (bad.state, good.value) == (State.FAILED, 0.5)
        assert type(error).__name__ in bad.failure.reason.partition("\n")[0]

    @pytest.mark.parametrize("refusal", [StaleAttempt("taken over"), TrialFinished("has a result")])
    def test_an_attempt_that_was_taken_over_is_unwound_without_an_outcome(
        self, start: Start, refusal: Exception, tmp_path: Path
    ) -> None:
        went_on = tmp_path / "went on"

        def work(trial: RunningTrial) -> float:
            try:
                trial.report(0.5)
            except Exception:
                went_on.touch()
            went_on.touch()
            return 0.5

        assert outcomes(start(work), job(), listener=Heard(refusal=refusal)) == [None]
        assert not went_on.exists()

    def test_work_whose_report_spends_the_budget_is_unwound_with_the_value_that_it_has(
        self, start: Start, tmp_path: Path
    ) -> None:
        went_on = tmp_path / "went on"

        def work(trial: RunningTrial) -> float:
            trial.report(0.75)
            went_on.touch()
            return 0.25

        def spent() -> None:
            raise Pruned("the budget is spent")

        found = outcome(start(work), job(tells_charges=True), listener=Heard(on_report=spent))
        assert (found.state, found.value) == (State.PRUNED, 0.75)
        assert not went_on.exists()

    def test_a_listener_that_fails_is_heard_and_not_blamed_on_the_work(self, start: Start) -> None:
        def work(trial: RunningTrial) -> None:
            trial.report(0.5)

        executor = start(work)
        executor.submit(job())
        with pytest.raises(StorageError, match="disk full"):
            executor.wait(Heard(refusal=StorageError("disk full")))

    def test_a_checkpoint_is_handed_on(self, start: Start, checkpoints: Checkpoints) -> None:
        def work(trial: RunningTrial) -> float:
            done = int((trial.resume_dir / "done").read_text()) if trial.resume_dir else 0
            (trial.checkpoint_dir / "done").write_text(str(done + 1))
            return float(done)

        executor = start(work)
        first = outcome(executor, job(0))
        assert first.checkpoint is not None
        second = outcome(executor, job(1, resume_dir=checkpoints.path(first.checkpoint)))
        assert second.checkpoint is not None
        assert second.value == 1.0
        assert (checkpoints.path(second.checkpoint) / "done").read_text() == "2"

    def test_a_checkpoint_in_between_is_announced_and_survives_a_failure(
        self, start: Start, checkpoints: Checkpoints
    ) -> None:
        def work(trial: RunningTrial) -> None:
            with trial.checkpoint() as folder:
                (folder / "weights").write_text("good")
            (trial.checkpoint_dir / "weights").write_text("half")
            raise ValueError("broken")

        heard = Heard()
        found = outcome(start(work), job(4, 1), listener=heard)
        assert found.checkpoint is not None
        assert heard.checkpoints == [(Attempt(4, 1), found.checkpoint)]
        assert (checkpoints.path(found.checkpoint) / "weights").read_text() == "good"

    def test_waiting_ends_after_its_timeout(self, start: Start) -> None:
        assert start(lambda trial: 0.5).wait(Heard(), timeout=0.01) == []

    def test_waiting_ends_when_woken(self, start: Start) -> None:
        executor = start(lambda trial: 0.5)
        executor.wake()
        assert executor.wait(Heard()) == []

    def test_closing_drops_what_runs_and_may_be_repeated(self, start: Start) -> None:
        executor = start(lambda trial: 0.5)
        executor.submit(job())
        executor.close()
        assert executor.running == ()
        executor.close()

    def test_idle_workers_give_back_all_that_they_hold_and_work_again(self, start: Start) -> None:
        """It matters for an executor with `give_back`; any other just works on."""
        executor = start(lambda trial: trial.params["lr"])
        assert outcome(executor, job(0, lr=0.1)).value == 0.1
        if isinstance(executor, GivesBack):
            assert executor.give_back(after=0.0) == 0
        assert outcome(executor, job(1, lr=0.2)).value == 0.2

    def test_a_place_to_think_in_takes_one_question_and_gives_one_answer(self, start: Start) -> None:
        """It matters for an executor with `thinking_of`."""
        executor = start(lambda trial: 0.5)
        if not isinstance(executor, GivesTimeToThink):
            return
        asked = Question(History(PLAIN), Remaining(), 1)
        thinking = executor.thinking_of(lambda question: Answer(question, []), executor.wake)
        assert (thinking.is_busy, thinking.take()) == (False, None)
        thinking.ask(asked)
        assert thinking.is_busy
        while not thinking.has_answer:
            executor.wait(Heard())
        answer = thinking.take()
        assert answer is not None
        assert answer.question is asked
        assert (thinking.is_busy, thinking.take()) == (False, None)
        thinking.close(waits=True)

    def test_a_study_runs_with_it(self, checkpoints: Checkpoints) -> None:
        def work(trial: RunningTrial) -> float:
            trial.report(1.0, epochs=1)
            return float(trial.params["lr"])

        study = Study(TRACED.space, minimize="error", strategy=Random(), seed=0)
        executor = self.started(work, study.problem, checkpoints=checkpoints)
        study.run(work, budget=Budget(trials=5), executor=executor)
        assert [trial.value for trial in study.trials] == [trial.params["lr"] for trial in study.trials]
