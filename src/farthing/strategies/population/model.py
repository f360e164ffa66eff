"""The model of a population, a time-varying process of the change of the loss, and PB2's choice of params by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np
from scipy.special import ndtr

from farthing.acquisition.acquisition import Acquisition, FixedFeatures, Unvisited, with_columns
from farthing.acquisition.confidence_bound import ConfidenceBound, pb2_beta
from farthing.acquisition.maximize import Effort, TrustRegion, maximize, maximize_in_trust_region
from farthing.models.fidelity_kernels import TimeDecay
from farthing.models.fitting import Standardise, fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import SE, CategoryOverlap, Constant, Kernel, Parameter
from farthing.models.linalg import Array
from farthing.space.encoding import Encoder
from farthing.strategies.population.members import Members, interval_of, is_success
from farthing.strategies.population.strategy import Pick, Replacement, RunningParams
from farthing.strategies.shared.modelling import domain_of
from farthing.strategies.shared.strategy import Randomness
from farthing.strategies.shared.surrogate import last_fit
from farthing.trials import Params, Prediction, Trial

MOST_ROWS = 150
"""Number of the latest changes in the model: older ones are forgotten anyway. A limit on time, not tuned."""

NOISE = Parameter("noise", median=3e-2, spread=2.0, lower=1e-3, upper=1.0)
"""Scores of training are noisy; without the floor the model would explain noise by ever shorter lengthscales.

