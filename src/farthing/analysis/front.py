"""The front of several objectives and limits, judged by models: a lucky measurement makes no point of it.

A configuration is on the front if none other is expected to be as good in every objective and better in one. What is
expected to exceed a limit is not on it. Configurations are compared where they were trained furthest.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

import numpy as np

from farthing.acquisition.hypervolume import hypervolume, non_dominated
from farthing.analysis.sampling import thinned
from farthing.analysis.text import html_table, short_params, short_prediction, text_table
from farthing.errors import InvalidArgument, NoResult
from farthing.fields import Number
from farthing.models.fitting import Standardise, fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array, one_thread
from farthing.models.sobol import sobol_points
from farthing.strategies.shared.modelling import kernel_over
from farthing.strategies.shared.several import compression_beyond, failure_model
from farthing.strategies.shared.surrogate import Compression, active_rows
from farthing.trials import History, Json, Params, Prediction, Problem, State, Trial
from farthing.trials.objectives import (
    COST,
    AtLeast,
    AtMost,
    Bound,
    MeasuredFront,
    Succeeds,
    attained,
    bounds_of,
    is_feasible,
    losses_of,
    values_of,
)
from farthing.validation import listed, refuse_unknown, shown

NOISES = np.array([1e-6, 1e-3, 1e-2, 0.1, 0.4])
"""Shares of noise in the variance of a value that models are averaged over, all as likely before any result: of a few
results the one likeliest share says little. A guess: from none to nearly half, by orders of magnitude."""

QUIET = 1e-4
"""Expected share of noise below which values are taken as they were measured: a model that smooths what has no noise
would part ties. A guess: the noise is then less than a hundredth of how much the values differ."""

MOST_FITTED = 200
"""Results up to which all tell noise from signal; of more, that many. A limit on time: five fits of 200 take 0.2 s."""

BEYOND = 0.1
"""How far the reference of the hypervolume lies beyond the worst result within the limits, as a share of the extent of
all. The extent of the last front alone would be none where one configuration is the best of every objective."""


@dataclass(frozen=True)
class FrontPoint:
    """A configuration: `values` as they were measured, `predicted` as a model expects them to be on average, both by
    name, and `feasibility`, the probability that it keeps every limit; None before any could be broken.
    """

    trial: Trial
    values: Mapping[str, float]
    predicted: Mapping[str, Prediction]
    feasibility: float | None = None

    @property
    def params(self) -> Params:
        return self.trial.params

    def to_json(self) -> dict[str, Json]:
        return {
            "trial": self.trial.number,
            "params": dict(self.params),
            "fidelity": dict(self.trial.fidelity),
            "values": dict(self.values),
            "predicted": {name: [one.mean, one.deviation] for name, one in self.predicted.items()},
            "feasibility": self.feasibility,
        }


@dataclass(frozen=True, repr=False)
class Front(Sequence[FrontPoint]):
    """The configurations that no other is expected to beat, the best in the first objective first.

    `others` are dominated, or not expected to keep the limits. `is_full` says that all were trained to the end.
    `hypervolume` is measured from `reference`, a tenth beyond the worst results within the limits; empty without any.
    """

    problem: Problem
    points: tuple[FrontPoint, ...]
    others: tuple[FrontPoint, ...] = ()
    is_full: bool = True
    reference: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, history: History) -> "Front":
        """The front so far; it is empty before anything is expected to keep the limits."""
        return front_among(history, judged(history))

    @overload
    def __getitem__(self, index: int) -> FrontPoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FrontPoint]: ...
    def __getitem__(self, index: int | slice) -> FrontPoint | Sequence[FrontPoint]:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[FrontPoint]:
        return iter(self.points)

    @property
    def hypervolume(self) -> float:
        """The volume between the front and `reference`, in the product of the objectives' units; 0 of an empty one.

        With more than four objectives it is estimated, within about a hundredth of the box from the best of each.
        """
        if not self.points or not self.reference:
            return 0.0
        reference = np.array([one.loss(self.reference[one.name]) for one in self.problem.objectives])
        return volume_of(predicted_losses(self.problem, self.points), reference)

    @cached_property
    def for_sums(self) -> dict[float, FrontPoint]:
        """The best for 1, 10, 100 dollars, where the cost is to be minimised beside others: by sums that pay for it.

        It is what `study.pick(cost=ft.AtMost(10))` picks. A sum that buys no more than a smaller one is left out.
        """
        if not any(one.name == COST and one.minimize for one in self.problem.further):
            return {}
        found = dict[float, FrontPoint]()
        for most in round_sums([point.predicted[COST].mean for point in self.points]):
            within = tuple(point for point in self.points if point.predicted[COST].mean <= most)
            best = best_within(replace(self, points=within), {COST: AtMost(most)})
            if best not in found.values():
                found[most] = best
        return found

    def table(self) -> list[list[str]]:
        """A header and a row for each point; predicted values with one standard deviation."""
        return [["trial", *self._columns], *([str(point.trial.number), *self._cells(point)] for point in self.points)]

    def sums_table(self) -> list[list[str]]:
        """The same of `for_sums`; empty where there are none."""
        unit = self.problem.cost_unit
        rows = [
            [f"{most:g} {unit}", str(point.trial.number), *self._cells(point)] for most, point in self.for_sums.items()
        ]
        return [["the best for", "trial", *self._columns], *rows] if rows else []

    @property
    def _columns(self) -> list[str]:
        has_limits = any(point.feasibility is not None for point in self.points)
        named = [f"{name} ({self.problem.cost_unit})" if name == COST else name for name in self.problem.named]
        return [*named, *(["keeps limits"] if has_limits else []), "params"]

    def _cells(self, point: FrontPoint) -> list[str]:
        return [
            *(short_prediction(point.predicted[name]) for name in self.problem.named),
            *([] if point.feasibility is None else [f"{point.feasibility:.0%}"]),
            short_params({**point.trial.fidelity, **point.params}),
        ]

    @property
    def title(self) -> str:
        """How large the front is, in words."""
        among = len(self.points) + len(self.others)
        if not self.points:
            return f"None of {among} configurations is expected to keep the limits yet."
        place = "" if self.is_full else ", none of them trained to the end"
        return f"{len(self.points)} of {among} configurations are on the front{place} ({self.problem.aim})."

    def __repr__(self) -> str:
        sums = [text_table(self.sums_table()), ""] if self.for_sums else []
        return "\n".join([self.title, *sums, *([text_table(self.table())] if self.points else [])])

    def _repr_html_(self) -> str:
        tables = [html_table(rows) for rows in (self.sums_table(), self.table() if self.points else []) if rows]
        return "".join([f"<p>{self.title}</p>", *tables])

    def to_json(self) -> dict[str, Json]:
        return {
            "aim": self.problem.aim,
            "points": [point.to_json() for point in self.points],
            "others": [point.to_json() for point in self.others],
            "for_sums": [{"sum": most, "trial": point.trial.number} for most, point in self.for_sums.items()],
            "is_full": self.is_full,
            "reference": dict(self.reference),
            "hypervolume": self.hypervolume,
        }


def front_among(history: History, points: Sequence[FrontPoint], *, limits: Mapping[str, Bound] | None = None) -> Front:
    """The front of these configurations, among those that are expected to keep the problem's limits and these."""
    problem = history.problem
    keeps = np.array([keeps_limits(problem, point, limits or {}) for point in points], dtype=bool)
    is_on = np.zeros(len(points), dtype=bool)
    if keeps.any():
        places = np.flatnonzero(keeps)
        is_on[places[non_dominated(predicted_losses(problem, [points[place] for place in places.tolist()]))]] = True
    first = problem.objectives[0]
    chosen = sorted(
        (point for point, on in zip(points, is_on, strict=True) if on),
        key=lambda point: (first.loss(point.predicted[first.name].mean), point.trial.number),
    )
    others = tuple(point for point, on in zip(points, is_on, strict=True) if not on)
    is_full = all(problem.is_full(point.trial.fidelity) for point in points)
    return Front(problem, tuple(chosen), others, is_full, reference_of(history))


