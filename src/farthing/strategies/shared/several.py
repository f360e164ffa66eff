"""Several objectives and constraints: the observations of each, their models, and the order of results by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.hypervolume import (
    MOST_OBJECTIVES,
    LogFeasible,
    LogHypervolumeImprovement,
    boxes_of,
    crowding,
    non_dominated,
    ranks,
)
from farthing.models.gp import GP
from farthing.models.linalg import Array, BoolArray
from farthing.strategies.shared.modelling import Observations, costs_of, ended_at_full, kernel_over, pending_rows
from farthing.strategies.shared.strategy import Randomness
from farthing.strategies.shared.surrogate import Compression, Surrogate, fit_surrogate
from farthing.trials import History, Json, Prediction, Problem, State, Trial
from farthing.trials.objectives import AtMost, Succeeds, bounds_of, excesses, values_of
from farthing.trials.trial import THETA

# ------------------------------------------------------------
# The order of results.


def places(losses: Array, excess: Array) -> Array:
    """The place of each result, 0 for the best, (n,): by losses (n, m) and by how far limits are exceeded (n, c).

    What keeps all limits comes first, by its rank, the less crowded first; then the rest, by how far it exceeds them
    (Deb et al., 2002). What has no result (NaN) is last.
    """
    is_known = ~_is_missing(losses) & ~_is_missing(excess)
    beyond = np.where(is_known[:, None], np.maximum(excess, 0.0), 0.0)
    most = beyond.max(axis=0, initial=0.0)
    violation = np.where(is_known, (beyond / np.where(most > 0.0, most, 1.0)).sum(axis=1), np.inf)
    rank, room = np.full(len(losses), len(losses)), np.zeros(len(losses))
    kept = np.flatnonzero(violation == 0.0)
    rank[kept] = ranks(losses[kept])
    for one in np.unique(rank[kept]):
        level = kept[rank[kept] == one]
        room[level] = crowding(losses[level])
    found = np.empty(len(losses))
    found[np.lexsort((np.arange(len(losses)), -room, rank, violation))] = np.arange(len(losses))
    return found


def _is_missing(rows: Array) -> BoolArray:
    """Whether a row has a number that is not known, (n,)."""
    return np.asarray(np.any(~np.isfinite(rows), axis=1))


Excesses: TypeAlias = Mapping[int, Array]
"""How far trials are expected beyond each limit in the end (c,), by their numbers, where it is not as measured."""


def measured(history: History, trials: Sequence[Trial], expected: Excesses | None = None) -> tuple[Array, Array]:
    """Losses (n, m) and excesses (n, c) of these trials, as they were measured; NaN without a result."""
    problem, signs = history.problem, np.array([one.sign for one in history.problem.objectives])
    losses, excess = np.full((len(trials), signs.size), np.nan), np.full((len(trials), len(bounds_of(problem))), np.nan)
    for i, trial in enumerate(trials):
        values = values_of(problem, trial) if trial.state in (State.DONE, State.PRUNED) else None
        if values is not None:
            losses[i] = signs * [values[one.name] for one in problem.objectives]
            excess[i] = (expected or {}).get(trial.number, excesses(problem, values))
    return losses, excess


def ordered(history: History, trials: Sequence[Trial], expected: Excesses | None = None) -> list[Trial]:
    """The trials, the best first."""
    return [trials[i] for i in np.argsort(places(*measured(history, trials, expected)))]


# ------------------------------------------------------------
# Observations.


@dataclass(frozen=True, eq=False)
class ManyObservations(Observations):
    """Observations of several losses. `loss` is the place of each, so that the best ones are known as of one loss.

    `losses` (n, m) and `excess` (n, c) of a failed trial are the worst seen.
    """

    losses: Array
    excess: Array
    failed: BoolArray


def observe_many(
    history: History, trials: Sequence[Trial] | None = None, expected: Excesses | None = None
) -> ManyObservations:
    """The observations of trials that have ended; by default of all at full fidelity."""
    encoder, ended = history.problem.space.encoder, list(trials or ()) if trials is not None else ended_at_full(history)
    losses, excess = measured(history, ended, expected)
    failed = _is_missing(losses)
    if np.all(failed):
        ended, losses, excess, failed = [], losses[:0], excess[:0], failed[:0]
    else:
        losses, excess = (np.where(failed[:, None], part[~failed].max(axis=0), part) for part in (losses, excess))
    order = places(losses, excess)
    return ManyObservations(
        X=encoder.encode([trial.params for trial in ended]) if ended else np.zeros((0, encoder.dimension)),
        loss=np.where(failed, order.size, order),
        cost=costs_of(ended),
        pending=pending_rows(history),
        losses=losses,
        excess=excess,
        failed=failed,
    )


# ------------------------------------------------------------
# Models of every objective and every limit.


@dataclass(frozen=True, eq=False)
class Models:
    """A process for each objective, and one for each limit with the bound that it must stay below.

    `X` are the configurations seen and those believed; `most` has the limit of each objective, ∞ without one.
    """

    objectives: tuple[GP, ...]
    limits: tuple[tuple[GP, float], ...]
    most: Array
    X: Array

    @cached_property
    def means(self) -> Array:
        """Of the objectives at what was seen, (n, m)."""
        return np.stack([gp.mean(self.X) for gp in self.objectives], axis=1)

    @cached_property
    def keeps(self) -> BoolArray:
        """Whether what was seen is expected to keep every limit, (n,)."""
        keeps = np.all(self.means <= self.most, axis=1)
        for gp, bound in self.limits:
            keeps &= gp.mean(self.X) <= bound
        return np.asarray(keeps)

    def kriging_believer(self, X: Array) -> "Models":
        """The processes as if each row had returned its means."""
        return replace(
            self,
            objectives=tuple(gp.kriging_believer(X) for gp in self.objectives),
            limits=tuple((gp.kriging_believer(X), bound) for gp, bound in self.limits),
            X=np.concatenate([self.X, X]),
        )

    def improvement(self) -> "LogProduct":
        """log EHVI plus the log probability of each limit; before anything is expected to keep them, that alone.

        The front is of the means at the configurations seen, so that noise makes no point of it. Its reference is of
        all of them, also of those beyond a limit: the first that keep it may lie close together.
        """
        means, keeps = self.means, self.keeps
        feasible = tuple(LogFeasible(gp, bound) for gp, bound in self.limits)
        if self.limits and not keeps.any():
            return LogProduct(feasible)
        front = means[keeps][non_dominated(means[keeps])]
        reference = np.minimum(reference_of(front, means), self.most)
        return LogProduct((LogHypervolumeImprovement(self.objectives, boxes_of(front, reference)), *feasible))


@dataclass(frozen=True, eq=False)
class LogProduct:
    """The product of positive functions, each given by its logarithm."""

    factors: tuple[Acquisition, ...]

    def __call__(self, X: Array) -> Array:
        return np.asarray(np.sum([factor(X) for factor in self.factors], axis=0))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        parts = [factor.value_and_gradient(X) for factor in self.factors]
        return np.sum([value for value, _ in parts], axis=0), np.sum([gradient for _, gradient in parts], axis=0)


BEYOND = 0.1
"""The reference lies beyond the front's worst value of each objective by this share of its extent, as in BoTorch."""
LEAST_EXTENT = {2: 1.0, 3: 0.5}
"""The front counts as at least this share as wide as all that is known, by the number of objectives. Where it is
narrower, as at one end of a concave front, what lies outside it would never be looked for. Of 0, 0.5 and 1 by
`benchmarks.tuning.references` (`benchmarks/results/tuning-references.jsonl.xz`)."""


