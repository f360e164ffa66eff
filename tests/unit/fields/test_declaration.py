"""Fields that carry their rules: checks, JSON, signatures, and the page that is written from them."""

import copy
import inspect
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.fields import Declaration, Number, Whole, number, positive, share, whole
from farthing.fields.declaration import rule_of
from farthing.fields.rules import WRONG
from farthing.fields.serialization import from_json, to_json
from farthing.fields.table import page
from farthing.names import ONLINE_STRATEGY

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "arguments.md"


@dataclass(frozen=True)
class Sample(Declaration):
    size: Annotated[int, Whole(least=1)]
    rate: float | None = positive(None)
    kept: float = share(0.5)
    mode: Literal["a", "b"] = "a"
    weight: float = number(0.1, least=0.0, below=1.0)
    depths: Literal["auto"] | Sequence[int] = whole("auto", least=1)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "a whole number"),
        (float | None, "a number or None"),
        (bool | Literal["auto"], "true or false or 'auto'"),
        (Sequence[int], "a list, each a whole number"),
        (Mapping[str, float], "a dict, each value a number"),
        (Annotated[float, Number(0.0, 1.0)], "a number from 0 to 1"),
        (tuple[int, str], "anything"),
        (Any, "anything"),
    ],
)
def test_an_annotation_is_a_rule(annotation: Any, words: str) -> None:
    assert rule_of(annotation).words == words


@pytest.mark.parametrize("given", [True, 2.0, "2", None, [2], float("nan")])
def test_what_is_no_whole_number_is_none(given: object) -> None:
    assert Whole().read(given) is WRONG


@pytest.mark.parametrize("given", [True, float("nan"), float("inf"), "0.5", None, 1j])
def test_what_is_no_finite_number_is_none(given: object) -> None:
    assert Number().read(given) is WRONG


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        (Whole(1, 3), [1, 3], [0, 4]),
        (Number(least=0.0, below=1.0), [0, 0.0, 0.999], [-1e-9, 1, 1.0]),
        (Number(above=0.0, most=2.0), [1e-9, 2], [0, 2.1]),
    ],
)
def test_bounds_hold_where_they_are(rule: Any, inside: list[float], outside: list[float]) -> None:
    assert [rule.read(given) for given in inside] == inside
    assert all(rule.read(given) is WRONG for given in outside)


def test_lists_are_kept_as_tuples_and_other_values_as_they_came() -> None:
    sample = Sample(2, rate=1, depths=[1, 2])
    assert sample.depths == (1, 2)
    assert isinstance(sample.rate, int)


def test_a_changed_copy_is_checked_too() -> None:
    with pytest.raises(InvalidArgument, match="Sample's kept must be a number from 0 to 1, got 2"):
        replace(Sample(1), kept=2)


def test_a_declaration_is_pickled_and_copied_as_any_dataclass() -> None:
    sample = ft.rules.Capped(ft.rules.Every(3), 4)
    assert pickle.loads(pickle.dumps(sample)) == copy.deepcopy(sample) == sample


def test_the_signature_is_that_of_the_fields() -> None:
    assert list(inspect.signature(ft.ASHA).parameters) == ["reduction", "fidelity"]


def test_an_error_inside_a_declaration_is_not_taken_for_a_wrong_call() -> None:
    @dataclass(frozen=True)
    class Broken(Declaration):
        size: int = 1

        def __post_init__(self) -> None:
            raise TypeError("its own")

    with pytest.raises(TypeError, match="its own"):
        Broken(2)


def test_annotations_for_type_checkers_alone_are_no_rules() -> None:
    @dataclass(frozen=True)
    class Late(Declaration):
        size: "NoSuchType" = 1  # type: ignore[name-defined]  # noqa: F821

    assert Late("anything").size == "anything"


def test_rules_inside_rules_go_through_json() -> None:
    strategy = ft.CEGPUCB(
        rule=ft.rules.Capped(ft.rules.Quota(ft.rules.Every(3), 1, 5), 9), offset=[0.0, 1.0], scale=1.0
    )
    assert from_json(json.loads(json.dumps(to_json(strategy))), ONLINE_STRATEGY) == strategy


def test_the_page_of_arguments_is_what_the_fields_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it: python -m farthing.fields.table > " + str(PAGE.name)
