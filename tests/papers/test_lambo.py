"""LaMBO (Lin, Miano and Dyer, 2021): its equations, and the readings of them that were settled.

Trees here have at least two levels: where there is one, readings that differ agree by accident.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.staged import StagedBO
from farthing.costs import Remaining
from farthing.space.stages import prefix
from farthing.strategies import Randomness, Strategy
from farthing.strategies.pipeline.arm_tree import ArmTree, Region
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext
from farthing.strategies.pipeline.lambo import (
    draw_arm,
    draw_signs,
    level_of,
    loss_estimate,
    relative_losses,
    updated,
)
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

UNIT = Region((0.0,), (1.0,))
THREE_STAGES = ArmTree(
    regions=((UNIT,) * 2, (UNIT,) * 3), arms=tuple((i, j) for i in range(2) for j in range(3)), depths=(2, 1)
)
"""Six arms over the first two of three stages, H = 3. A real tree's regions differ; the bandit only counts them."""


def subtrees(tree: ArmTree) -> list[np.ndarray]:
    return [tree.subtrees(level) for level in range(tree.height + 1)]


def random_distribution(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.log(rng.dirichlet(np.ones(size)))


# ------------------------------------------------------------------------------------------------- the tree


def test_level_is_the_height_above_the_leaves() -> None:
    levels = subtrees(THREE_STAGES)
    assert len(set(levels[0])) == THREE_STAGES.size  # A_0(i) = {i}
    assert len(set(levels[-1])) == 1  # A_H(i) = all
    assert [len(set(level)) for level in levels] == [6, 2, 2, 1]


def test_chain_nodes_go_below_the_fork_of_their_stage() -> None:
    """d_1 = 2 leaves two levels at which arms agree in the first stage and not in the second."""
    assert [THREE_STAGES.shared_stages(level) for level in range(4)] == [2, 1, 1, 0]
    assert [THREE_STAGES.deeper().shared_stages(level) for level in range(5)] == [2, 1, 1, 1, 0]


def test_a_greater_first_depth_halves_the_steps_on_which_the_first_stage_may_move() -> None:
    def share(tree: ArmTree) -> float:
        """P(h_t = H) = 2^−H: only from the root's subtree can an arm with another first region be drawn."""
        rng = np.random.default_rng(0)
        return float(np.mean([level_of(draw_signs(tree.height, rng=rng)) == tree.height for _ in range(20_000)]))

    shallow, deep = share(THREE_STAGES), share(THREE_STAGES.deeper())
    deviation = np.sqrt(2.0**-4 / 20_000)
    assert shallow == pytest.approx(2.0**-3, abs=4 * np.sqrt(2.0**-3 / 20_000))
    assert deep == pytest.approx(2.0**-4, abs=4 * deviation)


# ----------------------------------------------------------------------------------------------- the bandit


def test_the_update_leaves_the_mass_of_the_subtrees_of_the_drawn_level_unchanged() -> None:
    rng = np.random.default_rng(1)
    levels = subtrees(THREE_STAGES)
    for _ in range(200):
        log_p, loss = random_distribution(rng, 6), rng.random(6)
        signs = draw_signs(THREE_STAGES.height, rng=rng)
        p, after = np.exp(log_p), np.exp(updated(log_p, loss_estimate(log_p, loss, signs, levels)))
        for level in range(level_of(signs), THREE_STAGES.height + 1):
            before_mass, after_mass = (np.bincount(levels[level], weights=mass) for mass in (p, after))
            np.testing.assert_allclose(after_mass, before_mass, rtol=1e-10)


def test_arms_are_drawn_as_often_as_their_probabilities_say() -> None:
    """E 1(i_t = i) = E p_t(i), although arms are drawn near the last one: 4 deviations of a mean of 3000 draws."""
    runs, steps, rng = 3000, 4, np.random.default_rng(2)
    levels = subtrees(THREE_STAGES)
    losses = rng.random((steps, 6))
    surplus = np.zeros((steps, 6))
    for _ in range(runs):
        log_p, arm, level = np.full(6, -np.log(6.0)), 0, THREE_STAGES.height
        for step in range(steps):
            arm = draw_arm(log_p, levels[level], arm, rng=rng)
            surplus[step] += (np.arange(6) == arm) - np.exp(log_p)
            signs = draw_signs(THREE_STAGES.height, rng=rng)
            log_p, level = updated(log_p, loss_estimate(log_p, losses[step], signs, levels)), level_of(signs)
    assert np.abs(surplus / runs).max() < 4 * 0.5 / np.sqrt(runs)


def test_the_next_arm_stays_in_the_subtree_of_level_h_with_at_least_the_probability_of_the_lemma() -> None:
    """P(i_t ∈ A_h(i_{t−1})) ≥ P(h_{t−1} ≤ h) = 1 − 2^−(h+1)."""
    rng, draws = np.random.default_rng(3), 4000
    levels, log_p = subtrees(THREE_STAGES), random_distribution(np.random.default_rng(4), 6)
    stayed = np.zeros(THREE_STAGES.height)
    for _ in range(draws):
        last = int(rng.choice(6, p=np.exp(log_p)))
        arm = draw_arm(log_p, levels[level_of(draw_signs(THREE_STAGES.height, rng=rng))], last, rng=rng)
        stayed += [levels[h][arm] == levels[h][last] for h in range(THREE_STAGES.height)]
    least = 1.0 - 2.0 ** -(np.arange(THREE_STAGES.height) + 1.0)
    assert (stayed / draws >= least - 4 * 0.5 / np.sqrt(draws)).all()


def test_a_constant_added_to_all_losses_changes_nothing() -> None:
    rng, levels = np.random.default_rng(5), subtrees(THREE_STAGES)
    for _ in range(100):
        log_p, loss = random_distribution(rng, 6), rng.random(6)
        signs = draw_signs(THREE_STAGES.height, rng=rng)
        one, other = (updated(log_p, loss_estimate(log_p, loss + c, signs, levels)) for c in (0.0, -7.3))
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_losses_are_relative_to_the_best_arm_and_at_most_one() -> None:
    np.testing.assert_allclose(relative_losses(np.array([-3.0, -2.75, 4.0])), [0.0, 0.25, 1.0])


def test_with_one_level_the_estimate_is_twice_the_loss_or_nothing() -> None:
    """H = 1: ℓ̃ = ℓ̄_0 + σ_0 ℓ̄_0 (Eq. 4), whose mean is ℓ̄_0."""
    loss, log_p = np.array([0.3, 0.9]), np.log([0.2, 0.8])
    levels = [np.array([0, 1]), np.array([0, 0])]
    np.testing.assert_allclose(loss_estimate(log_p, loss, np.array([1, -1]), levels), 2 * loss)
    np.testing.assert_allclose(loss_estimate(log_p, loss, np.array([-1, -1]), levels), 0.0)


def test_equation_5_is_minus_one_over_eta_times_the_logarithm() -> None:
    """By hand, with η = ½ and h = 1: ℓ̄_1 = −2 log Σ p exp(−½·2·ℓ̄_0)/p(A); ℓ̃ = 2 ℓ̄_0 − ℓ̄_1."""
    p, loss = np.array([0.1, 0.3, 0.6]), np.array([0.2, 0.5, 0.9])
    levels = [np.arange(3), np.array([0, 0, 1]), np.zeros(3, dtype=int)]
    mean = (0.1 * np.exp(-0.2) + 0.3 * np.exp(-0.5)) / 0.4
    expected = 2 * loss - np.array([-2 * np.log(mean)] * 2 + [2 * loss[2]])
    found = loss_estimate(np.log(p), loss, np.array([1, -1, -1]), levels, eta=0.5)
    np.testing.assert_allclose(found, expected, atol=1e-12)


# -------------------------------------------------------------------------------------------- the strategies


def staged_space(*sizes: int) -> ft.Space:
    names = iter(f"x{i}" for i in range(sum(sizes)))
    return ft.Space(stages={f"stage{m}": {next(names): ft.Float(0, 1) for _ in range(n)} for m, n in enumerate(sizes)})


def valley(params: Params) -> float:
    x = np.array(list(params.values()))
    return float(np.mean((x - 0.37) ** 2) + 0.05 * np.mean(np.cos(9 * x)))


def ackley(params: Params) -> float:
    """On a cube of side 65.536 about its minimum, over its range."""
    x = 65.536 * (np.array(list(params.values())) - 0.5)
    hill = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    return float(hill - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e) / 22.35


def play(
    strategy: Strategy,
    space: ft.Space,
    prices: tuple[float, ...],
    *,
    steps: int,
    seed: int,
    value: Callable[[Params], float] = valley,
) -> History:
    """A study in which every stage is measured and prefixes are cached."""
    history, known = History(Problem(space, seed=seed, cost_unit="cost")), set()
    for number in range(steps):
        [suggestion] = strategy.suggest(history, Remaining(), 1, Randomness(seed))
        points = tuple(_stage_points(space, suggestion, prices, known))
        trial = Trial(number, suggestion, State.DONE, value=value(suggestion.params), measurements=points)
        history = history.updated([trial], version=number)
    return history


def _stage_points(
    space: ft.Space, suggestion: Suggestion, prices: tuple[float, ...], known: set
) -> Iterator[Measurement]:
    for step, price in enumerate(prices):
        key = prefix(space, suggestion.params, step + 1)
        if key in known and step + 1 < len(prices):
            yield Measurement(step=step, saved={"cache": price})
        else:
            known.add(key)
            yield Measurement(step=step, cost={"stage": price})


def test_where_no_region_changed_the_stages_before_the_last_are_kept_to_the_bit() -> None:
    """Γ = 0 then: what is paid is the last stage alone."""
    space = staged_space(2, 1, 2)
    history = play(ft.LaMBO(), space, (40.0, 10.0, 1.0), steps=30, seed=0)
    quiet = [(before, after) for before, after in pairwise(history) if after.note.get("why") == "no region changed"]
    assert len(quiet) >= 5
    for before, after in quiet:
        assert prefix(space, before.params, 2) == prefix(space, after.params, 2)
        assert after.cost == 1.0


def test_where_a_region_changed_the_stages_before_it_are_kept() -> None:
    space = staged_space(2, 1, 2)
    history = play(ft.LaMBO(), space, (40.0, 10.0, 1.0), steps=40, seed=1)
    changed = [(b, a) for b, a in pairwise(history) if a.note.get("why") == "the region of stage 2 changed"]
    assert changed
    for before, after in changed:
        assert prefix(space, before.params, 1) == prefix(space, after.params, 1)
        region = _region(after, stage=1)
        assert region["lower"][0] <= after.params["x2"] <= region["upper"][0]


def _region(trial: Trial, *, stage: int) -> dict[str, list[float]]:
    state = trial.note["lambo"]
    return state["tree"]["regions"][stage][state["tree"]["arms"][state["arm"]][stage]]


def test_arms_are_over_all_stages_but_the_last() -> None:
    history = play(ft.LaMBO(), staged_space(1, 2, 3), (4.0, 2.0, 1.0), steps=10, seed=0)
    tree = history[-1].note["lambo"]["tree"]
    assert [len(regions[0]["lower"]) for regions in tree["regions"]] == [1, 2]
    assert {len(arm) for arm in tree["arms"]} == {2}
    assert len(tree["arms"]) == 4


@pytest.mark.parametrize("cost", ["price", "cooled"])
def test_baselines_are_optimised_per_prefix_class(cost: str) -> None:
    """A search of all parameters at once would never keep a prefix, and would silently be plain EI."""
    space = staged_space(2, 1, 2)
    history = play(StagedBO(cost=cost), space, (40.0, 10.0, 1.0), steps=25, seed=0)
    assert {trial.note["kept"] for trial in history} == {0, 1, 2}


def test_blind_to_cost_the_best_of_all_classes_keeps_nothing_unless_that_is_as_good() -> None:
    space = staged_space(2, 1, 2)
    blind = play(StagedBO(cost="none"), space, (40.0, 10.0, 1.0), steps=20, seed=0)
    assert [trial.note["kept"] for trial in blind if "why" in trial.note].count(0) >= 13


def test_equation_3_beta_is_0_2_d_log_2t_unless_given() -> None:
    """In step t of the bandit; D counts the parameters of all stages."""
    space = staged_space(2, 1, 2)
    history = play(ft.LaMBO(), space, (40.0, 10.0, 1.0), steps=14, seed=0)
    step = history[-1].note["lambo"]["steps"] + 1
    beta = 0.2 * 5 * np.log(2.0 * step)

    def next_params(strategy: ft.LaMBO) -> Params:
        [suggestion] = strategy.suggest(history, Remaining(), 1, Randomness(0))
        return suggestion.params

    assert next_params(ft.LaMBO()) == next_params(ft.LaMBO(beta=float(beta)))
    assert next_params(ft.LaMBO()) != next_params(ft.LaMBO(beta=float(2.0 * beta)))
    assert next_params(ft.LaMBO(linear_beta=True)) == next_params(ft.LaMBO(beta=float(beta * beta)))


def test_beta_enters_as_its_root_unless_the_paper_is_taken_by_its_word() -> None:
    assert not ft.LaMBO().linear_beta
    assert ft.LaMBO.paper().linear_beta
    assert ft.LaMBO.paper(restart=10).restart == 10


def test_the_paper_begins_with_fifteen_random_configurations() -> None:
    """Section 5. All of their stages are new, and they do not depend on what was measured before."""
    space = staged_space(2, 1, 2)
    history = play(ft.LaMBO.paper(), space, (40.0, 10.0, 1.0), steps=16, seed=3)
    other = play(ft.LaMBO.paper(), space, (1.0, 1.0, 1.0), steps=16, seed=3, value=ackley)
    drawn = np.array([list(trial.params.values()) for trial in history])[:15]
    assert ["lambo" in trial.note for trial in history] == [False] * 15 + [True]
    assert [trial.note["kept"] for trial in history][:15] == [0] * 15
    assert [trial.params for trial in other][:15] == [trial.params for trial in history][:15]
    assert len(np.unique(drawn[:, 0])) == 15
    many = play(ft.LaMBO.paper(initial=200), space, (40.0, 10.0, 1.0), steps=200, seed=0)
    rows = np.array([list(trial.params.values()) for trial in many])
    # the mean of 200 uniform draws has a deviation of 0.289/√200 = 0.02; of 200 Sobol points it is nearly exact
    assert np.all(np.abs(rows.mean(axis=0) - 0.5) < 0.1)
    assert np.max(np.abs(rows.mean(axis=0) - 0.5)) > 0.01


def test_the_paper_fits_hyperparameters_at_restarts_alone() -> None:
    """Section 3.4: arm probabilities and hyperparameters are refreshed together."""
    strategy = ft.LaMBO.paper(initial=5, restart=4)
    history = play(strategy, staged_space(2, 1, 2), (40.0, 10.0, 1.0), steps=15, seed=0)
    played = [trial.note for trial in history if "lambo" in trial.note]
    assert [note["fitted_on"] for note in played] == [5, 5, 5, 5, 9, 9, 9, 9, 13, 13]
    assert [note["lambo"]["epoch_steps"] for note in played] == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]