MOST_SUMS = 6
"""Sums up to which 2 and 5 stand between powers of ten: of more a table is no glance."""


def round_sums(prices: Sequence[float]) -> list[float]:
    """1, 2, 5, 10, … or powers of ten, from one that pays the least price above zero to one that pays all."""
    paid = [price for price in prices if price > 0.0]
    if not paid:
        return []
    least, most = min(paid), max(paid)
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 2)
    for steps in ((1, 2, 5), (1,)):
        sums = [one for power in powers for step in steps if (one := float(f"{step}e{power}")) >= least]
        sums = sums[: 1 + sum(one < most for one in sums)]
        if len(sums) <= MOST_SUMS:
            break
    return sums


def keeps_limits(problem: Problem, point: FrontPoint, limits: Mapping[str, Bound]) -> bool:
    """Whether the means keep every limit of the problem, and these others, and its own with an even chance for each.

    The mean of several models may keep a limit that most of them do not.
    """
    every = [*bounds_of(problem).items(), *limits.items()]
    has_a_chance = point.feasibility is None or point.feasibility >= 0.5 ** len(problem.constraints) - 1e-9
    return has_a_chance and all(limit.excess(point.predicted[name].mean) <= 0.0 for name, limit in every)


def predicted_losses(problem: Problem, points: Sequence[FrontPoint]) -> Array:
    """The predicted objectives (n, m), with their signs turned so that less is better."""
    return np.array(
        [[one.loss(point.predicted[one.name].mean) for one in problem.objectives] for point in points], dtype=float
    ).reshape(len(points), len(problem.objectives))


