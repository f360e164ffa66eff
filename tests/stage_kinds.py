"""Kinds of code that users write as a stage of a pipeline: each is a module with `stage(data, a)`.

`KINDS` have changes that another identity must tell apart, as pairs of texts. `HELPER` stands beside them as a module
of its own, in a package. `data` is an array, and the output is one too.
"""

from dataclasses import dataclass

PACKAGE, HELPER = "stage_tools", "filters"
HELPER_TEXT = "GAIN = 3.0\n\n\ndef smooth(x):\n    return x * GAIN\n"


@dataclass(frozen=True)
class Kind:
    """The text of a module, and changes of it as pairs (old, new); in the helper where the first begins with a `>`."""

    text: str
    changes: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        for old, _ in self.changes:
            where = HELPER_TEXT if old.startswith(">") else self.text
            if where.count(old.removeprefix(">")) != 1:
                raise ValueError(f"{old!r} must stand once in\n{where}")

    def changed(self, change: tuple[str, str]) -> tuple[str, str]:
        """The texts of the module and of the helper after a change."""
        old, new = change
        if old.startswith(">"):
            return self.text, HELPER_TEXT.replace(old[1:], new)
        return self.text.replace(old, new), HELPER_TEXT


def _kind(text: str, *changes: tuple[str, str]) -> Kind:
    return Kind(text.strip("\n") + "\n", changes)


