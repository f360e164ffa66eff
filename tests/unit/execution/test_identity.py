"""What names data and code by what they are."""

import functools
import subprocess
import sys
import types

import numpy as np
import pytest

from farthing.execution.identity import identity_of_data, identity_of_function
from farthing.execution.plain_data import NotPlain

SCRIPT = """
import numpy as np
from scipy.ndimage import gaussian_filter
STRENGTH = 2
TABLE = {"a": [1, 2], "b": np.arange(3)}

class Model:
    factor = 3
    def fit(self, x): return helper(x) * self.factor

def helper(x, places={"u", "v"}): return x + STRENGTH if x in {"p", "q", "r"} else x

def stage(previous, *, sigma=1.0):
    inner = lambda x: x + TABLE["b"]
    return [Model().fit(gaussian_filter(inner(image), sigma)) for image in previous]
"""


def stage_of(script, name="stage"):
    """A function out of a module of the user's that holds this script."""
    module = types.ModuleType("users_script")
    sys.modules["users_script"] = module
    module.__file__ = "/home/user/users_script.py"
    try:
        exec(compile(script, "users_script.py", "exec"), vars(module))
        return identity_of_function(getattr(module, name))
    finally:
        del sys.modules["users_script"]


def test_code_that_was_moved_and_commented_is_the_same():
    moved = "# a comment\n\n" + SCRIPT.replace("    inner =", "    # why\n\n    inner =")
    assert stage_of(moved) == stage_of(SCRIPT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sigma=1.0", "sigma=2.0"),
        ("x + TABLE", "x - TABLE"),
        ("STRENGTH = 2", "STRENGTH = 3"),
        ("STRENGTH = 2", "STRENGTH = 2.0"),
        ("np.arange(3)", "np.arange(4)"),
        ('"a": [1, 2]', '"a": [1, 3]'),
        ("x + STRENGTH", "x * STRENGTH"),
        ("factor = 3", "factor = 4"),
        ("* self.factor", "/ self.factor"),
        ('{"p", "q", "r"}', '{"p", "q", "s"}'),
        ('{"u", "v"}', '{"u", "w"}'),
        ("import gaussian_filter", "import uniform_filter as gaussian_filter"),
    ],
)
def test_a_change_of_what_the_code_does_is_seen(old, new):
    assert old in SCRIPT
    assert stage_of(SCRIPT.replace(old, new)) != stage_of(SCRIPT)


def test_objects_that_the_code_refers_to_do_not_hide_changes_beside_them():
    odd = "lock = object()\ndef stage(previous, *, sigma=1): return helper(previous), lock\n"
    assert stage_of(SCRIPT + odd) == stage_of(SCRIPT + odd)
    assert stage_of(SCRIPT.replace("x + STRENGTH", "x - STRENGTH") + odd) != stage_of(SCRIPT + odd)


def test_variables_that_a_function_closes_over_count():
    def scaled(factor):
        return lambda previous: previous * factor

    assert identity_of_function(scaled(1)) == identity_of_function(scaled(1))
    assert identity_of_function(scaled(1)) != identity_of_function(scaled(2))
    with pytest.raises(NotPlain):
        identity_of_function(scaled(object()))


def test_functions_on_one_line_and_bound_arguments_are_told_apart():
    add, subtract = (lambda x: x + 1), (lambda x: x - 1)
    assert identity_of_function(add) != identity_of_function(subtract)
    partials = [functools.partial(pow, 2), functools.partial(pow, 3), functools.partial(pow, exp=2)]
    assert len({identity_of_function(partial) for partial in partials}) == 3


def test_installed_functions_count_by_their_names():
    assert len({identity_of_function(function) for function in (np.mean, np.std, len, np.add, np.linalg.norm)}) == 5


def test_methods_count_with_what_they_are_bound_to():
    assert identity_of_function([1, 2].count) != identity_of_function([1, 3].count)


def _printed(script, environment):
    command, path = [sys.executable, "-c", script], {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(command, env=environment | path, capture_output=True, text=True, check=True).stdout


def test_an_identity_is_the_same_in_another_process():
    script = SCRIPT + (
        "\nfrom farthing.execution.identity import identity_of_function, identity_of_data\n"
        "print(identity_of_function(stage), identity_of_data([{'a': np.eye(2)}, 'text', 1.5]))"
    )
    prints = {_printed(script, {"PYTHONHASHSEED": seed}) for seed in ("1", "2")}
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), [1, 2]),
        (1, 1.0),
        (1, True),
        ("a", b"a"),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),
        ([np.zeros(1), np.zeros(2)], [np.zeros(2), np.zeros(1)]),
        ([b"ab", b"c"], [b"a", b"bc"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_different_data_are_told_apart(one, other):
    assert identity_of_data(one) != identity_of_data(other)


def test_paths_count_by_their_content(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1")
    before = identity_of_data(tmp_path / "data"), identity_of_data(tmp_path / "data" / "a.csv")
    (tmp_path / "data" / "a.csv").write_text("2")
    assert identity_of_data(tmp_path / "data") != before[0]
    assert identity_of_data(tmp_path / "data" / "a.csv") != before[1]
