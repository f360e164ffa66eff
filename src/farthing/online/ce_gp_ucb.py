"""CE-GP-UCB: cost-efficient online tuning with a time-varying GP (Wang et al., 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated, Any, Literal

import numpy as np

from farthing.acquisition.confidence_bound import ce_gp_ucb_beta, upper_confidence_bound
from farthing.errors import InvalidArgument
from farthing.fields import Declaration, Part, SquareMatrix, number, positive, ruled, share, whole
from farthing.models.linalg import Array
from farthing.names import QUERY_RULE
from farthing.online.context import QueryRule
from farthing.online.fields import CandidateField, Field, SpaceField
from farthing.online.gp_player import GPPlayer
from farthing.online.model import ModelForm
from farthing.online.query_rules import Capped, Confidence, Floor, ValueOfInformation, has_price
from farthing.online.strategy import OnlineProblem

Matrix = Annotated[Sequence[Sequence[float]] | Array, SquareMatrix()]
"""The covariance of the candidates, as lists or as an array."""

FLOOR = 0.02
"""Rounds measured by a coin where forgetting is learnt."""

PAPER_CLIMBS, PAPER_BANDWIDTH = 50, 0.2
"""How the paper finds local optima in a space: L-BFGS from 50 random places; those within 0.2 are one."""

PERCENT, PAPER_CLIP = 0.01, 2.0
"""The paper's gains are in percent of accuracy, between −2 and 2."""


