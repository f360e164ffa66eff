"""The rule for many short trials: it finds optima, remembers in its notes, and takes no longer in a long study."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

import farthing as ft
from farthing.extending import Randomness
from farthing.strategies.shared.evolution import (
    NOTE,
    STEP,
    Distribution,
    current_generation,
    evolved,
    latest_generation,
    population_of,
)
from farthing.trials import Event, History, Params, Problem, State, Suggestion, Trial
from farthing.trials.events import EXTENDED, Extension

SQUARE = ft.Space({"x": ft.Float(-2, 2), "y": ft.Float(-2, 2)})
MIXED = ft.Space({"x": ft.Float(0, 1), "n": ft.Int(1, 50), "kind": ft.Choice("a", "b", "c", "d")})


def valley(params: Params) -> float:
    """Rosenbrock's: narrow, curved, badly scaled."""
    return float(100 * (params["y"] - params["x"] ** 2) ** 2 + (1 - params["x"]) ** 2)


def mixed(params: Params) -> float:
    return float((params["x"] - 0.7) ** 2 + (params["n"] - 33) ** 2 / 2500 + 0.3 * "cadb".index(params["kind"]))


def history_of(space: ft.Space, value: Callable[[Params], float], trials: int, *, seed: int = 0) -> History:
    """A history that begins with one trial of nobody's and goes on with this rule alone."""
    problem, rng = Problem(space, seed=seed), Randomness(seed)
    [first] = space.encoder.decode_unit(np.full((1, space.encoder.dimension), 0.4))
    made = [Trial(0, Suggestion(first), State.DONE, value=value(first))]
    while len(made) < trials:
        [(params, note)] = evolved(History(problem, made), 1, rng)
        stored = Suggestion(params, note=json.loads(json.dumps(note)))
        made.append(Trial(len(made), stored, State.DONE, value=value(params)))
    return History(problem, made)


def best(history: History) -> float:
    return min(trial.value for trial in history if trial.value is not None)


@pytest.mark.parametrize("seed", range(3))
def test_a_curved_valley_is_followed_to_its_end(seed: int) -> None:
    assert best(history_of(SQUARE, valley, 900, seed=seed)) < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_categories_and_whole_numbers_are_found(seed: int) -> None:
    assert best(history_of(MIXED, mixed, 300, seed=seed)) < 1e-3


def trap(params: Params) -> float:
    """Each kind has a bowl of its own; only that of "d" goes down to zero, and its numbers are bad for the others."""
    x, n, floor = {"a": (0.4, 20, 0.2), "b": (0.3, 25, 0.25), "c": (0.5, 15, 0.3), "d": (0.9, 45, 0.0)}[params["kind"]]
    return float((params["x"] - x) ** 2 + (params["n"] - n) ** 2 / 2500 + floor)


@pytest.mark.parametrize("seed", range(5))
def test_the_categories_that_a_search_begins_with_are_left_for_better_ones(seed: int) -> None:
    assert best(history_of(MIXED, trap, 600, seed=seed)) < 0.02


def test_after_a_start_elsewhere_the_search_that_found_the_best_goes_on_where_it_was_left() -> None:
    history = history_of(MIXED, trap, 900)
    notes = [trial.note[NOTE] for trial in history[1:]]
    began = next(number for number, note in enumerate(notes) if note["restarts"] == 2)
    found = min(history[1 : began + 1], key=lambda trial: float(trial.value or 0.0)).note[NOTE]["restarts"]
    states = [note["state"] for note in notes[:began] if "state" in note and note["restarts"] == found]
    assert notes[began]["state"] == states[-1]
    assert next(note for note in notes if note["restarts"] == 1)["state"]["sigma"] == STEP


def test_a_study_that_evolved_with_shares_of_categories_goes_on_from_its_best_trial() -> None:
    """The note as it was stored before categories were axes: another state, of the numbers alone."""
    history = history_of(MIXED, mixed, 10)
    stored = {"mean": [0.5, 0.5], "C": [[1.0, 0.0], [0.0, 1.0]], "p_sigma": [0.0, 0.0], "p_c": [0.0, 0.0]}
    state = {**stored, "sigma": 0.3, "generation": 0, "population": 7, "shares": [[0.25] * 4]}
    old = Trial(
        10, Suggestion(history[3].params, note={NOTE: {"point": [0.5, 0.5, 1.0], "state": state}}), State.RUNNING
    )
    generation = current_generation(History(history.problem, [*history, old]), Randomness(0))
    assert (generation.first, generation.restarts, generation.distribution.n) == (11, 0, 3)


def test_the_learnt_covariance_is_that_of_the_valley() -> None:
    """The reason to learn one: near (1, 1) the valley runs along (1, 2), a thousand times as long as wide."""
    found = latest_generation(history_of(SQUARE, valley, 400))
    assert found is not None
    squares, axes = np.linalg.eigh(found.distribution.C)
    along = axes[:, -1] * np.sign(axes[0, -1])
    assert squares[-1] / squares[0] > 30
    assert along @ np.array([1.0, 2.0]) / math.sqrt(5.0) > 0.95