The numbers are a guess; no others are on record.
"""

FORGETTING = Parameter("forgetting", median=0.15, spread=1.0, lower=1e-4, upper=0.9, scale="logit")
"""The gain from some params changes within a few intervals. Chosen on `TUNING` in `benchmarks/population/tasks.py`."""


@dataclass(frozen=True, eq=False)
class RewardChanges:
    """Rows X (n, D + 1), the last column the interval, and by how much the loss changed during it (n,)."""

    X: Array
    change: Array

    @property
    def count(self) -> int:
        return int(self.change.size)


def observed_changes(members: Members, *, before: int | None) -> RewardChanges:
    """The change over each finished interval, with the params in force during it, against the trial it resumed.

    After cloning that is the donor's. First intervals have nothing to compare with. With `before`, only intervals
    before that one count; of all rows the last `MOST_ROWS` do.
    """
    finished = [
        (interval, member, trial)
        for interval, own in members.successes.items()
        if interval > 1 and (before is None or interval < before)
        for member, trial in own.items()
    ]
    latest = [trial for _, _, trial in sorted(finished, key=lambda each: each[:2])[-MOST_ROWS:]]
    known = [(trial, source) for trial in latest if (source := _source(members, trial)) is not None]
    encoder = members.history.problem.space.encoder
    X = encoder.encode([trial.params for trial, _ in known])
    t = np.array([interval_of(trial) for trial, _ in known], dtype=float)
    change = np.array([members.loss(trial) - members.loss(source) for trial, source in known])
    return RewardChanges(np.column_stack([X, t]), change)


def _source(members: Members, trial: Trial) -> Trial | None:
    source = None if trial.resume_from is None else members.history[trial.resume_from]
    return source if source is not None and is_success(source) else None


def kernel_over(encoder: Encoder) -> Kernel:
    """c · SE over the numbers, one lengthscale for all · overlap of the categories · (1 − ω)^{|t − t'|/2}."""
    numbers = tuple(j for j in range(encoder.dimension) if j not in encoder.categories)
    parts: list[Kernel] = [Constant()]
    if numbers:
        parts.append(SE(numbers, ard=False))
    if encoder.categories:
        parts.append(CategoryOverlap(tuple(encoder.categories)))
    return reduce(mul, [*parts, TimeDecay(encoder.dimension, FORGETTING)])


@dataclass(frozen=True, eq=False)
class ChangeModel:
    """The fitted process of standardised changes, and what to remember of the fit."""

    gp: GP
    scale: Standardise
    theta: Array
    encoder: Encoder

    def rows(self, params: list[Params], intervals: list[int]) -> Array:
        """Encoded params with the intervals they are in force in (n, D + 1)."""
        return np.column_stack([self.encoder.encode(params), np.array(intervals, dtype=float)])

    def predicted(self, x: Array, interval: int, *, loss_before: float, sign: float) -> Prediction:
        """The value at the end of an interval with these coordinates: the value before it, and its change."""
        mean, variance = self.gp.predict(with_columns(x[None, :], float(interval)))
        change, deviation = self.scale.undo(mean), np.sqrt(self.scale.undo_variance(variance))
        return Prediction(sign * (loss_before + float(change[0])), float(deviation[0]))

    def note(self) -> dict[str, object]:
        return {"theta": [float(value) for value in self.theta]}


def fit_changes(changes: RewardChanges, members: Members) -> ChangeModel:
    """One fit, from the last one that a note remembers; hyperparameters at the maximum of their posterior."""
    encoder, scale = members.history.problem.space.encoder, Standardise.of(changes.change)
    y = scale.apply(changes.change)
    posterior = hyperparameter_posterior(kernel_over(encoder), changes.X, y, noise_prior=NOISE)
    noted, _ = last_fit(members.history, "theta", size=len(posterior.parameters))
    theta = fit(posterior, warm_start=noted)
    return ChangeModel(posterior.process(theta), scale, theta, encoder)


COMPARED = 128
"""Random configurations that the donor's is compared with. A limit on time, not tuned."""

LEAST_VARIANCE = 1e-12
"""The rounding error of a variance that should be zero."""

NEAR_BETA = 4.0
"""Weight of the uncertainty near a donor: there it leads to unknown params, not to the faces of the cube.

Chosen on `TUNING` in `benchmarks/population/tasks.py`.
"""

NEAR = Effort(screened=256, restarts=4, most_calls=12)
WIDE = Effort(screened=512, restarts=8, rounds=4, most_calls=20)
"""Efforts are limits on time, not tuned."""


@dataclass(frozen=True, eq=False)
class Picking:
    """Picks for one interval, one after the other: each counts as running for those after it."""

    members: Members
    model: ChangeModel
    interval: int
    beta: float | None
    box: float | None

    def picks(self, replaced: Sequence[Replacement], running: Sequence[RunningParams], rng: Randomness) -> list[Pick]:
        gp = self.model.gp
        pending = self.model.rows([each.params for each in running], [each.interval for each in running])
        found: list[Pick] = []
        for each in replaced:
            row, note = self._choose(gp.kriging_believer(pending) if pending.size else gp, each, pending, rng)
            found.append(self._pick(row, each, note))
            pending = np.concatenate([pending, with_columns(row[None, :], float(self.interval))])
        return found

    def _choose(
        self, gp: GP, replaced: Replacement, pending: Array, rng: Randomness
    ) -> tuple[Array, dict[str, object]]:
        """Coordinates for one member and what is noted of them; `gp` has the pending rows in its variance alone."""
        encoder, domain = self.model.encoder, domain_of(self.model.encoder)
        generator = rng.at("pick", self.interval, replaced.member)
        bound = self._bound(gp, pending)
        if self.box is None:
            return maximize(bound, domain, rng=generator, effort=WIDE).x, {"choice": "model"}
        centre = encoder.encode([replaced.source.params])[0]
        chance = self._chance(centre, generator)
        if generator.random() < chance:
            return encoder.from_unit(generator.random((1, encoder.dimension)))[0], {
                "choice": "random",
                "chance": chance,
            }
        region = TrustRegion(domain, centre, self.side)
        best = maximize_in_trust_region(bound, region, rng=generator, effort=NEAR)
        return best.x, {"choice": "model", "chance": chance}

    @property
    def side(self) -> float | Array:
        """Of the box around a donor, in each column."""
        assert self.box is not None
        return self.box

    def _bound(self, gp: GP, pending: Array) -> Acquisition:
        """Eq. 5, μ_{t,1} + √β_t σ_{t,b}, at the interval about to run; −∞ at what is running already."""
        usual = pb2_beta(self.interval) if self.box is None else NEAR_BETA
        beta = usual if self.beta is None else self.beta
        return Unvisited(FixedFeatures(ConfidenceBound(gp, beta), (float(self.interval),)), pending[:, :-1])

    def _chance(self, centre: Array, generator: np.random.Generator) -> float:
        """P(a random configuration beats the donor's) at the interval about to run, from real data alone."""
        t = float(self.interval)
        others = self.model.encoder.from_unit(generator.random((COMPARED, self.model.encoder.dimension)))
        return chance_of_better(self.model.gp, with_columns(others, t), with_columns(centre[None, :], t)[0])

    def _pick(self, row: Array, replaced: Replacement, note: dict[str, object]) -> Pick:
        predicted = self.model.predicted(
            row,
            self.interval,
            loss_before=self.members.loss(replaced.source),
            sign=self.members.history.problem.sign,
        )
        return Pick(self.model.encoder.decode(row[None, :])[0], {**note, **self.model.note()}, predicted)


def chance_of_better(gp: GP, rows: Array, x: Array) -> float:
    """P(f(u) < f(x)) for a loss f and u drawn from the rows: their mean of Φ((μ_x − μ_u)/sd(f_u − f_x)).

    ½ when nothing is known, towards 0 when x is clearly the best.
    """
    here = x[None, :]
    mean, variance = gp.predict(rows)
    own_mean, own_variance = gp.predict(here)
    spread = np.maximum(variance + own_variance - 2.0 * gp.covariance(rows, here)[:, 0], LEAST_VARIANCE)
    return float(np.mean(ndtr((own_mean - mean) / np.sqrt(spread))))
