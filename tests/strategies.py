"""Hypothesis strategies: random spaces, with conditions, fidelities and stages, and random params of them."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from farthing.space import Choice, Fidelity, Float, Int, Parameter, Space

NAMES = ["lr", "units", "depth", "act", "optimizer", "momentum", "lambda", "x1", "x_2", "λ", "Ähnlichkeit", "_private"]
FIDELITY_NAMES = ["epochs", "data", "resolution"]
STAGE_NAMES = ["denoise", "segment", "postprocess"]
HOSTILE_LETTERS = "ab 1.=#,[]{}'\"\\\n\r\t\0\x1b\x7f\x85\u2028é😀"


def texts() -> SearchStrategy[str]:
    """Text with the letters that file formats trip over."""
    return st.text(HOSTILE_LETTERS, max_size=5)


def scalars(*, null: bool = True) -> SearchStrategy[Any]:
    """JSON scalars; without None for TOML, which has no null."""
    numbers = st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
    some = texts() | st.booleans() | numbers
    return st.none() | some if null else some


@st.composite
def linear_floats(draw: DrawFn) -> Float:
    low = draw(st.floats(-1e6, 1e6))
    return Float(low, low + draw(st.floats(1e-3, 1e6)))


@st.composite
def log_floats(draw: DrawFn) -> Float:
    low = draw(st.floats(1e-12, 1e6))
    return Float(low, low * draw(st.floats(1.001, 1e12)), log=True)


@st.composite
def stepped_floats(draw: DrawFn) -> Float:
    """Bounds and step with a few decimals, as people write them."""
    scale = 10 ** draw(st.integers(0, 4))
    low, step, count = draw(st.integers(-1000, 1000)), draw(st.integers(1, 50)), draw(st.integers(1, 60))
    return Float(low / scale, (low + step * count) / scale, step=step / scale)


@st.composite
def linear_ints(draw: DrawFn) -> Int:
    low, step, count = draw(st.integers(-1000, 1000)), draw(st.integers(1, 7)), draw(st.integers(1, 60))
    return Int(low, low + step * count, step=step)


@st.composite
def log_ints(draw: DrawFn) -> Int:
    low = draw(st.integers(1, 1000))
    return Int(low, low + draw(st.integers(1, 10**6)), log=True)


@st.composite
def choices(draw: DrawFn, *, null: bool = True) -> Choice:
    options = draw(st.lists(scalars(null=null), min_size=1, max_size=4, unique=True))
    return Choice(*options, ordered=draw(st.booleans()))


def ints() -> SearchStrategy[Int]:
    return linear_ints() | log_ints()


def parameters(*, null: bool = True) -> SearchStrategy[Parameter]:
    return st.one_of(linear_floats(), log_floats(), stepped_floats(), ints(), choices(null=null))


@st.composite
def _conditions(draw: DrawFn, parents: dict[str, Parameter]) -> dict[str, list[Any]] | None:
    """A condition on up to two of the parents, or none."""
    if not parents or draw(st.booleans()):
        return None
    chosen = draw(st.lists(st.sampled_from(sorted(parents)), min_size=1, max_size=2, unique=True))
    return {name: draw(st.lists(values_of(parents[name]), min_size=1, max_size=3)) for name in chosen}


@st.composite
def _parameter_groups(draw: DrawFn, *, null: bool, min_size: int = 1) -> dict[str, Parameter]:
    """Named parameters, some of which depend on others, in an order that need not follow the dependencies."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=min_size, max_size=4, unique=True))
    made: dict[str, Parameter] = {}
    for name in names:
        parents = {other: parameter for other, parameter in made.items() if not isinstance(parameter, Float)}
        made[name] = _with_when(draw(parameters(null=null)), draw(_conditions(parents)))
    return {name: made[name] for name in draw(st.permutations(names))}


def _with_when(parameter: Parameter, when: dict[str, list[Any]] | None) -> Parameter:
    settings = parameter.settings | {"when": when}
    if isinstance(parameter, Choice):
        return Choice(*parameter.options, **settings)
    return type(parameter)(parameter.low, parameter.high, **settings)


@st.composite
def fidelities(draw: DrawFn) -> Fidelity:
    trace = draw(st.booleans())
    if draw(st.booleans()):
        low = draw(st.integers(1, 100))
        return Fidelity(low, low + draw(st.integers(1, 1000)), integer=True, trace=trace)
    low = draw(st.floats(1e-3, 1.0))
    return Fidelity(low, low + draw(st.floats(1e-3, 1e3)), trace=trace)


@st.composite
def plain_spaces(draw: DrawFn, *, null: bool = True) -> Space:
    named = st.dictionaries(st.sampled_from(FIDELITY_NAMES), fidelities(), max_size=2)
    return Space(draw(_parameter_groups(null=null)), fidelities=draw(named))


@st.composite
def staged_spaces(draw: DrawFn, *, null: bool = True) -> Space:
    names = draw(st.lists(st.sampled_from(STAGE_NAMES), min_size=1, unique=True))
    least = {name: 1 if name == names[0] else 0 for name in names}
    return Space(stages={name: draw(_parameter_groups(null=null, min_size=least[name])) for name in names})


def spaces(*, null: bool = True) -> SearchStrategy[Space]:
    """Any valid space; `null=False` leaves out the option None."""
    return plain_spaces(null=null) | staged_spaces(null=null)


def values_of(parameter: Parameter) -> SearchStrategy[Any]:
    """Values the parameter can take, its bounds among them more often than chance would have it."""
    count = parameter.count
    if count is None:
        assert isinstance(parameter, Float)
        return st.sampled_from([parameter.low, parameter.high]) | st.floats(parameter.low, parameter.high)
    return st.integers(0, count - 1).map(parameter.value_at)


@st.composite
def params_of(draw: DrawFn, space: Space) -> dict[str, Any]:
    """Valid params of the space, drawn without the encoder's help."""
    params: dict[str, Any] = {}
    while missing := [name for name in space.active_names(params) if name not in params]:
        params |= {name: draw(values_of(space.parameters[name])) for name in missing}
    return {name: params[name] for name in space.parameters if name in params}


@st.composite
def spaces_with_params(draw: DrawFn, *, max_rows: int = 5) -> tuple[Space, list[dict[str, Any]]]:
    """A space and some params of it."""
    space = draw(spaces())
    return space, draw(st.lists(params_of(space), max_size=max_rows))