def reference_of(front: Array, known: Array) -> Array:
    """A point a little worse than the front (k, m) in every loss, and worse than some of what is known (n, m).

    Of one loss it is the best: what improves is less than that.
    """
    seen = front if front.size else known
    ideal, nadir, worst = seen.min(axis=0), seen.max(axis=0), known.max(axis=0)
    if ideal.size == 1:
        return np.asarray(ideal if front.size else worst)
    extent = np.maximum(nadir - ideal, LEAST_EXTENT.get(ideal.size, 0.5) * (worst - ideal))
    return np.asarray(ideal + (1.0 + BEYOND) * np.where(extent > 0.0, extent, 1.0))


TOGETHER = "all together"
"""The name of the one loss that more than three objectives are joined to."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models, and by name the surrogate of each objective and limit, which knows its scale."""

    models: Models
    surrogates: Mapping[str, Surrogate]

    def note(self) -> dict[str, Json]:
        """The hyperparameters of every model, as `fit_surrogate` looks for them.

        Objectives and limits are fitted together. The model of failures is fitted anew each time, to more rows, so it
        does not say when.
        """
        named = enumerate(self.surrogates.items())
        thetas = {_key(place, name): [float(number) for number in one.theta] for place, (name, one) in named}
        return {**thetas, "fitted_on": next(iter(self.surrogates.values())).fitted_on}

    def predicted(self, row: Array, problem: Problem) -> dict[str, Prediction]:
        """The values of all objectives at a row, in the user's units; none where they are joined."""
        signs = {one.name: one.sign for one in problem.objectives}
        named = {name: self.surrogates[name] for name in signs if name in self.surrogates}
        return {name: surrogate.predicted(row, sign=signs[name]) for name, surrogate in named.items()}


def _key(place: int, name: str) -> str:
    """The first is noted as the one model of a study is, by which every reader knows that a model chose a trial."""
    return f"{THETA} {name}" if place else THETA