KINDS: dict[str, Kind] = {
    "a plain function": _kind(
        """
def stage(data, a):
    return data * a + 1.5
""",
        ("+ 1.5", "- 1.5"),
        ("1.5", "2.5"),
    ),
    "a lambda": _kind("stage = lambda data, a: data * a + 7", ("+ 7", "+ 8")),
    "a global constant": _kind(
        """
FACTOR = 4
def stage(data, a):
    return data * a * FACTOR
""",
        ("FACTOR = 4", "FACTOR = 5"),
        ("FACTOR = 4", "FACTOR = 4.0"),
    ),
    "a helper function": _kind(
        """
def helper(x):
    return x + 2
def stage(data, a):
    return helper(data) * a
""",
        ("x + 2", "x + 3"),
    ),
    "functions that call each other": _kind(
        """
def even(n):
    return True if n == 0 else odd(n - 1)
def odd(n):
    return False if n == 0 else even(n - 1)
def stage(data, a):
    return data * a if even(4) else data
""",
        ("return False if", "return 0 if"),
    ),
    "a nested function": _kind(
        """
def stage(data, a):
    def inner(x):
        return x + 2
    return inner(data) * a
""",
        ("x + 2", "x * 2"),
    ),
    "a class inside of the stage": _kind(
        """
def stage(data, a):
    class Local:
        gain = 2
        def apply(self, x):
            return x * self.gain
    return Local().apply(data) * a
""",
        ("gain = 2", "gain = 3"),
    ),
    "a closure over a number": _kind(
        """
def scaled(factor):
    def stage(data, a):
        return data * a * factor
    return stage
stage = scaled(3)
""",
        ("scaled(3)", "scaled(4)"),
    ),
    "a closure over a function": _kind(
        """
def scaled(step):
    return lambda data, a: step(data) * a
stage = scaled(lambda x: x + 5)
""",
        ("x + 5", "x + 6"),
    ),
    "a partial function": _kind(
        """
from functools import partial
def full(data, a, *, shift, table):
    return data * a + shift + len(table)
stage = partial(full, shift=2, table=[1, 2])
""",
        ("shift=2", "shift=3"),
        ("[1, 2]", "[1, 2, 3]"),
    ),
    "a partial function of a partial function": _kind(
        """
from functools import partial
def full(data, a, *, shift, more):
    return data * a + shift + more
stage = partial(partial(full, shift=2), more=3)
""",
        ("more=3", "more=4"),
    ),
    "default arguments": _kind(
        """
def stage(data, a, shift=2, *, names=("u", "v"), marks={"p", "q", "r"}):
    return data * a + shift + len(names) + len(marks)
""",
        ("shift=2", "shift=3"),
        ('"v"', '"w"'),
        ('"r"', '"s"'),
    ),
    "a set in the code": _kind(
        """
def stage(data, a):
    return data * a if "x" in {"x", "yy", "zzz"} else data
""",
        ('"zzz"', '"zzzz"'),
    ),
    "a global set of texts": _kind(
        """
WORDS = {"alpha", "beta", "gamma", "delta"}
def stage(data, a):
    return data * a * len(WORDS)
""",
        ('"beta"', '"betas"'),
    ),
    "a set of functions that share a helper": _kind(
        """
def base(x):
    return x + 1
def left(x):
    return base(x) * 2
def right(x):
    return base(x) * 3
STEPS = {left, right}
def stage(data, a):
    return data * a + sum(sorted(float(step(1)) for step in STEPS))
""",
        ("x + 1", "x + 2"),
        ("* 3", "* 4"),
    ),
    "a frozen set of objects": _kind(
        """
class Word:
    def __init__(self, text):
        self.text = text
class Other(Word):
    pass
WORDS = frozenset([Word("one"), Word("two"), Word("three"), Other("one")])
def stage(data, a):
    return data * a + sum(len(word.text) for word in WORDS)
""",
        ('"three"', '"four"'),
    ),
    "a dispatch table": _kind(
        """
def up(x):
    return x + 1
def down(x):
    return x - 1
STEPS = {"up": up, ("down", 2): down}
def stage(data, a):
    return STEPS["up"](data) * a
""",
        ("x - 1", "x - 2"),
        ('("down", 2)', '("down", 3)'),
    ),
    "an object of a class of the user's": _kind(
        """
class Filter:
    gain = 1.0
    def __init__(self, width):
        self.width = width
    def apply(self, x):
        return x * self.width * self.gain
FILTER = Filter(2.0)
def stage(data, a):
    return FILTER.apply(data) * a
""",
        ("Filter(2.0)", "Filter(3.0)"),
        ("gain = 1.0", "gain = 2.0"),
        ("x * self.width", "x / self.width"),
    ),
    "an object and its class by name": _kind(
        """
class Aged:
    def __init__(self, width):
        self.width = width
    def apply(self, x):
        return x * self.width
zero = Aged(2.0)
def stage(data, a):
    return Aged(1.0).apply(zero.apply(data)) * a
""",
        ("zero = Aged(2.0)", "zero = Aged(3.0)"),
    ),
    "a class that is made anew in every call": _kind(
        """
class Filter:
    gain = 2.0
    def apply(self, x):
        return x * self.gain
def stage(data, a):
    return Filter().apply(data) * a
""",
        ("gain = 2.0", "gain = 3.0"),
    ),
    "a subclass": _kind(
        """
class Base:
    def apply(self, x):
        return x + self.shift()
class Sub(Base):
    def shift(self):
        return 2
SUB = Sub()
def stage(data, a):
    return SUB.apply(data) * a
""",
        ("x + self", "x - self"),
        ("return 2", "return 3"),
    ),
    "a bound method": _kind(
        """
class Filter:
    gain = 1.0
    def __init__(self, width):
        self.width = width
    def run(self, data, a):
        return data * a * self.width * self.gain
stage = Filter(2.0).run
""",
        ("Filter(2.0)", "Filter(3.0)"),
        ("gain = 1.0", "gain = 2.0"),
        ("data * a", "data / a"),
    ),
    "a bound method of a dataclass": _kind(
        """
from dataclasses import dataclass, field
@dataclass
class Filter:
    width: float
    names: list = field(default_factory=list)
    def run(self, data, a):
        return data * a * self.width + len(self.names)
stage = Filter(2.0, ["u"]).run
""",
        ("Filter(2.0", "Filter(3.0"),
        ('["u"]', '["u", "v"]'),
    ),
    "a class method": _kind(
        """
class Filter:
    width = 2.0
    @classmethod
    def run(cls, data, a):
        return data * a * cls.width
stage = Filter.run
""",
        ("width = 2.0", "width = 3.0"),
    ),
    "a static method": _kind(
        """
class Filter:
    @staticmethod
    def run(data, a):
        return data * a * 2.0
stage = Filter.run
""",
        ("2.0", "3.0"),
    ),
    "a property": _kind(
        """
class Filter:
    @property
    def width(self):
        return 2
FILTER = Filter()
def stage(data, a):
    return data * a * FILTER.width
""",
        ("return 2", "return 3"),
    ),
    "a cached property": _kind(
        """
from functools import cached_property
class Filter:
    def __init__(self, base):
        self.base = base
    @cached_property
    def width(self):
        return self.base + 2
FILTER = Filter(1)
def stage(data, a):
    return data * a * FILTER.width
""",
        ("Filter(1)", "Filter(2)"),
        ("base + 2", "base + 3"),
    ),
    "a dataclass": _kind(
        """
from dataclasses import dataclass
@dataclass
class Settings:
    width: float = 2.0
    name: str = "box"
SETTINGS = Settings(name="cone")
def stage(data, a):
    return data * a * SETTINGS.width
""",
        ("= 2.0", "= 3.0"),
        ('"cone"', '"cones"'),
    ),
    "a frozen dataclass with slots": _kind(
        """
from dataclasses import dataclass, field
@dataclass(frozen=True, slots=True, order=True)
class Settings:
    width: float = field(default=2.0, metadata={"unit": "px"})
SETTINGS = [Settings(), Settings(4.0)]
def stage(data, a):
    return data * a * SETTINGS[1].width
""",
        ("Settings(4.0)", "Settings(5.0)"),
        ('"px"', '"mm"'),
    ),
    "a dataclass that closes over nothing but itself": _kind(
        """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Node:
    value: float
    following: Node | None = None
    def total(self):
        return self.value + (self.following.total() if self.following else 0)
CHAIN = Node(1.0, Node(2.0))
CHAIN.following.following = None
def stage(data, a):
    return data * a * CHAIN.total()
""",
        ("Node(2.0)", "Node(3.0)"),
    ),
    "objects that refer to each other": _kind(
        """
class Node:
    def __init__(self, value):
        self.value, self.others = value, []
left, right = Node(1), Node(2)
left.others.append(right)
right.others.append(left)
def stage(data, a):
    return data * a + left.others[0].value
""",
        ("Node(2)", "Node(3)"),
    ),
    "slots": _kind(
        """
class Filter:
    __slots__ = ("width", "height")
    def __init__(self, width):
        self.width, self.height = width, 1
class Wide(Filter):
    __slots__ = ("depth",)
WIDE = Wide(2)
def stage(data, a):
    return data * a * WIDE.width
""",
        ("Wide(2)", "Wide(3)"),
        ("width, 1", "width, 2"),
    ),
    "slots and a dict": _kind(
        """
class Filter:
    __slots__ = ("width", "__dict__", "__weakref__")
    def __init__(self, width):
        self.width, self.more = width, 1
FILTER = Filter(2)
def stage(data, a):
    return data * a * FILTER.width
""",
        ("Filter(2)", "Filter(3)"),
        ("width, 1", "width, 2"),
    ),
    "a private attribute of a class with slots": _kind(
        """
class Filter:
    __slots__ = ("__width",)
    def __init__(self, width):
        self.__width = width
    def apply(self, x):
        return x * self.__width
FILTER = Filter(2)
def stage(data, a):
    return FILTER.apply(data) * a
""",
        ("Filter(2)", "Filter(3)"),
    ),
    "class attributes that are objects": _kind(
        """
class Kernel:
    def __init__(self, size):
        self.size = size
class Filter:
    kernel = Kernel(3)
    names = ["u", "v"]
    def apply(self, x):
        return x * self.kernel.size * len(self.names)
def stage(data, a):
    return Filter().apply(data) * a
""",
        ("Kernel(3)", "Kernel(4)"),
        ('"v"', '"w"'),
    ),
    "an enumeration": _kind(
        """
from enum import Enum, auto
class Mode(Enum):
    LOW = auto()
    HIGH = 10
    def factor(self):
        return self.value * 2
MODE = Mode.HIGH
def stage(data, a):
    return data * a * MODE.factor()
""",
        ("HIGH = 10", "HIGH = 11"),
        ("value * 2", "value * 3"),
        ("Mode.HIGH", "Mode.LOW"),
    ),
    "flags that are put together": _kind(
        """
from enum import Flag
class Part(Flag):
    LEFT = 1
    RIGHT = 2
    TOP = 4
def stage(data, a):
    both = Part.LEFT | Part.TOP
    return data * a * both.value
""",
        ("TOP = 4", "TOP = 8"),
    ),
    "an enumeration of texts": _kind(
        """
from enum import StrEnum
class Mode(StrEnum):
    LOW = "low"
    HIGH = "high"
TABLE = {Mode.LOW: 1.0, Mode.HIGH: 2.0}
def stage(data, a):
    return data * a * TABLE[Mode("high")]
""",
        ("Mode.HIGH: 2.0", "Mode.HIGH: 3.0"),
    ),
    "a cached function": _kind(
        """
from functools import lru_cache
@lru_cache(maxsize=None)
def table(size):
    return size * 2
def stage(data, a):
    return data * a * table(3)
""",
        ("size * 2", "size * 3"),
    ),
    "a cached method": _kind(
        """
from functools import cache
class Filter:
    @cache
    def table(self, size):
        return size * 2
FILTER = Filter()
def stage(data, a):
    return data * a * FILTER.table(3)
""",
        ("size * 2", "size * 3"),
    ),
    "a decorator": _kind(
        """
from functools import wraps
def repeated(times):
    def decorate(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            for _ in range(times):
                output = function(*args, **kwargs)
            return output
        return wrapper
    return decorate
@repeated(2)
def stage(data, a):
    return data * a + 3
""",
        ("repeated(2)", "repeated(3)"),
        ("a + 3", "a + 4"),
        ("return output", "return output * 2"),
    ),
    "a decorator that is a class": _kind(
        """
class Scaled:
    def __init__(self, function, factor=2):
        self.function, self.factor = function, factor
    def __call__(self, x):
        return self.function(x) * self.factor
@Scaled
def helper(x):
    return x + 1
def stage(data, a):
    return helper(data) * a
""",
        ("factor=2", "factor=3"),
        ("x + 1", "x + 2"),
    ),
    "attributes of a function": _kind(
        """
def helper(x):
    return x + helper.shift
helper.shift = 2
def stage(data, a):
    return helper(data) * a
""",
        ("helper.shift = 2", "helper.shift = 3"),
    ),
    "a factory of generators": _kind(
        """
def parts(x):
    for place in range(3):
        yield x + place
def stage(data, a):
    return sum(parts(data)) * a
""",
        ("range(3)", "range(4)"),
        ("x + place", "x - place"),
    ),
    "comprehensions": _kind(
        """
WEIGHTS = [1, 2, 3]
def stage(data, a):
    return sum(weight * data for weight in WEIGHTS if weight > 1) * a
""",
        ("weight > 1", "weight > 2"),
        ("[1, 2, 3]", "[1, 2, 4]"),
    ),
    "a context manager": _kind(
        """
from contextlib import contextmanager
@contextmanager
def shifted(by):
    yield by + 1
def stage(data, a):
    with shifted(2) as by:
        return data * a + by
""",
        ("by + 1", "by + 2"),
    ),
    "arrays": _kind(
        """
import numpy as np
KERNEL = np.array([1.0, 2.0, 1.0])
MIXED = np.array(["text", None], dtype=object)
def stage(data, a):
    return np.convolve(data, KERNEL, "same") * a + len(MIXED)
""",
        ("2.0", "3.0"),
        ('"text"', '"texts"'),
        ('"same"', '"full"'),
    ),
    "numbers of NumPy and types": _kind(
        """
import numpy as np
LEVEL, KIND = np.float64(2.5), np.dtype("float64")
def stage(data, a):
    return (data * a + LEVEL).astype(KIND)
""",
        ("2.5", "3.5"),
        ("float64(", "float32("),
        ('"float64"', '"float32"'),
    ),
    "a vectorized function": _kind(
        """
import numpy as np
@np.vectorize
def bent(x):
    return x + 2.0
cut = np.vectorize(lambda x: x - 1.0, otypes=[float])
def stage(data, a):
    return cut(bent(data)) * a
""",
        ("x + 2.0", "x + 3.0"),
        ("x - 1.0", "x - 2.0"),
    ),
    "random generators": _kind(
        """
import random
import numpy as np
own, theirs = random.Random(), np.random.default_rng()
def stage(data, a):
    own.random(), theirs.random()
    return data * a + 1
""",
        ("a + 1", "a + 2"),
    ),
    "a regular expression": _kind(
        """
import re
NUMBER = re.compile(r"[0-9]+", re.IGNORECASE)
def stage(data, a):
    return data * a * float(NUMBER.match("12a").group())
""",
        ("[0-9]+", "[0-9]"),
        (", re.IGNORECASE", ""),
    ),
    "moments": _kind(
        """
from datetime import date, datetime, timedelta, timezone
BEGAN = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
DAYS = {date(2024, 5, 2): timedelta(hours=3)}
def stage(data, a):
    return data * a * BEGAN.day * len(DAYS)
""",
        ("2024, 5, 1,", "2024, 5, 3,"),
        ("hours=3", "hours=4"),
    ),
    "paths": _kind(
        """
from pathlib import Path, PurePosixPath
FOLDER, NAME = Path("no/such/folder"), PurePosixPath("a/b.csv")
def stage(data, a):
    return data * a * len(FOLDER.parts) * len(NAME.suffix)
""",
        ("no/such", "none/such"),
        ("b.csv", "c.csv"),
    ),
    "exact numbers": _kind(
        """
from decimal import Decimal
from fractions import Fraction
PARTS = (Decimal("1.5"), Fraction(2, 3), 1j, 2**70)
def stage(data, a):
    return data * a * float(PARTS[0])
""",
        ('"1.5"', '"2.5"'),
        ("(2, 3)", "(2, 5)"),
        ("1j", "2j"),
        ("2**70", "2**71"),
    ),
    "containers of the standard library": _kind(
        """
from array import array
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from types import MappingProxyType, SimpleNamespace
def none():
    return 0
PARTS = [
    Counter("aab"), OrderedDict(u=1), defaultdict(none, v=2), deque([3], maxlen=4), ChainMap({"w": 5}),
    array("d", [6.5]), MappingProxyType({"x": 7}), SimpleNamespace(y=8), range(9), slice(10), bytearray(b"11"),
    memoryview(b"12"), {"z": 13}.items(),
]
def stage(data, a):
    return data * a * len(PARTS)
""",
        ('"aab"', '"aabb"'),
        ("u=1", "u=2"),
        ("return 0", "return 1"),
        ("v=2", "v=3"),
        ("[3]", "[4]"),
        ('"w": 5', '"w": 6'),
        ("6.5", "7.5"),
        ('"x": 7', '"x": 8'),
        ("y=8", "y=9"),
        ("range(9)", "range(8)"),
        ("slice(10)", "slice(11)"),
        ('b"11"', 'b"10"'),
        ('b"12"', 'b"13"'),
        ('"z": 13', '"z": 14'),
    ),
    "named tuples": _kind(
        """
from collections import namedtuple
from typing import NamedTuple
class Size(NamedTuple):
    width: int
    height: int = 2
Pair = namedtuple("Pair", "left right")
SIZE, PAIR = Size(3), Pair(4, 5)
def stage(data, a):
    return data * a * SIZE.height * PAIR.left
""",
        ("height: int = 2", "height: int = 3"),
        ("Size(3)", "Size(4)"),
        ("Pair(4", "Pair(5"),
    ),
    "subclasses of containers": _kind(
        """
class Bunch(dict):
    __getattr__ = dict.__getitem__
class Rows(list):
    unit = "px"
SETTINGS, ROWS = Bunch(width=2), Rows([1, 2])
def stage(data, a):
    return data * a * SETTINGS.width * len(ROWS)
""",
        ("width=2", "width=3"),
        ("[1, 2]", "[1, 3]"),
        ('"px"', '"mm"'),
    ),
    "an object that refuses to be copied": _kind(
        """
class Settings:
    def __init__(self, width):
        self.width = width
    def __reduce__(self):
        raise TypeError("no copies")
SETTINGS = Settings(2)
def stage(data, a):
    return data * a * SETTINGS.width
""",
        ("Settings(2)", "Settings(3)"),
    ),
    "an object that says its own state": _kind(
        """
class Settings:
    def __init__(self, width):
        self.width, self.cache = width, object()
    def __getstate__(self):
        return {"width": self.width}
SETTINGS = Settings(2)
def stage(data, a):
    return data * a * SETTINGS.width
""",
        ("Settings(2)", "Settings(3)"),
    ),
    "an object that holds a lock and a logger": _kind(
        """
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
log = logging.getLogger(__name__)
class Guarded:
    def __init__(self, width):
        self.width, self.lock, self.event = width, threading.Lock(), threading.RLock()
        self.local, self.log = threading.local(), log
GUARDED = Guarded(2)
condition = threading.Condition()
pool = ThreadPoolExecutor(2)
def stage(data, a):
    with GUARDED.lock, condition:
        pool.submit(len, "ab").result()
        return data * a * GUARDED.width
""",
        ("Guarded(2)", "Guarded(3)"),
    ),
    "weak references": _kind(
        """
import weakref
class Model:
    width = 2
MODELS = weakref.WeakValueDictionary()
ROWS = weakref.WeakKeyDictionary()
MODEL = Model()
REFERENCE = weakref.ref(MODEL)
def stage(data, a):
    MODELS["one"] = MODEL
    ROWS[MODEL] = 1
    return data * a * REFERENCE().width
""",
        ("width = 2", "width = 3"),
    ),
    "an abstract class": _kind(
        """
from abc import ABC, abstractmethod
class Filter(ABC):
    @abstractmethod
    def apply(self, x):
        pass
class Box(Filter):
    def apply(self, x):
        return x + 2
BOX = Box()
def stage(data, a):
    assert isinstance(BOX, Filter)
    return BOX.apply(data) * a
""",
        ("x + 2", "x + 3"),
    ),
    "a protocol and generic classes": _kind(
        """
from typing import Generic, Protocol, TypeVar, runtime_checkable
T = TypeVar("T")
@runtime_checkable
class Applies(Protocol):
    def apply(self, x: float) -> float: ...
class Box(Generic[T]):
    width: "dict[str, list[int] | None]"
    def apply(self, x):
        return x + 2
BOX = Box[int]()
def stage(data, a):
    assert isinstance(BOX, Applies)
    return BOX.apply(data) * a
""",
        ("x + 2", "x + 3"),
    ),
    "a subclass of a protocol": _kind(
        """
from typing import Protocol
class Applies(Protocol):
    def apply(self, x):
        return x + 2
class Box(Applies):
    pass
def stage(data, a):
    return Box().apply(data) * a
""",
        ("x + 2", "x + 3"),
    ),
    "a set of texts with a class of its own": _kind(
        """
class Words(frozenset):
    unit = "px"
WORDS = Words(["alpha", "beta", "gamma"])
def stage(data, a):
    return data * a * len(WORDS)
""",
        ('"beta"', '"betas"'),
        ('"px"', '"mm"'),
    ),
    "a metaclass that registers": _kind(
        """
class Registered(type):
    known = {}
    def __new__(kind, name, bases, members):
        made = super().__new__(kind, name, bases, members)
        kind.known[name] = made
        return made
class Base(metaclass=Registered):
    width = 2
class Wide(Base):
    width = 3
def stage(data, a):
    return data * a * Registered.known["Wide"].width
""",
        ("width = 3", "width = 4"),
        ("width = 2", "width = 1"),
    ),
    "a descriptor": _kind(
        """
class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, thing, owner=None):
        return self if thing is None else getattr(thing, self.name) + 1
    def __set__(self, thing, value):
        setattr(thing, self.name, abs(value))
class Filter:
    width = Positive()
    def __init__(self, width):
        self.width = width
FILTER = Filter(-2)
def stage(data, a):
    return data * a * FILTER.width
""",
        ("self.name) + 1", "self.name) + 2"),
        ("Filter(-2)", "Filter(-3)"),
    ),
    "dispatch by type": _kind(
        """
from functools import singledispatch
@singledispatch
def applied(x):
    return x
@applied.register
def _(x: int):
    return x + 2
def stage(data, a):
    return data * a * applied(3)
""",
        ("x + 2", "x + 3"),
    ),
    "dispatch by type in a class": _kind(
        """
from functools import partialmethod, singledispatchmethod
class Filter:
    @singledispatchmethod
    def applied(self, x):
        return x
    @applied.register
    def _(self, x: int):
        return x + 2
    def shifted(self, x, by):
        return x + by
    shifted_by_four = partialmethod(shifted, by=4)
FILTER = Filter()
def stage(data, a):
    return data * a * FILTER.applied(3) * FILTER.shifted_by_four(1)
""",
        ("x + 2", "x + 3"),
        ("by=4", "by=5"),
    ),
    "operators as functions": _kind(
        """
import operator
import struct
from functools import reduce
FIRST, STEP, FORM = operator.itemgetter(1), operator.methodcaller("upper"), struct.Struct("<i")
def stage(data, a):
    return data * a * reduce(operator.mul, [1, 2]) * FIRST((1, 2)) * len(STEP("a")) * FORM.size
""",
        ("itemgetter(1)", "itemgetter(0)"),
        ('"upper"', '"lower"'),
        ("operator.mul", "operator.add"),
        ('"<i"', '"<q"'),
    ),
    "code that was compiled from a text": _kind(
        """
CODE = compile("2 + 3", "<text>", "eval")
def stage(data, a):
    return data * a * eval(CODE)
""",
        ("2 + 3", "2 + 4"),
    ),
    "a function that is kept in a module's table": _kind(
        """
STEPS = []
def step(function):
    STEPS.append(function)
    return function
@step
def add(x):
    return x + 2
@step
def double(x):
    return x * 2
def stage(data, a):
    for one in STEPS:
        data = one(data)
    return data * a
""",
        ("x + 2", "x + 3"),
    ),
    "an import in the stage": _kind(
        """
def stage(data, a):
    from stage_tools import filters
    return filters.smooth(data) * a
""",
        (">3.0", "4.0"),
    ),
    "a method that is called as import_module is here": _kind(
        """
from importlib import import_module as load
class Table:
    def load(self, name):
        return len(name)
TABLE, NAME = Table(), "abc"
def stage(data, a):
    return data * a * TABLE.load(NAME) + len(load("stage_tools.filters").__name__)
""",
        ("len(name)", "len(name) + 1"),
        (">3.0", "4.0"),
    ),
    "import_module in the stage": _kind(
        """
import importlib
def stage(data, a):
    return importlib.import_module("stage_tools.filters").smooth(data) * a
""",
        (">3.0", "4.0"),
        ("(data) * a", "(data) / a"),
    ),
    "import_module under another name": _kind(
        """
from importlib import import_module as load
def stage(data, a):
    filters = load(".filters", package="stage_tools")
    return filters.smooth(data) * a
""",
        (">3.0", "4.0"),
    ),
    "__import__ in a helper": _kind(
        """
def tools():
    return __import__("stage_tools.filters")
def stage(data, a):
    return tools().filters.smooth(data) * a
""",
        (">3.0", "4.0"),
    ),
    "a module of the user's": _kind(
        """
import stage_tools.filters as filters
def stage(data, a):
    return filters.smooth(data) * a
""",
        (">3.0", "4.0"),
    ),
    "a function of a module of the user's": _kind(
        """
from stage_tools.filters import smooth
def stage(data, a):
    return smooth(data) * a
""",
        (">3.0", "4.0"),
    ),
    "an estimator": _kind(
        """
from sklearn.preprocessing import PolynomialFeatures
FEATURES = PolynomialFeatures(degree=2)
def stage(data, a):
    return data * a * FEATURES.degree
""",
        ("degree=2", "degree=3"),
    ),
    "an environment variable and the time": _kind(
        """
import os
import time
from os import environ
def stage(data, a):
    environ.get("HOME"), os.environ.get("USER"), time.monotonic()
    return data * a + 2
""",
        ("a + 2", "a + 3"),
    ),
}

