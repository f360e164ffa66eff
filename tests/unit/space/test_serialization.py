"""Spaces as JSON and TOML: what is written, and which mistakes in a study file are explained."""

import json
import tomllib
from typing import Any

import pytest

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Choice, Fidelity, Float, Int, Space, space_from_tables

SPACE = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "units": Int(16, 512, step=16, when={"act": "relu"}),
        "act": Choice("relu", "tanh"),
        "size": Choice("s", "m", ordered=True),
        "dropout": Float(0, 0.5, step=0.1),
    },
    fidelities={"epochs": Fidelity(1, 50, integer=True, trace=True), "data": Fidelity(0.05, 1.0)},
)
JSON = {
    "params": {
        "lr": {"float": [1e-5, 0.1], "log": True},
        "units": {"int": [16, 512], "step": 16, "when": {"act": ["relu"]}},
        "act": {"choice": ["relu", "tanh"]},
        "size": {"choice": ["s", "m"], "ordered": True},
        "dropout": {"float": [0.0, 0.5], "step": 0.1},
    },
    "fidelities": {"epochs": {"int": [1, 50], "trace": True}, "data": {"float": [0.05, 1.0]}},
}
TOML = """\
[space]
lr = {float = [1e-05, 0.1], log = true}
units = {int = [16, 512], step = 16, when = {act = ["relu"]}}
act = {choice = ["relu", "tanh"]}
size = {choice = ["s", "m"], ordered = true}
dropout = {float = [0.0, 0.5], step = 0.1}

[fidelities]
epochs = {int = [1, 50], trace = true}
data = {float = [0.05, 1.0]}
"""


def test_json_is_written_without_defaults() -> None:
    assert SPACE.to_json() == JSON
    assert json.loads(json.dumps(SPACE.to_json())) == JSON


def test_toml_is_written_as_a_study_file_has_it() -> None:
    assert SPACE.to_toml() == TOML


def test_both_forms_are_read_back() -> None:
    assert Space.from_json(JSON) == SPACE
    assert Space.from_toml(TOML) == SPACE


def test_defaults_may_be_written_out_and_a_condition_may_have_one_value() -> None:
    form = {"float": [0, 1], "log": False, "step": None, "when": {"act": "relu"}}
    act = {"choice": ["relu", "tanh"], "ordered": False}

    assert Space.from_json({"params": {"x": form, "act": act}, "fidelities": {}, "stages": {}}) == Space(
        {"x": Float(0, 1, when={"act": "relu"}), "act": Choice("relu", "tanh")}
    )


def test_the_tables_of_a_study_file_make_a_space() -> None:
    tables = tomllib.loads(TOML)

    assert space_from_tables(tables["space"], tables["fidelities"], None) == SPACE
    assert space_from_tables(None, None, {"first": {"x": {"int": [1, 2]}}}) == Space(stages={"first": {"x": Int(1, 2)}})


def test_stages_are_tables_of_their_own_in_toml() -> None:
    space = Space(stages={"load": {}, "a": {"x": Int(1, 2)}, "b": {"x": Int(1, 3), "y": Int(1, 2, when={"x": 1})}})

    assert space.to_toml() == (
        "[stages.load]\n\n[stages.a]\nx = {int = [1, 2]}\n\n"
        '[stages.b]\nx = {int = [1, 3]}\ny = {int = [1, 2], when = {"b.x" = [1]}}\n'
    )
    assert Space.from_toml(space.to_toml()) == space


def test_strings_and_names_are_escaped_in_toml() -> None:
    space = Space({"λ": Choice('say "hi"', "back\\slash", "two\nlines", "\x7f\x00", "ü😀", "")})

    assert '"λ" = ' in space.to_toml()
    assert Space.from_toml(space.to_toml()) == space


def test_null_has_no_toml_form() -> None:
    with pytest.raises(InvalidSpace, match=r"TOML must do without null, got None in 'penalty'\. Use an option"):
        Space({"penalty": Choice(None, "l2")}).to_toml()


def test_json_keeps_integers_floats_booleans_and_null_apart() -> None:
    space = Space({"x": Choice(2, 3.0, True, None, "1")})

    again = Space.from_json(json.loads(json.dumps(space.to_json())))

    assert repr(again) == "Space({'x': Choice(2, 3.0, True, None, '1')})"


