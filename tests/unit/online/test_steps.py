"""Neighbours of a setting, and the directions in which steps have paid."""

from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.online import OnlineProblem
from farthing.online.steps import FADING, REMEMBERED, SLOPE, Gradient, Steps

SPACE = ft.Space({"rate": ft.Float(0.0, 1.0), "layers": ft.Int(1, 6), "kind": ft.Choice("a", "b", "c")})


def reached(params: dict[str, Any], *, step: float, draws: int = 60, **settings: Any) -> list[dict[str, Any]]:
    """The neighbours that come first for some draw of a gradient of which nothing is known."""
    given = OnlineProblem(SPACE.encoder, 100, **settings)
    steps, rng, origin = Steps(given), np.random.default_rng(0), given.place(SPACE.check(params))
    found = [dict(given.params(steps.towards(Gradient(), origin, step=step, rng=rng))) for _ in range(draws)]
    return [each for i, each in enumerate(found) if each not in found[:i]]


def test_neighbours_are_a_step_away_the_next_integer_or_another_category() -> None:
    start = {"rate": 0.5, "layers": 3, "kind": "a"}
    found = reached(start, step=0.1)
    changes = [{name: value for name, value in params.items() if value != start[name]} for params in found]
    assert all(len(change) == 1 for change in changes)
    values = sorted((name, value) for change in changes for name, value in change.items())
    rates = [pytest.approx(0.4), pytest.approx(0.6)]
    assert values == [("kind", "b"), ("kind", "c"), ("layers", 2), ("layers", 4), *(("rate", rate) for rate in rates)]


@pytest.mark.parametrize(("layers", "next_one"), [(1, 2), (6, 5)])
def test_at_the_ends_there_is_one_neighbour(layers: int, next_one: int) -> None:
    found = reached({"rate": 0.0, "layers": layers, "kind": "a"}, step=0.1)
    assert {params["layers"] for params in found} == {layers, next_one}
    assert sorted({params["rate"] for params in found}) == [0.0, pytest.approx(0.1)]


def test_a_long_step_reaches_farther_integers() -> None:
    found = reached({"rate": 0.5, "layers": 1, "kind": "a"}, step=0.5)
    assert max(params["layers"] for params in found) > 2


def test_candidates_are_those_within_a_step_and_at_least_two_in_each_dimension() -> None:
    """Of three dimensions: the six nearest, unless more are within a step."""
    start = {"rate": 0.0, "layers": 1, "kind": "a"}
    candidates = [SPACE.check({**start, "rate": i / 8}) for i in range(9)]
    for step, farthest in ((0.125, 0.75), (0.875, 0.875)):
        found = reached(start, step=step, candidates=candidates)
        # the gain is linear in the only number that differs: one end or the other comes first
        assert sorted(params["rate"] for params in found) == pytest.approx([0.125, farthest])


def test_a_place_alone_stays_where_it_is() -> None:
    start = {"rate": 0.5, "layers": 3, "kind": "a"}
    assert reached(start, step=0.1, candidates=[SPACE.check(start)]) == [start]


def test_two_categories_are_a_distance_of_one_apart() -> None:
    given = OnlineProblem(SPACE.encoder, 100)
    start = {"rate": 0.25, "layers": 1, "kind": "a"}
    places = [given.place(SPACE.check({**start, **change})) for change in ({}, {"kind": "c"}, {"rate": 0.75})]
    moves = [Steps(given).between(places[0], place) for place in places]
    np.testing.assert_allclose([np.linalg.norm(move) for move in moves], [0.0, 1.0, 0.5])


def test_inactive_parameters_are_no_obstacle() -> None:
    space = ft.Space(
        {"kind": ft.Choice("sgd", "adam"), "momentum": ft.Float(0.0, 0.9, when={"kind": "sgd"}), "rate": ft.Float(0, 1)}
    )
    given = OnlineProblem(space.encoder, 100, 0, initial=[space.check({"kind": "adam", "rate": 0.5})])
    steps, rng = Steps(given), np.random.default_rng(0)
    start = given.place(given.initial[0])
    found = [given.params(steps.towards(Gradient(), start, step=0.1, rng=rng)) for _ in range(40)]
    assert {params["kind"] for params in found} == {"sgd", "adam"}


def test_the_gradient_points_where_probes_have_paid() -> None:
    gradient, rng = Gradient(), np.random.default_rng(0)
    for _ in range(10):
        gradient.learn(np.array([0.1, 0.0]), 3.0)
        gradient.learn(np.array([0.0, 0.1]), -3.0)
    draws = np.array([gradient.sampled(2, rng) for _ in range(50)])
    assert (draws[:, 0] > 0).all()
    assert (draws[:, 1] < 0).all()


def test_the_gradient_is_a_weighted_linear_regression() -> None:
    """By its definition: a normal prior, observed with unit noise whose precision fades with each later probe."""
    rng = np.random.default_rng(1)
    D, gains = rng.normal(size=(5, 2)), rng.normal(size=5)
    gradient = Gradient()
    for move, gain in zip(D, gains, strict=True):
        gradient.learn(move, float(gain))
    noise = np.diag(FADING ** -np.arange(4.0, -1.0, -1.0))
    prior = SLOPE**2 * np.eye(2)
    weight = prior @ D.T @ np.linalg.inv(D @ prior @ D.T + noise)
    mean, covariance = weight @ gains, prior - weight @ D @ prior
    move = np.array([0.3, -0.2])
    np.testing.assert_allclose(gradient.predict(move), [move @ mean, np.sqrt(move @ covariance @ move)], rtol=1e-9)
    draws = np.array([gradient.sampled(2, rng) for _ in range(1000)])
    deviations = np.sqrt(np.diag(covariance))
    # a mean of 1000 draws is within four of its own deviations; an entry of their covariance has one of 4.5 % or less
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=4.0 * float(deviations.max()) / np.sqrt(1000))
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.18 * float(deviations.max()) ** 2)


def test_a_better_estimate_takes_the_place_of_the_last_one() -> None:
    gradient = Gradient()
    for gain in (1.0, 2.0):
        gradient.learn(np.array([0.1]), gain)
    gradient.correct_last(-1.0)
    assert gradient.gains == [1.0, -1.0]


def test_old_probes_are_dropped() -> None:
    gradient = Gradient()
    for gain in range(REMEMBERED + 3):
        gradient.learn(np.array([0.1]), float(gain))
    assert gradient.gains == [float(gain) for gain in range(3, REMEMBERED + 3)]
    assert len(gradient.moves) == REMEMBERED
