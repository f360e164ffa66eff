"""Studies on a Ray cluster: where work runs, what it holds, and how it ends."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from shutil import copytree

import pytest
from ray_nodes import SECONDS_TO_START, Nodes
from test_faults import wait_until

import farthing as ft
from farthing.errors import InvalidArgument, WorkError
from farthing.execution import Checkpoints
from farthing.execution.platform import start_of
from farthing.testing.executor_contract import PLAIN, TRACED, Heard, job
from farthing.trials import Attempt, State

pytestmark = pytest.mark.ray

SPACE = ft.Space({"x": ft.Float(0, 1)})


def study(**settings) -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Sobol(), seed=0, **settings)


@pytest.fixture
def on_ray(address):
    return ft.RayExecutor(address=address)


@pytest.fixture
def start(address, tmp_path):
    started = []

    def make(work, problem=PLAIN, *, workers=1, resources=None, **settings):
        executor = ft.RayExecutor(address=address, **settings).start(
            work, problem, workers=workers, checkpoints=Checkpoints(tmp_path / "files"), resources=resources
        )
        started.append(executor)
        return executor

    yield make
    for executor in started:
        executor.close()


def run(executor, *jobs, listener=None):
    ended = []
    for each in jobs or [job()]:
        executor.submit(each)
        while not (now := executor.wait(listener or Heard())):
            pass
        ended += now
    return ended[0] if len(ended) == 1 else ended


def test_one_argument_takes_a_study_to_the_cluster(on_ray, tmp_path):
    def work(trial):
        print("at work on", trial.number)
        trial.report(0.5)
        return trial.params["x"]

    def params_with(executor, **settings):
        here = study(folder=tmp_path / str(executor), storage=f"sqlite:///{tmp_path}/{len(str(executor))}.db")
        here.run(work, budget=ft.Budget(trials=6), executor=executor, **settings)
        return here

    there = params_with(on_ray, workers=2, resources={"cpu": 1})
    assert [trial.value for trial in there.trials] == [trial.value for trial in params_with("inline").trials]
    assert [len(trial.points) for trial in there.trials] == [2] * 6
    assert there.checkpoints.log_path(3, 1).read_text() == "at work on 3\n"
    assert there.ledger.total > 0


@pytest.mark.parametrize("strategy", [ft.LogEI(initial=4), ft.TraceKG()])
def test_one_worker_on_the_cluster_makes_the_trials_that_one_program_makes(on_ray, tmp_path, strategy):
    def work(trial):
        start = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
        for epoch in range(start + 1, int(trial.fidelity["epochs"]) + 1):
            trial.report(abs(trial.params["x"] - 0.3) + 1 / epoch, epochs=epoch)
        (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epochs"])))

    def trials_with(executor, name):
        here = ft.Study(
            ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}),
            minimize="error",
            strategy=strategy,
            seed=11,
            cost=lambda params, fidelity: fidelity["epochs"],
            cost_unit="epochs",
            storage=f"sqlite:///{tmp_path}/{name}.db",
            folder=tmp_path / name,
        )
        here.run(work, budget=ft.Budget(trials=10), executor=executor, workers=1)
        return [(trial.params, trial.fidelity, trial.resume_from, trial.value) for trial in here.trials]

    assert trials_with(on_ray, "ray") == trials_with("inline", "inline")


def test_a_time_limit_ends_all_that_the_work_started_on_its_node(on_ray, tmp_path):
    def hang(trial):
        import subprocess

        child = subprocess.Popen(["sleep", "1000"])
        (tmp_path / "child").write_text(str(child.pid))
        child.wait()

    here = study(folder=tmp_path / "files")
    here.run(hang, budget=ft.Budget(trials=1), executor=on_ray, time_limit=2.0)
    (trial,) = here.trials
    assert (trial.state, trial.failure.reason) == (State.FAILED, "The work ran past its time limit of 2 s")
    assert start_of(int((tmp_path / "child").read_text())) is None


def test_a_worker_holds_its_resources_and_sees_its_gpu(start):
    def environment(trial):
        return float(os.environ["CUDA_VISIBLE_DEVICES"])

    ended = run(start(environment, resources={"cpu": 2, "gpu": 0.25, "left": 0.5}))
    assert (ended.outcome.failure, ended.outcome.value) == (None, 0.0)


def test_a_trial_on_several_nodes_has_a_placement_group(start):
    def spread(trial):
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        from farthing.integrations.ray import placement_group

        group = placement_group()

        def node():
            import ray

            return ray.get_runtime_context().get_node_id()

        there = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=1)
        return float(
            ray.get(ray.remote(node).options(scheduling_strategy=there).remote()) != os.environ["FARTHING_NODE"]
        )

    executor = start(spread, resources=[{"cpu": 1}, {"cpu": 1}], arrangement="STRICT_SPREAD")
    ended = run(executor)
    assert (ended.outcome.failure, ended.outcome.value) == (None, 1.0)


def test_a_trial_without_bundles_has_no_placement_group():
    from farthing.integrations.ray import placement_group

    with pytest.raises(WorkError, match="holds several bundles"):
        placement_group()


def test_the_runtime_environment_is_passed_on(start):
    def work(trial):
        return float(os.environ["ANSWER"])

    assert run(start(work, runtime_env={"env_vars": {"ANSWER": "42"}})).outcome.value == 42.0


def test_a_continued_trial_stays_on_its_node_and_moves_by_its_checkpoint(start, nodes: Nodes, tmp_path):
    def count(trial):
        done = int((trial.resume_dir / "done").read_text()) if trial.resume_dir else 0
        (trial.checkpoint_dir / "done").write_text(str(done + 1))
        with open(tmp_path / "nodes", "a") as file:
            print(os.environ["FARTHING_NODE"], file=file)
        return done + 1

    executor = start(count, TRACED, workers=2, resources={"cpu": 2})
    while executor.free < 2:
        executor.wait(Heard())
    checkpoints, checkpoint = Checkpoints(tmp_path / "files"), None
    visited = []
    for number in range(4):
        resume = {} if checkpoint is None else {"resume_from": number - 1, "resume_dir": checkpoints.path(checkpoint)}
        ended = run(executor, job(number, fidelity={"epochs": number + 1}, **resume))
        assert (ended.outcome.failure, ended.outcome.value) == (None, number + 1)
        checkpoint = ended.outcome.checkpoint
        visited = (tmp_path / "nodes").read_text().split()
        if number == 2:
            nodes.kill_named(visited[-1])
            while executor.free > 1:
                executor.wait(Heard(), timeout=0.2)
    assert len(set(visited[:3])) == 1
    assert visited[3] != visited[0]
    nodes.repair()


def test_a_node_that_dies_fails_the_attempt_and_another_finishes_the_trial(on_ray, nodes: Nodes, tmp_path):
    def work(trial):
        (tmp_path / f"begun-{trial.attempt}").write_text(os.environ["FARTHING_NODE"])
        while trial.attempt == 1:
            time.sleep(0.1)
        return trial.params["x"]

    def lose_node():
        begun = tmp_path / "begun-1"
        wait_until(lambda: begun.exists() and begun.read_text(), "the first attempt")
        nodes.kill_named(begun.read_text())

    here = study(folder=tmp_path / "files")
    losing = threading.Thread(target=lose_node)
    losing.start()
    here.run(work, budget=ft.Budget(trials=1), executor=on_ray)
    losing.join()
    nodes.repair()
    (trial,) = here.trials
    assert (trial.state, trial.attempt, trial.value) == (State.DONE, 2, trial.params["x"])
    assert trial.measurements[0].cost["failed"] > 0


def test_workers_that_find_no_room_wait_while_the_others_work(on_ray, tmp_path):
    here = study(folder=tmp_path / "files")
    here.run(
        lambda trial: trial.params["x"], budget=ft.Budget(trials=6), workers=5, executor=on_ray, resources={"cpu": 2}
    )
    assert [trial.state for trial in here.trials] == [State.DONE] * 6


def test_the_log_of_a_running_trial_is_seen_from_another_machine(address, tmp_path):
    """The folder is a store, and what the nodes have in front of it is not what this process has."""

    def work(trial):
        print("at work")
        while not (tmp_path / "gate").exists():
            time.sleep(0.05)
        print("done")
        return 0.5

    (tmp_path / "nodes").mkdir()
    here = study(folder=f"file://{tmp_path}/store", storage=tmp_path / "s.db")
    executor = ft.RayExecutor(address=address, runtime_env={"env_vars": {"TMPDIR": str(tmp_path / "nodes")}})
    running = threading.Thread(target=lambda: here.run(work, budget=ft.Budget(trials=1), executor=executor))
    running.start()
    seen, attempt = ft.Study.load("study", tmp_path / "s.db").checkpoints, Attempt(0, 1)
    wait_until(lambda: seen.read_log(attempt) == (0, b"at work\n"), "the log of the running trial")
    (tmp_path / "gate").touch()
    running.join()
    assert seen.read_log(attempt, since=8) == (8, b"done\n")


# ---- what workers hold ---------------------------------------------------------------------------------------------


def cores_free() -> float:
    import ray

    return ray.available_resources().get("CPU", 0.0)


def test_a_place_is_given_back_when_nothing_more_will_begin(on_ray, tmp_path):
    def work(trial):
        while trial.number == 1 and not (tmp_path / "gate").exists():
            time.sleep(0.05)
        return trial.params["x"]

    here = study(folder=tmp_path / "files")
    running = threading.Thread(
        target=lambda: here.run(work, budget=ft.Budget(trials=2), workers=2, executor=on_ray, resources={"cpu": 2})
    )
    running.start()
    wait_until(lambda: len(here.trials) == 2 and here.trials[0].state is State.DONE, "the first trial")
    wait_until(lambda: cores_free() == 2.0, "the place of the worker that has nothing to do")
    time.sleep(5.0)  # what would be on the bill if it were held
    (tmp_path / "gate").touch()
    running.join()
    assert [trial.state for trial in here.trials] == [State.DONE] * 2
    assert 0.0 < here.ledger.idle < 5.0, "a worker held its place until it was given back, and not afterwards"
    assert "overhead idle workers" in str(here.ledger)


def test_a_worker_that_gave_its_place_back_asks_for_one_again(start):
    executor = start(lambda trial: 0.5, workers=2, resources={"cpu": 1})
    first = run(executor)
    assert executor.give_back(after=1000.0) >= 1
    assert executor.give_back(after=0.0) == 0
    assert executor.free == 2
    second = run(executor, job(1))
    assert (first.outcome.failure, second.outcome.failure) == (None, None)
    assert (first.began_its_worker, second.began_its_worker) == (True, True)


def test_resources_follow_from_the_params_and_enter_the_price(on_ray, tmp_path):
    def held(params):
        return {"cpu": 1, "gpu": 1} if params["x"] > 0.5 else {"cpu": 1}

    def work(trial):
        time.sleep(0.1)
        return float(bool(os.environ.get("CUDA_VISIBLE_DEVICES")))

    here = study(
        folder=tmp_path / "files", prices={"cpu": 3.0, "gpu": 50.0, "per": "second"}, storage=tmp_path / "s.db"
    )
    here.run(work, budget=ft.Budget(trials=6), workers=2, executor=on_ray, resources=held)
    here.run(work, budget=ft.Budget(trials=8), workers=2, executor=on_ray, resources=held)
    has_gpu = [trial.params["x"] > 0.5 for trial in here.trials]
    assert set(has_gpu) == {True, False}
    assert [trial.value for trial in here.trials] == has_gpu
    assert [trial.points[-1].rate for trial in here.trials] == [53.0 if has else 3.0 for has in has_gpu]


def test_a_large_trial_finds_its_room_among_small_ones(on_ray, tmp_path, monkeypatch):
    """All cores of a node at once are free only when no small trial begins for a while."""
    monkeypatch.setattr("farthing.execution.ray.executor.SECONDS_BEFORE_SAYING", 0.5)

    def work(trial):
        time.sleep(0.5)
        return float(bool(os.environ.get("CUDA_VISIBLE_DEVICES")))

    here = study(folder=tmp_path / "files")
    here.run(
        work,
        budget=ft.Budget(trials=12),
        workers=6,
        executor=on_ray,
        resources=lambda params: {"cpu": 2, "gpu": 1} if 0.4 < params["x"] < 0.6 else {"cpu": 1},
    )
    assert {trial.value for trial in here.trials} == {0.0, 1.0}
    assert [trial.state for trial in here.trials] == [State.DONE] * 12


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_a_resource_that_no_node_has_is_named_while_waiting_and_when_giving_up(address, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("farthing.execution.ray.executor.SECONDS_BEFORE_SAYING", 0.5)
    here, executor = study(folder=tmp_path), ft.RayExecutor(address=address, resource_timeout=3.0)
    with (
        caplog.at_level(logging.WARNING, "farthing"),
        pytest.raises(WorkError, match="no node that has enough unobtainium"),
    ):
        here.run(lambda trial: 0.5, budget=ft.Budget(trials=1), executor=executor, resources={"unobtainium": 3})
    assert "Waiting for 3 unobtainium on the Ray cluster" in caplog.text
    assert len(here.trials) == 0


def test_there_must_be_a_cluster_at_the_address(tmp_path):
    with pytest.raises(WorkError, match=r"must be running, got none at '127.0.0.1:1'"):
        study(folder=tmp_path).run(
            lambda trial: 0.5, budget=ft.Budget(trials=1), executor=ft.RayExecutor(address="127.0.0.1:1")
        )


def test_devices_are_refused_with_the_reason(tmp_path):
    with pytest.raises(InvalidArgument, match="Ray assigns them, got devices="):
        study(folder=tmp_path).run(lambda trial: 0.5, budget=ft.Budget(trials=1), executor="ray", devices=["cuda:0"])


def test_work_that_cannot_be_sent_is_refused_before_anything_starts(on_ray, tmp_path):
    lock = threading.Lock()

    def work(trial):
        return float(lock.locked())

    with pytest.raises(WorkError, match="work, which uses lock"):
        study(folder=tmp_path).run(work, budget=ft.Budget(trials=1), executor=on_ray)


def test_another_farthing_on_a_node_is_refused(address, tmp_path):
    copytree(Path(ft.__file__).parent, tmp_path / "other" / "farthing")
    init = tmp_path / "other" / "farthing" / "__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{ft.__version__}"', '__version__ = "9.9"'))
    executor = ft.RayExecutor(address=address, runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path / "other")}})
    with pytest.raises(WorkError, match=r"got Farthing 9\.9 and Python"):
        study(folder=tmp_path / "files").run(lambda trial: 0.5, budget=ft.Budget(trials=1), executor=executor)


def test_a_node_without_farthing_is_refused(address, tmp_path):
    """Its Python finds another package of that name first, which has nothing in it."""
    (tmp_path / "empty" / "farthing").mkdir(parents=True)
    (tmp_path / "empty" / "farthing" / "__init__.py").touch()
    executor = ft.RayExecutor(address=address, runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path / "empty")}})
    with pytest.raises(WorkError, match=r"be able to run it, got ModuleNotFoundError: No module named 'farthing\."):
        study(folder=tmp_path / "files").run(lambda trial: 0.5, budget=ft.Budget(trials=1), executor=executor)


def test_a_folder_that_a_node_does_not_see_is_refused_before_the_first_trial(address, tmp_path):
    """A node in a mount namespace of its own, where another, empty disk hides the study's folder."""
    folder = tmp_path / "files"
    folder.mkdir()
    resources = json.dumps({"apart": 1})
    program = Path(sys.executable).with_name("ray")
    start = f"exec {program} start --address={address} --num-cpus=1 --resources='{resources}' --block"
    try:
        subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", str(folder)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no mount namespaces here: {error}")
    node = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {folder} && {start}"], stdout=subprocess.DEVNULL
    )
    try:
        executor = ft.RayExecutor(address=address, resource_timeout=SECONDS_TO_START)
        here = study(folder=folder)
        with pytest.raises(WorkError, match="must be shared by all nodes"):
            here.run(lambda trial: 0.5, budget=ft.Budget(trials=1), executor=executor, resources={"apart": 1})
        assert len(here.trials) == 0
    finally:
        node.terminate()
        node.wait()


