"""The configurations that a study begins with: the user's guess, what earlier studies learnt, the cheap end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

from farthing.errors import InvalidParams
from farthing.space import Choice, Space
from farthing.strategies.shared.guessing import (
    CENTRE,
    NEAR,
    RANDOM,
    centre_params,
    guided_units,
    has_centre,
    has_guesses,
    is_near,
    wasted_starts,
)
from farthing.strategies.shared.guessing import NOTE as GUESS
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Json, Params, State, Trial, noted
from farthing.trials.events import Learned, random_by_source

if TYPE_CHECKING:
    import numpy as np

NOTE = "learned"
"""The key in the note of a start: its place among the starts, and the study it comes from."""
JUDGED = 2
"""Number of starts by which the others are judged: the rule as it was measured for `docs/guides/second_study.md`."""
ALIKE = 2.0
"""Results of an earlier study are compared with if their share of the full fidelity is the same within this factor.
A guess, not tuned."""
CHEAP = "cheap"
"""The key in the note of a start at the cheap end: its place among them."""
CHEAP_STARTS = 3
CHEAP_SHARE = 0.25
"""Number of starts at the cheap end, and the part of an axis that is one. Guesses, no others are on record."""


@dataclass(frozen=True)
class FirstParams:
    """A configuration to begin with, and what its note says of where it comes from: nothing if it was drawn."""

    params: Params
    note: Mapping[str, Json]

    def noted(self, otherwise: Mapping[str, Json] | None = None) -> Json:
        """The note of its suggestion, with what any start has; None where there is nothing to say."""
        return {**(otherwise or {}), **self.note} or None


def first_params(history: History, numbers: range, rng: Randomness, *, taken: int = 0) -> list[FirstParams]:
    """Configurations for the trials of these numbers: what was learnt, as long as it lasts, then random ones.

    `taken` is the number of starts of those that were suggested a moment ago.
    """
    known = next_starts(history)[taken : taken + len(numbers)]
    rest = numbers[len(known) :]
    drawn = draw_new(history, rest, rng)
    if not has_guesses(history.problem.space):
        return [*known, *(FirstParams(params, {}) for params in drawn)]
    first = history.configurations + taken + len(known)
    return [
        *known,
        *(
            guided(history, params, number, rng, place=first + i)
            for i, (params, number) in enumerate(zip(drawn, rest, strict=True))
        ),
    ]


def guided(history: History, drawn: Params, number: int, rng: Randomness, *, place: int) -> FirstParams:
    """A configuration that was drawn for the trial of that number, or one near the guess in its place."""
    if not is_near(history, place, rng):
        return FirstParams(drawn, {GUESS: RANDOM})
    encoder = history.problem.space.encoder
    [unit] = guided_units(history, [rng.at("trial", number).random(encoder.dimension).tolist()], rng, first=place)
    return FirstParams(encoder.decode_unit_row(unit), {GUESS: NEAR})


def designed(history: History, count: int, rng: Randomness, *, ahead: int = 0) -> list[FirstParams]:
    """The next points of a design that fills the space evenly; where there are guesses, every second is near them.

    `ahead` is the number of configurations that were suggested a moment ago.
    """
    if not has_guesses(history.problem.space):
        return [FirstParams(params, {}) for params in sobol_params(history, count, rng)]
    if count < 1:
        return []
    first, encoder = history.configurations + ahead, history.problem.space.encoder
    units = guided_units(history, sobol_unit(history, count, rng).tolist(), rng, first=first)
    return [
        FirstParams(encoder.decode_unit_row(unit), {GUESS: NEAR if is_near(history, first + i, rng) else RANDOM})
        for i, unit in enumerate(units)
    ]


def next_starts(history: History) -> list[FirstParams]:
    """The user's guess, the learnt starts and those at the cheap end that are not trials yet, in this order."""
    others = [*learnt_starts(history), *_cheap_starts(history)]
    if not has_guesses(history.problem.space) or has_centre(history):
        return others
    centre = centre_params(history, Randomness(history.problem.seed))
    return [FirstParams(centre, {"why": "a start: your guess", GUESS: CENTRE}), *others]


def learnt_starts(history: History) -> list[FirstParams]:
    """The learnt starts that are not trials yet, in their order; none if the first ones were misleading."""
    learned = history.learned
    if learned is None or not learned.starts:
        return []
    begun = {place for trial in history if (place := start_place(trial)) is not None}
    if len(begun) == len(learned.starts) or is_misled(history):
        return []
    return [
        FirstParams(start.params, {"why": f"a start: the best of {start.source}", NOTE: [place, start.source]})
        for place, start in enumerate(learned.starts)
        if place not in begun and _is_possible(history, start.params)
    ]


def _cheap_starts(history: History) -> list[FirstParams]:
    """Starts whose cheap parameters are near their cheap end, while the others fill their ranges evenly."""
    space = history.problem.space
    if not any(parameter.cheap_values for parameter in space.parameters.values()):
        return []
    begun = [trial.note[CHEAP] for trial in history if CHEAP in noted(trial.note)]
    if len(begun) >= CHEAP_STARTS:
        return []
    from farthing.models.sobol import sobol_points

    power = (CHEAP_STARTS - 1).bit_length()
    units = sobol_points(space.encoder.dimension, power, rng=Randomness(history.problem.seed).at(CHEAP))
    design = [_at_the_cheap_end(space, unit) for unit in units[:CHEAP_STARTS].tolist()]
    return [
        FirstParams(params, {"why": "a start: at the cheap end", CHEAP: design.index(params)})
        for params in new_ones(design, history)
        if design.index(params) not in begun
    ]