IMPORTED_BY_A_TEXT = {
    "a formatted text": 'importlib.import_module(f"stage_{NAME}")',
    "a sum": 'importlib.import_module("stage_" + NAME)',
    "a text with %": 'importlib.import_module("stage_%s" % NAME)',
    "a text with format": 'importlib.import_module("stage_{}".format(NAME))',
    "parts that are joined": 'importlib.import_module("_".join(("stage", NAME)))',
    "a part of a text": 'importlib.import_module("stage_tools.filters.more"[:END])',
    "a choice of two": 'importlib.import_module("stage_tools.filters" if a > 1 else "stage_tools")',
    "a name that follows from another": "importlib.import_module(WHOLE)",
    "a package that follows from another": 'importlib.import_module(".filters", WHOLE.partition(".")[0])',
    "what a list has": '__import__("importlib").import_module(*["stage_tools.filters"])',
    "arguments of a call": 'importlib.import_module(**{"name": "stage_tools.filters"})',
    "__import__ with a list of modules": '__import__("stage_tools", None, None, [NAME.partition(".")[2]])',
    "__import__ with a sum": '__import__("stage_" + NAME).filters',
    "a table of functions": 'TABLE["i"](WHOLE)',
    "a partial function": "PARTIAL()",
    "a default argument": "helper()",
    "an attribute of an object": 'HELD.load("stage_tools.filters")',
    "an attribute by its name": 'getattr(importlib, "import_module")("stage_tools.filters")',
    "a variable of its own": '(lambda load: load("stage_tools.filters"))(importlib.import_module)',
}
"""Expressions for a module of which the code does not say that it imports it by this name."""

