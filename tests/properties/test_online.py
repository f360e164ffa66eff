"""What holds of online tuning whatever the values are."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.fields.serialization import to_json
from farthing.models.candidate_filter import CandidateFilter, prior_over
from farthing.models.kernels import Matern52
from farthing.online import CEGPUCB
from farthing.online.query_rules import knowledge_gradient
from farthing.online.strategy import online_strategy_from_json
from farthing.online.tuner import OnlineTuner
from farthing.rules import Bernoulli, Capped, Confidence, ExpectedRegret, Quota, ValueOfInformation

X = np.linspace(0.0, 1.0, 12)[:, None]
MOMENTS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 11), st.floats(-3, 3)), max_size=25)


@settings(max_examples=40)
@given(MOMENTS, st.floats(0.0, 0.9))
def test_variance_stays_between_nothing_and_the_prior(moments: list[tuple[int, int, float]], epsilon: float) -> None:
    filtered = CandidateFilter(prior_over(Matern52((0,)), np.log([0.3]), X), forgetting=epsilon, noise=0.05)
    for gap, place, value in moments:
        before = filtered.variance()
        filtered.advance_to(filtered.round + gap)
        waited = filtered.variance()
        assert np.all(waited >= before - 1e-12), "waiting never makes surer"
        filtered.observe(place, value)
        assert np.all(filtered.variance() <= waited + 1e-12), "an observation never makes less sure"
    assert np.all(filtered.variance() >= 0.0)
    assert np.all(filtered.variance() <= 1.0 + 1e-12)


@settings(max_examples=30)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.integers(0, 10_000))
def test_knowledge_is_never_worth_less_than_nothing(means: list[float], seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((len(means), len(means)))
    # 15 Gauss–Hermite nodes integrate to about 1e-12 of the largest mean
    K = A @ A.T
    moves = K / np.sqrt(np.diagonal(K) + 0.1)
    assert np.all(knowledge_gradient(np.array(means), moves) >= -1e-9)


@settings(max_examples=15)
@given(st.lists(st.floats(-10, 10), min_size=25, max_size=25), st.integers(1, 24), st.integers(1, 25))
def test_a_carried_on_run_decides_the_same_and_the_cap_holds(values: list[float], stop: int, most: int) -> None:
    space = ft.Space({"arm": ft.Choice("a", "b", "c", "d")})

    def make() -> OnlineTuner:
        rule = Capped(ExpectedRegret(0.01), most)
        strategy = CEGPUCB(kernel="independent", noise=0.1, forgetting=0.05, scale=2.0, rule=rule)
        return OnlineTuner(space, rounds=25, maximize="score", strategy=strategy, overhead=None)

    tuner = make()
    for round, value in enumerate(values):
        if round == stop:
            state = json.loads(json.dumps(tuner.state_dict()))
            other = make()
            other.load_state_dict(state)
            decision = next(tuner)
            assert next(other) == decision
        else:
            decision = next(tuner)
            assert decision.params in [{"arm": arm} for arm in "abcd"]
        if decision.measure:
            decision.observe(value)
    assert tuner.summary["validations"] <= most


RULES = st.one_of(
    st.builds(Confidence, st.floats(0, 1)),
    st.builds(Bernoulli, st.floats(0, 1)),
    st.builds(ExpectedRegret, st.floats(0, 10)),
    st.builds(ValueOfInformation, st.floats(0, 10), st.floats(0.1, 100)),
)


@given(RULES, st.integers(1, 50))
def test_strategies_come_back_from_json(rule: object, most: int) -> None:
    strategy = CEGPUCB(rule=Quota(Capped(rule, most), sure=1, allowed=most + 1))  # type: ignore[arg-type]
    assert online_strategy_from_json(json.loads(json.dumps(to_json(strategy)))) == strategy