def _at_the_cheap_end(space: Space, unit: list[float]) -> Params:
    """The params of a point of the unit cube whose cheap coordinates are moved into the cheap part of their axis."""
    encoder = space.encoder
    for j, (name, parameter) in enumerate(space.parameters.items()):
        if not (values := parameter.cheap_values):
            continue
        if isinstance(parameter, Choice) and not parameter.ordered:
            option = values[int(unit[j] * len(values))]
            unit[j] = (parameter.index_of(option) + 0.5) / parameter.count
            continue
        ends = encoder.coordinates(name, values)
        width = max(CHEAP_SHARE, max(ends) - min(ends))
        first = min(max(0.5 * (min(ends) + max(ends) - width), 0.0), 1.0 - width)
        unit[j] = first + unit[j] * width
    return encoder.decode_unit_row(unit)


def start_place(trial: Trial) -> int | None:
    """The place of a trial among the learnt starts, if it is one of them."""
    place = noted(trial.note).get(NOTE)
    return int(place[0]) if isinstance(place, list) else None


def is_known(note: Json) -> bool:
    """Whether a note is of a start that was learnt, guessed or declared cheap, not drawn."""
    words = noted(note)
    return NOTE in words or CHEAP in words or words.get(GUESS) == CENTRE


def is_drawn(trial: Trial, *, added: str) -> bool:
    """Whether no model, no earlier study and no user chose the configuration, and no result is from elsewhere."""
    note = noted(trial.note)
    chosen = {"theta", NOTE, CHEAP, added} & note.keys()
    return trial.resume_from is None and not chosen and note.get(GUESS) in (None, RANDOM)


def is_misled(history: History) -> bool:
    """Whether the first starts were all worse than random configurations of the earlier studies had been."""
    learned = history.learned
    if learned is None:
        return False
    judged = [trial for trial in history if (place := start_place(trial)) is not None and place < JUDGED]
    if len(judged) < JUDGED or not all(trial.is_finished for trial in judged):
        return False
    return all(_is_worse_than_random(history, learned, trial) for trial in judged)


def starts_in_vain(history: History) -> int:
    """The starts that proved misleading, learnt or guessed. They do not count: as many random ones are made as else."""
    learnt = sum(start_place(trial) is not None for trial in history) if is_misled(history) else 0
    return learnt + wasted_starts(history)


def _is_worse_than_random(history: History, learned: Learned, trial: Trial) -> bool:
    """Whether it is worse than the usual random configuration of every earlier study, as far as that was trained."""
    if trial.state is not State.DONE or trial.value is None:
        return trial.state is State.FAILED
    reach = history.reach(trial)
    medians = [
        median(alike)
        for results in random_by_source(learned.random).values()
        if (alike := [history.loss(one.value) for one in results if reach / ALIKE <= one.reach <= reach * ALIKE])
    ]
    return bool(medians) and history.loss(trial.value) > max(medians)


def _is_possible(history: History, params: Params) -> bool:
    try:
        history.problem.space.check(params)
    except InvalidParams:
        return False
    return True


# ------------------------------------------------------------
# Designs that ask no model: independent draws, and points that fill the space evenly.


def draw(history: History, numbers: range, rng: Randomness) -> list[Params]:
    """Random params for the trials that will have these numbers, keyed by them."""
    return [_decoded(history, rng.at("trial", number)) for number in numbers]


ATTEMPTS = 32
"""Draws after which a repeat is accepted, in a finite space that is nearly used up. A limit on time, not tuned."""


def draw_new(history: History, numbers: range, rng: Randomness) -> list[Params]:
    """The same, drawn again where a finite space gave params that were tried: they would be bought twice."""
    found = draw(history, numbers, rng)
    if any(parameter.count is None for parameter in history.problem.space.parameters.values()):
        return found
    tried = [trial.params for trial in history]
    for place, number in enumerate(numbers):
        attempt = 0
        while attempt < ATTEMPTS and (found[place] in tried or found[place] in found[:place]):
            attempt += 1
            found[place] = _decoded(history, rng.at("trial", number, attempt))
    return found


def _decoded(history: History, generator: "np.random.Generator") -> Params:
    encoder = history.problem.space.encoder
    return encoder.decode_unit_row(generator.random(encoder.dimension).tolist())


def sobol_params(history: History, count: int, rng: Randomness) -> list[Params]:
    """The next `count` points of the sequence, one for each configuration that the history does not have yet."""
    return list(history.problem.space.encoder.decode_unit(sobol_unit(history, count, rng))) if count > 0 else []


def sobol_unit(history: History, count: int, rng: Randomness) -> "np.ndarray":
    """The same as uniform coordinates, shape (count, d)."""
    first, last = history.configurations, history.configurations + count
    dimension = history.problem.space.encoder.dimension
    return _sobol_points(rng.seed, dimension, power=(last - 1).bit_length())[first:last]


@lru_cache(maxsize=8)
def _sobol_points(seed: int, dimension: int, *, power: int) -> "np.ndarray":
    """The first 2^power points; longer sequences begin with the shorter ones."""
    from farthing.models.sobol import sobol_points

    return sobol_points(dimension, power, rng=Randomness(seed).at("sobol"))


def new_ones(design: Sequence[Params], history: History) -> list[Params]:
    """The configurations of a design that were not tried yet: if parameters have few values, points coincide."""
    tried = [trial.params for trial in history]
    found: list[Params] = []
    for params in design:
        if params not in tried and params not in found:
            found.append(params)
    return found
