"""Space: an immutable value that knows which params belong to it."""

import copy
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Choice, Fidelity, Float, Int, Space

LR = Float(1e-5, 1e-1, log=True)
SPACE = Space({"lr": LR, "units": Int(16, 512, log=True), "act": Choice("relu", "tanh")})

REFUSED: list[tuple[str, Callable[[], Any], tuple[str, str, str]]] = [
    ("an empty space", lambda: Space(), ("at least one parameter", "got none", "Add one")),
    ("no params", lambda: Space({}), ("at least one parameter", "got none", "Add one")),
    (
        "fidelities alone",
        lambda: Space(fidelities={"epochs": Fidelity(1, 2)}),
        ("at least one parameter", "got none", "Add one"),
    ),
    ("stages without parameters", lambda: Space(stages={"load": {}}), ("at least one", "got none", "Add one")),
    ("a list of params", lambda: Space([LR]), ("map names to values", "[Float(", "Pass a dict")),
    (
        "a tuple as a parameter",
        lambda: Space({"lr": (0, 1)}),
        ("must be a Float", "(0, 1) for 'lr'", "Declare it like"),
    ),
    ("a class as a parameter", lambda: Space({"lr": Float}), ("must be a Float", "for 'lr'", "Declare it like")),
    (
        "a number as a fidelity",
        lambda: Space({"lr": LR}, fidelities={"epochs": 3}),
        ("must be a Fidelity", "3 for 'epochs'", "Declare it like Fidelity(1"),
    ),
    ("a number as a name", lambda: Space({1: LR}), ("parameter must be an identifier", "got 1", "Use letters")),
    ("a dash before a name", lambda: Space({"-rate": LR}), ("identifier", "'-rate'", "Use letters")),
    ("a dot after a name", lambda: Space({"a.b.": LR}), ("identifier", "'a.b.'", "Use letters")),
    ("an empty name", lambda: Space({"": LR}), ("identifier", "''", "Use letters")),
    (
        "a fidelity's name",
        lambda: Space({"lr": LR}, fidelities={"1st": Fidelity(1, 2)}),
        ("fidelity must be an identifier", "'1st'", "Use letters"),
    ),
    (
        "a reserved fidelity",
        lambda: Space({"lr": LR}, fidelities={"step": Fidelity(1, 2)}),
        ("fidelity must not be a word of reports", "'step'", "Rename it"),
    ),
    (
        "one name for two things",
        lambda: Space({"lr": LR}, fidelities={"lr": Fidelity(1, 2)}),
        ("different names", "'lr' for both", "Rename one"),
    ),
]


@pytest.mark.parametrize(("declare", "parts"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_space_that_cannot_be_meant_is_refused(declare: Callable[[], Any], parts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        declare()

    for part in parts:
        assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "word", ["step", "value", "cost", "metrics", "gradient", "resume_dir", "checkpoint_dir", "trial"]
)
def test_words_of_reports_and_commands_are_no_names(word: str) -> None:
    with pytest.raises(InvalidSpace, match=f"must not be a word of reports and commands, got '{word}'. Rename it"):
        Space({word: LR})
    with pytest.raises(InvalidSpace, match=f"got '{word}'"):
        Space(stages={"first": {word: LR}})


def test_keywords_of_python_are_names_because_other_libraries_use_them() -> None:
    assert Space({"lambda": LR}).check({"lambda": 0.1}) == {"lambda": 0.1}


@pytest.mark.parametrize(
    ("params", "parts"),
    [
        ({"lr": 0.1, "unit": 16, "act": "relu"}, ("among 'lr', 'units', 'act'", "'unit'", "Did you mean 'units'?")),
        ({"zzz": 1}, ("among 'lr', 'units', 'act'", "'zzz'", "Remove or rename it")),
        ({3: 1}, ("among 'lr', 'units', 'act'", "got 3", "Remove or rename it")),
        ({"lr": 0.1, "act": "relu"}, ("must have a value", "none for 'units'", "Add it")),
        ({"lr": 1, "units": 16, "act": "relu"}, ("lr must lie in [1e-05, 0.1]", "got 1", "within the bounds")),
        ([0.1], ("Params must map names to values", "[0.1]", "Pass a dict")),
    ],
    ids=repr,
)
def test_params_that_do_not_belong_to_the_space_are_refused(params: Any, parts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidParams) as refusal:
        SPACE.check(params)

    for part in parts:
        assert part in str(refusal.value)


def test_a_space_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SPACE.parameters = {}  # type: ignore[misc]
    with pytest.raises(TypeError):
        SPACE.parameters["lr"] = LR  # type: ignore[index]


def test_a_space_does_not_change_with_the_dict_it_was_made_from() -> None:
    params = {"lr": LR}
    space = Space(params)

    params["units"] = Int(1, 2)

    assert list(space.parameters) == ["lr"]


def test_spaces_are_equal_when_they_declare_the_same_in_the_same_order() -> None:
    a, b = Float(0, 1), Int(1, 2)

    assert Space({"a": a, "b": b}) == Space({"a": Float(0.0, 1.0), "b": Int(1, 2)})
    assert hash(Space({"a": a, "b": b})) == hash(Space({"a": a, "b": b}))
    assert Space({"a": a, "b": b}) != Space({"b": b, "a": a})
    assert Space({"a": a}) != Space({"a": a}, fidelities={"epochs": Fidelity(1, 2)})
    assert Space({"a": a}) != Space(stages={"first": {"a": a}})
    assert Space({"a": a}) != {"a": a}


def test_a_copy_is_equal_after_the_encoder_was_used() -> None:
    assert SPACE.encoder is SPACE.encoder
    assert copy.deepcopy(SPACE) == SPACE


def test_the_repr_is_the_expression_that_declares_it() -> None:
    space = Space({"lr": LR}, fidelities={"epochs": Fidelity(1, 50, integer=True)})

    assert repr(space) == (
        "Space({'lr': Float(1e-05, 0.1, log=True)}, fidelities={'epochs': Fidelity(1, 50, integer=True)})"
    )
