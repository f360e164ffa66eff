"""Whatever the work does to its process ends one job: the reason is kept and the next job runs."""

import ctypes
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
import types
from contextlib import suppress

import cloudpickle
import pytest

import farthing as ft
from farthing.costs import FakeClock
from farthing.errors import WorkError
from farthing.execution import Checkpoints, Job, ProcessExecutor, local, slot
from farthing.execution.executor import Checkpointed
from farthing.space import Choice, Float, Space
from farthing.storage import open_storage
from farthing.trials import Attempt, Measurement, Problem, State

TIME_LIMIT = 0.3
"""Only for work that never ends: on a busy machine the rest may need any time."""


class Unpicklable(Exception):
    def __init__(self):
        super().__init__("holds a lock")
        self.lock = threading.Lock()


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raise_unpicklable(trial):
    raise Unpicklable


def raise_unspeakable(trial):
    raise Unspeakable


def raise_interrupt(trial):
    raise KeyboardInterrupt


def exit_politely(trial):
    sys.exit("no data")


def exit_at_once(trial):
    print("last words", flush=True)
    os._exit(3)


def exit_as_if_all_were_well(trial):
    os._exit(0)


def read_address_zero(trial):
    ctypes.string_at(0)


def abort(trial):
    os.abort()


def kill_itself(trial):
    os.kill(os.getpid(), signal.SIGKILL)


def terminate_itself(trial):
    os.kill(os.getpid(), signal.SIGTERM)


def recurse(trial):
    return recurse(trial)


def use_all_memory(trial):
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, hard))
    try:
        return len(bytearray(1 << 32))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def hang(trial):
    while True:
        time.sleep(3600)


def hang_in_c_holding_the_interpreter(trial):
    ctypes.PyDLL(None).pause()


def print_without_end(trial):
    while True:
        print("x" * 100)


def close_all_descriptors(trial):
    os.closerange(0, 256)
    while True:
        time.sleep(3600)


def write_to_our_socket(trial):
    for descriptor in range(3, 1024):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, b"\x00" * 7 + b"\x05" + b"[bad]")
    while True:
        time.sleep(3600)


def report_from_a_fork(trial):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            trial.report(0.5)
        except BaseException as error:
            os.write(writer, type(error).__name__.encode())
        os._exit(0)
    os.wait()
    raise RuntimeError(os.read(reader, 100).decode())


BAD = {
    raise_unpicklable: "Unpicklable: holds a lock",
    raise_unspeakable: "Unspeakable: (its message could not be made)",
    raise_interrupt: "KeyboardInterrupt",
    exit_politely: "SystemExit: no data",
    exit_at_once: "The work exited with code 3",
    exit_as_if_all_were_well: "The work exited with code 0",
    read_address_zero: "The work died of SIGSEGV",
    abort: "The work died of SIGABRT",
    kill_itself: "The work was killed by SIGKILL: out of memory, or killed from outside",
    terminate_itself: "The work died of SIGTERM",
    recurse: "RecursionError: maximum recursion depth exceeded",
    use_all_memory: "MemoryError",
    hang: "The work ran past its time limit of 0.3 s",
    hang_in_c_holding_the_interpreter: "The work ran past its time limit of 0.3 s",
    print_without_end: "The work ran past its time limit of 0.3 s",
    close_all_descriptors: "The work closed the connection to its worker",
    write_to_our_socket: "The work broke the connection to its worker",
    report_from_a_fork: "RuntimeError: WorkError",
}
ENDLESS = (hang, hang_in_c_holding_the_interpreter, print_without_end)


def print_binary(trial):
    os.write(1, bytes(range(256)))
    sys.stdout.buffer.write(b"\xff\xfe")


def close_standard_output(trial):
    os.close(1)
    os.close(2)


def close_the_streams(trial):
    sys.stdout.close()
    sys.stderr = None


def fork_and_return_twice(trial):
    os.fork()


def leave_children_behind(trial):
    for _ in range(20):
        subprocess.Popen(["sleep", "3600"])


def leave_a_thread_behind(trial):
    threading.Thread(target=time.sleep, args=(3600,)).start()


def report_late(trial):
    """A thread goes on reporting into the next job's time."""

    def keep_reporting():
        while True:
            try:
                trial.report(-1.0)
            except WorkError:
                return

    threading.Thread(target=keep_reporting, daemon=True).start()


def ignore_all_signals(trial):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def remove_its_modules(trial):
    for name in [name for name in sys.modules if name.startswith("farthing")]:
        del sys.modules[name]


