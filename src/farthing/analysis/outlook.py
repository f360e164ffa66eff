"""The outlook: the expected gain of another stretch of cost, and whether it is worth its price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.acquisition.maximize import perturbed
from farthing.analysis.lines import CODES, Lines
from farthing.analysis.model import FEWEST, quick_model_of
from farthing.analysis.sampling import chosen_places
from farthing.errors import NoResult
from farthing.models.gp import GP
from farthing.models.linalg import Array, IntArray, one_thread
from farthing.models.sobol import sobol_points
from farthing.space.encoding import Encoder
from farthing.strategies.shared.modelling import domain_of
from farthing.trials import History, Json, Params, Problem, State, Trial

if TYPE_CHECKING:
    from farthing.costs import Remaining, Worth


# ------------------------------------------------------------
# What further evaluations may gain: draws of the posterior say where they would be made, and what they would find.
#
#     gain_k = f(x*) − min(f(x*), f(x_1), …, f(x_k)),    x_t = argmin of another draw
#
# x* is the incumbent, whose own value is drawn too, so that a lucky measurement promises no more than it is worth.


DRAWS = 256
"""Draws of the posterior, half of them to search by and half to find out. A limit on time, not tuned."""


def draw_paths(gp: GP, rows: Array, incumbent: Array, *, rng: np.random.Generator) -> Array:
    """f at the rows (M, D) and, in the last column, at the incumbent (D,): (DRAWS, M + 1)."""
    return gp.sample(np.concatenate([rows, incumbent[None, :]]), DRAWS, rng=rng)


def least_found(paths: Array, most: int, *, rng: np.random.Generator) -> Array:
    """The least f after 0, 1, …, `most` evaluations (DRAWS/2, most + 1); after none it is the incumbent's."""
    half = paths.shape[0] // 2
    wanted, outcomes = np.argmin(paths[:half], axis=1), paths[half:]
    picks = wanted[rng.integers(half, size=(outcomes.shape[0], most))]
    found = np.take_along_axis(outcomes, picks, axis=1)
    return np.minimum.accumulate(np.concatenate([outcomes[:, -1:], found], axis=1), axis=1)


POWER, BESIDE = 8, 64
"""2^8 = 256 points all over the space and 64 beside the best one stand for all that could be tried. Limits on time."""
NEARNESS = (1.0, 0.3, 0.1)
"""How far those beside it are, of what a search considers near. A guess, not tuned."""
MOST = 64
"""Further configurations that are looked ahead at most. A limit on time."""
LEVEL = 0.8
"""Of the interval."""
BACK = 2
"""The upper end of the interval is at least what the last configurations brought, this many times as many as those
ahead: draws of one model know nothing of what a search learns on its way, and a model is wrong in its own way.
A guess, no other is on record."""
CAUTION = 2.5
"""Factor of the upper end of what is drawn, before a run is ended by it. What the last ones brought is not asked here:
it falls only after the gains have ended, and most of what could be saved is spent by then. Chosen on 8 runs of `LogEI`
on four of `TUNING_FUNCTIONS` in `benchmarks/problems/synthetic.py`, as the factor with which 80 % of what came is below
the upper end; not recorded."""


@dataclass(frozen=True)
class Outlook:
    """The gain that another `cost` is expected to bring, in the units of the value; more is better.

    With 80 % it is between `low` and `high`. `trials` is the number of configurations that the cost pays for, at the
    pace of the study so far.
    """

    cost: float
    expected: float
    low: float
    high: float
    trials: int
    value: str
    unit: str

    def __str__(self) -> str:
        return (
            f"another {self.cost:.4g} {self.unit} (about {self.trials} configurations) are expected to improve "
            f"{self.value} by {self.expected:.2g}, with 80 % by {self.low:.2g} to {self.high:.2g}"
        )

    def to_json(self) -> dict[str, Json]:
        return {
            "cost": self.cost,
            "expected": self.expected,
            "low": self.low,
            "high": self.high,
            "trials": self.trials,
            "value": self.value,
            "unit": self.unit,
        }


