"""The settings that `minimize` passes on are those that `Study` and its `run` take."""

import inspect
from typing import get_type_hints

import pytest

from farthing.study import Study
from farthing.study.settings import RunSettings, StudySettings


@pytest.mark.parametrize(
    ("settings", "method", "others"),
    [
        (StudySettings, Study.__init__, {"self", "space", "minimize", "maximize"}),
        (RunSettings, Study.run, {"self", "work", "budget"}),
    ],
)
def test_settings_have_the_names_and_types_of_the_arguments(settings, method, others):
    arguments = inspect.signature(method).parameters.keys() - others
    taken, passed = (get_type_hints(each, localns={"Study": Study}) for each in (method, settings))
    assert passed == {name: taken[name] for name in arguments}
