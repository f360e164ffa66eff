"""Every executor keeps the contract, and what is more of some of them."""

import asyncio
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, Pruned, StaleAttempt, WorkError
from farthing.execution import (
    Checkpoints,
    Command,
    Executor,
    InlineExecutor,
    Job,
    Pipeline,
    ProcessExecutor,
    Trainable,
    as_work,
)
from farthing.execution.coroutines import AsyncExecutor
from farthing.running.executors import MEMBERS
from farthing.space import Choice, Float, Int, Space
from farthing.testing import ExecutorContract, SimulatedExecutor
from farthing.testing.executor_contract import PLAIN, TRACED, Heard, job
from farthing.trials import Attempt, Problem, State
from farthing.trials.prefixes import Eviction


def in_a_coroutine(work, problem, **settings):
    """Any work, as a coroutine that waits a little first."""
    checked = as_work(work)
    checked.check(problem)

    async def carried_out(trial):
        await asyncio.sleep(0)
        return checked.run(trial)

    return AsyncExecutor(carried_out, problem, workers=1, **settings)


class TestInline(ExecutorContract):
    def started(self, work, problem, *, checkpoints):
        return InlineExecutor(work, problem, checkpoints=checkpoints)


class TestAsync(ExecutorContract):
    def started(self, work, problem, *, checkpoints):
        return in_a_coroutine(work, problem, checkpoints=checkpoints)


class TestProcesses(ExecutorContract):
    def started(self, work, problem, *, checkpoints):
        return ProcessExecutor(work, problem, workers=1, checkpoints=checkpoints)


EXECUTORS = {"inline": TestInline, "async": TestAsync, "processes": TestProcesses}


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "files")


@pytest.fixture(params=EXECUTORS)
def start(request, checkpoints):
    """Makes an executor of either kind, and ends it after the test."""
    started = []

    def make(work, problem=PLAIN):
        started.append(EXECUTORS[request.param]().started(work, problem, checkpoints=checkpoints))
        return started[-1]

    yield make
    for executor in started:
        executor.close()


def run(executor, *jobs, listener=None):
    """The outcomes of these jobs, run one after the other."""
    listener = listener or Heard()
    outcomes = []
    for each in jobs or [job()]:
        executor.submit(each)
        (ended,) = executor.wait(listener)
        assert ended.attempt == each.attempt
        outcomes.append(ended.outcome)
    return outcomes if len(outcomes) > 1 else outcomes[0]


def test_params_arrive_as_they_were_sent(start):
    params = {"i": 3, "f": 3.0, "c": None, "b": True, "s": "ü\n"}
    kinds = [type(value).__name__ for value in params.values()]

    def check(trial):
        assert trial.params == params
        assert [type(value).__name__ for value in trial.params.values()] == kinds
        return 0.0

    space = Space(
        {
            "i": Int(0, 9),
            "f": Float(0.0, 9.0),
            "c": Choice(None, "x"),
            "b": Choice(True, False),
            "s": Choice("ü\n", "x"),
        }
    )
    outcome = run(start(check, Problem(space)), Job(Attempt(0, 1), params, {}))
    assert outcome.failure is None


def test_an_exception_is_kept_with_the_users_part_of_its_traceback(start):
    def broken(trial):
        trial.report(0.5)
        raise ValueError("no data")

    outcome = run(start(broken))
    assert outcome.state is State.FAILED
    assert outcome.failure.reason == "ValueError: no data"
    assert 'raise ValueError("no data")' in outcome.failure.traceback
    assert "farthing/execution" not in outcome.failure.traceback
    assert outcome.measurements[-1].cost["training"] > 0


class Mine(BaseException):
    pass


@pytest.mark.parametrize("error", [RecursionError(), Mine("own")])
def test_whatever_is_raised_ends_one_job(start, error):
    def work(trial):
        if trial.number == 0:
            raise error
        return 0.5

    bad, good = run(start(work), job(0), job(1))
    assert bad.state is State.FAILED
    assert type(error).__name__ in bad.failure.reason.partition("\n")[0]
    assert good.value == 0.5


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "returned no value and reported none"),
        (math.nan, "must be finite, got nan"),
        (math.inf, "must be finite, got inf"),
        ("0.5", "must be a number"),
        ({"loss": 0.5}, "must hold 'error'"),
        (lambda: 0.5, "must be a number"),
    ],
)
def test_a_bad_result_ends_one_job(start, result, reason):
    bad, good = run(start(lambda trial: result if trial.number == 0 else 0.5), job(0), job(1))
    assert bad.state is State.FAILED
    assert reason in bad.failure.reason
    assert good.state is State.DONE


