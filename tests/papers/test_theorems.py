"""`farthing.papers`: the settings of the theorems, each against its equation written out again."""

import math

import pytest

import farthing as ft
from farthing import papers
from farthing.errors import InvalidArgument
from farthing.fields.serialization import to_json
from farthing.online import OnlineProblem, online_strategy_from_json
from farthing.rules import Quota


@pytest.mark.parametrize("t", [1, 2, 17, 500])
def test_beta_of_theorem_4(t: int) -> None:
    found = papers.ce_gp_ucb_theorem_4(1000, delta=0.05).beta_at(t)
    assert found == pytest.approx(2.0 * math.log(1000 * t**2 * math.pi**2 / (6 * 0.05)))


@pytest.mark.parametrize("t", [1, 3, 200])
def test_beta_of_theorem_7(t: int) -> None:
    d, a, b, r, delta = 3, 1.5, 2.0, 0.7, 0.1
    expected = 2 * math.log(t**2 * 2 * math.pi**2 / (3 * delta))
    expected += 2 * d * math.log(t**2 * d * b * r * math.sqrt(math.log(4 * d * a / delta)))
    assert papers.ce_gp_ucb_theorem_7(d, a=a, b=b, r=r, delta=delta).beta_at(t) == pytest.approx(expected)


def test_the_rest_is_as_published_and_it_can_be_stored() -> None:
    strategy = papers.ce_gp_ucb_theorem_4(5, forgetting=0.02)
    published = ft.CEGPUCB.paper(forgetting=0.02)
    assert all(getattr(strategy, name) == getattr(published, name) for name in ft.CEGPUCB.__dataclass_fields__)
    assert online_strategy_from_json(to_json(strategy)) == strategy
    encoder = ft.Space({"x": ft.Float(0, 1)}).encoder
    rows = [{"x": x / 4} for x in range(5)]
    assert strategy.begin(OnlineProblem(encoder, 20, 0, candidates=rows)).decide(1).measure


def test_quotas_of_corollary_6() -> None:
    T, epsilon = 500, 0.01
    se = papers.ce_gp_ucb_corollary_6(T, forgetting=epsilon)
    assert isinstance(se, Quota)
    assert se.sure == se.allowed == pytest.approx(max(T ** (2 / 3), T * epsilon ** (1 / 7)))
    c = 2 * 3 / (2 * 2.5 + 2 * 3)
    matern = papers.ce_gp_ucb_corollary_6(T, forgetting=epsilon, smoothness=2.5, dimension=2)
    assert matern.sure == pytest.approx(max(T ** (2 / (3 - c)), T * epsilon ** ((1 - c) / (7 - 3 * c))))
    assert papers.ce_gp_ucb_corollary_6(10, forgetting=0.9).allowed <= 10
    with pytest.raises(InvalidArgument, match="ν ≥ 2"):
        papers.ce_gp_ucb_corollary_6(T, forgetting=epsilon, smoothness=1.5)


def test_beta_of_pb2s_theorem_2() -> None:
    T, d, delta = 20, 4, 0.1
    strategy = papers.pb2_theorem_2(population=4, interval=2, intervals=T, dimension=d, delta=delta)
    inner = math.sqrt(math.log(d * math.pi**2 * T**2 / (2 * delta)))
    expected = 2 * math.log(math.pi**2 * T**2 / (2 * delta)) + 2 * d * math.log(d * T**2 * inner)
    assert strategy.beta == pytest.approx(expected)
    assert strategy.box == ft.PB2.paper(population=4, interval=2).box


def test_eta_of_lemma_1_and_depths_of_equation_17() -> None:
    costs, T, arms, weight = (40.0, 10.0), 1000, 16, 0.5
    d1 = math.ceil(-math.log2(10.0 / (math.sqrt(weight) * 50.0)))
    d2 = max(1, round(math.log2(T ** (1 / 3) / math.log(arms))) - d1)
    assert papers.lambo_depths(costs, steps=T, arms=arms, weight=weight) == (d1, d2)
    found = papers.lambo_lemma_1(costs, steps=T, arms=arms, weight=weight)
    assert found.eta == pytest.approx(math.sqrt(2.0 ** -(d1 + d2) / T * math.log(arms)))
    assert found.linear_beta, "the rest is as published"


def test_a_larger_weight_of_movement_makes_deeper_trees() -> None:
    depths = [papers.lambo_depths((1.0, 1.0), steps=1000, arms=4, weight=weight)[0] for weight in (0.1, 1.0, 100.0)]
    assert depths == sorted(depths)
    assert depths[0] < depths[-1]