IMPORTING = """
import importlib
NAME, WHOLE, END = "tools.filters", "stage_tools.filters", 19
SETTING
def load(a):
    return MODULE
"""
SETTINGS = {
    "TABLE": 'TABLE = {"i": importlib.import_module}',
    "HELD": "from types import SimpleNamespace\nHELD = SimpleNamespace(load=importlib.import_module)",
    "PARTIAL": "from functools import partial\nPARTIAL = partial(importlib.import_module, WHOLE)",
    "helper": "def helper(load=importlib.import_module):\n    return load(WHOLE)",
}


def importing(module: str) -> str:
    """The text of a module whose function `load` returns the module of that expression."""
    setting = next((line for name, line in SETTINGS.items() if module.startswith(name)), "")
    return IMPORTING.replace("SETTING", setting).replace("MODULE", module)


FILLED = {
    "a memo in a decorator": """
from functools import wraps
def remembered(function):
    memo = {}
    @wraps(function)
    def wrapper(data, a):
        if a not in memo:
            memo[a] = function(data, a)
        return memo[a]
    return wrapper
@remembered
def stage(data, a):
    return data * a + SHIFT
""",
    "a memo of objects in a closure": """
class Model:
    def __init__(self, a):
        self.a = a
def remembering():
    memo = {}
    def stage(data, a):
        return data * memo.setdefault(a, Model(a)).a + SHIFT
    return stage
stage = remembering()
""",
    "an attribute that is set when it is asked for": """
class Table:
    def shift(self):
        if not hasattr(self, "_shift"):
            self._shift = SHIFT
        return self._shift
TABLE = Table()
def stage(data, a):
    return data * a + TABLE.shift()
""",
    "an estimator that is fitted": """
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
STEPS = make_pipeline(StandardScaler())
def stage(data, a):
    return STEPS.fit_transform(data.reshape(-1, 1)).ravel() * a + SHIFT
""",
    "a dict with defaults": """
from collections import defaultdict
CALLS = defaultdict(list)
def stage(data, a):
    CALLS[a].append(SHIFT)
    return data * a + CALLS[a][0]
""",
    "a counter": """
COUNT = 0
def stage(data, a):
    global COUNT
    COUNT += 1
    return data * a + SHIFT
""",
}
"""Texts of modules whose stage fills something as it runs, with a global `SHIFT` that is not theirs."""

UNSEEN = {
    "a connection": "import sqlite3\nHELD = sqlite3.connect(':memory:')",
    "an open file": "HELD = open(__file__)",
    "a generator": "HELD = (number for number in range(3))",
    "a hash": "import hashlib\nHELD = hashlib.sha256()",
    "a function of arrays": "import numpy as np\nHELD = np.frompyfunc(lambda x: x + 1, 1, 1)",
    "an object with a connection": "import sqlite3\nclass Held:\n    def __init__(self):\n"
    "        self.inner = sqlite3.connect(':memory:')\nHELD = Held()",
}
"""Texts with an object `HELD` whose content nobody can tell."""