def test_a_pruned_trial_keeps_its_last_value(start):
    def work(trial):
        trial.report(0.7)
        raise Pruned

    outcome = run(start(work))
    assert (outcome.state, outcome.value, outcome.failure) == (State.PRUNED, 0.7, None)


@pytest.mark.parametrize("charges", [False, True])
def test_work_whose_news_is_the_last_is_unwound_with_the_value_that_it_has(start, tmp_path, charges):
    went_on = tmp_path / "went on"

    def work(trial):
        trial.report(0.75)
        try:
            if charges:
                trial.charge(2.0)
            trial.report(0.5)
        except Exception:
            went_on.touch()
        went_on.touch()
        return 0.25

    def spent():
        if len(listener.reports) == 2:
            raise Pruned("the budget is spent")

    listener = Heard(on_report=spent)
    outcome = run(start(work), job(tells_charges=True), listener=listener)
    assert (outcome.state, outcome.value) == (State.PRUNED, 0.75 if charges else 0.5)
    assert [measurement.value for _, measurement in listener.reports] == [0.75, None if charges else 0.5]
    assert not went_on.exists()


def test_work_that_will_not_be_unwound_has_no_outcome_either(start):
    def work(trial):
        for _ in range(2):
            try:
                trial.report(0.5)
            except BaseException:
                continue
        return 0.5

    assert run(start(work), listener=Heard(refusal=StaleAttempt("taken over"))) is None


def test_an_eviction_is_handed_on(start):
    eviction = Eviction('{"denoise":{}}', 1, "limit")

    def work(trial):
        trial._tell_eviction(eviction)
        return 0.5

    listener = Heard()
    assert run(start(work), job(4, 1), listener=listener).value == 0.5
    assert listener.evictions == [(Attempt(4, 1), eviction)]


def test_a_checkpoint_that_is_gone_fails_the_job(start, tmp_path):
    outcome = run(start(lambda trial: 0.5), job(resume_dir=tmp_path / "gone"))
    assert "gone', which is missing" in outcome.failure.reason


def test_charges_replace_measured_seconds(start):
    def work(trial):
        trial.charge(12.5, kind="validation")
        return 0.5

    (closing,) = run(start(work)).measurements
    assert (closing.cost, closing.charged) == ({"validation": 12.5}, True)


def test_every_shape_of_work_runs(start):
    class Counter(Trainable):
        def setup(self, params):
            self.count = 0

        def step(self):
            self.count += 1
            return self.count

    staged = Problem(Space(stages={"first": {"lr": Float(0.0, 1.0)}, "second": {"cutoff": Float(0.0, 1.0)}}))
    pipeline = Pipeline(first=lambda previous, lr: lr, second=lambda previous, cutoff: previous + cutoff)
    command = Command("""sh -c 'echo "{{\\"error\\": $0}}"' {lr}""")
    assert run(start(Counter, TRACED), job(fidelity={"epochs": 3})).value == 3
    assert run(start(pipeline, staged), Job(Attempt(0, 1), {"lr": 0.5, "cutoff": 0.25}, {})).value == 0.75
    assert run(start(command)).value == 0.5


def test_work_that_does_not_fit_the_problem_is_refused_before_anything_starts(start):
    with pytest.raises(WorkError, match="one argument"):
        start(lambda: 0.5)
    with pytest.raises(WorkError, match="was not found"):
        start(Command("no-such-program {lr}"))


def test_waiting_ends_when_woken(start):
    executor = start(lambda trial: 0.5)
    executor.wake()
    executor.wake()
    assert executor.wait(Heard()) == []
    assert executor.wait(Heard(), timeout=0.01) == []


def test_inline_work_may_be_interrupted(checkpoints):
    def work(trial):
        raise KeyboardInterrupt

    executor = InlineExecutor(work, PLAIN, checkpoints=checkpoints)
    executor.submit(job())
    with pytest.raises(KeyboardInterrupt):
        executor.wait(Heard())


def test_inline_work_cannot_have_a_time_limit(checkpoints):
    executor = InlineExecutor(lambda trial: 0.5, PLAIN, checkpoints=checkpoints)
    with pytest.raises(WorkError, match="cannot have a time limit, got 5 s"):
        executor.submit(job(time_limit=5.0))


def test_inline_work_runs_in_this_very_process_and_leaves_no_files(checkpoints):
    executor = InlineExecutor(lambda trial: os.getpid(), PLAIN, checkpoints=checkpoints)
    assert run(executor).value == os.getpid()
    assert not checkpoints.root.exists()