PARAMETER_MISTAKES: list[tuple[Any, tuple[str, ...]]] = [
    ({"flaot": [0, 1]}, ("In parameter 'x'", "Keys of the table must be among", "'flaot'", "Did you mean 'float'?")),
    ({"float": [0, 1], "lgo": True}, ("must be among 'float', 'log', 'step', 'when'", "'lgo'", "mean 'log'?")),
    ({"float": [0, 1], "ordered": True}, ("must be among 'float', 'log'", "'ordered'", "Remove or rename it")),
    ({"float": [0, 1], "int": [0, 1]}, ("exactly one of the keys float, int, choice", "'int'", "Write it like")),
    ({"log": True}, ("exactly one of the keys float, int, choice", "{'log': True}", "Write it like")),
    ({}, ("exactly one of the keys", "got {}", "Write it like")),
    ({"float": [0]}, ("The key float must have the list [low, high]", "got [0]", "square brackets")),
    ({"int": 3}, ("The key int must have the list [low, high]", "got 3", "square brackets")),
    ({"choice": "relu"}, ("The key choice must have a list of options", "'relu'", "square brackets")),
    ({"choice": []}, ("at least one option", "got none", "Choice('a', 'b')")),
    ({"choice": [{"a": 1}]}, ("strings, finite numbers", "{'a': 1}", "Choice(*options)")),
    ({"choice": [["a"]]}, ("A Choice of tuples must have several", "Choice(('a',))", "Choice(*options)")),
    ({"float": ["0", 1]}, ("In parameter 'x'", "must be a finite number", "'0'", "Write it like")),
    ({"float": [1, 0]}, ("In parameter 'x'", "low < high", "Float(1.0, 0.0)", "Swap or widen")),
    ({"int": [1, 2], "log": "true"}, ("must be true or false", "'true'", "Pass True")),
    ({"int": [1, 2], "when": "act"}, ("map the names of parents", "'act'", "when={'optimizer'")),
    ([0, 1], ("In parameter 'x'", "must be a table", "[0, 1]", "{float = [0.1, 1.0]}")),
]


@pytest.mark.parametrize(("table", "parts"), PARAMETER_MISTAKES, ids=repr)
def test_a_mistake_in_a_parameter_is_explained_with_its_name(table: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        Space.from_json({"params": {"x": table}})

    for part in parts:
        assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ({"parms": {}}, ("Keys of a space must be among", "'parms'", "Did you mean 'params'?")),
        ([], ("must map names to values", "got []", "Pass a dict")),
        ({"params": []}, ("must be a table", "got []", "{float = [0.1, 1.0]}")),
        ({}, ("at least one parameter", "got none", "Add one")),
        (
            {"params": JSON["params"], "fidelities": {"epochs": {"choice": [1, 2]}}},
            ("In fidelity 'epochs'", "must be among 'float', 'int', 'trace'", "'choice'", "Remove or rename it"),
        ),
        (
            {"params": JSON["params"], "fidelities": {"epochs": {"int": [0, 2]}}},
            ("In fidelity 'epochs'", "low > 0", "Fidelity(0, 2, integer=True)", "no work at all"),
        ),
        (
            {"stages": {"first": {"x": {"itn": [0, 2]}}}},
            ("In stage 'first': In parameter 'x'", "must be among", "'itn'", "Did you mean 'int'?"),
        ),
        ({"stages": {"first": 3}}, ("In stage 'first'", "must be a table", "got 3", "Write it like")),
    ],
    ids=repr,
)
def test_a_mistake_in_the_form_of_a_space_is_explained(form: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        Space.from_json(form)

    for part in parts:
        assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[space\nx = 3", ("must be written in TOML", "'[space", "line 1")),
        ("[sapce]\nx = {int = [1, 2]}", ("Tables of a space must be among", "'sapce'", "Did you mean 'space'?")),
        ("[space]\nx = [3]", ("In parameter 'x'", "must be a table", "got [3]", "Write it like")),
        ("", ("at least one parameter", "got none", "Add one")),
        (b"[space]", ("must be written in TOML", "b'[space]'", "Correct it")),
    ],
)
def test_a_mistake_in_toml_is_explained(text: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        Space.from_toml(text)

    for part in parts:
        assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_retired_parameters_are_written_and_read() -> None:
    space = Space({"x": Float(0, 1), "sizes": Choice((1, 2), (3,))}, retired={"sizes": (3,)})
    assert space.to_json()["retired"] == {"sizes": [3]}
    assert Space.from_json(space.to_json()) == space
    assert Space.from_toml(space.to_toml()) == space
    assert space != Space(dict(space.parameters))
    assert "retired={'sizes': (3,)}" in repr(space)


@pytest.mark.parametrize(
    ("retired", "complaint"),
    [({"y": 1}, "'y'"), ({"x": 1, "n": 3}, "not retired"), ({"n": 9}, r"n must lie in \[1, 4\]")],
)
def test_what_cannot_be_retired_is_refused(retired: dict[str, object], complaint: str) -> None:
    with pytest.raises((InvalidSpace, InvalidParams), match=complaint):
        Space({"x": Float(0, 1), "n": Int(1, 4)}, retired=retired)  # type: ignore[arg-type]