def test_the_paper_models_losses_as_they_are() -> None:
    """A loss far above the others stays far above them; by default it is drawn towards them."""

    def spread(strategy: ft.LaMBO) -> float:
        seen = []

        class Watching(type(strategy)):  # type: ignore[misc]
            def choose(self, context: PipelineContext) -> ChosenRow:
                seen.append(context.gp.y)
                return super().choose(context)

        watching = Watching(**{field.name: getattr(strategy, field.name) for field in fields(strategy)})
        costly = {0: 1e6}
        values = iter(range(20))
        play(
            watching,
            staged_space(1, 1),
            (10.0, 1.0),
            steps=16,
            seed=0,
            value=lambda params: costly.get(next(values), valley(params)),
        )
        others = np.delete(seen[0], 0)
        return float((seen[0][0] - others.max()) / np.ptp(others))

    assert spread(ft.LaMBO.paper()) > 1e5
    assert spread(ft.LaMBO(initial=15)) < 1e2


@pytest.mark.parametrize(
    ("costs", "depths"),
    [
        ((40.0, 10.0, 1.0), (2, 1)),
        ((400.0, 41.0, 1.0), (5, 3)),
        ((1e6, 1.0, 1.0), (5, 1)),
        ((4000.0, 410.0, 10.0), (5, 3)),
    ],
)
def test_depths_come_from_declared_costs(costs: tuple[float, ...], depths: tuple[int, ...]) -> None:
    """d_m ∝ log λ c_m with λ = 0.1 and d_m ≤ 5, in units of the last stage's cost."""
    declared = {f"stage{m}": cost for m, cost in enumerate(costs)}
    history = play(ft.LaMBO.paper(costs=declared, initial=2), staged_space(1, 1, 1), costs, steps=3, seed=0)
    assert tuple(history[-1].note["lambo"]["tree"]["depths"]) == depths
    learnt = play(ft.LaMBO.paper(initial=2), staged_space(1, 1, 1), costs, steps=3, seed=0)
    assert learnt[-1].note["lambo"]["tree"]["depths"] == [1, 1]


