"""PB2's choice of params for replaced members."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from farthing.acquisition.acquisition import Acquisition, FixedFeatures, Unvisited, with_columns
from farthing.acquisition.boxes import TrustRegion, maximize_in_trust_region
from farthing.acquisition.confidence_bound import ConfidenceBound, pb2_beta
from farthing.acquisition.maximize import Effort, maximize
from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.strategies.population.members import Members
from farthing.strategies.population.model import ChangeModel
from farthing.strategies.population.strategy import Pick, Replacement, RunningParams
from farthing.strategies.shared.modelling import domain_of
from farthing.strategies.shared.strategy import Randomness

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