@dataclass(frozen=True)
class CEGPUCB(Declaration):
    """Chooses by an upper confidence bound and asks for a measurement by a rule.

    Args:
        kernel: "matern52", "matern32", "se", "independent" (arms that share nothing), or the candidates' covariance.
        lengthscale: in the unit cube, one for all parameters or one for each number; None learns one for all.
        noise: the variance of a measurement, in units of the scale; None learns it.
        forgetting: ε, the share of the variance that a round forgets, or "learn".
        beta: of the bound μ + √β σ: a number, or "paper" for 0.8 log 4t.
        rule: when to ask.
        scale, offset: the model sees (value − offset)/scale; None takes both from the first observations, once and for
            all, and learns the amplitude. A scale that is given fixes the amplitude at 1 and the offset at 0; beside it
            the offset may be a list, what each candidate is known to give on average.
        clip: scaled values are cut off there, so that a run that diverges is no more than bad.
        level: the variance of a level that drifts for all candidates alike, as accuracy rises in training, at a rate of
            its own; None learns it where the scale is learnt, and is 0 otherwise.
        silent: what is played unmeasured, the argmax of the "mean" or of the "ucb".
        bandwidth: rivals nearer than this in the unit cube are one; None is 0.1·√d.
        floor: the share of rounds that is measured by a coin; None is 2 % where forgetting is learnt, else none.
        tolerance: in a space without candidates, the weight below which an observation leaves the window.
        climbs: in a space without candidates, how many random places climb the bound in every round to find its local
            optima, as in the paper; 0 takes them from a pool of rows.
        needs_skill: whether exploring ends while predictions are no better than the last value; None is where the
            hyperparameters are learnt and the rule has a price, but for arms that share nothing.
        rewards: "gains" refuses a tuner that compares values, in whose units the scale is wrong.
    """

    kernel: Literal["matern52", "matern32", "se", "independent"] | Matrix = "matern52"
    lengthscale: float | Sequence[float] | None = positive(None)
    noise: float | None = positive(None)
    forgetting: float | Literal["learn"] = number("learn", least=0.0, below=1.0)
    beta: float | Literal["paper"] = number(2.0, least=0.0)
    rule: QueryRule = ruled(Part(QUERY_RULE), default_factory=ValueOfInformation)
    scale: float | None = positive(None)
    offset: float | Sequence[float] | None = None
    clip: float | None = positive(10.0)
    level: float | None = number(None, least=0.0)
    silent: Literal["mean", "ucb"] = "mean"
    bandwidth: float | None = number(None, least=0.0)
    floor: float | None = share(None)
    tolerance: float = positive(1e-3)
    climbs: int = whole(0, least=0)
    needs_skill: bool | None = None
    rewards: Literal["any", "gains"] = "any"

    @classmethod
    def paper(
        cls, kappa: float = 0.9, *, rewards: Literal["standard", "gains"] = "standard", **changes: Any
    ) -> "CEGPUCB":
        """The paper's settings: its rule, the choice itself played in silent rounds, and its way to local optima.

        The paper has rewards in two units. "standard" ones have mean 0 and deviation 1, as on its synthetic functions,
        and are not scaled: Matérn-3/2 with lengthscale 0.2, ε = 0.01 and noise 0.01 unless told, β_t = 0.8 log 4t. For
        values in other units give both `offset=` and `scale=`. "gains" are those of its trainings: what a round adds to
        an accuracy, in percent, cut off at ±2. Give accuracies as shares, from 0 to 1, to an
        `OnlineTuner(reward="gain")`. Matérn-5/2, ε = 0.01, β = 1; what the paper does not state is learnt.
        """
        settings = cls(
            kernel="matern32",
            lengthscale=0.2,
            noise=0.01,
            forgetting=0.01,
            beta="paper",
            rule=Confidence(kappa),
            scale=1.0,
            clip=None,
            silent="ucb",
            climbs=PAPER_CLIMBS,
        )
        if rewards == "gains":
            settings = replace(
                settings,
                kernel="matern52",
                lengthscale=None,
                noise=None,
                beta=1.0,
                scale=PERCENT,
                clip=PAPER_CLIP,
                rewards="gains",
            )
        elif rewards != "standard":
            raise InvalidArgument(
                f"The paper's rewards must be 'standard' or 'gains', got {rewards!r}. "
                "Write rewards='gains' for accuracies."
            )
        return replace(settings, **changes)

    def begin(self, problem: OnlineProblem) -> GPPlayer:
        form = self._form(problem)
        if self.rewards == "gains" and not problem.gains:
            raise InvalidArgument(
                "A strategy for gains must be told what rounds add, got a tuner that compares values. "
                "Give OnlineTuner(reward='gain'), or leave rewards= out."
            )
        if problem.rows is None and form.uses_index:
            raise InvalidArgument(
                "Arms and covariances need candidates, got none. Give candidates=[…], or a kernel such as 'matern52'."
            )
        field: Field
        bandwidth = self._bandwidth(problem)
        if problem.rows is None:
            field = SpaceField(
                problem,
                form,
                bandwidth=bandwidth,
                tolerance=self.tolerance,
                beta_at=self.beta_at,
                climbs=self.climbs,
            )
        else:
            shift = self._shift(problem.rows.shape[0])
            field = CandidateField(problem, form, bandwidth=None if form.uses_index else bandwidth, shift=shift)
        return GPPlayer(self, problem, form, field)

    def _bandwidth(self, problem: OnlineProblem) -> float:
        if self.bandwidth is not None:
            return self.bandwidth
        return PAPER_BANDWIDTH if self.climbs and problem.rows is None else 0.1 * sqrt(problem.encoder.dimension)

    @property
    def has_price(self) -> bool:
        """Whether its rule weighs what a measurement brings against a price."""
        return has_price(self.rule)

    def gates(self, form: ModelForm) -> bool:
        """Whether exploring ends while predictions are no better than the last value.

        Not by default over arms that share nothing: only measuring one tells of it, and on `online-arms` the gate cost
        regret.
        """
        if self.needs_skill is not None:
            return self.needs_skill
        return form.learns and self.has_price and not form.uses_index

    def _form(self, problem: OnlineProblem) -> ModelForm:
        d = problem.encoder.dimension
        numbers = d - len(problem.encoder.categories)
        given = None if self.lengthscale is None else tuple(np.broadcast_to(self.lengthscale, (max(numbers, 1),)))
        return ModelForm(
            kernel=self.kernel if isinstance(self.kernel, str) else np.array(self.kernel, dtype=float),
            dimension=d,
            categories=tuple(problem.encoder.categories),
            lengthscale=given,
            noise=self.noise,
            forgetting=None if isinstance(self.forgetting, str) else self.forgetting,
            amplitude=None if self.scale is None else 1.0,
            level=0.0 if self.level is None and self.scale is not None else self.level,
        )

    def _shift(self, count: int) -> Array | None:
        """How far each candidate is known to be above the others, scaled; None where nothing is known."""
        if self.offset is None or isinstance(self.offset, (int, float)):
            return None
        if self.scale is None or len(self.offset) != count:
            raise InvalidArgument(
                f"Offsets must be one for each of the {count} candidates, with a scale, got {len(self.offset)} and "
                f"scale={self.scale!r}. Give one number for all, or the list and scale=."
            )
        return (np.array(self.offset, dtype=float) - self.base_offset) / self.scale

    @property
    def base_offset(self) -> float | None:
        """The offset that all candidates share."""
        return None if self.offset is None else float(np.mean(self.offset))

    @property
    def asking_rule(self) -> QueryRule:
        """The rule with its floor, which a hard cap holds for too."""
        p = self.floor if self.floor is not None else FLOOR if self.forgetting == "learn" else 0.0
        if not p:
            return self.rule
        return (
            replace(self.rule, rule=Floor(self.rule.rule, p)) if isinstance(self.rule, Capped) else Floor(self.rule, p)
        )

    def height(self, mean: Array, variance: Array, *, round: int) -> Array:
        """Compares places: the upper confidence bound μ + √β σ."""
        return upper_confidence_bound(mean, variance, self.beta_at(round))

    def beta_at(self, round: int) -> float:
        return ce_gp_ucb_beta(round) if isinstance(self.beta, str) else self.beta