def reference_of(history: History) -> dict[str, float]:
    """A point beyond the worst of all results within the limits by a tenth of their extent, as values by name."""
    problem = history.problem
    losses = np.array([losses_of(problem, values) for one in history if (values := attained(problem, one)) is not None])
    if not losses.size:
        return {}
    beyond = point_beyond(losses.min(axis=0), losses.max(axis=0))
    return {one.name: one.sign * float(at) for one, at in zip(problem.objectives, beyond, strict=True)}


def point_beyond(least: Array, most: Array) -> Array:
    """A tenth of the extent beyond the worst losses; without an extent, a tenth of their size."""
    extent = most - least
    return np.asarray(most + BEYOND * np.where(extent > 0.0, extent, np.maximum(np.abs(most), 1e-12)))


MOST_EXACT = 4
"""Objectives up to which hypervolume is exact: of five, a front of a hundred takes three seconds, of six a minute."""

POWER = 13
"""2^13 = 8192 points estimate it for more, with a standard deviation of at most half of 2^−6.5: a hundredth of the box
is two of them at its worst. The same points every time, so that it does not jump."""


def volume_of(losses: Array, reference: Array) -> float:
    """The hypervolume of losses (n, m) below a reference (m,)."""
    if losses.shape[1] <= MOST_EXACT:
        return hypervolume(losses, reference)
    best = losses.min(axis=0)
    points = sobol_points(reference.size, POWER, rng=np.random.default_rng(0)) * (reference - best) + best
    is_dominated = np.zeros(len(points), dtype=bool)
    for row in losses:
        is_dominated |= np.all(row <= points, axis=1)
    return float(is_dominated.mean() * np.prod(reference - best))


# ------------------------------------------------------------
# What models say of the configurations seen.


def judged(history: History) -> list[FrontPoint]:
    """Every configuration that was trained as far as any, with what models expect of it; the latest trial of each.

    Raises `NoResult` before any trial is done.
    """
    problem, encoder = history.problem, history.problem.space.encoder
    done = [(trial, values) for trial in history.eligible if (values := values_of(problem, trial)) is not None]
    if not done:
        raise NoResult(f"A front is of trials that are done, got none among {len(history)} trials. Run some first.")
    reaches = [history.reach(trial) for trial, _ in done]
    ended = [one for one, reach in zip(done, reaches, strict=True) if reach == max(reaches)]
    rows = encoder.encode([trial.params for trial, _ in ended])
    places: dict[bytes, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row.tobytes(), []).append(place)
    alike = list(places.values())
    columns = {name: np.array([known[name] for _, known in ended]) for name in problem.named}
    with one_thread():
        found = {name: _expected(history, rows, alike, columns, name=name) for name in problem.named}
        chances = [found[name].chances for name in bounds_of(problem)] + _chances_of_success(history, rows, alike)
    feasibility = np.prod(chances, axis=0) if chances else None
    points = []
    for i, several in enumerate(alike):
        trial, values = ended[several[-1]]
        predicted = {name: found[name].predicted[i] for name in problem.named}
        points.append(FrontPoint(trial, values, predicted, None if feasibility is None else float(feasibility[i])))
    return points


@dataclass(frozen=True, eq=False)
class _Expected:
    """Of each configuration the expected value of one name, and the probability that it keeps its limit."""

    predicted: list[Prediction]
    chances: Array