def test_without_ray_the_error_names_the_extra(tmp_path):
    program = """
import sys
sys.modules["ray"] = None  # as if it were not installed
import farthing as ft
study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error")
try:
    study.run(lambda trial: 0.5, budget=ft.Budget(trials=1), executor="ray")
except ft.FarthingError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "pip install 'farthing[ray]'" in ended.stdout


def test_a_trial_that_no_node_can_hold_fails_and_the_others_run(start, monkeypatch):
    monkeypatch.setattr("farthing.execution.ray.executor.SECONDS_BEFORE_SAYING", 0.1)
    executor = start(
        lambda trial: trial.params["lr"],
        workers=2,
        resources=lambda params: {"cpu": 1000 if params["lr"] > 0.5 else 1},
        resource_timeout=5.0,
    )
    executor.submit(job(0, lr=0.9))
    executor.wait(Heard(), timeout=0.3)
    assert executor.free == 1, "the trial that waits keeps no other from beginning"
    executor.submit(job(1, lr=0.1))
    ended = {}
    while len(ended) < 2:
        ended |= {one.attempt.number: one.outcome for one in executor.wait(Heard())}
    assert ended[1].value == 0.1
    assert ended[0].state is State.FAILED
    assert "The trial needs 1000 CPU on a node, got no node that has enough CPU" in ended[0].failure.reason
    assert executor.free == 2