RUDE = (
    print_binary,
    close_standard_output,
    close_the_streams,
    fork_and_return_twice,
    leave_children_behind,
    leave_a_thread_behind,
    report_late,
    ignore_all_signals,
    remove_its_modules,
)

WORKS = {function.__name__: function for function in (*BAD, *RUDE)}


def work(trial):
    if trial.params["what"] == "good":
        print("all is well")
        return 1.0
    WORKS[trial.params["what"]](trial)
    return 2.0


PROBLEM = Problem(Space({"what": Choice("good", *WORKS)}))


class Listener:
    def __init__(self):
        self.reports = []
        self.checkpoints = []

    def on_news(self, attempt, news):
        match news:
            case Measurement():
                self.reports.append(news)
            case Checkpointed(checkpoint):
                self.checkpoints.append(checkpoint)
            case _:
                raise AssertionError("this work caches nothing")


@pytest.fixture(scope="module", autouse=True)
def _send_this_module_by_value():
    """So that workers need not import pytest."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Checkpoints(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def survivor(files):
    """One executor with one worker that goes through all of it."""
    executor = ProcessExecutor(work, PROBLEM, workers=1, checkpoints=files)
    yield executor
    executor.close()


@pytest.fixture
def start(tmp_path):
    started = []

    def make(work, **settings):
        problem = Problem(Space({"lr": Float(0.0, 1.0)}))
        files = Checkpoints(tmp_path / "files")
        started.append(ProcessExecutor(work, problem, checkpoints=files, **{"workers": 1, **settings}))
        return started[-1]

    yield make
    for executor in started:
        executor.close()


def run(executor, number=0, *, params=None, listener=None, **settings):
    executor.submit(Job(Attempt(number, 1), {"lr": 0.5} if params is None else params, {}, **settings))
    (ended,) = executor.wait(listener or Listener())
    return ended.outcome


def wait_until_gone(pids):
    """A killed process is gone a moment later, or a zombie that nobody waits for."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([descriptor], [], [], 600)[0], f"process {pid} is still there"
        finally:
            os.close(descriptor)


@pytest.mark.parametrize("bad", BAD, ids=lambda function: function.__name__)
def test_bad_work_ends_one_job_with_its_reason(survivor, files, monkeypatch, bad):
    monkeypatch.setattr(slot, "SECONDS_TO_DIE", TIME_LIMIT if bad is close_all_descriptors else 600.0)
    listener = Listener()
    outcome = run(
        survivor,
        number=0,
        params={"what": bad.__name__},
        time_limit=TIME_LIMIT if bad in ENDLESS else None,
        listener=listener,
    )
    assert outcome.state is State.FAILED
    assert outcome.failure.reason.startswith(BAD[bad])
    assert "\n" not in outcome.failure.reason
    assert sum(outcome.measurements[-1].cost.values()) > 0
    assert listener.reports == []
    assert run(survivor, number=1, params={"what": "good"}).value == 1.0
    assert files.log_path(1, 1).read_text() == "all is well\n"


@pytest.mark.parametrize("rude", RUDE, ids=lambda function: function.__name__)
def test_rude_work_that_returns_counts_and_does_not_disturb_the_next(survivor, files, rude):
    assert run(survivor, number=0, params={"what": rude.__name__}).value == 2.0
    assert run(survivor, number=1, params={"what": "good"}).value == 1.0
    assert files.log_path(1, 1).read_text() == "all is well\n"


def test_work_that_ignores_signals_does_not_make_the_next_ignore_them(survivor):
    assert run(survivor, number=0, params={"what": "ignore_all_signals"}).value == 2.0
    ended = run(survivor, number=1, params={"what": "terminate_itself"})
    assert ended.failure.reason.startswith(BAD[terminate_itself])


HOSTILE = [name for name, function in WORKS.items() if function not in (*ENDLESS, close_all_descriptors)]


def run_hostile_work(folder, *, trials):
    """Trials that each do one of those things, in an order that a seed decides, by two workers."""
    space = Space({"what": Choice("good", *HOSTILE)})
    study = ft.Study(space, minimize="value", strategy=ft.Random(), storage=folder / "study.db", seed=1)
    study.run(work, budget=ft.Budget(trials=trials), workers=2)
    assert [end_of(trial) for trial in study.trials] == [expected_end(trial.params["what"]) for trial in study.trials]
    assert len(study.trials) == trials
    study.close()
    storage = open_storage(folder / "study.db")
    assert storage.check() == []
    storage.close()


def end_of(trial):
    if trial.failure is None:
        return trial.state, trial.value
    return trial.state, next((words for words in BAD.values() if trial.failure.reason.startswith(words)), trial.failure)


