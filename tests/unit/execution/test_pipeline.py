"""Work in stages."""

import pytest

from farthing.errors import WorkError
from farthing.execution import Pipeline, Stage
from farthing.space import Float, Space
from farthing.trials import Problem, State


@pytest.fixture
def staged():
    strength = {"strength": Float(0.0, 1.0)}
    return Problem(Space(stages={"denoise": strength, "score": {**strength, "cutoff": Float(0.0, 1.0)}}), value="f1")


PARAMS = {"denoise.strength": 0.1, "score.strength": 0.2, "cutoff": 0.3}


def test_each_stage_gets_the_output_before_it_and_its_own_params(staged, make_trial):
    calls = []

    def denoise(previous, **params):
        calls.append((previous, params))
        return "clean"

    def score(previous, **params):
        calls.append((previous, params))
        return {"f1": 0.9, "recall": 0.8}

    pipeline = Pipeline(source="noisy", denoise=denoise, score=Stage(score))
    pipeline.check(staged)
    trial = make_trial(staged, params=PARAMS)
    outcome = trial.finish(pipeline.run(trial))
    assert calls == [("noisy", {"strength": 0.1}), ("clean", {"strength": 0.2, "cutoff": 0.3})]
    assert (outcome.state, outcome.value, outcome.measurements[0].metrics) == (State.DONE, 0.9, {"recall": 0.8})


def test_what_a_stage_cost_is_recorded_as_it_ends(staged, make_trial, recorder, clock):
    def denoise(previous, **params):
        clock.advance(5)

    def score(previous, **params):
        clock.advance(1)
        assert [point.cost for point in recorder.measurements] == [{"stage": 5.5}]
        raise ValueError("broken")

    trial = make_trial(staged, params=PARAMS)
    clock.advance(0.5)
    with pytest.raises(ValueError, match="broken"):
        Pipeline(denoise=denoise, score=score).run(trial)


def test_all_seconds_of_a_pipeline_are_of_its_stages(staged, make_trial, recorder, clock):
    def stage(previous, **params):
        clock.advance(2)
        return 0.5

    trial = make_trial(staged, params=PARAMS)
    clock.advance(1)
    outcome = trial.finish(Pipeline(denoise=stage, score=stage).run(trial))
    assert [(point.step, point.value, point.cost) for point in recorder.measurements] == [
        (0, None, {"stage": 3.0}),
        (1, None, {"stage": 2.0}),
    ]
    assert outcome.measurements[0].cost == {}


@pytest.mark.parametrize("names", [[], ["denoise"], ["score", "denoise"], ["denoise", "score", "plot"]])
def test_stages_that_are_not_those_of_the_space_are_refused_at_the_start(staged, names):
    pipeline = Pipeline(**dict.fromkeys(names, lambda previous: previous))
    with pytest.raises(WorkError, match="'denoise', 'score'"):
        pipeline.check(staged)


def test_a_pipeline_in_a_space_without_stages_is_refused(plain):
    with pytest.raises(WorkError, match="there are none"):
        Pipeline(denoise=lambda previous: previous).check(plain)


def test_a_stage_must_be_a_function():
    with pytest.raises(WorkError, match="A stage must be a function, got 3"):
        Pipeline(denoise=3)
