"""The settings that `minimize` passes on are those that `Study` and its `run` take."""

import inspect

import pytest

from farthing.study import RunSettings, Study, StudySettings


@pytest.mark.parametrize(
    ("settings", "method", "others"),
    [
        (StudySettings, Study.__init__, {"self", "space", "minimize", "maximize"}),
        (RunSettings, Study.run, {"self", "work", "budget"}),
    ],
)
def test_settings_have_the_names_and_types_of_the_arguments(settings, method, others):
    taken = {name: argument.annotation for name, argument in inspect.signature(method).parameters.items()}
    assert settings.__annotations__ == {name: type for name, type in taken.items() if name not in others}
