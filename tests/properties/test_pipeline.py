"""Invariants of pipelines, and random staged histories through every strategy for them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from benchmarks.baselines.staged import EEIPU, StagedBO
from farthing.costs import Remaining
from farthing.strategies import Randomness, Strategy
from farthing.strategies.pipeline.arm_tree import ArmTree, Region, refined, uncut_tree
from farthing.strategies.pipeline.lambo import draw_signs, level_of, loss_estimate, updated
from farthing.strategies.pipeline.purchases import Layout, Purchase, meters, purchases_of
from farthing.trials import Event, History, Measurement, Params, Problem, State, Suggestion, Trial

AT_ONCE, QUICK, LONG = 20, 40, 400
SPACES = (
    ft.Space(stages={"a": {"x": ft.Float(0, 1)}, "b": {"y": ft.Float(0, 1)}}),
    ft.Space(stages={"a": {"k": ft.Choice("p", "q")}, "b": {"n": ft.Int(1, 3)}}),
    ft.Space(
        stages={"a": {"x": ft.Float(0, 1)}, "b": {"k": ft.Choice("p", "q", "r")}, "c": {"b": ft.Choice(True, False)}}
    ),
    ft.Space(
        stages={
            "a": {"kind": ft.Choice("lin", "tree"), "c": ft.Float(1e-3, 1e3, log=True, when={"kind": "lin"})},
            "b": {"depth": ft.Int(1, 2000, when={"kind": "tree"}), "s": ft.Float(0, 1, step=0.25)},
            "c": {"y": ft.Float(-1e9, 1e9)},
        }
    ),
    ft.Space(stages={"a": {"only": ft.Choice("one")}, "b": {"x": ft.Float(0, 1)}}),
    ft.Space({"x": ft.Float(0, 1), "k": ft.Choice("p", "q")}),
)
STRATEGIES: tuple[Strategy, ...] = (
    ft.PrefixEI(initial=2),
    ft.PrefixEI(initial=1, bundle=None, rent_or_buy=0.3),
    ft.LaMBO(initial=2, restart=3),
    ft.LaMBO(initial=1, loss="full"),
    StagedBO(initial=1, value="lcb", cost="price"),
    EEIPU(initial=1),
)
STATES = (State.DONE,) * 6 + (State.FAILED, State.LOST, State.RUNNING, State.PENDING)


def random_history(number: int) -> History:
    """Duplicates, failures, trials in flight, evictions, extreme values and costs, with and without stages measured."""
    rng = np.random.default_rng([77, number])
    space = SPACES[int(rng.integers(len(SPACES)))]
    n = int(rng.choice([1, 2, 3, 6, 12]))
    drawn = space.encoder.decode_unit(rng.random((max(1, n // int(rng.choice([1, 2]))), space.encoder.dimension)))
    scale = 10.0 ** float(rng.choice([0, 0, 250, -250]))
    measures_stages = bool(rng.integers(2))
    trials = [
        _trial(
            i, drawn[int(rng.integers(len(drawn)))], float(scale * rng.standard_normal()), space, measures_stages, rng
        )
        for i in range(n)
    ]
    events = [Event("stage evicted", {"prefix": "{}", "length": 1}, time=float(i)) for i in range(int(rng.integers(3)))]
    return History(Problem(space, minimize=bool(rng.integers(2)), cost_unit="cost"), trials, events=events)


def _trial(
    number: int, params: Params, value: float, space: ft.Space, measures_stages: bool, rng: np.random.Generator
) -> Trial:
    state = STATES[int(rng.integers(len(STATES)))]
    cost = 10.0 ** float(rng.uniform(*rng.choice([(0.0, 0.0), (-3.0, 3.0), (-100.0, 100.0)])))
    points = [Measurement(cost={"training": cost})] if rng.random() < 0.9 else []
    if measures_stages and space.stages:
        steps = range(int(rng.integers(len(space.stages) + 1)))
        points = [
            Measurement(step=step, saved={"cache": cost})
            if rng.random() < 0.3
            else Measurement(step=step, cost={"stage": cost})
            for step in steps
        ]
    done = state is State.DONE
    note = rng.choice([None, {}, {"forced": 0}, {"theta": [0.0]}])  # type: ignore[arg-type]
    return Trial(
        number, Suggestion(params, note=note), state, measurements=tuple(points), value=value if done else None
    )


@pytest.mark.parametrize(
    "first",
    [*range(0, QUICK, AT_ONCE), *(pytest.param(n, marks=pytest.mark.long) for n in range(QUICK, LONG, AT_ONCE))],
)
def test_any_staged_history_leads_to_valid_suggestions(first: int) -> None:
    for number in range(first, first + AT_ONCE):
        history, rng = random_history(number), np.random.default_rng(number)
        budget = Remaining(cost=float(rng.choice([math.inf, 1.0, 1e-9])))
        strategy = STRATEGIES[number % len(STRATEGIES)]
        suggestions = strategy.suggest(history, budget, 2, Randomness(number))
        assert len(suggestions) == 2
        for suggestion in suggestions:
            assert history.problem.space.check(suggestion.params) == suggestion.params
        assert strategy.suggest(history, budget, 2, Randomness(number)) == suggestions


@given(st.integers(0, 400))
@settings(max_examples=40)
def test_what_is_kept_is_a_prefix_of_something_that_was_tried(number: int) -> None:
    history = random_history(number)
    layout = Layout(history.problem.space)
    purchases = purchases_of(history, layout)
    assert len(purchases.made) == len(history)
    for length, known in enumerate(purchases.cached):
        for found, params in known.items():
            assert layout.prefixes(params)[length - 1] == found
            assert any(params is trial.params for trial in history)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.1, 100)), max_size=30))
def test_meters_never_fall_below_zero_and_dearer_ones_never_run_behind(bought: list[tuple[int, float]]) -> None:
    made = [Purchase({}, kept) for kept, _ in bought]
    running = meters(made, [cost for _, cost in bought], 4)
    assert all(amount >= 0.0 for amount in running)
    assert running == sorted(running, reverse=True)
    assert running[3] == 0.0


@given(st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=1, max_size=3))
@settings(max_examples=60)
def test_the_update_keeps_the_mass_of_subtrees_at_and_above_the_drawn_level(seed: int, depths: list[int]) -> None:
    rng = np.random.default_rng(seed)
    unit = Region((0.0,), (1.0,))
    arms = tuple({tuple(rng.integers(0, 3, len(depths)).tolist()) for _ in range(8)})
    tree = ArmTree(((unit,) * 3,) * len(depths), arms, tuple(depths))
    levels = [tree.subtrees(level) for level in range(tree.height + 1)]
    log_p, loss = np.log(rng.dirichlet(np.ones(tree.size))), rng.random(tree.size)
    signs = draw_signs(tree.height, rng=rng)
    after = updated(log_p, loss_estimate(log_p, loss, signs, levels))
    assert math.isclose(float(np.exp(after).sum()), 1.0)
    for level in range(level_of(signs), tree.height + 1):
        masses = [np.bincount(levels[level], weights=np.exp(p)) for p in (log_p, after)]
        np.testing.assert_allclose(masses[1], masses[0], rtol=1e-9)


@given(st.integers(0, 10**6), st.lists(st.sampled_from(["number", "grid", "code"]), min_size=1, max_size=4))
@settings(max_examples=60)
def test_cut_regions_cover_what_they_were_cut_from(seed: int, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    grids = [{"number": None, "grid": np.linspace(0.1, 0.9, 5), "code": np.arange(2.0)}[kind] for kind in kinds]
    tree = uncut_tree([grids], (1,))
    for _ in range(3):
        before, tree = tree, refined(tree, np.ones(tree.size, dtype=bool), [grids], rng=rng)
        assert tree.size <= 2 * before.size
        for grid, column in zip(grids, range(len(grids)), strict=True):
            points = np.linspace(0, 1, 11) if grid is None else grid
            for point in points:
                assert any(r.lower[column] <= point <= r.upper[column] for r in tree.regions[0])
