"""What is learnt of the model, and on which scale."""

import json
from math import ceil, sqrt
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.models.drifting_posterior import NO_LEVEL, Level
from farthing.models.fidelity_kernels import FORGETTING
from farthing.models.kernels import Matern52, default_lengthscale
from farthing.online import CEGPUCB, OnlineProblem
from farthing.online.gp_player import GPPlayer, Scale
from farthing.online.model import (
    AMPLITUDE,
    LEAST_FORGETTING,
    LEVEL,
    NOISE,
    Hyperparameters,
    ModelForm,
)
from farthing.online.strategy import Observation, Play
from farthing.rules import Capped, Every, ExpectedRegret, Floor, ValueOfInformation

ARMS = ft.Space({"arm": ft.Choice("a", "b", "c")})


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_forgetting_is_recovered_by_marginal_likelihood(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    player = CEGPUCB(kernel="independent", noise=0.01, scale=1.0, rule=Every(1)).begin(
        OnlineProblem(ARMS.encoder, 600, candidates=[{"arm": arm} for arm in "abc"])
    )
    f = rng.standard_normal(3)
    for t in range(1, 600):
        f = sqrt(1 - epsilon) * f + sqrt(epsilon) * rng.standard_normal(3)
        choice = player.decide(t)
        player.observe(Observation(t, choice.place, float(f[choice.place] + 0.1 * rng.standard_normal())))
    # 150 observations tell a rate of change to within a factor of about two
    assert epsilon / 2.5 < player.hyperparameters.forgetting < 2.5 * epsilon


def test_a_level_that_changes_fast_does_not_pass_for_forgetting() -> None:
    rng = np.random.default_rng(0)
    player = CEGPUCB(kernel="independent", rule=Every(1), beta=20.0).begin(
        OnlineProblem(ARMS.encoder, 300, candidates=[{"arm": arm} for arm in "abc"])
    )
    differences, level = [0.0, 1.0, 0.5], 0.0
    for t in range(1, 150):
        level = sqrt(0.6) * level + sqrt(0.4) * 2.0 * rng.standard_normal()
        place = int(rng.integers(3))
        player.decide(t)
        player.observe(Observation(t, place, differences[place] + level + 0.1 * float(rng.standard_normal())))
    learnt = player.hyperparameters
    # one rate for both would have to be about 0.4
    assert learnt.forgetting < 0.02
    assert learnt.level.forgetting == pytest.approx(0.4, abs=0.2)
    assert player.exploit(150) == 1


def test_the_scale_is_set_once_and_never_again() -> None:
    player = CEGPUCB(kernel="independent").begin(
        OnlineProblem(ARMS.encoder, 100, candidates=[{"arm": arm} for arm in "abc"])
    )
    scales = []
    for t in range(1, 60):
        choice = player.decide(t)
        if choice.measure:
            player.observe(Observation(t, choice.place, 100.0 + 3.0 * float(np.sin(t))))
        scales.append(player.memory()["scale"])
    found = [scale for scale in scales if scale is not None]
    assert found
    assert all(scale == found[0] for scale in found)
    assert found[0][0] == pytest.approx(100.0, abs=3.0)


def test_values_are_scaled_and_clipped() -> None:
    scale = Scale.of([1.0, 3.0], offset=None, scale=None, clip=2.0)
    assert scale == Scale(2.0, 1.0, 2.0)
    np.testing.assert_array_equal(scale.apply([2.0, 3.0, 1e9, -1e9]), [0.0, 1.0, 2.0, -2.0])


def test_equal_first_values_do_not_make_the_smallest_change_enormous() -> None:
    assert Scale.of([5.0, 5.0, 5.0], offset=None, scale=None, clip=None).scale == pytest.approx(0.005)
    assert Scale.of([0.0, 0.0], offset=None, scale=None, clip=None).scale == 1.0


def test_what_is_given_of_a_scale_is_kept() -> None:
    assert Scale.of([1.0, 3.0], offset=0.0, scale=None, clip=None) == Scale(0.0, sqrt(5.0), None), "spread about it"
    assert Scale.of([1.0, 3.0], offset=None, scale=2.0, clip=3.0) == Scale(0.0, 2.0, 3.0)
    assert Scale.of((), offset=7.0, scale=2.0, clip=None) == Scale(7.0, 2.0, None)


def test_a_player_lets_go_of_what_is_forgotten() -> None:
    player = CEGPUCB(kernel="independent", noise=0.01, forgetting=0.2, scale=1.0, rule=Every(1)).begin(
        OnlineProblem(ARMS.encoder, 5000, candidates=[{"arm": arm} for arm in "abc"])
    )
    for t in range(1, 2001):
        choice = player.decide(t)
        player.observe(Observation(t, choice.place, float(np.sin(t))))
    assert len(player.observations) < 600


def test_a_cap_holds_where_forgetting_is_learnt_too() -> None:
    player = CEGPUCB(kernel="independent", rule=Capped(Every(1), 20), floor=0.5).begin(
        OnlineProblem(ARMS.encoder, 200, candidates=[{"arm": arm} for arm in "abc"])
    )
    measured = 0
    for t in range(1, 201):
        choice = player.decide(t)
        measured += choice.measure
        if choice.measure:
            player.observe(Observation(t, choice.place, float(np.sin(t))))
    assert measured == 20


def test_what_each_candidate_is_known_to_give_is_where_it_begins() -> None:
    problem = OnlineProblem(ARMS.encoder, 10, candidates=[{"arm": arm} for arm in "abc"])
    known = CEGPUCB(kernel="independent", noise=0.01, forgetting=0.01, scale=1.0, offset=[0.0, 5.0, 1.0])
    player = known.begin(problem)
    assert player.decide(1).place == 1
    player.observe(Observation(1, 1, -5.0))
    assert player.exploit(2) == 2


def test_a_covariance_between_candidates_carries_over_what_was_seen() -> None:
    problem = OnlineProblem(ARMS.encoder, 10, candidates=[{"arm": arm} for arm in "abc"])
    kernel = [[1.0, 0.9, -0.9], [0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]]
    player = CEGPUCB(kernel=kernel, noise=0.01, forgetting=0.01, scale=1.0).begin(problem)
    player.observe(Observation(1, 0, -2.0))
    assert player.exploit(2) == 2


# ----------------------------------------------------------------------------------------------------------- the player


def arms(rounds: int = 300, **settings: Any) -> OnlineProblem:
    return OnlineProblem(ARMS.encoder, rounds, candidates=[{"arm": arm} for arm in "abc"], **settings)


def test_before_the_model_is_learnt_the_best_that_was_seen_is_exploited() -> None:
    player = CEGPUCB(kernel="independent").begin(arms())
    first = player.decide(1).place
    assert player.exploit(1) == first, "nothing was seen"
    assert player.predict([0], 1) is None
    player.observe(Observation(1, first, 0.5))
    second = player.decide(2).place
    player.observe(Observation(2, second, 0.4))
    assert player.exploit(3) == first
    assert player.predict([0], 3) is None
    player.observe(Observation(3, player.decide(3).place, 0.9))
    assert player.predict([0], 4) is not None, "every arm is known"


def test_a_model_that_is_given_needs_no_first_observations() -> None:
    player = CEGPUCB(kernel="independent", noise=0.01, forgetting=0.01, scale=1.0).begin(arms())
    assert player.predict([0], 1) is None
    assert player.exploit(1) == 0
    assert player.decide(1).reason == "nothing is known yet"
    player.observe(Observation(1, 1, 0.5))
    assert player.exploit(2) == 1
    space = OnlineProblem(ft.Space({"x": ft.Float(0, 1)}).encoder, 10)
    assert "first observations" in CEGPUCB.paper().begin(space).decide(1).reason, "a space needs a place to begin with"


def test_a_model_is_learnt_again_with_a_quarter_more_observations_or_forty() -> None:
    player = CEGPUCB(kernel="independent", forgetting=0.0, level=0.0, rule=Every(1)).begin(arms())
    rng, learnt, known = np.random.default_rng(0), [], player.hyperparameters
    for t in range(1, 246):
        player.decide(t)
        player.observe(Observation(t, t % 3, float(rng.standard_normal())))
        if player.hyperparameters != known:
            learnt.append(t)
            known = player.hyperparameters
    expected = [3]
    while (due := ceil(min(1.25 * expected[-1], expected[-1] + 40))) <= 245:
        expected.append(due)
    assert learnt == expected


@pytest.mark.parametrize(("n", "drawn_at"), [(8, None), (9, 10), (12, 13)])
def test_in_a_space_old_rows_are_drawn_again_before_a_measurement(n: int, drawn_at: int | None) -> None:
    """They are drawn after the first observation, for round 2, and are old from round 10 on."""
    space = ft.Space({"x": ft.Float(0, 1), "n": ft.Int(1, 3)})
    player = CEGPUCB.paper(rule=Every(n), climbs=0).begin(OnlineProblem(space.encoder, 30))
    player.observe(Observation(1, player.decide(1).place, 0.5))
    plays = [player.decide(t) for t in range(2, n + 2)]
    assert [play.measure for play in plays] == [False] * (n - 1) + [True]
    assert player.memory()["drawn_at"] == drawn_at
    again = CEGPUCB.paper(rule=Every(n), climbs=0).begin(OnlineProblem(space.encoder, 30))
    again.restore(player.observations, json.loads(json.dumps(player.memory())))
    np.testing.assert_array_equal(again.exploit(n + 2), player.exploit(n + 2))


def test_params_stand_where_they_are_played() -> None:
    space = ft.Space({"x": ft.Float(0, 1), "n": ft.Int(1, 3)})
    params = space.check({"x": 0.25, "n": 2})
    whole = OnlineProblem(space.encoder, 30)
    assert whole.params(whole.place(params)) == params
    some = OnlineProblem(space.encoder, 30, candidates=[space.check({"x": 0.0, "n": 1}), params])
    assert some.place(params) == 1
    assert some.params(1) == params
    with pytest.raises(InvalidArgument, match="one of the 2 candidates"):
        some.place(space.check({"x": 0.5, "n": 1}))


@pytest.mark.parametrize(
    ("changes", "asking"),
    [
        ({}, Floor(Every(7), 0.02)),
        ({"floor": 0.3}, Floor(Every(7), 0.3)),
        ({"floor": 0.0}, Every(7)),
        ({"forgetting": 0.1}, Every(7)),
        ({"forgetting": 0.1, "floor": 0.3}, Floor(Every(7), 0.3)),
        ({"rule": Capped(Every(7), 5)}, Capped(Floor(Every(7), 0.02), 5)),
    ],
)
def test_where_forgetting_is_learnt_a_coin_measures_now_and_then(changes: dict[str, Any], asking: Any) -> None:
    assert CEGPUCB(**{"rule": Every(7), **changes}).asking_rule == asking


# ---------------------------------------------------------------------------------------------------- the model's form


def form(**changes: Any) -> ModelForm:
    """A model of two numbers of which everything is given, but for the changes."""
    given = {"kernel": "matern52", "dimension": 2, "categories": (), "lengthscale": (0.3, 0.3), "noise": 0.02}
    return ModelForm(**{**given, "forgetting": 0.05, "amplitude": 4.0, "level": 0.7, **changes})  # type: ignore[arg-type]


def test_a_model_begins_with_what_is_given() -> None:
    known = form().first()
    assert not form().learns
    assert np.exp(known.theta) == pytest.approx([4.0, 0.3])
    assert (known.forgetting, known.noise) == (0.05, 0.02)
    assert known.level == Level(pytest.approx(0.7), pytest.approx(0.05))
    assert form().deviation(known) == pytest.approx(2.0), "the root of the amplitude"
    assert form(level=0.0).first().level == NO_LEVEL


@pytest.mark.parametrize("name", ["lengthscale", "noise", "forgetting", "amplitude", "level"])
def test_what_is_not_given_is_learnt_from_the_mode_of_its_prior(name: str) -> None:
    unknown, known = form(**{name: None}), form().first()
    first = unknown.first()
    assert unknown.learns
    modes = {
        "lengthscale": (np.exp(first.theta[1]), default_lengthscale(2).median),
        "noise": (first.noise, NOISE.median),
        "forgetting": (first.forgetting, FORGETTING.median),
        "amplitude": (np.exp(first.theta[0]), AMPLITUDE.median),
        "level": (first.level.variance, LEVEL.median),
    }
    found, mode = modes[name]
    assert found == pytest.approx(mode)
    assert len(first.theta) == len(known.theta) == 2, "one lengthscale for all numbers"


def test_what_is_given_is_held_while_the_rest_is_learnt() -> None:
    rng = np.random.default_rng(0)
    X, z = rng.random((12, 2)), rng.standard_normal(12)
    for name in ("lengthscale", "noise", "forgetting", "amplitude"):
        unknown = form(**{name: None})
        learnt, start = unknown.learnt(X, range(1, 13), z, start=unknown.first()), form().first()
        held = [learnt.theta[0], learnt.theta[1], learnt.noise, learnt.forgetting]
        given = [start.theta[0], start.theta[1], start.noise, start.forgetting]
        place = ("amplitude", "lengthscale", "noise", "forgetting").index(name)
        assert [i for i in range(4) if held[i] != pytest.approx(given[i])] == [place]
        assert learnt.level.variance == pytest.approx(0.7)


def test_learning_again_starts_from_what_was_learnt() -> None:
    """At the optimum there is nothing left to learn, whatever of the model is learnt."""
    rng = np.random.default_rng(0)
    X, z = rng.random((12, 2)), rng.standard_normal(12)
    unknown = form(lengthscale=None, noise=None, forgetting=None, amplitude=None, level=None)
    once = unknown.learnt(X, range(1, 13), z, start=unknown.first())
    again = unknown.learnt(X, range(1, 13), z, start=once)
    np.testing.assert_allclose(again.theta, once.theta, atol=0.05)
    assert again.noise == pytest.approx(once.noise, rel=0.1)
    assert Hyperparameters.from_json(json.loads(json.dumps(once.to_json()))) == once


def test_lengthscales_that_differ_are_those_of_single_numbers() -> None:
    own = form(lengthscale=(0.1, 2.0))
    X = np.array([[0.0, 0.0], [0.2, 0.0], [0.0, 0.2], [0.2, 0.2]])
    K = own.space_kernel().evaluate(np.array(own.first().theta), X).K
    alone = [Matern52((j,)).evaluate(np.log([scale]), X).K for j, scale in enumerate((0.1, 2.0))]
    np.testing.assert_allclose(K, 4.0 * alone[0] * alone[1])


def test_equal_lengthscales_are_one_over_the_distance() -> None:
    X = np.array([[0.0, 0.0], [0.3, 0.4]])
    K = form().space_kernel().evaluate(np.array(form().first().theta), X).K
    distance = Matern52((0,)).evaluate(np.log([0.3]), np.array([[0.0], [0.5]])).K
    np.testing.assert_allclose(K, 4.0 * distance)


def test_categories_have_a_kernel_beside_that_of_the_numbers() -> None:
    mixed = form(dimension=2, categories=(1,), lengthscale=(0.3,))
    X = np.array([[0.0, 0.0], [0.2, 0.0], [0.0, 1.0]])
    K = mixed.space_kernel().evaluate(np.array(mixed.first().theta), X).K
    alone = Matern52((0,)).evaluate(np.log([0.3]), X).K
    assert K[0, 1] == pytest.approx(4.0 * alone[0, 1])
    assert 0.0 < K[0, 2] < K[0, 0]
    only = form(dimension=1, categories=(0,), lengthscale=None)
    K = only.space_kernel().evaluate(np.array(only.first().theta), X[:, 1:]).K
    assert K[0, 0] == pytest.approx(4.0)
    assert 0.0 < K[0, 2] < K[0, 0]


def test_a_scale_that_is_not_told_anything_leaves_values_as_they_are() -> None:
    np.testing.assert_array_equal(Scale().apply([-3.0, 0.5, 40.0]), [-3.0, 0.5, 40.0])


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({}, (0.05, 0.05)),
        ({"forgetting": 0.0}, (LEAST_FORGETTING, LEAST_FORGETTING)),
        ({"level": None}, (0.05, None)),
        ({"forgetting": None}, (None, None)),
        ({"forgetting": None, "level": None}, (None, None)),
    ],
    ids=["both given", "none at all", "level learnt", "forgetting learnt", "both learnt"],
)
def test_the_rate_of_the_level_is_that_of_the_function_where_both_are_given(
    changes: dict[str, Any], held: tuple[float | None, float | None]
) -> None:
    for decay, rate in zip(form(**changes)._decays(), held, strict=True):
        (parameter,) = decay.parameters
        found = parameter.median if parameter.lower == parameter.upper else None
        assert found == (None if rate is None else pytest.approx(rate))
    names = [decay.parameters[0].name for decay in form(forgetting=None, level=None)._decays()]
    assert names == [FORGETTING.name, "level forgetting"]