def test_eta_is_the_rate_at_which_probabilities_learn() -> None:
    """After the first step p ∝ exp(−η ℓ̃), and with one level ℓ̃ does not depend on η (p is uniform before)."""

    def log_odds(eta: float) -> float:
        history = play(ft.LaMBO.paper(eta=eta, initial=4), staged_space(2, 2), (10.0, 1.0), steps=5, seed=2)
        first, second = history[-1].note["lambo"]["log_p"]
        return first - second

    assert ft.LaMBO.paper().eta == 1.0
    assert log_odds(1.0) != 0.0
    assert log_odds(0.25) == pytest.approx(0.25 * log_odds(1.0))


@pytest.mark.parametrize("seeds", [3, pytest.param(9, marks=pytest.mark.long)])
def test_signature_two_stages_and_ninety_steps(seeds: int) -> None:
    """15 to 26 moves of the first stage, and 2, 4, then at most 8 arms. Single seeds scatter: the median counts.

    With moves at random there were 45. Rounding differs between processors, so runs are not the same everywhere.
    """
    moves = []
    for seed in range(seeds):
        history = play(ft.LaMBO(), staged_space(4, 4), (10.0, 1.0), steps=94, seed=seed, value=ackley)
        played = [trial for trial in history if "lambo" in trial.note]
        assert len(played) == 90
        first = [tuple(trial.params[f"x{i}"] for i in range(4)) for trial in played]
        moves.append(sum(a != b for a, b in pairwise(first)))
        sizes = list(dict.fromkeys(len(trial.note["lambo"]["log_p"]) for trial in played))
        assert sizes[:2] == [2, 4]
        assert sizes[-1] <= 8
        assert played[-1].note["lambo"]["refinements"] == 2
    assert 15 <= np.median(moves) <= 26
