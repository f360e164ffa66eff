"""The user's belief in good values: a study begins there, and its acquisition has a weight that evidence fades."""

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from farthing.space import Choice, Space
from farthing.trials import History, Params, Trial, noted

if TYPE_CHECKING:
    from farthing.acquisition.acquisition import Acquisition
    from farthing.acquisition.belief import Belief
    from farthing.strategies.shared.strategy import Randomness

NOTE = "guess"
"""The key in the note of a start in a space with guesses; its value says how the start relates to them."""
CENTRE, NEAR, RANDOM = "centre", "near", "random"
WEIGHT = 3.0
"""β: after n results the belief counts β/n. Of 1, 3 and 10, which differed little, the middle one: `LogEI` on four of
`TUNING_FUNCTIONS` in `benchmarks/problems/synthetic.py`, two seeds; not recorded."""
ALTERNATING = 10
"""Configurations of which every second is drawn near the guess; later ones less and less. A guess, not tuned."""


def has_guesses(space: Space) -> bool:
    return any(parameter.guess is not None for parameter in space.parameters.values())


def belief_of(space: Space) -> "Belief | None":
    """The guesses in the coordinates of the encoder; None where there are none."""
    if not has_guesses(space):
        return None
    from farthing.acquisition.belief import Belief

    encoder = space.encoder
    ranges, options = {}, {}
    for j, (name, parameter) in enumerate(space.parameters.items()):
        if parameter.guess is None:
            continue
        if j in encoder.categories:
            assert isinstance(parameter, Choice)
            options[j] = tuple(parameter.index_of(option) for option in parameter.guess)
            continue
        ends = encoder.coordinates(name, parameter.guessed_values)
        ranges[j] = (min(ends), max(ends))
    return Belief(ranges, options, encoder.categories)


def centre_params(history: History, rng: "Randomness") -> Params:
    """The guess itself; parameters without one are drawn."""
    encoder, belief = history.problem.space.encoder, belief_of(history.problem.space)
    assert belief is not None, "ask only where there are guesses"
    return encoder.decode_unit_row(belief.centre(rng.at("guess").random(encoder.dimension)).tolist())


def has_centre(history: History) -> bool:
    return any(guess_of(trial) == CENTRE for trial in history)


def guess_of(trial: Trial) -> str | None:
    """How a trial relates to the guesses: the centre, near it, or drawn without a look at it."""
    return noted(trial.note).get(NOTE)


def is_near(history: History, place: int, rng: "Randomness") -> bool:
    """Whether the configuration of that place, counted from 0, is to be drawn near the guess."""
    if is_discredited(history):
        return False
    if place < ALTERNATING:
        return place % 2 == 0
    return bool(rng.at("near", place).random() < 0.5 * ALTERNATING / place)


def wasted_starts(history: History) -> int:
    """The starts near a guess that proved wrong. They do not count: as many random ones are made as without it.

    So the worst guess costs the first training and little later: `docs/guides/second_study.md`.
    """
    if not has_guesses(history.problem.space) or not is_discredited(history):
        return 0
    return sum(guess_of(trial) in (CENTRE, NEAR) for trial in history)


def is_discredited(history: History) -> bool:
    """Whether starts near the guess had worse results than those drawn without it, at the same fidelity."""
    found: dict[str, list[Trial]] = {CENTRE: [], NEAR: [], RANDOM: []}
    for trial in history.done:
        if trial.resume_from is None and (kind := guess_of(trial)) in found:
            found[kind].append(trial)
    near, others = found[CENTRE] + found[NEAR], found[RANDOM]
    reaches = {history.reach(trial) for trial in near} & {history.reach(trial) for trial in others}
    losses = [
        [history.loss(trial.value) for trial in group if trial.value is not None and history.reach(trial) in reaches]
        for group in (near, others)
    ]
    return min(map(len, losses)) >= 2 and median(losses[0]) > median(losses[1])


def believed(acquisition: "Acquisition", history: History, *, results: int) -> "Acquisition":
    """The acquisition with the user's belief in it, as far as it still counts."""
    belief = belief_of(history.problem.space)
    if belief is None or results < 1 or is_discredited(history):
        return acquisition
    from farthing.acquisition.belief import Believed

    return Believed(acquisition, belief, WEIGHT / results)


def guided_units(
    history: History, units: Sequence[Sequence[float]], rng: "Randomness", *, first: int
) -> list[list[float]]:
    """Points of the unit cube for the configurations from place `first` on: every second is moved near the guess."""
    import numpy as np

    belief = belief_of(history.problem.space)
    if belief is None:
        return [list(unit) for unit in units]
    return [
        belief.near(np.asarray(unit)).tolist() if is_near(history, first + i, rng) else list(unit)
        for i, unit in enumerate(units)
    ]
