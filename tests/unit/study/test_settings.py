"""The settings that `minimize` passes on are those that `Study` and its `run` take."""

import inspect
from typing import get_args

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.study import RunSettings, Study, StudySettings

SPACE = ft.Space({"x": ft.Float(0, 1)})


@pytest.mark.parametrize(
    ("settings", "method", "others"),
    [
        (StudySettings, Study.__init__, {"self", "space", "minimize", "maximize"}),
        (RunSettings, Study.run, {"self", "work", "budget"}),
    ],
)
def test_settings_have_the_names_and_types_of_the_arguments(settings, method, others):
    taken = {name: argument.annotation for name, argument in inspect.signature(method).parameters.items()}
    taken |= get_args(taken.pop("rare"))[0].__annotations__
    assert settings.__annotations__ == {name: type for name, type in taken.items() if name not in others}


@pytest.mark.parametrize(("method", "most"), [(Study.__init__, 12), (Study.run, 12), (ft.OnlineTuner.__init__, 14)])
def test_few_arguments_stand_in_a_signature(method, most):
    assert len(inspect.signature(method).parameters.keys() - {"self"}) <= most


def test_rare_arguments_are_told_from_misspelt_ones():
    with ft.Study(SPACE, minimize="loss", lease=30.0, lost_retries=1, noise=False) as study:
        assert study.run(lambda trial: 1.0, budget=ft.Budget(trials=1), executor="inline", retries=1, keep_going=True)
        with pytest.raises(InvalidArgument, match="Did you mean 'keep_going'"):
            study.run(lambda trial: 1.0, keep_goin=True)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="Did you mean 'lost_retries'"):
        ft.Study(SPACE, minimize="loss", lost_retrie=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="Did you mean 'validation_cost'"):
        ft.OnlineTuner(SPACE, rounds=3, validation_costs=1)  # type: ignore[call-arg]