@dataclass(frozen=True, eq=False)
class Prospects:
    """`gains` (draws, k + 1) has what 0, 1, …, k further configurations bring, `past` what the last 0, 1, … brought.

    A configuration costs `price`.
    """

    history: History
    gains: Array
    past: Array
    price: float

    @classmethod
    def of(cls, history: History, *, price: float | None = None) -> "Prospects":
        """Raises `NoResult` if too little is known for a model. The price is that of the history unless it is given."""
        if not history.problem.is_simple:
            raise NoResult(
                f"An outlook is of one value without limits, got {history.problem.aim}. Look at study.front instead."
            )
        tried = _tried(history)
        if len(tried) < FEWEST:
            raise NoResult(
                f"An outlook needs at least {FEWEST} configurations with a result, got {len(tried)}. "
                "Run some more first."
            )
        with one_thread():
            gains, past = _gains(history, tried)
        return cls(history, gains, past, _price(history) if price is None else price)

    def outlook(self, cost: float | None) -> Outlook:
        amount = self.price * 10 if cost is None else cost
        trials = _count(amount, self.price)
        gains = self.gains[:, trials]
        expected, (low, high) = float(gains.mean()), _interval(gains)
        high = max(high, expected, float(self.past[BACK * trials]))
        problem = self.history.problem
        return Outlook(float(amount), expected, low, high, trials, problem.value, problem.cost_unit)

    def is_worthless(self, worth: "Worth", remaining: "Remaining") -> bool:
        """Whether no number of further configurations that could be paid for is worth its price.

        The upper end of what is drawn is asked, with caution, not the middle: by the expected gain alone runs ended
        long before they had found anything, because a model of few trials is too sure of itself.
        """
        most = int(min(MOST, remaining.trials, _count(remaining.cost, self.price)))
        counts = np.arange(1, max(1, most) + 1)
        return bool(np.all(worth.price_of(self.hoped_for(counts)) < counts * self.price))

    def hoped_for(self, counts: int | IntArray) -> Array:
        """The gain of these numbers of configurations that a run is continued for."""
        return CAUTION * self._upper(counts)

    def _upper(self, counts: int | IntArray) -> Array:
        """The upper end of the interval of what is drawn, for each of these numbers of configurations."""
        return np.asarray(np.quantile(self.gains[:, counts], (1.0 + LEVEL) / 2.0, axis=0))