def _expected(
    history: History, rows: Array, alike: Sequence[list[int]], values: Mapping[str, Array], *, name: str
) -> _Expected:
    """`rows` and `values` are of results; `alike` has for each configuration the places of its own."""
    problem, own = history.problem, values[name]
    means = np.array([own[several].mean() for several in alike])
    limit = bounds_of(problem).get(name)
    is_kept = np.array([limit is None or limit.excess(mean) <= 0.0 for mean in means], dtype=float)
    if not history.is_noisy or _repeats_agree(own, alike):
        return _Expected([Prediction(float(mean), 0.0) for mean in means], is_kept)
    scale = _Scale.of(problem, name, own, _proportionate(problem, values, name))
    weights, processes = _processes(kernel_over(problem.space.encoder), rows, scale.apply(own))
    found = [gp.predict(rows[[several[0] for several in alike]]) for gp in processes]
    mean, variance = np.array([one for one, _ in found]), np.array([one for _, one in found])
    average = weights @ mean
    predicted = scale.predictions(average, weights @ (variance + (mean - average) ** 2))
    if weights @ NOISES < QUIET:
        measured = [Prediction(float(mean), one.deviation) for mean, one in zip(means, predicted, strict=True)]
        return _Expected(measured, is_kept)  # also on the very edge of a limit, where a good search ends
    return _Expected(
        predicted, np.ones(means.size) if limit is None else weights @ scale.chances(mean, variance, limit)
    )


def _repeats_agree(own: Array, alike: Sequence[list[int]]) -> bool:
    """Whether a configuration was measured again, and each one that was gave the same value again."""
    repeated = [several for several in alike if len(several) > 1]
    return bool(repeated) and all(np.ptp(own[several]) == 0.0 for several in repeated)


def _processes(kernel: Kernel, X: Array, y: Array) -> tuple[Array, list[GP]]:
    """A process for each of `NOISES`, at its own best hyperparameters, and the weight of each by its density there."""
    weights, processes, theta, active = np.zeros(NOISES.size), list[GP](), None, active_rows(y)
    for noise in NOISES.tolist():
        posterior = hyperparameter_posterior(kernel, X[active], y[active], noise=noise)
        few = posterior.thinned(MOST_FITTED)
        theta = fit(few, warm_start=theta)
        weights[len(processes)] = few.value_and_gradient(theta[None, :])[0][0]
        processes.append(posterior.process(theta))
    weights = np.exp(weights - weights.max())
    return weights / weights.sum(), processes


def _proportionate(problem: Problem, values: Mapping[str, Array], name: str) -> float:
    """The loss up to which proportions are kept, as in `fit_many`: the worst of the measured front, or the limit."""
    losses = np.stack([one.sign * values[one.name] for one in problem.objectives], axis=1)
    names = [one.name for one in problem.objectives]
    if name in names:
        return float(losses[non_dominated(losses), names.index(name)].max())
    return _sign_of(problem, name) * bounds_of(problem)[name].bound


def _sign_of(problem: Problem, name: str) -> float:
    """1 or −1: times a value it gives a loss, of which less is better."""
    signs = {one.name: one.sign for one in problem.objectives}
    return signs.get(name, -1.0 if isinstance(bounds_of(problem).get(name), AtLeast) else 1.0)


@dataclass(frozen=True)
class _Scale:
    """From values to what the processes see: losses, compressed and standardised."""

    sign: float
    compression: Compression
    unit: Standardise

    @classmethod
    def of(cls, problem: Problem, name: str, values: Array, proportionate: float) -> "_Scale":
        sign = _sign_of(problem, name)
        compression = compression_beyond(sign * values, proportionate)
        return cls(sign, compression, Standardise.of(compression.apply(sign * values)))

    def apply(self, values: Array) -> Array:
        return self.unit.apply(self.compression.apply(self.sign * values))

    def predictions(self, mean: Array, variance: Array) -> list[Prediction]:
        """The values, in the user's units."""
        z = self.unit.undo(mean)
        deviation = np.sqrt(self.unit.undo_variance(variance)) * self.compression.slope(z)
        return list(map(Prediction, (self.sign * self.compression.undo(z)).tolist(), deviation.tolist()))

    def chances(self, mean: Array, variance: Array, limit: Bound) -> Array:
        """The probability that each keeps the limit: Φ((b − μ)/σ)."""
        from scipy.special import ndtr

        z = (self.apply(np.array([limit.bound])) - mean) / np.sqrt(variance)
        return np.asarray(ndtr(z if isinstance(limit, AtMost) == (self.sign > 0.0) else -z))