def test_a_generation_is_drawn_from_one_distribution_whose_state_only_its_first_trial_has() -> None:
    history = history_of(SQUARE, valley, 40)
    firsts = [trial.number for trial in history[1:] if "state" in trial.note[NOTE]]
    population = history[1].note[NOTE]["population"]
    assert firsts == list(range(1, 40, population))


def test_several_workers_are_given_points_of_one_generation_and_late_ones_count() -> None:
    history = history_of(SQUARE, valley, 7)
    rng = Randomness(0)
    found = evolved(history, 9, rng)
    assert len({tuple(note[NOTE]["point"]) for _, note in found}) == 9
    assert sum("state" in note[NOTE] for _, note in found) == 1


def test_failures_are_the_worst_of_their_generation() -> None:
    history = history_of(SQUARE, valley, 7)
    worst = Trial(6, history[6].suggestion, State.FAILED)
    spoilt = History(history.problem, [*history[:6], worst])
    row = np.array(history[6].note[NOTE]["point"])
    moved = current_generation(spoilt, Randomness(0)).distribution.mean
    assert np.linalg.norm(moved - row) > 1e-6


def test_what_has_converged_begins_again_elsewhere_with_twice_the_population() -> None:
    history = history_of(SQUARE, lambda params: 1.0, 20)
    notes = [trial.note[NOTE] for trial in history[1:] if "state" in trial.note[NOTE]]
    assert [note["population"] for note in notes] == [6, 12, 24][: len(notes)]
    assert notes[1]["state"]["mean"] != notes[0]["state"]["mean"]


def test_a_state_comes_back_from_json_bit_for_bit() -> None:
    found = latest_generation(history_of(MIXED, mixed, 60))
    assert found is not None
    form = json.loads(json.dumps(found.distribution.to_json()))
    assert Distribution.from_json(form).to_json() == form


@pytest.mark.parametrize("dimension", [1, 2, 5, 9])
@pytest.mark.parametrize("population", [None, 4, 7, 20])
def test_points_and_states_are_those_of_the_package_cmaes_bit_for_bit(dimension: int, population: int | None) -> None:
    """Studies were stored with it: their replays must draw the same points."""
    cmaes = pytest.importorskip("cmaes")
    rng, middle = np.random.default_rng(0), np.full(dimension, 0.5)
    theirs = cmaes.CMA(middle, STEP, bounds=np.tile([0.0, 1.0], (dimension, 1)), population_size=population)
    ours = Distribution.around(middle, STEP)
    for _ in range(40):
        points = []
        for seed in rng.integers(2**32, size=population or population_of(dimension)):
            theirs.reseed_rng(int(seed))
            points.append(theirs.ask())
            assert np.array_equal(points[-1], ours.drawn(int(seed)))
        told = [(point, float(np.sum((point - 0.3) ** 2 * 10.0 ** np.arange(dimension)))) for point in points]
        theirs.tell(told)
        theirs.__setstate__(theirs.__getstate__())
        ours = ours.after(np.array([point for point, _ in sorted(told, key=lambda each: each[1])]))
        assert np.array_equal(theirs.mean, ours.mean)


def test_a_space_of_categories_alone_is_searched_too() -> None:
    space = ft.Space({"a": ft.Choice(*range(8)), "b": ft.Choice(*range(8))})
    history = history_of(space, lambda params: float(abs(params["a"] - 5) + abs(params["b"] - 2)), 200)
    assert best(history) == 0.0


def test_an_extended_space_is_searched_from_the_best_of_before() -> None:
    """The points of the generations so far are those of another cube."""
    before = history_of(SQUARE, valley, 30)
    wider = ft.Space({**SQUARE.parameters, "x": ft.Float(-2, 6), "z": ft.Float(0, 1)})
    extension = Extension(SQUARE, wider, {"z": 0.25}, len(before))
    history = before.updated([], events=[Event(EXTENDED, extension.to_json())], version=1)
    generation = current_generation(history, Randomness(0))
    assert generation.first == len(before)
    top = min(history, key=lambda trial: float(trial.value or 0.0))
    assert generation.distribution.mean == pytest.approx(wider.encoder.encode([top.params])[0])
    assert len(evolved(history, 3, Randomness(0))) == 3


def test_only_the_trials_of_the_last_generation_are_read() -> None:
    class Counted(History):
        read = 0

        def __getitem__(self, index):  # type: ignore[no-untyped-def,override]
            Counted.read += 1
            return super().__getitem__(index)

    history = history_of(SQUARE, valley, 300)
    evolved(Counted(history.problem, list(history)), 1, Randomness(0))
    assert Counted.read < 30
