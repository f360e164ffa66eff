"""CE-GP-UCB: cost-efficient online tuning with a time-varying GP (Wang et al., 2020; READING.md, section 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any, Literal

import numpy as np

from farthing.errors import InvalidArgument
from farthing.models.linalg import Array
from farthing.strategies.online.context import QueryRule
from farthing.strategies.online.fields import CandidateField, Field, SpaceField
from farthing.strategies.online.gp_player import GPPlayer
from farthing.strategies.online.learning import RADIAL, ModelForm
from farthing.strategies.online.query_rules import Capped, Confidence, Floor, paper_beta
from farthing.strategies.online.strategy import OnlineProblem
from farthing.strategies.online.value_of_information import ValueOfInformation

FLOOR = 0.02
"""Rounds measured by a coin where forgetting is learnt."""


@dataclass(frozen=True)
class CEGPUCB:
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
    """

    kernel: Any = "matern52"
    lengthscale: float | Sequence[float] | None = None
    noise: float | None = None
    forgetting: float | Literal["learn"] = "learn"
    beta: float | Literal["paper"] = 2.0
    rule: QueryRule = field(default_factory=ValueOfInformation)
    scale: float | None = None
    offset: float | Sequence[float] | None = None
    clip: float | None = 10.0
    level: float | None = None
    silent: Literal["mean", "ucb"] = "mean"
    bandwidth: float | None = None
    floor: float | None = None
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str) and self.kernel not in (*RADIAL, "independent"):
            raise InvalidArgument(
                f"A kernel must be one of {', '.join(RADIAL)}, independent, or a matrix, got {self.kernel!r}. "
                "Leave it out for matern52."
            )
        if self.forgetting != "learn" and not (_is_number(self.forgetting) and 0.0 <= self.forgetting < 1.0):
            raise InvalidArgument(
                f"forgetting must be a share from 0 to below 1, or 'learn', got {self.forgetting!r}. Try 'learn'."
            )
        if self.beta != "paper" and not (_is_number(self.beta) and self.beta >= 0.0):
            raise InvalidArgument(f"beta must be a number ≥ 0 or 'paper', got {self.beta!r}. Leave it out for 2.")
        for name in ("noise", "scale", "clip"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0.0):
                raise InvalidArgument(f"{name} must be a number above 0, got {value!r}. Leave it out to learn it.")
        if self.silent not in ("mean", "ucb"):
            raise InvalidArgument(f"silent must be 'mean' or 'ucb', got {self.silent!r}. Leave it out for 'mean'.")

    @classmethod
    def paper(cls, kappa: float = 0.9, **changes: Any) -> "CEGPUCB":
        """The paper's settings: its rule, β_t = 0.8 log 4t, and the choice itself played in silent rounds.

        Kernel and ε are those of its synthetic experiment, with ε = 0.01 unless told.
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
            bandwidth=0.1,
        )
        return replace(settings, **changes)

    def begin(self, problem: OnlineProblem) -> GPPlayer:
        form = self._form(problem)
        if problem.rows is None and form.uses_index:
            raise InvalidArgument(
                "Arms and covariances need candidates, got none. Give candidates=[…], or a kernel such as 'matern52'."
            )
        field: Field
        bandwidth = 0.1 * sqrt(form.dimension) if self.bandwidth is None else self.bandwidth
        if problem.rows is None:
            field = SpaceField(problem, form, bandwidth=bandwidth, tolerance=self.tolerance, beta_at=self.beta_at)
        else:
            shift = self._shift(problem.rows.shape[0])
            field = CandidateField(problem, form, bandwidth=None if form.uses_index else bandwidth, shift=shift)
        return GPPlayer(self, problem, form, field)

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
        """By which places are compared: the upper confidence bound μ + √β σ."""
        return np.asarray(mean + np.sqrt(self.beta_at(round) * variance))

    def beta_at(self, round: int) -> float:
        return paper_beta(round) if isinstance(self.beta, str) else self.beta


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
