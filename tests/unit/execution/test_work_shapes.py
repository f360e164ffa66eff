"""What counts as work, and what is said about the rest."""

import functools

import pytest

from farthing.errors import WorkError
from farthing.execution import Command, Pipeline, Trainable, as_work


class Agent(Trainable):
    def setup(self, params):
        pass

    def step(self):
        return 0.0


class Callable:
    def __call__(self, trial):
        return trial.params["lr"]


@pytest.mark.parametrize(
    "function", [lambda trial: 0.5, Callable(), functools.partial(lambda lr, trial: lr, 0.5), Callable().__call__]
)
def test_anything_that_can_be_called_with_a_trial_is_work(plain, make_trial, function):
    work = as_work(function)
    work.check(plain)
    assert work.run(make_trial(plain)) == 0.5


@pytest.mark.parametrize("work", [as_work(Pipeline()), Command("true"), as_work(Agent)])
def test_work_is_left_as_it_is(work):
    assert as_work(work) is work


@pytest.mark.parametrize(
    ("thing", "advice"),
    [
        ("python train.py", "ft.Command"),
        (None, "Work must be a function"),
        (3, "got 3"),
        (Agent(), "Pass Agent itself"),
        (dict, "Derive it from ft.Trainable"),
    ],
)
def test_anything_else_is_refused_with_advice(thing, advice):
    with pytest.raises(WorkError, match=advice) as refusal:
        as_work(thing)
    assert "\n" not in str(refusal.value)


def of_params(lr, units):
    return lr


@pytest.mark.parametrize(
    ("function", "advice"),
    [(of_params, r"def of_params\(trial\)"), (lambda: 0.5, "one argument")],
)
def test_a_function_that_cannot_be_called_with_a_trial_is_refused_at_the_start(plain, function, advice):
    with pytest.raises(WorkError, match=advice):
        as_work(function).check(plain)
