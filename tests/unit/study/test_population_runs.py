"""Populations at work: checkpoints, time-sharing, failures, schedules, and training once more by what was found."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

import farthing as ft
from farthing.analysis.runs import Schedule, schedule_of
from farthing.errors import InvalidArgument, WorkError
from farthing.extending import History, Suggestion
from farthing.trials import Attempt, Problem

SPACE = ft.Space({"lr": ft.Float(0.0, 1.0), "kind": ft.Choice("a", "b")})
POPULATION, INTERVAL, STEPS = 4, 2, 10
SIZE = {"population": POPULATION, "interval": INTERVAL, "steps": STEPS}
STRATEGIES = [ft.PB2(**SIZE), ft.PBT(**SIZE), ft.Clone(**SIZE), ft.PB2(**SIZE, mode="async")]


STEPS_OF_9 = ft.Fidelity(1, 9, integer=True, trace=True)


class Agent(ft.Trainable):
    """What is best moves; its own lr is part of what it restores, so that only `apply` makes the new one count."""

    def setup(self, params):
        self.state = {"total": 0.0, "steps": 0, **params}

    def apply(self, params):
        self.state |= params

    def step(self):
        aim = 0.2 + 0.06 * self.state["steps"]
        self.state["steps"] += 1
        self.state["total"] += 1.0 - abs(self.state["lr"] - aim) + 0.1 * (self.state["kind"] == "a")
        return {"reward": self.state["total"], "lr": self.state["lr"]}

    def save(self, folder):
        (folder / "state.json").write_text(json.dumps(self.state))

    def load(self, folder):
        self.state = json.loads((folder / "state.json").read_text())


class Fragile(Agent):
    """Fails in the third interval where lr is above the middle."""

    def step(self):
        if self.state["steps"] == 5 and self.state["lr"] > 0.5:
            raise RuntimeError("diverged")
        return super().step()


def study_of(strategy, **settings):
    return ft.Study(SPACE, maximize="reward", strategy=strategy, **{"seed": 3, **settings})


def facts(study):
    return [(t.note["member"], t.note["interval"], t.params, t.resume_from, t.value) for t in study.trials]


@pytest.fixture(scope="module")
def found():
    study = study_of(STRATEGIES[0])
    study.run(Agent, executor="inline")
    return study


def test_a_population_needs_no_budget_and_no_fidelity(found):
    assert len(found.trials) == POPULATION * STEPS // INTERVAL
    assert found.space.fidelities["steps"].high == STEPS


def test_a_strategy_without_an_end_needs_a_budget():
    with pytest.raises(InvalidArgument, match="Random has no end of its own"):
        ft.Study(SPACE, maximize="reward", strategy=ft.Random()).run(lambda trial: 1.0)


def test_a_trainable_without_steps_is_told_of_populations():
    with pytest.raises(WorkError, match=r"strategy=ft\.PB2\("):
        ft.Study(SPACE, maximize="reward").run(Agent, budget=ft.Budget(trials=1))


@pytest.mark.parametrize("workers", [1, 3, POPULATION])
def test_members_share_the_workers_and_it_makes_no_difference(found, workers):
    study = study_of(STRATEGIES[0])
    study.run(Agent, workers=workers)
    assert sorted(facts(study)[:POPULATION], key=str) == sorted(facts(found)[:POPULATION], key=str)
    assert {fact[:3:2] + fact[4:] for fact in map(_plain, facts(study))} == {
        fact[:3:2] + fact[4:] for fact in map(_plain, facts(found))
    }


def _plain(fact):
    member, interval, params, source, value = fact
    return member, interval, json.dumps(params), source, value


class Located(Agent):
    def step(self):
        return {**super().step(), "process": os.getpid()}


def test_workers_live_on_between_intervals():
    study = study_of(STRATEGIES[2])
    study.run(Located, workers=2)
    assert len({point.metrics["process"] for trial in study.trials for point in trial.points}) == 2


@pytest.mark.parametrize("strategy", STRATEGIES, ids=["pb2", "pbt", "clone", "async"])
def test_the_source_of_every_member_is_there_when_it_starts(strategy, tmp_path):
    study = study_of(strategy, folder=tmp_path)
    kept = []

    def look(study, trial):
        kept.append(sum(t.checkpoint is not None for t in study.trials))

    study.run(Agent, workers=2, callbacks=[look])
    continued = [trial for trial in study.trials if trial.resume_from is not None]
    assert all(trial.resume_checkpoint for trial in continued)
    assert all(trial.state is ft.State.DONE for trial in study.trials)
    assert max(kept) <= (3 if strategy.mode == "async" else 2) * POPULATION + 1
    assert [path.parent.name for path in tmp_path.rglob("*.checkpoint-*")] == [f"{study.best.trial.number:06d}"]


def test_a_clone_is_by_reference(tmp_path):
    study = study_of(STRATEGIES[0], folder=tmp_path)
    study.run(Agent, executor="inline")
    for copy in study.lineage.copies:
        assert copy.trial.resume_checkpoint == f"{copy.source.number:06d}/attempt-1.checkpoint-1"


def test_what_was_chosen_is_what_took_effect_after_every_restore(found):
    for trial in found.trials:
        assert {point.metrics["lr"] for point in trial.points} == {trial.params["lr"]}
    assert len(found.lineage.copies) >= 3


def test_function_and_command_work_train_in_intervals_too(tmp_path):
    def train(trial):
        start = json.loads((trial.resume_dir / "s").read_text()) if trial.resume_dir else [0, 0.0]
        step, total = start
        while step < trial.fidelity["steps"]:
            total += 1.0 - abs(trial.params["lr"] - 0.2 - 0.06 * step) + 0.1 * (trial.params["kind"] == "a")
            step += 1
            trial.report(total, steps=step, metrics={"lr": trial.params["lr"]})
        (trial.checkpoint_dir / "s").write_text(json.dumps([step, total]))

    study = study_of(STRATEGIES[0])
    study.run(train, executor="inline")
    assert study.best.schedule == _unbroken_schedule()

    script = tmp_path / "train.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "lr, kind, end, target, *source = float(sys.argv[1]), *sys.argv[2:]\n"
        "step, total = json.loads(pathlib.Path(*source, 's').read_text()) if source else [0, 0.0]\n"
        "while step < int(end):\n"
        "    total += 1.0 - abs(lr - 0.2 - 0.06 * step) + 0.1 * (kind == 'a')\n"
        "    step += 1\n"
        "    print(json.dumps({'reward': total, 'steps': step, 'lr': lr}), flush=True)\n"
        "pathlib.Path(target, 's').write_text(json.dumps([step, total]))\n"
    )
    small = study_of(ft.PB2(population=4, interval=1, steps=3))
    line = f"{sys.executable} {script} {{lr}} {{kind}} {{steps}} {{checkpoint_dir}} {{resume_dir}}"
    small.run(ft.Command(line), executor="inline")
    assert all({point.metrics["lr"] for point in trial.points} == {trial.params["lr"]} for trial in small.trials)
    assert any(trial.resume_from is not None for trial in small.trials)


def _unbroken_schedule():
    study = study_of(STRATEGIES[0])
    study.run(Agent, executor="inline")
    return study.best.schedule


def test_a_member_whose_work_fails_is_replaced():
    study = study_of(STRATEGIES[2], seed=1)
    study.run(Fragile, executor="inline")
    failed = [trial for trial in study.trials if trial.state is ft.State.FAILED]
    assert failed, "some seed has a member above the middle in the third interval"
    for trial in failed:
        after = [t for t in study.trials if t.note["member"] == trial.note["member"] and t.number > trial.number]
        assert after[0].resume_from != trial.number
        assert study.trials[after[0].resume_from].state is ft.State.DONE
    assert study.best.schedule.steps == STEPS


class Killed(Agent):
    """Two of its intervals lose their worker once."""

    def step(self):
        if self.trial.number in (1, 9) and self.trial.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step()


def test_a_worker_that_is_killed_leaves_no_trace_in_the_lineage(found):
    study = study_of(STRATEGIES[0])
    study.run(Killed, workers=1)
    assert facts(study) == facts(found)
    assert [trial.number for trial in study.trials if trial.attempt == 2] == [1, 9]


def test_work_that_leaves_no_checkpoint_is_refused_at_once():
    class Forgetful(ft.Trainable):
        def setup(self, params):
            pass

        def step(self):
            return 1.0

    study = study_of(STRATEGIES[0])
    with pytest.raises(WorkError, match="PB2 continues from checkpoints, got none from trial 0"):
        study.run(Forgetful, executor="inline")
    assert len(study.trials) == 1


# ---- results ---------------------------------------------------------------------------------------------------------


def test_the_schedule_says_what_was_in_force_when(found):
    schedule = found.best.schedule
    chain = found.history.lineage(found.best.trial.number)
    for trial in chain:
        assert schedule.at(int(trial.fidelity["steps"]) - 1) == trial.params
    assert schedule[0][0] == 0
    assert (schedule.steps, schedule.fidelity, schedule.value) == (STEPS, "steps", "reward")
    assert len({start for start, _ in schedule}) == len(schedule) > 1


def test_a_schedule_goes_through_json(found):
    schedule = found.best.schedule
    assert Schedule.from_json(json.loads(json.dumps(schedule.to_json()))) == schedule
    assert json.loads(json.dumps(found.best.to_json()))["schedule"] == schedule.to_json()


def test_training_by_the_schedule_once_more_gives_the_same_values(found, tmp_path):
    again = ft.replay(Agent, found.best.schedule.to_json(), folder=tmp_path)
    assert again.value == found.best.value
    run = [point for trial in found.history.lineage(found.best.trial.number) for point in trial.points]
    assert again.values == tuple((point.fidelity["steps"], point.value) for point in run)
    assert json.loads((again.checkpoint / "state.json").read_text())["total"] == again.value


def test_a_schedule_may_be_written_by_hand():
    by_hand = ft.replay(Agent, [(0, {"lr": 0.2, "kind": "a"}), (1, {"lr": 0.26, "kind": "a"})], steps=2, value="reward")
    assert by_hand.value == pytest.approx(2.2)


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ([(1, {"lr": 0.1})], "must begin at step 0"),
        ([(0, {"lr": 0.1}), (4, {"lr": 0.1})], "end after its last change"),
        ([(0, {}), (0, {})], "rise"),
        ([0.1], "a step and params"),
        ({"steps": 3}, "must have changes and steps"),
    ],
)
def test_what_is_no_schedule_is_refused(schedule, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        ft.replay(Agent, schedule, steps=3)


def test_a_list_must_say_where_it_ends():
    with pytest.raises(InvalidArgument, match="got no steps"):
        ft.replay(Agent, [(0, {"lr": 0.1, "kind": "a"})])


def test_a_replay_that_fails_says_where():
    with pytest.raises(WorkError, match="after step 4: RuntimeError: diverged"):
        ft.replay(Fragile, [(0, {"lr": 0.1, "kind": "a"}), (4, {"lr": 0.9, "kind": "a"})], steps=8, value="reward")


def test_the_lineage_has_members_and_copies(found):
    lineage = found.lineage
    assert list(lineage.members) == list(range(POPULATION))
    assert all(len(own) == STEPS // INTERVAL for own in lineage.members.values())
    for copy in lineage.copies:
        assert copy.donor != copy.member
        assert copy.trial in lineage[copy.member]
        assert copy.source in lineage[copy.donor]
    assert str(lineage).count("copy of") == len(lineage.copies)


def test_runs_of_other_strategies_are_members_too():
    space = ft.Space({"lr": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    study = ft.Study(space, minimize="error", strategy=ft.ASHA())
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, trial.params["lr"], trace=[({"epochs": trial.fidelity["epochs"]}, trial.params["lr"])])
    runs = study.lineage
    assert not runs.is_population
    assert sum(len(own) for own in runs.members.values()) == 12
    assert runs.copies == ()
    assert study.best.schedule == Schedule(
        ((0, study.best.params),), int(study.best.trial.fidelity["epochs"]), "epochs", "error"
    )


@pytest.mark.parametrize(
    ("fidelity", "ends"),
    [(None, ({}, {})), (ft.Fidelity(1, 9, trace=True), ({"e": 1.0}, {"e": 2.0})), (STEPS_OF_9, ({"e": 2}, {"e": 2}))],
)
def test_a_run_that_is_not_told_in_steps_has_no_schedule(fidelity, ends):
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"e": fidelity} if fidelity else None)
    suggestions = [Suggestion({"x": 0.1}, ends[0]), Suggestion({"x": 0.2}, ends[1], resume_from=0)]
    trials = [ft.Trial(number, told, ft.State.DONE, value=1.0) for number, told in enumerate(suggestions)]
    assert schedule_of(History(Problem(space), trials), trials[1]) is None


# ---- what is stored --------------------------------------------------------------------------------------------------


def test_a_stored_population_goes_on_with_or_without_its_strategy(tmp_path, found):
    storage = f"sqlite:///{tmp_path}/study.db"
    study = study_of(STRATEGIES[0], storage=storage)
    study.run(Agent, executor="inline", callbacks=[lambda study, trial: trial.number == 9 and study.stop()])
    assert len(study.trials) < len(found.trials)
    study.close()
    without = ft.Study(SPACE, maximize="reward", storage=storage)
    assert without.strategy == STRATEGIES[0]
    without.run(Agent, executor="inline")
    assert facts(without) == facts(found)


def test_what_killed_processes_left_is_collected(tmp_path):
    study = study_of(STRATEGIES[0], folder=tmp_path)
    study.run(Agent, executor="inline", callbacks=[lambda study, trial: trial.number == 5 and study.stop()])
    (study.checkpoints.stage(Attempt(2, 1)) / "half").write_text("half")
    orphan = study.checkpoints.stage(Attempt(3, 9))
    (orphan / "whole").write_text("whole")
    study.checkpoints.commit(orphan)
    newer = study.checkpoints.stage(Attempt(500, 1))
    (newer / "half").write_text("of a trial that this history does not know yet")
    study.run(Agent, executor="inline")
    root = study.checkpoints.root
    left = {str(path.relative_to(root)) for path in root.glob("*/*.*-*")}
    assert left == {study.best.trial.checkpoint, str(newer.relative_to(root))}
    assert Path(study.checkpoints.root).is_dir()


def test_what_a_killed_process_had_not_deleted_yet_is_collected_though_nothing_is_left_to_train(tmp_path, monkeypatch):
    study = study_of(STRATEGIES[0], folder=tmp_path)
    with monkeypatch.context() as dying:
        dying.setattr("farthing.running.loop.CheckpointCollector.trial_ended", lambda *_: None)
        dying.setattr("farthing.running.loop.collect_leftovers", lambda *_: None)
        study.run(Agent, executor="inline")
    root = Path(study.checkpoints.root)
    assert len(list(root.glob("*/*.*-*"))) == len(study.trials)
    study.run(Agent, executor="inline")
    assert [str(path.relative_to(root)) for path in root.glob("*/*.*-*")] == [study.best.trial.checkpoint]
    assert [trial.number for trial in study.trials if trial.checkpoint] == [study.best.trial.number]


def test_a_replay_needs_a_checkpoint_where_params_change():
    def forgetful(trial):
        return 1.0

    assert ft.replay(forgetful, [(0, {"lr": 0.1})], steps=3).values == ((3, 1.0),)
    with pytest.raises(WorkError, match="got none after step 2"):
        ft.replay(forgetful, [(0, {"lr": 0.1}), (2, {"lr": 0.2})], steps=3)