def expected_end(what):
    if what == "good":
        return State.DONE, 1.0
    return (State.FAILED, BAD[WORKS[what]]) if WORKS[what] in BAD else (State.DONE, 2.0)


def test_a_study_of_hostile_work_ends_each_trial_with_its_reason(tmp_path):
    run_hostile_work(tmp_path, trials=50)


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_a_long_study_of_hostile_work_ends_each_trial_with_its_reason(tmp_path):
    run_hostile_work(tmp_path, trials=500)


def test_a_crash_keeps_the_last_lines_of_the_log(start):
    def crash(trial):
        for line in range(100):
            print("line", line)
        os.kill(os.getpid(), signal.SIGSEGV)

    failure = run(start(crash)).failure
    assert "Fatal Python error: Segmentation fault" in failure.traceback
    assert "line 99" in failure.traceback
    assert "line 5\n" not in failure.traceback


class TickingClock(FakeClock):
    """A second goes by whenever the coordinator looks."""

    def elapsed(self):
        self.advance(1.0)
        return super().elapsed()


def test_what_a_killed_job_cost_is_counted_from_its_last_report(start):
    def work(trial):
        trial.report(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    class SlowListener(Listener):
        def on_report(self, attempt, measurement):
            super().on_report(attempt, measurement)
            clock.advance(100.0)

    clock, listener = TickingClock(), SlowListener()
    (closing,) = run(start(work, clock=clock), listener=listener).measurements
    assert listener.reports[0].cost["training"] > 0
    assert closing.cost == {"failed": 1.0}
    assert (listener.reports[0].sequence, closing.sequence) == (0, 1)


def test_a_time_limit_ends_the_children_too(start, tmp_path):
    def leave_a_child_then_hang(trial):
        if trial.number == 1:
            hang(trial)
        child = subprocess.Popen(["sh", "-c", "sleep 3600 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
        (tmp_path / "pids").write_text(f"{child.pid} {child.stdout.readline()}")
        return 0.5

    executor = start(leave_a_child_then_hang)
    run(executor, 0)
    outcome = run(executor, 1, time_limit=TIME_LIMIT)
    assert outcome.failure.reason == "The work ran past its time limit of 0.3 s"
    wait_until_gone(int(pid) for pid in (tmp_path / "pids").read_text().split())


def test_children_die_with_a_worker_that_crashed(start, tmp_path):
    def crash_with_a_child(trial):
        (tmp_path / "pid").write_text(str(subprocess.Popen(["sleep", "3600"]).pid))
        os._exit(1)

    run(start(crash_with_a_child))
    wait_until_gone([int((tmp_path / "pid").read_text())])


def test_closing_ends_running_workers_and_their_children(start, tmp_path):
    os.mkfifo(tmp_path / "pids")

    def hang_with_a_child(trial):
        child = subprocess.Popen(["sleep", "3600"])
        (tmp_path / "pids").write_text(f"{os.getpid()} {child.pid}")
        child.wait()

    executor = start(hang_with_a_child)
    executor.submit(Job(Attempt(0, 1), {"lr": 0.5}, {}))
    waiting = threading.Thread(target=executor.wait, args=(Listener(),))
    waiting.start()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    executor.wake()
    waiting.join()
    executor.close()
    wait_until_gone(pids)


def test_an_idle_worker_leaves_by_itself_and_runs_its_exit_handlers(start, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "SECONDS_TO_LEAVE", 600.0)

    def work(trial):
        import atexit

        atexit.register((tmp_path / "left").touch)
        return 0.5

    executor = start(work)
    run(executor)
    executor.close()
    assert (tmp_path / "left").exists()


def test_a_worker_that_died_between_jobs_is_replaced(start):
    executor = start(lambda trial: os.getpid())
    first = int(run(executor).value)
    os.kill(first, signal.SIGKILL)
    wait_until_gone([first])
    assert run(executor).value != first


def test_a_worker_killed_while_it_commits_leaves_no_checkpoint(start, tmp_path):
    def work(trial):
        if trial.number == 1:
            with trial.checkpoint() as folder:
                (folder / "weights").write_text("good")
            os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
        (trial.checkpoint_dir / "weights").write_text("half" if trial.number == 1 else "whole")
        return 0.5

    executor = start(work)
    assert run(executor, 0).checkpoint == "000000/attempt-1.checkpoint-1"
    assert run(executor, 1).checkpoint == "000001/attempt-1.checkpoint-1"
    left = sorted(path.name for path in (tmp_path / "files" / "000001").iterdir())
    assert left == ["attempt-1.checkpoint-1", "attempt-1.log", "attempt-1.staging-1"]
    assert (tmp_path / "files" / "000001" / left[0] / "weights").read_text() == "good"


def test_workers_and_their_children_die_with_the_coordinator(tmp_path):
    coordinator = script(
        tmp_path,
        """
        import os, subprocess, time

        def hang(trial):
            child = subprocess.Popen(["sleep", "3600"])
            print(os.getpid(), child.pid, flush=True)
            os.write(out, f"{os.getpid()} {child.pid}\\n".encode())
            time.sleep(3600)

        # the workers inherit nothing, so they open the coordinator's output by its path
        out_path = f"/proc/{os.getpid()}/fd/1"

        def work(trial):
            global out
            out = os.open(out_path, os.O_WRONLY)
            hang(trial)

        executor = ProcessExecutor(work, problem, workers=2, checkpoints=checkpoints)
        executor.submit(Job(Attempt(0, 1), {"lr": 0.5}, {}))
        executor.submit(Job(Attempt(1, 1), {"lr": 0.5}, {}))
        executor.wait(Listener())
        """,
    )
    with subprocess.Popen([sys.executable, coordinator], stdout=subprocess.PIPE, text=True) as process:
        pids = [int(pid) for _ in range(2) for pid in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 4
    wait_until_gone(pids)


def script(folder, body):
    """A script as a user would write it: no guard, work defined in it."""
    path = folder / "study.py"
    head = """
    from pathlib import Path
    from farthing.execution import Checkpoints, Job, ProcessExecutor
    from farthing.space import Float, Space
    from farthing.trials import Attempt, Problem

    class Listener:
        def on_news(self, attempt, news): pass

    problem = Problem(Space({"lr": Float(0.0, 1.0)}))
    checkpoints = Checkpoints(Path(__file__).parent / "files")
    """
    path.write_text(textwrap.dedent(head) + textwrap.dedent(body))
    return path


def test_a_script_needs_no_main_guard(tmp_path):
    (tmp_path / "beside.py").write_text("def halve(number):\n    return number / 2\n")
    path = script(
        tmp_path,
        """
        import os, sys
        from beside import halve

        print("started", flush=True)
        SCALE = 10

        def scale(number):
            return SCALE * number

        def work(trial):
            return {"value": halve(scale(trial.params["lr"])), "pid": os.getpid(), "arguments": len(sys.argv)}

        executor = ProcessExecutor(work, problem, workers=2, checkpoints=checkpoints)
        outcomes, jobs = [], [Job(Attempt(number, 1), {"lr": number / 10}, {}) for number in range(4)]
        while len(outcomes) < 4:
            while jobs and executor.free:
                executor.submit(jobs.pop(0))
            outcomes += [ended.outcome for ended in executor.wait(Listener())]
        executor.close()
        print(sorted(outcome.value for outcome in outcomes))
        print({outcome.measurements[-1].metrics["arguments"] for outcome in outcomes})
        """,
    )
    done = subprocess.run([sys.executable, path, "--fast"], capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "started\n[0.0, 0.5, 1.0, 1.5]\n{2.0}\n")


def test_work_that_cannot_be_sent_names_what_is_in_the_way(start):
    lock = threading.Lock()

    def train(trial):
        with lock:
            return 0.5

    with pytest.raises(WorkError) as refusal:
        start(train)
    assert "got train, which uses lock (lock): cannot pickle" in str(refusal.value)
    assert "executor='inline'" in str(refusal.value)


def test_work_that_a_worker_cannot_import_is_refused_once(start, monkeypatch):
    module = types.ModuleType("only_here")
    exec("def train(trial): return 0.5", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    executor = start(module.train)
    with pytest.raises(WorkError, match="ModuleNotFoundError: No module named 'only_here'") as refusal:
        run(executor)
    assert "No module named 'only_here'" in refusal.value.__notes__[0]


class FatalOnArrival:
    """Ends the process that unpacks it."""

    def check(self, problem):
        pass

    def run(self, trial):
        pass

    def __reduce__(self):
        return exec, ("import os; os.write(2, b'out of luck'); os._exit(7)",)


def test_a_worker_that_never_gets_ready_is_not_started_for_ever(start):
    executor = start(FatalOnArrival())
    with pytest.raises(WorkError, match="3 in a row did not: out of luck"):
        run(executor)


def test_large_work_is_sent_without_blocking(start):
    data = bytes(20_000_000)
    executor = start(lambda trial: len(data))
    assert run(executor).value == 20_000_000
