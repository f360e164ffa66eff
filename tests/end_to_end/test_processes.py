"""Studies with real worker processes, real signals and several coordinators."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import farthing as ft

SPACE = ft.Space({"x": ft.Float(0, 1)})

COORDINATOR = """
    import sys, time
    import farthing as ft

    space = ft.Space({"x": ft.Float(0, 1)})

    def work(trial):
        time.sleep(0.01)
        return trial.params["x"]

    study = ft.Study(space, minimize="error", storage=sys.argv[1], strategy=ft.Random(), name="shared", seed=5)
    print("ready", flush=True)
    sys.stdin.readline()
    study.run(work, budget=ft.Budget(trials=int(sys.argv[2])), workers=1)
"""

SLOW = """
    import sys, time
    import farthing as ft

    def work(trial):
        trial.report(0.5)
        print("working", flush=True)
        open(sys.argv[2], "a").write("working\\n")
        time.sleep(600)

    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage=sys.argv[1], name="slow")
    try:
        study.run(work, budget=ft.Budget(trials=4), workers=2)
    except KeyboardInterrupt:
        print("raised, with", [str(trial.state) for trial in study.trials])
"""


def program(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return path


def run_together(script: Path, storage: str, *, coordinators: int, trials: int) -> None:
    """Starts several coordinators and lets them go at the same moment."""
    running = [
        subprocess.Popen(
            [sys.executable, str(script), storage, str(trials)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(coordinators)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        _, errors = process.communicate("go\n")
        assert process.returncode == 0, errors


def check_shared(storage: str, trials: int) -> None:
    study = ft.Study.load("shared", storage)
    assert [trial.number for trial in study.trials] == list(range(trials))
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    alone = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=5)
    alone.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=trials), executor="inline")
    assert [trial.params for trial in study.trials] == [trial.params for trial in alone.trials]
    study.close()


def test_several_coordinators_share_a_study_on_sqlite(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/shared.db"
    run_together(program(tmp_path, COORDINATOR), storage, coordinators=3, trials=40)
    check_shared(storage, 40)


def test_several_coordinators_share_a_study_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    run_together(program(tmp_path, COORDINATOR), postgres_url, coordinators=3, trials=40)
    check_shared(postgres_url, 40)


def test_ctrl_c_ends_a_run_with_workers_cleanly_and_it_can_be_resumed(tmp_path: Path) -> None:
    storage, started = f"sqlite:///{tmp_path}/slow.db", tmp_path / "started"
    script = program(tmp_path, SLOW)
    process = subprocess.Popen(
        [sys.executable, str(script), storage, str(started)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not started.exists() or started.read_text().count("working") < 2:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "raised, with ['pending', 'pending']" in output
    assert "Interrupted. 0 trials done. 2 unfinished: they were given back" in errors
    assert "Traceback" not in errors

    study = ft.Study.load("slow", storage)
    assert [trial.state for trial in study.trials] == [ft.State.PENDING, ft.State.PENDING]
    study.run(lambda trial: 0.25, budget=ft.Budget(trials=4), workers=2)
    assert [trial.state for trial in study.trials] == [ft.State.DONE] * 4
    values = [[point.value for point in trial.measurements if point.value is not None] for trial in study.trials]
    assert values == [[0.5, 0.25], [0.5, 0.25], [0.25], [0.25]], "a durable report was lost"
    assert ["failed" in trial.costs for trial in study.trials] == [True, True, False, False]


def test_what_the_work_prints_is_kept_with_its_trial(tmp_path: Path) -> None:
    def talkative(trial: ft.RunningTrial) -> float:
        print(f"this is trial {trial.number}")
        print("and this is its error stream", file=sys.stderr)
        return 0.5

    study = ft.Study(SPACE, minimize="error", storage=f"sqlite:///{tmp_path}/logs.db")
    study.run(talkative, budget=ft.Budget(trials=2), workers=2)
    for number in range(2):
        log = study.checkpoints.log_path(number, 1).read_text()
        assert f"this is trial {number}" in log
        assert "its error stream" in log


def test_a_cached_function_of_the_users_script_reaches_the_workers(tmp_path: Path) -> None:
    script = program(
        tmp_path,
        """
        import functools
        import farthing as ft

        @functools.cache
        def data():
            return [1.0, 2.0]

        study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error")
        study.run(lambda trial: sum(data()), budget=ft.Budget(trials=2), workers=2)
        print([trial.value for trial in study.trials])
        """,
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "[3.0, 3.0]\n"


def test_workers_run_at_the_same_time(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meeting")

    def meet(trial: ft.RunningTrial) -> float:
        with open(tmp_path / "meeting", "r" if trial.number else "w"):  # each end waits for the other
            return 0.5

    study = ft.Study(SPACE, minimize="error")
    study.run(meet, budget=ft.Budget(trials=2), workers=2)
    assert [trial.value for trial in study.trials] == [0.5, 0.5]
