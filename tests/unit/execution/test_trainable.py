"""Work that is trained step by step: what was chosen is what takes effect."""

import json

import pytest

from farthing.errors import WorkError
from farthing.execution import Trainable, as_work
from farthing.space import Fidelity, Float, Space
from farthing.trials import Problem, State

STEPS = Fidelity(1, 10, integer=True, trace=True)


@pytest.fixture
def problem():
    return Problem(Space({"lr": Float(0.0, 1.0)}, fidelities={"steps": STEPS}), value="reward", minimize=False)


class Agent(Trainable):
    """Its learning rate is part of its state, as in an optimiser's state dict: a restored one is the old one."""

    def setup(self, params):
        self.calls = ["setup"]
        self.state = {"lr": params["lr"], "total": 0.0}

    def apply(self, params):
        self.calls.append("apply")
        self.state["lr"] = params["lr"]

    def step(self):
        self.state["total"] += self.state["lr"]
        return {"reward": self.state["total"], "lr": self.state["lr"]}

    def save(self, folder):
        (folder / "state.json").write_text(json.dumps(self.state))

    def load(self, folder):
        self.calls.append("load")
        self.state = json.loads((folder / "state.json").read_text())


class Forgetful(Trainable):
    def setup(self, params):
        pass

    def step(self):
        return 1.0


def run(trainable, trial):
    return trial._finish(as_work(trainable).run(trial))


def test_every_step_is_reported_with_its_metrics(problem, make_trial, recorder):
    outcome = run(Agent, make_trial(problem, fidelity={"steps": 3}))
    assert [(point.fidelity, point.value) for point in recorder.measurements] == [
        ({"steps": 1}, 0.5),
        ({"steps": 2}, 1.0),
        ({"steps": 3}, 1.5),
    ]
    assert recorder.measurements[0].metrics == {"lr": 0.5}
    assert (outcome.state, outcome.value) == (State.DONE, 1.5)


def test_a_metric_of_a_step_that_is_not_finite_is_kept_as_unknown(problem, make_trial, recorder):
    class Unsure(Forgetful):
        def step(self):
            return {"reward": 1.0, "entropy": float("nan")}

    assert run(Unsure, make_trial(problem, fidelity={"steps": 1})).state is State.DONE
    assert recorder.measurements[0].metrics == {"entropy": None}


def test_params_that_were_chosen_win_over_those_restored(problem, make_trial, recorder, checkpoints):
    first = run(Agent, make_trial(problem, params={"lr": 0.5}, fidelity={"steps": 2}))
    source = checkpoints.path(first.checkpoint)
    recorder.measurements.clear()
    second = run(Agent, make_trial(problem, params={"lr": 0.1}, fidelity={"steps": 4}, resume_dir=source))
    assert [point.fidelity["steps"] for point in recorder.measurements] == [3, 4]
    assert {point.metrics["lr"] for point in recorder.measurements} == {0.1}
    assert second.value == pytest.approx(1.0 + 2 * 0.1)


def test_params_are_applied_after_setup_and_again_after_load(problem, make_trial, checkpoints):
    seen = []

    class Watched(Agent):
        def step(self):
            seen.append(list(self.calls))
            return super().step()

    first = run(Watched, make_trial(problem, fidelity={"steps": 1}))
    source = checkpoints.path(first.checkpoint)
    run(Watched, make_trial(problem, fidelity={"steps": 2}, resume_dir=source))
    assert seen == [["setup", "apply"], ["setup", "apply", "load", "apply"]]


def test_one_that_saves_nothing_leaves_no_checkpoint(problem, make_trial):
    assert run(Forgetful, make_trial(problem, fidelity={"steps": 2})).checkpoint is None


def test_going_no_further_than_the_checkpoint_is_refused(problem, make_trial, checkpoints):
    first = run(Agent, make_trial(problem, fidelity={"steps": 2}))
    source = checkpoints.path(first.checkpoint)
    with pytest.raises(WorkError, match="must go further than its checkpoint, got 2 steps"):
        run(Agent, make_trial(problem, fidelity={"steps": 2}, resume_dir=source))


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"steps": "3"}'])
def test_a_checkpoint_that_is_not_ours_is_refused(problem, make_trial, tmp_path, content):
    (tmp_path / "state.json").write_text('{"lr": 0.5, "total": 0.0}')
    if content is not None:
        (tmp_path / "farthing.json").write_text(content)
    with pytest.raises(WorkError, match=r"must hold its steps in farthing\.json"):
        run(Agent, make_trial(problem, fidelity={"steps": 2}, resume_dir=tmp_path))


@pytest.mark.parametrize(
    "fidelities",
    [
        None,
        {"steps": Fidelity(1, 10, integer=True)},
        {"steps": Fidelity(1, 10, trace=True)},
        {"steps": STEPS, "rounds": STEPS},
    ],
)
def test_a_space_that_does_not_count_steps_is_refused_at_the_start(fidelities):
    space = Space({"lr": Float(0.0, 1.0)}, fidelities=fidelities)
    with pytest.raises(WorkError, match="exactly one trace fidelity"):
        as_work(Agent).check(Problem(space))


def test_a_class_with_a_method_missing_is_refused_at_the_start(problem):
    class Stepless(Trainable):
        def setup(self, params):
            pass

        def save(self, folder):
            pass

    with pytest.raises(WorkError, match="Stepless without step, load"):
        as_work(Stepless).check(problem)
