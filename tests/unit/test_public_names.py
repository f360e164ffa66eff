"""The names in `farthing` itself: three lists, for three readers, that must agree."""

import ast
import importlib
import inspect
import subprocess
import sys

import pytest

import farthing as ft
from farthing import extending, rules
from farthing.names import ELSEWHERE


def names_for_type_checkers() -> set[str]:
    tree = ast.parse(inspect.getsource(ft))
    guarded = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in ast.walk(guarded[0]) if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    return {alias.name for node in imports for alias in node.names}


def test_the_table_the_static_list_and_what_type_checkers_read_agree():
    listed = set(ft.__all__)
    assert len(listed) == len(ft.__all__)
    assert listed == {*ft._HOME_OF, *ft._MODULES}
    assert listed == names_for_type_checkers()


@pytest.mark.parametrize("name", ft.__all__)
def test_every_public_name_is_there(name):
    assert getattr(ft, name) is not None
    assert name in dir(ft)


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="Farthing has no 'Buget'"):
        ft.Buget  # type: ignore[attr-defined]  # noqa: B018


def test_query_rules_have_a_module_of_their_own():
    assert ft.rules is rules
    assert not set(rules.__all__) & set(ft.__all__)
    assert all(hasattr(importlib.import_module("farthing.rules"), name) for name in rules.__all__)


def test_types_that_extensions_need_have_a_module_of_their_own():
    assert set(extending.__all__) == {name for name, home in ELSEWHERE.items() if home == "farthing.extending"}
    with pytest.raises(AttributeError, match=r"^Farthing\.extending has no 'Startegy'\.$"):
        extending.Startegy  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(("name", "home"), ELSEWHERE.items())
def test_a_public_name_that_is_elsewhere_is_refused_with_its_module(name, home):
    assert name not in ft.__all__
    assert getattr(importlib.import_module(home), name) is not None
    with pytest.raises(AttributeError, match=rf"got '{name}', which is in {home}\. Write from {home} import {name}\."):
        getattr(ft, name)


def test_a_strategy_is_written_without_scipy():
    code = "import sys, farthing.extending; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy"} & set(done.stdout.split())