# ---- skill, prices and the size of a validation ---------------------------------------------------------------------


def arms_played(strategy: CEGPUCB, value: Any, *, rounds: int = 60, **settings: Any) -> tuple[list[Play], GPPlayer]:
    player, plays = strategy.begin(arms(rounds, **settings)), []
    for t in range(1, rounds + 1):
        plays.append(play := player.decide(t))
        if play.measure:
            player.observe(Observation(t, play.place, value(t, play.place)))
    return plays, player


def swinging(t: int, place: int) -> float:
    """The same for all arms, and faster than they are measured."""
    return float(np.sin(t))


def test_without_skill_nothing_is_explored_and_little_measured() -> None:
    plays, player = arms_played(CEGPUCB(kernel="independent", needs_skill=True), swinging)
    free, _ = arms_played(CEGPUCB(kernel="independent"), swinging)
    assert player.skill is not None
    assert player.skill <= 0.0
    assert sum(play.measure for play in plays) < 0.6 * sum(play.measure for play in free)
    checked = [t for t, play in enumerate(plays) if "no skill" in play.reason and play.measure]
    assert checked, "so that skill can come back"
    assert min(np.diff(checked)) >= 5


def test_with_skill_nothing_is_held_back() -> None:
    """Arms that stay as they are, seen through noise: the mean of the past is better than the last value."""
    noise = 0.3 * np.random.default_rng(0).standard_normal(200)
    strategy = CEGPUCB(kernel="independent", needs_skill=True)
    plays, player = arms_played(strategy, lambda t, place: float(place + noise[t]))
    assert player.skill is not None
    assert player.skill > 0.0
    assert not any("no skill" in play.reason for play in plays[20:])