def _interval(gains: Array) -> tuple[float, float]:
    """The interval with LEVEL of the gains: as many below it as above, or, since none is below zero, from there on."""
    low, high = np.quantile(gains, ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
    return (float(low), float(high)) if low > 0.0 else (0.0, float(np.quantile(gains, LEVEL)))


def is_worthless(history: History, worth: "Worth", remaining: "Remaining") -> bool:
    """Whether going on is not worth its price, after the last trial and already after the one before it.

    Once is not enough, and nothing is said before there are twice the configurations of an initial design: with both
    rules a third of the cost was saved and 0.011 of the way from the median to the best of random search lost, where
    the first verdict alone lost 0.029 (8 runs of `LogEI` on four of `TUNING_FUNCTIONS`, an evaluation worth 0.01).
    """
    ended = [trial.number for trial in history if trial.is_finished]
    if history.configurations < 2 * (history.problem.space.encoder.dimension + 2):
        return False
    try:
        return all(Prospects.of(one).is_worthless(worth, remaining) for one in (history, history.before(ended[-1])))
    except NoResult:
        return False


def _count(cost: float, price: float) -> int:
    return MOST if price <= 0.0 or cost == float("inf") else min(MOST, max(1, round(cost / price)))


def _price(history: History) -> float:
    """The cost of a configuration, by those that cost something: results from elsewhere may be without a cost."""
    return history.cost / max(1, sum(trial.resume_from is None and trial.cost > 0.0 for trial in history))


def _tried(history: History) -> list[Params]:
    """The configurations with a result, in the order of their first one."""
    done = [trial for trial in history.done if trial.value is not None]
    return list({tuple(sorted(trial.params.items())): trial.params for trial in done}.values())


def _gains(history: History, tried: Sequence[Params]) -> tuple[Array, Array]:
    model = quick_model_of(history)
    gp, full, values = model.gp, model.rows, model.values
    encoder, rng = history.problem.space.encoder, np.random.default_rng([history.problem.seed, len(history)])
    seen = encoder.encode(tried)
    means = gp.mean(full(seen))
    incumbent = seen[int(np.argmin(means))]
    everywhere = encoder.from_unit(sobol_points(encoder.dimension, POWER, rng=rng))
    rows = full(np.concatenate([everywhere, _beside(incumbent, encoder, rng)]))
    least = least_found(draw_paths(gp, rows, full(incumbent[None, :])[0], rng=rng), MOST, rng=rng)
    found = history.problem.sign * values(least)
    return np.maximum(0.0, found[:, :1] - found), _brought(history.problem.sign * values(means))


def _brought(losses: Array) -> Array:
    """The gains of the last 0, 1, 2, … of these, all of them after the first if there are not as many."""
    best = np.minimum.accumulate(losses)
    before = np.maximum(0, best.size - 1 - np.arange(BACK * MOST + 1))
    return np.asarray(best[before] - best[-1])


def _beside(incumbent: Array, encoder: Encoder, rng: np.random.Generator) -> Array:
    """Rows beside the incumbent, nearer and nearer: late in a study that is where improvements are."""
    complete = np.nan_to_num(incumbent, nan=0.5)
    moved = perturbed(domain_of(encoder), complete[None, :], BESIDE, rng=rng)
    is_number = ~np.isin(np.arange(complete.size), list(encoder.categories))
    nearness = np.array(NEARNESS)[np.arange(BESIDE) % len(NEARNESS)][:, None]
    return encoder.snap(np.where(is_number, complete + nearness * (moved - complete), moved))


def costs_without_gain(history: History) -> float:
    """The cost since a trial last had a better value than all before that were trained at least as far."""
    front: list[tuple[float, float]] = []
    spent, done = 0.0, {trial.number for trial in history.done}
    for trial in history:
        spent += trial.cost
        if trial.number not in done or trial.value is None:
            continue
        reach, loss = history.reach(trial), history.loss(trial.value)
        if not any(other >= reach and best <= loss for other, best in front):
            front.append((reach, loss))
            spent = 0.0
    return spent


# ------------------------------------------------------------
# What going on is expected to bring, for a page: of a long study by some of its runs.


Read = Callable[[Sequence[int]], Sequence[Trial]]
"""Reads some trials whole, by their numbers."""


def outlook_of_some(lines: Lines, problem: Problem, read: Read, *, most: int) -> Outlook:
    """The outlook by at most `most` runs; the price of a configuration is that of the whole study."""
    configurations = sum(source is None for source in lines.resume_from)
    history = History(problem, renumbered(read(promising_runs(lines, problem, most=most))))
    return Prospects.of(history, price=lines.total / max(1, configurations)).outlook(None)


def promising_runs(lines: Lines, problem: Problem, *, most: int) -> list[int]:
    """The trials of some runs: those that went furthest with the best values, and an even choice of the others."""
    sources = np.array([-1 if source is None else source for source in lines.resume_from], dtype=int)
    is_last = np.ones(len(lines), dtype=bool)
    is_last[sources[sources >= 0]] = False
    last = np.flatnonzero(is_last & (lines.codes == CODES[State.DONE.value]) & np.isfinite(lines.value))
    ranked = np.lexsort((problem.sign * lines.value[last], -lines.reach(problem, last)))
    keep = np.zeros(last.size, dtype=bool)
    keep[ranked[: most // 2]] = True
    found: set[int] = set()
    for place in last[chosen_places(last.size, most, keep=keep)].tolist():
        while place >= 0 and place not in found:
            found.add(place)
            place = int(sources[place])
    return sorted(found)


def renumbered(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with numbers without gaps, as a history has them; what they continue is renumbered with them."""
    place = {trial.number: at for at, trial in enumerate(trials)}
    sources = [None if trial.resume_from is None else place[trial.resume_from] for trial in trials]
    return [
        replace(trial, number=at, suggestion=replace(trial.suggestion, resume_from=source))
        for at, (trial, source) in enumerate(zip(trials, sources, strict=True))
    ]
