"""Stages: the parameters of a pipeline under one set of names."""

from collections.abc import Callable
from typing import Any

import pytest

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Choice, Fidelity, Float, Int, Space

SIGMA = Float(0.1, 5)
SPACE = Space(
    stages={
        "load": {},
        "denoise": {"method": Choice("gauss", "median"), "sigma": Float(0.1, 5, when={"method": "gauss"})},
        "segment": {
            "method": Choice("otsu", "watershed"),
            "seeds": Int(1, 9, when={"method": "watershed", "denoise.method": "median"}),
            "blur": Float(0, 1, when={"seeds": [1, 2]}),
        },
    }
)


def test_names_are_plain_where_unique_and_carry_the_stage_where_they_clash() -> None:
    assert list(SPACE.parameters) == ["denoise.method", "sigma", "segment.method", "seeds", "blur"]
    assert dict(SPACE.stages) == {
        "load": (),
        "denoise": ("denoise.method", "sigma"),
        "segment": ("segment.method", "seeds", "blur"),
    }
    assert dict(SPACE.fidelities) == {}


def test_conditions_name_their_own_stage_first_and_others_by_the_name_in_the_whole() -> None:
    assert SPACE.parameters["sigma"].when == {"denoise.method": ("gauss",)}
    assert SPACE.parameters["seeds"].when == {"segment.method": ("watershed",), "denoise.method": ("median",)}
    assert SPACE.parameters["blur"].when == {"seeds": (1, 2)}


def test_a_stage_gets_its_active_params_under_its_own_names() -> None:
    params = SPACE.check({"denoise.method": "gauss", "sigma": 1, "segment.method": "otsu"})

    assert SPACE.stage_params("denoise", params) == {"method": "gauss", "sigma": 1.0}
    assert SPACE.stage_params("segment", params) == {"method": "otsu"}
    assert SPACE.stage_params("load", params) == {}


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(InvalidParams, match=r"Stages must be among .*, got 'denoize'\. Did you mean 'denoise'\?"):
        SPACE.stage_params("denoize", {})
    with pytest.raises(InvalidParams, match="There are no stages here, got 'denoise'"):
        Space({"sigma": SIGMA}).stage_params("denoise", {"sigma": 1.0})


def test_the_forms_and_the_repr_keep_the_stages() -> None:
    assert Space.from_json(SPACE.to_json()) == SPACE
    assert Space.from_toml(SPACE.to_toml()) == SPACE
    assert eval(repr(SPACE)) == SPACE
    assert SPACE.to_json()["stages"]["denoise"]["method"] == {"choice": ["gauss", "median"]}


@pytest.mark.parametrize(
    ("declare", "parts"),
    [
        (
            lambda: Space(stages={"a": {"x": SIGMA}}, fidelities={"epochs": Fidelity(1, 2)}),
            ("Stages must stand alone", "fidelities beside them", "Drop the fidelities, or drop the stages"),
        ),
        (
            lambda: Space({"y": SIGMA}, stages={"a": {"x": SIGMA}}),
            ("Stages must stand alone", "params beside them", "Move the params into a stage"),
        ),
        (lambda: Space(stages={"a b": {"x": SIGMA}}), ("stage must be an identifier", "'a b'", "Use letters")),
        (lambda: Space(stages={"a": SIGMA}), ("must map names to values", "Float(0.1, 5.0)", "Pass a dict")),
        (lambda: Space(stages=["a"]), ("must map names to values", "['a']", "Pass a dict")),
        (lambda: Space(stages={"a": {"x": 3}}), ("must be a Float", "3 for 'x'", "Declare it like")),
        (
            lambda: Space(
                stages={"a": {"m": Choice(1, 2)}, "b": {"m": Choice(1, 2)}, "c": {"x": Int(1, 2, when={"m": 1})}}
            ),
            ("parameter of the same space", "'m' for 'x'", "Add it, or name one of 'a.m', 'b.m'"),
        ),
    ],
)
def test_stages_that_cannot_be_meant_are_refused(declare: Callable[[], Any], parts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        declare()

    for part in parts:
        assert part in str(refusal.value)