def _chances_of_success(history: History, rows: Array, alike: Sequence[Sequence[int]]) -> list[Array]:
    """The probability that each configuration does not fail, once, if `ft.Succeeds()` asks and any has failed."""
    from scipy.special import ndtr

    problem = history.problem
    ended = [trial for trial in history if trial.state in (State.DONE, State.FAILED)]
    failed = np.array([trial.state is State.FAILED for trial in ended])
    if not any(isinstance(one, Succeeds) for one in problem.constraints.values()) or not failed.any():
        return []
    model = failure_model(problem.space.encoder.encode([trial.params for trial in ended]), failed, history)
    mean, variance = model.gp.predict(rows[[several[0] for several in alike]])
    return [np.asarray(ndtr((model.apply(0.0) - mean) / np.sqrt(np.maximum(variance, 1e-18))))]


# ------------------------------------------------------------
# One of the front.


@dataclass(frozen=True)
class FrontChoice:
    """A configuration, and in words how it was chosen."""

    point: FrontPoint
    how: str
    front: Front


def chosen(front: Front) -> FrontChoice:
    """The best of one objective, or the knee of several; before anything keeps the limits, what is nearest to that."""
    problem = front.problem
    if not front.points:
        how = "No configuration is expected to keep the limits yet; this is the likeliest to"
        return FrontChoice(_nearest(front), how, front)
    if not problem.further:
        return FrontChoice(front.points[0], f"Best {problem.value} within the limits", front)
    return FrontChoice(knee(front), f"The knee of a front of {len(front)}", front)


def knee(front: Front) -> FrontPoint:
    """The point nearest to the best of every objective at once, each scaled to the front's own extent."""
    return front.points[place_of_knee(predicted_losses(front.problem, front.points))]


def place_of_knee(losses: Array) -> int:
    """The row of a front (n, m) that is nearest to the best of every loss at once, scaled to the front's extent."""
    extent = np.ptp(losses, axis=0)
    scaled = (losses - losses.min(axis=0)) / np.where(extent > 0.0, extent, 1.0)
    return int(np.argmin(np.sum(scaled**2, axis=1)))


def starts_of(front: Front) -> list[Params]:
    """Configurations for a similar study to begin with: the knee, then the best of each objective."""
    if not front.points:
        return [_nearest(front).params]
    ends = [_least(front, {one.name: 1.0}) for one in front.problem.objectives]
    return [point.params for point in [knee(front), *ends]]


def _nearest(front: Front) -> FrontPoint:
    """The configuration most likely to keep the limits; of several, the one that exceeds them least."""
    bounds, means = bounds_of(front.problem), [point.predicted for point in front.others]
    beyond = np.array([[max(0.0, limit.excess(mean[name].mean)) for name, limit in bounds.items()] for mean in means])
    most = beyond.max(axis=0, initial=0.0)
    total = (beyond / np.where(most > 0.0, most, 1.0)).sum(axis=1)
    order = np.lexsort((total, [-round(point.feasibility or 0.0, 6) for point in front.others]))
    return front.others[int(order[0])]


ADVICE = "Write study.pick(error=1, latency=0.1), or study.pick(latency=ft.AtMost(5))."


def picked(history: History, wishes: Mapping[str, object]) -> FrontChoice:
    """The configuration that these weights and limits choose among those seen.

    A weight says what a unit of its objective is worth: the weighted sum of the predicted objectives is the least, of
    those to maximise with a minus. A limit leaves out what is not expected to keep it. With limits alone the one
    objective that has none decides, or the knee of what is left.
    """
    problem = history.problem
    if not wishes:
        raise InvalidArgument(f"A choice needs weights or limits, got none. {ADVICE}")
    refuse_unknown(wishes, problem.named, what="Objectives and limited quantities", error=InvalidArgument)
    limits = {name: wish for name, wish in wishes.items() if isinstance(wish, Bound)}
    names = [one.name for one in problem.objectives]
    weights: dict[str, float] = {}
    for name, wish in wishes.items():
        if name in limits:
            continue
        if name not in names:
            raise InvalidArgument(
                f"Only objectives have weights, got {name}={shown(wish)}; {name!r} is limited. Give it a limit."
            )
        weights[name] = float(Number(least=0.0).checked(wish, what=f"The weight of {name!r}", advice=ADVICE))
    if weights and not any(weights.values()):
        given = ", ".join(f"{name}={weight:g}" for name, weight in weights.items())
        raise InvalidArgument(f"At least one weight must be above 0, got {given}. {ADVICE}")
    front = front_among(history, judged(history), limits=limits)
    if not front.points:
        wanted = [f"{name} {limit}" for name, limit in [*bounds_of(problem).items(), *limits.items()]]
        raise NoResult(
            f"A choice must be expected to keep {listed(wanted)}, got none of {len(front.others)} configurations that "
            "is. Relax a limit, or run on."
        )
    within = f" within {', '.join(f'{name} {limit}' for name, limit in limits.items())}" if limits else ""
    if weights:
        total = " + ".join(f"{weight:g}·{name}" for name, weight in weights.items())
        return FrontChoice(_least(front, weights), f"The best {total}{within}", front)
    free = [name for name in names if name not in limits]
    what = f"best {free[0]}" if len(free) == 1 else f"knee of a front of {len(front)}"
    return FrontChoice(best_within(front, limits), f"The {what}{within}", front)


