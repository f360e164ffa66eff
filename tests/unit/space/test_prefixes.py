"""Prefixes: what the first stages of a pipeline are given."""

import pytest

from farthing.errors import InvalidParams
from farthing.space import Choice, Float, Int, Space
from farthing.space.stages import prefix, prefix_key

SPACE = Space(
    stages={
        "denoise": {"method": Choice("gauss", "median"), "sigma": Float(-5, 5, when={"method": "gauss"})},
        "features": {},
        "segment": {"method": Choice("otsu", "watershed"), "seeds": Int(1, 9)},
    }
)


def params(**changed):
    return SPACE.check({"denoise.method": "gauss", "sigma": 1, "segment.method": "otsu", "seeds": 2, **changed})


def test_a_prefix_holds_the_active_params_of_its_stages_under_their_own_names():
    assert prefix(SPACE, params(), 2) == (("denoise", (("method", "gauss"), ("sigma", 1.0))), ("features", ()))
    assert prefix(SPACE, params(), 0) == ()


def test_what_later_stages_are_given_does_not_matter():
    assert prefix(SPACE, params(seeds=2), 2) == prefix(SPACE, params(seeds=7), 2)
    assert prefix(SPACE, params(seeds=2), 3) != prefix(SPACE, params(seeds=7), 3)


def test_inactive_parameters_are_left_out():
    median = SPACE.check({"denoise.method": "median", "segment.method": "otsu", "seeds": 2})
    assert prefix_key(SPACE, median, 1) == '{"denoise":{"method":"median"}}'


def test_keys_tell_lengths_apart_also_where_a_stage_has_no_params():
    assert prefix_key(SPACE, params(), 1) != prefix_key(SPACE, params(), 2)


def test_both_zeros_are_one_prefix():
    assert prefix_key(SPACE, params(sigma=-0.0), 1) == prefix_key(SPACE, params(sigma=0.0), 1)


def test_floats_that_differ_in_the_last_bit_are_two_prefixes():
    assert prefix_key(SPACE, params(sigma=0.1 + 0.2), 1) != prefix_key(SPACE, params(sigma=0.3), 1)


@pytest.mark.parametrize("length", [-1, 4])
def test_a_length_that_the_space_does_not_have_is_refused(length):
    with pytest.raises(InvalidParams, match="A prefix must have 0 to 3 of the stages"):
        prefix(SPACE, params(), length)
