"""The names in `farthing` itself: three lists, for three readers, that must agree."""

import ast
import importlib
import inspect

import pytest

import farthing as ft
from farthing import rules


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
