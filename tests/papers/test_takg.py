"""The equations, propositions and errata of taKG and taKG⁰ (Wu, Toscano-Palmerin, Frazier and Wilson, 2020)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import farthing as ft
from farthing.acquisition.knowledge_gradient import KnowledgeGradient, antithetic_normals
from farthing.costs.learned import Paid, learn_cost
from farthing.models.gp import GP, condition
from farthing.models.kernels import SE, Constant
from farthing.models.linalg import Array
from farthing.strategies.multifidelity import ascent
from farthing.strategies.multifidelity.ascent import InformationPerCost
from farthing.strategies.multifidelity.candidates import Candidates, crossed, retained_points, with_params, zeroed
from farthing.strategies.multifidelity.curve_model import curve_kernel
from farthing.strategies.multifidelity.decisions import Decisions
from farthing.strategies.multifidelity.levels import LEAST_STEP, Fidelities
from farthing.strategies.shared.cost_model import LEAST_INCREMENT, CostModel, LearntCost, WorkAsCost, cost_kernel

EPOCHS = ft.Fidelity(1, 50, integer=True, trace=True)
PARAMS = {"a": ft.Float(0, 1), "b": ft.Float(0, 1)}
CURVES = ft.Space(PARAMS, fidelities={"epochs": EPOCHS})
CURVES_AND_DATA = ft.Space(PARAMS, fidelities={"epochs": EPOCHS, "data": ft.Fidelity(0.05, 1)})
TWO_TRACES = ft.Space(
    PARAMS,
    fidelities={"epochs": EPOCHS, "data": ft.Fidelity(0.05, 1), "validation": ft.Fidelity(0.05, 1, trace=True)},
)
SPACES = (CURVES, CURVES_AND_DATA, TWO_TRACES)


def process(space: ft.Space, *, n: int = 10, seed: int = 0) -> GP:
    """A process over (x, s) that has seen n points of a falling curve."""
    rng, kernel = np.random.default_rng(seed), curve_kernel(space, fidelity_kernel="decays")
    Z = rng.random((n, 2 + len(space.fidelities)))
    y = (Z[:, 0] - 0.4) ** 2 + 0.3 * np.sin(4.0 * Z[:, 1]) + 0.3 * np.sum(np.exp(-3.0 * Z[:, 2:]), axis=1)
    theta = np.array([parameter.to_theta(parameter.median) for parameter in kernel.parameters])
    return condition(kernel, theta, Z, y, noise=1e-3, m=float(np.mean(y)))


def at_full(space: ft.Space, X: Array) -> Array:
    return np.hstack([X, np.ones((X.shape[0], len(space.fidelities)))])


def some_choices(space: ft.Space, *, count: int = 12, seed: int = 1) -> Array:
    return at_full(space, np.random.default_rng(seed).random((count, 2)))


def candidates(space: ft.Space, *, count: int = 20, seed: int = 2) -> Candidates:
    rng, m = np.random.default_rng(seed), len(space.fidelities)
    S = rng.uniform(0.1, 1.0, (count, m))
    return Candidates(rng.random((count, 2)), S, np.zeros_like(S), np.full(count, -1))


def information(space: ft.Space, found: Candidates, *, zero_avoiding: bool, retain: int = 2, pairs: int = 64) -> Array:
    decisions = Decisions(Fidelities(space), retain, zero_avoiding)
    normals = antithetic_normals(pairs, decisions.free, decisions.bought, rng=np.random.default_rng(3))
    voi = KnowledgeGradient((process(space),), some_choices(space), normals, decisions.free)
    return voi(*decisions.rows(decisions.of(found)))


# ---------------------------------------------------------------------------------------------- value of information


def test_antithetic_normals_are_standard_normal() -> None:
    normals = antithetic_normals(512, 1, 2, rng=np.random.default_rng(0))
    assert normals.shape == (512, 3)
    np.testing.assert_allclose(normals.mean(axis=0), 0.0, atol=0.02)  # quasi-Monte Carlo: far below 1/√512
    np.testing.assert_allclose(normals.std(axis=0), 1.0, atol=0.02)


def test_the_noise_of_future_observations_is_relative_to_the_variance_of_the_prior() -> None:
    """In other units of the value, what is known exactly stays as exact."""
    kernel, X = Constant() * SE((0, 1)), np.random.default_rng(0).random((5, 2))

    def noise(variance: float) -> Array:
        gp = condition(kernel, np.log([variance, 0.5, 0.5]), X, np.zeros(5), noise=1e-9)
        return KnowledgeGradient((gp,), X, antithetic_normals(4, 1, 1, rng=np.random.default_rng(0)), 1).variances(2)

    assert noise(1.0)[0] < noise(1.0)[1]
    np.testing.assert_allclose(noise(400.0), 400.0 * noise(1.0))


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("zero_avoiding", [True, False])
def test_the_value_of_information_is_never_negative(space: ft.Space, zero_avoiding: bool) -> None:
    found = information(space, candidates(space, count=60), zero_avoiding=zero_avoiding)
    assert np.all(found >= -1e-15)  # rounding: every antithetic pair is, by the concavity of the minimum
    assert np.any(found > 1e-4)


@given(seed=st.integers(0, 10**6), retain=st.integers(1, 4), zero_avoiding=st.booleans())
@settings(max_examples=25)
def test_every_antithetic_pair_adds_at_least_nothing(seed: int, retain: int, zero_avoiding: bool) -> None:
    found = candidates(CURVES_AND_DATA, count=5, seed=seed)
    decisions = Decisions(Fidelities(CURVES_AND_DATA), retain, zero_avoiding)
    rows, own = decisions.rows(decisions.of(found))
    normals = np.random.default_rng(seed).standard_normal((1, decisions.free + decisions.bought))
    voi = KnowledgeGradient((process(CURVES_AND_DATA),), some_choices(CURVES_AND_DATA), normals, decisions.free)
    mirrored = normals.copy()
    mirrored[:, decisions.free :] *= -1.0
    other = KnowledgeGradient(voi.processes, voi.choices, mirrored, decisions.free)
    assert np.all(voi(rows, own) >= -1e-12)  # rounding of sums of order one
    np.testing.assert_allclose(voi(rows, own), other(rows, own), atol=1e-12)


def test_without_zero_avoidance_the_least_fidelity_still_has_a_value() -> None:
    """Proposition 1."""
    found = candidates(CURVES)
    least = Candidates(found.X, np.zeros_like(found.S), found.begun, found.source)
    assert np.max(information(CURVES, least, zero_avoiding=False)) > 1e-3


@pytest.mark.parametrize("space", SPACES)
def test_with_a_component_at_zero_there_is_nothing_to_learn(space: ft.Space) -> None:
    """Section 2.4: then S ⊆ C(S)."""
    found = candidates(space)
    usual = float(np.max(information(space, found, zero_avoiding=True)))
    for i in range(len(space.fidelities)):
        S = found.S.copy()
        S[:, i] = 0.0
        nothing = information(space, Candidates(found.X, S, found.begun, found.source), zero_avoiding=True)
        assert np.max(nothing) < 1e-5 * usual  # the jitter of what is known for free leaves a trace


def test_the_value_vanishes_with_the_fidelity() -> None:
    """C(S) is known exactly and S is not: otherwise the method falls into the trap that it is meant to avoid."""
    found = candidates(CURVES, count=40)

    def best(s: float) -> float:
        at = Candidates(found.X, np.full_like(found.S, s), found.begun, found.source)
        return float(np.max(information(CURVES, at, zero_avoiding=True)))

    assert best(1e-3) < 0.01 * best(0.3)


def test_with_noise_on_what_is_free_the_value_would_not_vanish() -> None:
    gp, found = process(CURVES), candidates(CURVES, count=40)
    decisions = Decisions(Fidelities(CURVES), 2, True)
    normals = antithetic_normals(64, decisions.free, decisions.bought, rng=np.random.default_rng(3))
    voi = KnowledgeGradient((gp,), some_choices(CURVES), normals, decisions.free)

    def best(s: float) -> float:
        at = Candidates(found.X, np.full_like(found.S, s), found.begun, found.source)
        rows, own = decisions.rows(decisions.of(at))
        noise = np.zeros(rows.shape[:2])
        noise[:, : decisions.free] = 0.05
        return float(np.max(voi(rows, own, noise=noise)))

    assert best(1e-3) > 0.01 * best(0.3)


# -------------------------------------------------------------------------------------------------- closed forms


def expected_minimum(mean: Array, slope: Array) -> float:
    """E min_a (mean_a + slope_a W), exactly: between the points where two lines meet, one of them is the lowest."""
    i, j = np.triu_indices(mean.size, 1)
    differ = np.abs(slope[i] - slope[j]) > 1e-14
    meets = np.sort((mean[j] - mean[i])[differ] / (slope[i] - slope[j])[differ])
    ends = np.concatenate([[-np.inf], meets, [np.inf]])
    middle = np.concatenate([[meets[0] - 1.0], (meets[1:] + meets[:-1]) / 2, [meets[-1] + 1.0]])
    lowest = np.argmin(mean + slope * middle[:, None], axis=1)
    weight, tilt = np.diff(norm.cdf(ends)), -np.diff(norm.pdf(ends))
    return float(np.sum(mean[lowest] * weight + slope[lowest] * tilt))


def test_one_observation_has_a_closed_form() -> None:
    gp, choices, found = process(CURVES), some_choices(CURVES), candidates(CURVES, count=6)
    rows, own = with_params(found.X, found.S[:, None, :]), at_full(CURVES, found.X)[:, None, :]
    count = 4096
    normals = np.random.default_rng(5).standard_normal((count, 1))
    voi = KnowledgeGradient((gp,), choices, normals)
    sigma = voi.sigma(rows, own)[:, :, 0]
    for b, estimate in enumerate(voi(rows, own)):
        mean = gp.mean(np.concatenate([choices, own[b]]))
        exact = float(mean.min()) - expected_minimum(mean, sigma[b])
        single = np.array(
            [KnowledgeGradient((gp,), choices, w[None])(rows[b : b + 1], own[b : b + 1])[0] for w in normals[:200]]
        )
        error = float(np.std(single)) / math.sqrt(count)
        assert abs(estimate - exact) < 5.0 * error + 1e-9


@pytest.mark.parametrize("space", SPACES)
def test_sigma_is_what_conditioning_on_the_observations_does_to_the_mean(space: ft.Space) -> None:
    """σ̃(x', x, S) W = E[g(x', 1) | y] − μ(x') for y = μ(S) + D W (section 2.5)."""
    gp, choices, found = process(space), some_choices(space), candidates(space, count=3)
    decisions = Decisions(Fidelities(space), 2, True)
    rows, own = decisions.rows(decisions.of(found))
    W = np.random.default_rng(6).standard_normal(rows.shape[1])
    voi = KnowledgeGradient((gp,), choices, W[None], decisions.free)
    noise = voi.variances(rows.shape[1])
    for b in range(3):
        mean, covariance = gp.joint(rows[b])
        y = mean + np.linalg.cholesky(covariance + np.diag(noise)) @ W
        after = gp.condition_on(rows[b], y, noise=noise)
        targets = np.concatenate([choices, own[b]])
        change = after.mean(targets) - gp.mean(targets)
        np.testing.assert_allclose(voi.sigma(rows, own)[b] @ W, change, atol=1e-6)  # the jitter is 1e-8


# ------------------------------------------------------------------------------------------------------ gradients


class PricedByParams(WorkAsCost):
    """A cost that depends on everything that is decided."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        return np.asarray(np.exp(X[:, 0]) * (0.1 + np.prod(S, axis=1) - np.prod(begun, axis=1)))

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        work = 0.1 + np.prod(S, axis=1) - np.prod(begun, axis=1)
        X_bar = np.zeros_like(X)
        X_bar[:, 0] = 1.0
        return X[:, 0] + np.log(work), X_bar, (np.prod(S, axis=1) / work)[:, None] / S


def differences(function: object, V: Array, *, step: float = 1e-6) -> Array:
    slopes = np.empty_like(V)
    for j in range(V.shape[1]):
        moved = step * np.eye(V.shape[1])[j]
        slopes[:, j] = (function(V + moved) - function(V - moved)) / (2.0 * step)  # type: ignore[operator]
    return slopes


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("zero_avoiding", [True, False])
@pytest.mark.parametrize(("members", "batch_cost"), [(1, "max"), (2, "max"), (2, "sum")])
def test_gradients_are_those_of_differences(
    space: ft.Space, zero_avoiding: bool, members: int, batch_cost: str
) -> None:
    """In x, s and the retained points, with C(S) and a run that goes on, where there is something to learn."""
    found = candidates(space, count=24 * members, seed=7)
    begun = np.where(np.arange(len(found))[:, None] % 2 == 0, 0.3 * found.S, 0.0)
    decisions = Decisions(Fidelities(space), 3, zero_avoiding, members=members)
    normals = antithetic_normals(8, decisions.free, decisions.bought, rng=np.random.default_rng(8))
    fantasies = process(space).fantasies(
        np.random.default_rng(9).random((2, 2 + begun.shape[1])), 2, rng=np.random.default_rng(1)
    )
    parts = [KnowledgeGradient(fantasies, some_choices(space), normals, decisions.free)]
    objective = InformationPerCost(parts, decisions, PricedByParams(), batch_cost)  # type: ignore[arg-type]
    V = decisions.of(Candidates(found.X, found.S, begun, found.source)).reshape(24, -1)
    value, gradient = objective.ratio_and_gradient(V)
    worth = value > 1e-3
    assert worth.sum() >= 3
    held = np.tile(np.arange(decisions.width) >= decisions.width - decisions.m, members)
    slopes = differences(lambda rows: objective.ratio_and_gradient(rows)[0], V)
    free = np.ix_(worth, ~held)
    np.testing.assert_allclose(gradient[free], slopes[free], rtol=2e-4, atol=2e-4)  # ε/step of values near one


def test_the_stochastic_gradient_is_unbiased() -> None:
    """Theorem 1: its mean over draws is the gradient of the mean."""
    decisions = Decisions(Fidelities(CURVES), 2, True)
    V = decisions.of(candidates(CURVES, count=6, seed=11))

    def objective(pairs: int, seed: int) -> InformationPerCost:
        normals = np.random.default_rng(seed).standard_normal((pairs, decisions.free + decisions.bought))
        parts = [KnowledgeGradient((process(CURVES),), some_choices(CURVES), normals, decisions.free)]
        return InformationPerCost(parts, decisions, PricedByParams())

    draws = np.stack([objective(4, seed).ratio_and_gradient(V)[1] for seed in range(300)])
    expected = differences(lambda rows: objective(20_000, 999).ratio_and_gradient(rows)[0], V, step=1e-4)
    error = np.std(draws, axis=0) / math.sqrt(300)
    held = slice(0, decisions.width - decisions.m)
    assert np.all(np.abs(draws.mean(axis=0) - expected)[:, held] < 5.0 * error[:, held] + 2e-3)


def test_the_step_sizes_are_those_of_theorem_2() -> None:
    """Σ εₜ = ∞ and Σ εₜ² < ∞ for εₜ ∝ (1 + t)^−p with ½ < p ≤ 1."""
    assert 0.5 < ascent.STEP_POWER <= 1.0


# ----------------------------------------------------------------------------------------------------------- sets


@pytest.mark.parametrize(
    ("space", "retain", "count"), [(CURVES, 1, 1), (CURVES, 3, 1), (CURVES_AND_DATA, 2, 3), (CURVES_AND_DATA, 3, 4)]
)
def test_the_free_fidelities_are_a_set(space: ft.Space, retain: int, count: int) -> None:
    """1 + ℓ(m − 1) points for one trace; the paper's example has three."""
    fidelities = Fidelities(space)
    found = candidates(space)
    C = zeroed(retained_points(found, fidelities, retain=retain), fidelities)
    assert C.shape[1] == count == Decisions(fidelities, retain, True).free
    assert all(np.unique(points, axis=0).shape[0] == count for points in C)


def test_the_papers_example_of_free_fidelities() -> None:
    """S = {(½, 1), (1, 1)} with a trace first: C(S) = {(0, 1), (½, 0), (1, 0)}."""
    fidelities = Fidelities(CURVES_AND_DATA)
    S = retained_points(crossed(np.zeros((1, 2)), np.ones((1, 2))), fidelities, retain=2)
    assert S[0].tolist() == [[0.5, 1.0], [1.0, 1.0]]
    assert sorted(zeroed(S, fidelities)[0].tolist()) == [[0.0, 1.0], [0.5, 0.0], [1.0, 0.0]]


def test_retained_points_differ_in_traces_only_and_keep_their_distance() -> None:
    decisions = Decisions(Fidelities(TWO_TRACES), 3, True)
    V = decisions.of(candidates(TWO_TRACES, count=5))
    lower, upper = decisions.bounds(V, np.full((5, 3), 0.05))
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = decisions.points(lower + rng.random(V.shape) * (upper - lower))
        assert np.all(points[:, :, 1] == points[:, -1:, 1])
        shares = points[:, :, [0, 2]] / points[:, -1:, [0, 2]]
        assert np.all(shares[:, 0] >= 0.1 - 1e-12)
        assert np.all(np.diff(shares, axis=1) >= 0.03)


@given(s=st.lists(st.floats(0, 1), min_size=2, max_size=12), seed=st.integers(0, 1000), spread=st.floats(-2.0, 2.0))
@settings(max_examples=50)
def test_the_kernel_is_positive_semi_definite(s: list[float], seed: int, spread: float) -> None:
    kernel = curve_kernel(CURVES_AND_DATA, fidelity_kernel="decays")
    rng = np.random.default_rng(seed)
    Z = np.hstack([rng.random((len(s), 2)), np.array(s)[:, None], rng.random((len(s), 1))])
    theta = np.array([p.to_theta(p.median) + spread * p.spread for p in kernel.parameters])
    K = kernel.evaluate(theta, Z).K
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * np.trace(K)  # rounding of an eigenvalue of zero


# ----------------------------------------------------------------------------------------------------- warm starts


def learnt_cost(*, fixed: float) -> CostModel:
    rng = np.random.default_rng(0)
    X, done = rng.random((30, 2)), rng.uniform(0.05, 1.0, 30)
    cost = fixed + np.exp(1.0 + X[:, 0]) * done
    return LearntCost(learn_cost(X, Paid.whole(cost, done), cost_kernel(CURVES)), CURVES)


@pytest.mark.parametrize("fixed", [0.0, 0.2])
def test_a_warm_start_never_costs_less_than_its_floor(fixed: float) -> None:
    cost = learnt_cost(fixed=fixed)
    X = np.random.default_rng(1).random((50, 2))
    ones, nothing = np.ones((50, 1)), np.zeros((50, 1))
    full = cost(X, ones, nothing)
    for begun in (0.0, 0.2, 0.5, 0.99):
        for further in (0.0, 1e-6, 1e-3):
            paid = cost(X, np.minimum(1.0, begun + further) * ones, begun * ones)
            assert np.all(paid >= LEAST_INCREMENT * full * (1.0 - 1e-9))
            assert np.all(paid >= 0.8 * fixed)  # the next values on the grid of those tried


def test_continuing_costs_the_difference() -> None:
    """Section 2.6: from b to s costs what s costs less what b cost."""
    cost, X = learnt_cost(fixed=0.0), np.random.default_rng(2).random((20, 2))
    at = {share: cost(X, np.full((20, 1), share), np.zeros((20, 1))) for share in (0.3, 0.8)}
    np.testing.assert_allclose(cost(X, np.full((20, 1), 0.8), np.full((20, 1), 0.3)), at[0.8] - at[0.3], rtol=1e-9)


def test_the_cost_has_the_slopes_of_differences() -> None:
    cost, rng = learnt_cost(fixed=0.2), np.random.default_rng(3)
    X, S = rng.random((10, 2)), rng.uniform(0.5, 0.9, (10, 1))
    for begun in (np.zeros((10, 1)), np.full((10, 1), 0.2)):
        log_cost, X_bar, S_bar = cost.log_cost_and_gradient(X, S, begun)
        np.testing.assert_allclose(log_cost, np.log(cost(X, S, begun)), rtol=1e-9)
        slopes = differences(lambda V, b=begun: np.log(cost(V[:, :2], V[:, 2:], b)), np.hstack([X, S]))
        np.testing.assert_allclose(np.hstack([X_bar, S_bar]), slopes, rtol=1e-4, atol=1e-5)


@given(begun=st.floats(0.02, 1.0), floor=st.floats(0.0, 0.5))
@settings(max_examples=50)
def test_a_continuation_takes_a_minimum_step(begun: float, floor: float) -> None:
    fidelities = Fidelities(CURVES)
    levels = fidelities.further(fidelities.grid(floor), np.array([begun]))
    assert np.all(levels[:, 0] >= begun + LEAST_STEP * (1.0 - begun) - 1e-9)
    assert (levels.size == 0) == fidelities.is_complete(np.array([begun]))


# ---------------------------------------------------------------------------------------------- slopes (section 2.7)


def test_slopes_add_to_the_value_of_information() -> None:
    """ta-dKG⁰ observes more of the same points, so that it expects a lower minimum."""
    gp, found = process(CURVES), candidates(CURVES, count=30)
    decisions = Decisions(Fidelities(CURVES), 2, True)
    V = decisions.of(found)

    def value(observed: list[int]) -> Array:
        bought = decisions.bought * len(observed)
        normals = np.random.default_rng(3).standard_normal((256, decisions.free + bought))
        parts = [KnowledgeGradient((gp,), some_choices(CURVES), normals, decisions.free)]
        return np.exp(InformationPerCost(parts, decisions, PricedByParams(), observed=np.array(observed))(V))

    assert np.mean(value([-1, 0, 1])) > 1.1 * np.mean(value([-1]))


def test_x_prime_is_searched_for_where_slopes_are_observed_too() -> None:
    """Section 2.7 changes what is observed, not over what is minimised: x* is no row of a fixed list."""
    gp, choices, found = process(CURVES), some_choices(CURVES, count=4), candidates(CURVES, count=3)
    decisions, along = Decisions(Fidelities(CURVES), 1, False), np.array([-1, 0, 1])
    part = KnowledgeGradient((gp,), choices, np.random.default_rng(2).standard_normal((2, 3)))
    columns = np.array([0, 1])
    objective = InformationPerCost([part], decisions, PricedByParams(), observed=along, inner=columns)
    V = decisions.of(found)
    [rows, own] = decisions.rows(V)
    lowest = objective._lowest(part, rows, own)
    seen = rows[:, [0, 0, 0]]
    gains = []
    for b in range(3):
        mean, covariance = gp.joint(seen[b], along)
        noise = part.variances(3)
        D = np.linalg.cholesky(covariance + np.diag(noise))
        outcomes = [0.0 * part.normals, part.normals, -part.normals]
        for at, normal in zip(lowest[b], np.concatenate(outcomes), strict=True):
            after = gp.condition_on(seen[b], mean + D @ normal, noise=noise, along=along)
            gains.append(float(after.mean(choices).min() - after.mean(at[None])[0]))
    assert min(gains) > -1e-9, "the search begins at the lowest of the choices"
    assert np.median(gains) > 0.01 * np.sqrt(gp.predict(choices)[1]).max(), "and ends below it in most draws"
    value, gradient = objective.information(V)
    np.testing.assert_allclose(value, objective.voi(V))
    assert np.abs(gradient[:, :2]).max() > 0.0


def test_sigma_with_slopes_is_what_conditioning_on_them_does_to_the_mean() -> None:
    gp, choices, found = process(CURVES), some_choices(CURVES), candidates(CURVES, count=3)
    rows = with_params(found.X, np.repeat(found.S[:, None, :], 3, axis=1))
    own, along = at_full(CURVES, found.X)[:, None, :], np.array([-1, 0, 1])
    voi = KnowledgeGradient((gp,), choices, np.ones((1, 3)))
    for b in range(3):
        mean, covariance = gp.joint(rows[b], along)
        noise = voi.variances(3)
        D = np.linalg.cholesky(covariance + np.diag(noise))
        targets = np.concatenate([choices, own[b]])
        lowest = [gp.mean(targets).min()]
        for sign in (1.0, -1.0):
            after = gp.condition_on(rows[b], mean + D @ (sign * np.ones(3)), noise=noise, along=along)
            lowest.append(after.mean(targets).min())
        expected = lowest[0] - 0.5 * (lowest[1] + lowest[2])
        assert voi(rows[b : b + 1], own[b : b + 1], along=along)[0] == pytest.approx(expected, abs=1e-8)


def test_a_duel_of_two_has_a_closed_form() -> None:
    """VOI where only the candidate and one other could be recommended, for one observation and no C(S)."""
    gp, found = process(CURVES), candidates(CURVES, count=6)
    rows, own = with_params(found.X, found.S[:, None, :]), at_full(CURVES, found.X)[:, None, :]
    voi = KnowledgeGradient((gp,), some_choices(CURVES, count=1), np.ones((1, 1)))
    for b, sigma in enumerate(voi.sigma(rows, own)[:, :, 0]):
        mean = gp.mean(np.concatenate([voi.choices, own[b]]))
        exact = float(mean.min()) - expected_minimum(mean, sigma)
        assert np.exp(voi.log_duel(rows, own)[b]) == pytest.approx(exact, rel=1e-6)