def fit_many(
    history: History, seen: ManyObservations, rng: Randomness, *, is_frugal: bool = False, in_haste: bool = False
) -> Fitted:
    """A model for each objective and limit; more than three objectives are joined by weights drawn for this history."""
    problem, learns = history.problem, any(isinstance(one, Succeeds) for one in history.problem.constraints.values())
    succeeded = ~seen.failed if learns else np.ones(seen.count, dtype=bool)
    joined = len(problem.objectives) > MOST_OBJECTIVES
    losses = {one.name: seen.losses[:, j] for j, one in enumerate(problem.objectives)}
    if joined:
        losses = {TOGETHER: chebyshev(seen.losses, rng.at("weights", len(history)))}
    bounded = bounds_of(problem)
    own = {} if joined else {name: one for name, one in bounded.items() if _limits_loss(problem, name)}
    limits = {_limit_name(problem, name): seen.excess[:, j] for j, name in enumerate(bounded) if name not in own}
    surrogates: dict[str, Surrogate] = {}
    nadir = _nadir(seen.losses[succeeded])
    for j, (name, y) in enumerate((losses | limits).items()):
        proportionate = 0.0 if name in limits else -np.inf if joined else nadir[j]
        surrogates[name] = fit_surrogate(
            seen.X[succeeded],
            y[succeeded],
            kernel_over(problem.space.encoder),
            history,
            compression=compression_beyond(y[succeeded], proportionate),
            is_frugal=is_frugal,
            in_haste=in_haste,
            key=_key(len(surrogates), name),
        )
    bounds = {name: surrogates[name].apply(0.0) for name in limits}
    if learns and seen.failed.any():
        surrogates[FAILURE] = failure_model(seen.X, seen.failed, history)
        bounds[FAILURE] = surrogates[FAILURE].apply(0.0)
    signs = {one.name: one.sign for one in problem.objectives}
    most = [surrogates[name].apply(signs[name] * own[name].bound) if name in own else np.inf for name in losses]
    encoder = problem.space.encoder
    models = Models(
        tuple(surrogates[name].gp for name in losses),
        tuple((surrogates[name].gp, bound) for name, bound in bounds.items()),
        np.array(most),
        encoder.snap(seen.X) if encoder.has_retired else seen.X,
    )
    return Fitted(models, surrogates)


def _nadir(losses: Array) -> Array:
    """The worst of each loss on the front of what was measured."""
    return np.asarray(losses[non_dominated(losses)].max(axis=0))


def compression_beyond(loss: Array, worst: float) -> Compression:
    """Draws together what is worse than the median and than `worst`: the whole front keeps its proportions.

    With the worse half of each loss drawn together, as of one loss, regret was 0.774 instead of 0.626 on a round front
    of three and 0.236 instead of 0.208 on a flat one, but 0.076 instead of 0.190 on one of two (`kursawe-3`): two seeds
    each, `benchmarks.tuning.references`.
    """
    usual = Compression.of(loss)
    if worst <= usual.median:
        return usual
    scale = Compression(worst, 0.5 * (worst - float(loss.min())))
    return replace(scale, largest=float(scale.apply(loss.max(keepdims=True))[0]))


FAILURE = "failure"
"""The name of the model of where trials fail."""


def failure_model(X: Array, failed: BoolArray, history: History) -> Surrogate:
    """A model of 1 where a trial failed and −1 where it did not: a row is expected to succeed below 0."""
    kernel = kernel_over(history.problem.space.encoder)
    return fit_surrogate(X, np.where(failed, 1.0, -1.0), kernel, history, key=_key(1, FAILURE))


def _limit_name(problem: Problem, name: str) -> str:
    """The name of the model of a limit: an objective that is also limited has two models."""
    return f"limit of {name}" if any(one.name == name for one in problem.objectives) else name


def _limits_loss(problem: Problem, name: str) -> bool:
    """Whether the limit of that name bounds an objective on its bad side: it then bounds the hypervolume."""
    signs = {one.name: one.sign for one in problem.objectives}
    limit = problem.constraints[name]
    return name in signs and isinstance(limit, AtMost) == (signs[name] > 0.0)


SLOPE = 0.05
"""ρ of the augmented Chebyshev form, as in ParEGO (Knowles, 2006)."""


def chebyshev(losses: Array, rng: np.random.Generator) -> Array:
    """max_j w_j z_j + ρ Σ_j w_j z_j of losses z scaled to [0, 1], with weights drawn evenly from the simplex."""
    low, high = losses.min(axis=0), losses.max(axis=0)
    weighted = rng.dirichlet(np.ones(losses.shape[1])) * (losses - low) / np.where(high > low, high - low, 1.0)
    return np.asarray(weighted.max(axis=1) + SLOPE * weighted.sum(axis=1))