@pytest.fixture
def processes(checkpoints):
    started = []

    def make(work, problem=PLAIN, **settings):
        started.append(ProcessExecutor(work, problem, checkpoints=checkpoints, **{"workers": 1, **settings}))
        return started[-1]

    yield make
    for executor in started:
        executor.close()


def test_a_worker_is_another_process_and_stays_for_the_next_job(processes):
    first, second = run(processes(lambda trial: os.getpid()), job(0), job(1))
    assert first.value == second.value != os.getpid()


def test_the_first_job_of_a_process_says_so_and_so_does_that_of_the_next_process(processes):
    """It pays for imports and data: a predictor of costs must tell it from the others."""

    def work(trial):
        if trial.number == 2:
            os.kill(os.getpid(), 9)
        return 0.5

    executor = processes(work)
    ended = []
    for number in range(5):
        executor.submit(job(number))
        ended += executor.wait(Heard())
    assert [one.began_its_worker for one in ended] == [True, False, False, True, False]


def test_an_inline_job_is_the_first_once_in_a_process(checkpoints):
    code = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_executors import PLAIN, Checkpoints, InlineExecutor, Heard, Path, job
        files = Checkpoints(Path({str(checkpoints.root)!r}))
        for _ in range(2):
            executor = InlineExecutor(lambda trial: 0.5, PLAIN, checkpoints=files)
            for number in range(2):
                executor.submit(job(number))
                print(executor.wait(Heard())[0].began_its_worker)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False", "False"]


def test_workers_run_at_the_same_time(processes, tmp_path):
    """Each job ends only when the other has begun: a pipe opens when both its ends are there."""
    os.mkfifo(tmp_path / "pipe")

    def meet(trial):
        with open(tmp_path / "pipe", "r" if trial.number else "w"):
            return trial.number

    executor = processes(meet, workers=2)
    executor.submit(job(0))
    executor.submit(job(1))
    assert executor.free == 0
    with pytest.raises(InvalidArgument, match="needs a free worker"):
        executor.submit(job(2))
    ended = []
    while len(ended) < 2:
        ended += executor.wait(Heard())
    assert {end.outcome.value for end in ended} == {0, 1}


def test_what_is_printed_lands_in_the_trials_log(processes, checkpoints):
    def loud(trial):
        import ctypes
        import sys

        print("python", trial.number)
        print("error", file=sys.stderr)
        os.system("echo program")
        ctypes.CDLL(None).printf(b"C library")
        return 0.5

    run(processes(loud), job(0), job(1, 2))
    assert checkpoints.log_path(0, 1).read_text() == "python 0\nerror\nprogram\nC library"
    assert checkpoints.log_path(1, 2).read_text().startswith("python 1\n")


def test_workers_have_their_share_of_the_cores_and_their_device(processes, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")

    def environment(trial):
        assert os.environ["OMP_NUM_THREADS"] == "1"
        assert os.environ["MKL_NUM_THREADS"] == "7"
        assert os.environ["FARTHING_DEVICE"] == "cuda:3"
        return float(os.environ["CUDA_VISIBLE_DEVICES"])

    outcome = run(processes(environment, workers=64, devices=["cuda:3"]))
    assert (outcome.failure, outcome.value) == (None, 3.0)


def test_a_worker_starts_in_the_same_folder_and_comes_back_to_it(processes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def leave(trial):
        was_there = Path.cwd() == tmp_path
        os.chdir("/")
        return float(was_there)

    assert [outcome.value for outcome in run(processes(leave), job(0), job(1))] == [1.0, 1.0]


def test_a_worker_imports_no_numerics_of_ours(processes):
    def numerics(trial):
        import sys

        return sum(name in sys.modules for name in ("numpy", "scipy", "sqlalchemy", "alembic", "rich", "click"))

    assert run(processes(numerics)).value == 0


def test_an_executor_that_lacks_something_is_refused_before_anything_runs():
    class Partial(SimulatedExecutor):
        works_in_wait = property()

    study = ft.Study(Space({"lr": Float(0.0, 1.0)}), minimize="error")
    rule = r"got Partial without works_in_wait\. farthing\.extending\.Executor says"
    with pytest.raises(InvalidArgument, match=rule):
        study.run(lambda trial: 0.0, budget=ft.Budget(trials=1), executor=Partial(workers=1))
    assert len(study.trials) == 0


def test_the_protocol_has_the_members_that_are_asked_for():
    assert {name for name in vars(Executor) if not name.startswith("_")} == set(MEMBERS)
