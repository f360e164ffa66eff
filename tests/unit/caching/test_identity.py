"""What names data and code by what they are."""

import functools
import subprocess
import sys
import types

import joblib
import numpy as np
import pytest

from farthing.caching.identity import identity_of_data, identity_of_function
from farthing.caching.plain_data import NotPlain

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


HELD = """
import functools, re
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
import numpy as np
from sklearn.linear_model import Ridge

@dataclass
class Filter:
    width: int
    def run(self, x): return x / self.width

class Counted(type):
    def count(cls): return 1

class Level(Enum):
    LOW = 10

class Odd(metaclass=Counted):
    __slots__ = ("a",)
    @functools.cached_property
    def cached(self): return 2
    @property
    def level(self): return 0
    @level.setter
    def level(self, value): self.a = value + 3

def inner(x): return x + 4
def closing_over(thing): return lambda x: thing.width

OBJECTS = [Filter(5), SimpleNamespace(a=6), namedtuple("Pair", "a")(7), re.compile("word"), Ridge(alpha=8)]
BY_NAME = {"inner": inner, ("a", 9): {"stop", "go"}}
vectorized = np.vectorize(lambda x: x - 11)
bound = Filter(12).run
closure = closing_over(Filter(13))
table = np.array(["text", None], dtype=object)
itself = [Filter(14)]
itself.append(itself)
lock = __import__("threading").Lock()

def stage(previous, *, steps=[inner]):
    with lock:
        return [OBJECTS, BY_NAME, vectorized, bound, closure, table, itself, Odd, Level]

def named_like_attributes(previous): return previous.OBJECTS
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x / self", "return x * self"),
        ("return 1", "return -1"),
        ("LOW = 10", "LOW = 11"),
        ("return 2", "return -2"),
        ("value + 3", "value - 3"),
        ("x + 4", "x - 4"),
        ("[Filter(5)", "[Filter(6)"),
        ("a=6", "a=7"),
        ('"a")(7)', '"a")(8)'),
        ('"word"', '"words"'),
        ("alpha=8", "alpha=9"),
        ('("a", 9)', '("a", 8)'),
        ('"go"', '"went"'),
        ("x - 11", "x - 12"),
        ("Filter(12)", "Filter(13)"),
        ("Filter(13)", "Filter(12)"),
        ('["text"', '["texts"'),
        ("Filter(14)", "Filter(15)"),
        ("[inner]", "[inner, inner]"),
    ],
)
def test_a_change_of_an_object_that_the_code_refers_to_is_seen(old, new):
    assert HELD.count(old) == 1
    assert stage_of(HELD) == stage_of(HELD)
    assert stage_of(HELD.replace(old, new)) != stage_of(HELD)


def test_attributes_are_not_taken_for_globals_of_their_name():
    name = "named_like_attributes"
    assert stage_of(HELD.replace("Filter(5)", "Filter(6)"), name) == stage_of(HELD, name)


def test_where_a_random_generator_stands_does_not_count():
    script = "import random\nfrom numpy.random import default_rng\nown, theirs = random.Random(), default_rng()\n"
    script += "def stage(previous): return own.random() + theirs.random()"
    assert stage_of(script) == stage_of(script)


def test_what_a_context_variable_or_a_handler_of_logs_holds_does_not_count():
    script = "import logging\nfrom contextvars import ContextVar\n"
    script += "level, handler = ContextVar('level', default=1), logging.StreamHandler()\n"
    script += "def stage(previous): return level.get(), handler"
    assert stage_of(script) == stage_of(script)
    assert stage_of(script) != stage_of(script.replace("level.get()", "level"))


def test_a_wrapper_of_a_library_counts_as_what_it_wraps(tmp_path):
    def identity(place, code):
        memory = joblib.Memory(tmp_path / place, verbose=0)
        return identity_of_function(eval("lambda previous: remembered(previous)", {"remembered": memory.cache(code)}))

    assert identity("here", stage_of) == identity("there", stage_of)
    assert identity("here", stage_of) != identity("here", _printed)


def test_all_arguments_that_are_bound_count_whatever_their_names():
    def scaled(factor):
        return functools.partial(lambda previous, partial: previous * factor, partial=1)

    assert identity_of_function(scaled(1)) != identity_of_function(scaled(2))


def test_weights_of_a_network_count_by_their_values():
    torch = pytest.importorskip("torch")

    def identity(weight):
        network = torch.nn.Linear(2, 2)
        torch.nn.init.constant_(network.weight, weight)
        torch.nn.init.zeros_(network.bias)
        return identity_of_function(eval("lambda previous: network(previous)", {"network": network}))

    assert identity(1.0) == identity(1.0) != identity(2.0)


PACKAGE = {
    "tools/__init__.py": "",
    "tools/filters.py": "from . import kernels\ndef smooth(x): return kernels.apply(x)",
    "tools/kernels.py": "def apply(x): return x + 1",
    "tools/lazy.py": "import importlib\ndef smooth(x):\n"
    "    return importlib.import_module('.kernels', __package__).apply(x) + __import__('tools.filters').filters.more",
    "tools/large.py": "\n".join(f"level_{number} = {number}.5" for number in range(300))
    + "\nfrom importlib import import_module as load\nfrom . import filters\nkernels = load('tools.kernels')\n"
    "def smooth(x): return kernels.apply(x)",
    "loose/inner.py": "def apply(x): return x + 1",
}


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ("import tools.filters\ndef stage(x): return tools.filters.smooth(x)", "tools/filters.py"),
        ("import tools.filters as filters\ndef stage(x): return filters.smooth(x)", "tools/kernels.py"),
        ("from tools.filters import smooth\ndef stage(x): return smooth(x)", "tools/kernels.py"),
        ("import loose.inner\ndef stage(x): return loose.inner.apply(x)", "loose/inner.py"),
        ("def stage(x):\n    import tools.filters\n    return tools.filters.smooth(x)", "tools/kernels.py"),
        ("def stage(x):\n    from loose import inner\n    return inner.apply(x)", "loose/inner.py"),
        ("import tools.lazy\ndef stage(x): return tools.lazy.smooth(x)", "tools/kernels.py"),
        ("import tools.large\ndef stage(x): return tools.large.smooth(x)", "tools/kernels.py"),
    ],
)
def test_modules_of_the_users_count_with_those_that_they_import(script, changed, tmp_path):
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    printing = "\nfrom farthing.caching.identity import identity_of_function\nprint(identity_of_function(stage))"
    script = f"import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, {str(tmp_path)!r})\n{script}{printing}"
    before = _printed(script, {})
    (tmp_path / changed).write_text(PACKAGE[changed].replace("(x):", "(x, more=0):"))
    assert _printed(script, {}) != before


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
        "\nfrom farthing.caching.identity import identity_of_data\n"
        "from farthing.caching.identity import identity_of_function\n"
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