@pytest.mark.parametrize(
    "strategy",
    [
        CEGPUCB(rule=Every(1)),
        CEGPUCB(noise=0.1, lengthscale=0.3, forgetting=0.01, scale=1.0),
        CEGPUCB.paper(),
        CEGPUCB(kernel="independent"),
    ],
    ids=["a rule without a price", "a model that is given", "the paper's", "arms that share nothing"],
)
def test_the_gate_is_for_what_is_learnt_and_weighed(strategy: CEGPUCB) -> None:
    plays, player = arms_played(strategy, swinging)
    assert player.skill is None
    assert not any("no skill" in play.reason for play in plays)
    _, gated = arms_played(CEGPUCB(), swinging)
    assert gated.skill is not None, "over a space it is there by default"


@pytest.mark.parametrize("rule", [ValueOfInformation(), ExpectedRegret(), Capped(ValueOfInformation(), 50)])
def test_a_price_in_units_of_the_value_takes_the_place_of_the_rules_own(rule: Any) -> None:
    def value(t: int, place: int) -> float:
        return 100.0 * np.sin(t / 20.0 + 2.0 * place)

    strategy = CEGPUCB(kernel="independent", rule=rule, floor=0.0)
    counts = [sum(play.measure for play in arms_played(strategy, value, price=p)[0]) for p in (1.0, 1e3, 1e6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[1]
    assert counts[2] == 3, "the first observations, one of each arm, and no more"


def test_a_price_is_for_rounds_of_which_a_decision_may_hold_several() -> None:
    """A value is held for `hold` rounds, so a decision brings that many times as much."""
    strategy = CEGPUCB(kernel="independent", noise=0.1, forgetting=0.01, scale=2.0)
    prices = [strategy.begin(arms(30, hold=hold, price=12.0))._price() for hold in (1, 3)]
    assert prices == pytest.approx([6.0, 2.0])
    assert strategy.begin(arms(30))._price() is None, "the rule has its own"


def test_the_size_of_a_validation_centres_the_noise_that_is_learnt() -> None:
    """A few values say little about their noise: what is known of a share of few examples counts."""
    found = []
    for size in (50, 5_000):
        _, player = arms_played(
            CEGPUCB(kernel="independent", rule=Every(1)),
            lambda t, place: 0.5 + 0.05 * place + 0.02 * np.sin(5.0 * t),
            rounds=8,
            validation_size=size,
        )
        assert player._scale is not None
        found.append(player.hyperparameters.noise * player._scale.scale**2)
    assert found[0] > 5.0 * found[1]
    known = form(noise=None).knowing(0.3)
    assert known.first().noise == 0.3
    assert known.noise_prior.spread < NOISE.spread
    assert form(noise=None).knowing(1e-12).first().noise == NOISE.lower, "the least that a fit can have"


# ---- the paper's local optima in a space ---------------------------------------------------------------------------


def test_local_optima_in_a_space_are_climbed_to_in_paper_mode() -> None:
    """Each is as high as all places around it, they lie 0.2 apart, and they are found in silent rounds too."""
    space = ft.Space({"x": ft.Float(0, 1)})
    player = CEGPUCB.paper(rule=Every(100)).begin(OnlineProblem(space.encoder, 100))
    for t in range(1, 12):
        place = np.array([(t * 0.37) % 1.0])
        player.decide(t)
        player.observe(Observation(t, place, float(np.sin(12.0 * place[0]))))
    for t in (12, 15):
        context = player._context(t)
        optima = player._field._pool[context.optima][:, 0]  # type: ignore[attr-defined]
        beta = CEGPUCB.paper().beta_at(t)
        grid = np.linspace(0.0, 1.0, 801)
        posterior = player._field.posterior_at(list(grid[:, None]), t)
        height = posterior.mean() + np.sqrt(beta * posterior.variance())
        is_top = np.concatenate([[True], height[1:] >= height[:-1]]) & np.concatenate(
            [height[:-1] >= height[1:], [True]]
        )
        tops = grid[is_top]
        assert len(optima) > 1
        assert all(np.min(np.abs(tops - x)) < 5e-3 for x in optima)
        assert np.min(np.diff(np.sort(optima))) >= 0.2
        assert all(np.min(np.abs(optima - x)) < 0.2 + 5e-3 for x in tops), "and none is missed"


def test_the_papers_gains_are_in_percent_and_cut_off_at_two() -> None:
    strategy = CEGPUCB.paper(rewards="gains")
    scale = Scale.of((), offset=strategy.base_offset, scale=strategy.scale, clip=strategy.clip)
    np.testing.assert_allclose(scale.apply([0.005, -0.3, 0.08]), [0.5, -2.0, 2.0])
    space = ft.Space({"x": ft.Float(0, 1)})
    with pytest.raises(InvalidArgument, match="must be told what rounds add"):
        strategy.begin(OnlineProblem(space.encoder, 10))
    strategy.begin(OnlineProblem(space.encoder, 10, gains=True))
    with pytest.raises(InvalidArgument, match="'standard' or 'gains'"):
        CEGPUCB.paper(rewards="percent")  # type: ignore[arg-type]