def best_within(front: Front, limits: Mapping[str, Bound]) -> FrontPoint:
    """The best of a front under these limits: of the one objective that has none, or the knee where several have."""
    free = [one.name for one in front.problem.objectives if one.name not in limits]
    return _least(front, {free[0]: 1.0}) if len(free) == 1 else knee(front)


def _least(front: Front, weights: Mapping[str, float]) -> FrontPoint:
    signed = {one.name: one.sign * weights.get(one.name, 0.0) for one in front.problem.objectives}
    weighed = {name: sign for name, sign in signed.items() if sign}
    return min(front.points, key=lambda point: sum(by * point.predicted[name].mean for name, by in weighed.items()))


# ------------------------------------------------------------
# What was attained for the cost, as it was measured.


@dataclass(frozen=True)
class Attained:
    """A trial that ended, what all trials up to it had cost, and what was attained by then.

    `found` is the hypervolume of what was measured within the limits, or of one objective the best value; None before
    there is any. `within` is the share of the results that keep all limits.
    """

    trial: Trial
    spent: float
    found: float | None
    within: float | None


def attained_along(history: History) -> list[Attained]:
    """In the order in which the trials ended."""
    problem = history.problem
    ended = sorted((trial for trial in history if trial.is_finished), key=lambda trial: trial.finished_at or 0.0)
    worst = reference_of(history)
    reference = np.array([one.loss(worst[one.name]) for one in problem.objectives if worst])
    steps: list[Attained] = []
    front, spent, found, results, kept = MeasuredFront(), 0.0, None, 0, 0
    for trial in ended:
        spent += trial.cost
        later = front.after(trial, problem)
        if later is not front:
            front, now = later, _found(problem, later, reference)
            found = max(found or 0.0, now) if problem.further else now  # an estimated volume may fall a little
        values = values_of(problem, trial) if trial.state is State.DONE else None
        results, kept = results + (values is not None), kept + (values is not None and is_feasible(problem, values))
        steps.append(Attained(trial, spent, found, kept / results if results else None))
    return steps


def _found(problem: Problem, front: MeasuredFront, reference: Array) -> float:
    losses = np.array([losses_of(problem, values_of(problem, trial) or {}) for trial in front.trials])
    if not problem.further:
        return problem.sign * float(losses.min())
    return volume_of(losses, reference)


# ------------------------------------------------------------
# The data of a page.


MOST_SHOWN = 1_000
"""Configurations beside the front, and steps along the cost, that a page draws. A limit on time."""


def front_form(history: History) -> dict[str, Json]:
    """The front, what is beside it, what was attained along the cost, and the limits with the values under them."""
    problem, steps = history.problem, thinned(attained_along(history), MOST_SHOWN)
    front = Front.of(history)
    best = chosen(front)
    measured = [values_of(problem, step.trial) for step in steps]
    return {
        "title": front.title,
        "how": best.how,
        "best": best.point.trial.number,
        "objectives": [{"name": one.name, "minimize": one.minimize} for one in problem.objectives],
        "points": [point.to_json() for point in front],
        "for_sums": [{"sum": most, **point.to_json()} for most, point in front.for_sums.items()],
        "others": [
            {**point.to_json(), "keeps": keeps_limits(problem, point, {})}
            for point in thinned(front.others, MOST_SHOWN)
        ],
        "attained": {
            "number": [step.trial.number for step in steps],
            "spent": [step.spent for step in steps],
            "found": [step.found for step in steps],
        },
        "limits": [
            {
                "name": name,
                "text": str(limit),
                "bound": limit.bound,
                "values": [None if values is None else values[name] for values in measured],
                "keeps": [values is not None and limit.excess(values[name]) <= 0.0 for values in measured],
            }
            for name, limit in bounds_of(problem).items()
        ],
    }
