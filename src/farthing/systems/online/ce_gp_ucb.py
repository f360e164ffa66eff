"""CE-GP-UCB: cost-efficient online tuning with a time-varying GP (Wang et al., 2020; READING.md, section 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any, Literal

import numpy as np

from farthing.errors import InvalidArgument
from farthing.models.linalg import Array
from farthing.systems.online.fields import CandidateField, Field, SpaceField
from farthing.systems.online.learning import RADIAL, Hyperparameters, ModelForm
from farthing.systems.online.outlook import Outlook, Query, QueryRule
from farthing.systems.online.query_rules import Capped, Confidence, Floor, paper_beta
from farthing.systems.online.scaling import Scale
from farthing.systems.online.strategy import Arena, Choice, Observation, Place
from farthing.systems.online.value_of_information import ValueOfInformation
from farthing.trials import Json

FLOOR = 0.02
"""Rounds measured by a coin where forgetting is learnt."""

FITTED, MOST = 150, 2000
"""Hyperparameters are learnt from the last observations; a player holds at most so many."""

GROWTH, SELDOM = 1.25, 40
"""The model is learnt again when there are 25 % more observations, or 40."""

LET_GO = 256
"""So many observations apart, a model that learns nothing is made anew if half of what it holds is forgotten."""

FORGOTTEN = 1e-6
"""The weight below which an observation is let go."""


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
        level: the variance of a level that drifts for all candidates alike, as accuracy rises in training; None learns
            it where the scale is learnt, and is 0 otherwise.
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
            bandwidth=0.2,
        )
        return replace(settings, **changes)

    def begin(self, arena: Arena) -> "GPPlayer":
        form = self._form(arena)
        if arena.rows is None and form.uses_index:
            raise InvalidArgument(
                "Arms and covariances need candidates, got none. Give candidates=[…], or a kernel such as 'matern52'."
            )
        field: Field
        bandwidth = 0.1 * sqrt(form.dimension) if self.bandwidth is None else self.bandwidth
        if arena.rows is None:
            field = SpaceField(arena, form, bandwidth=bandwidth, tolerance=self.tolerance, beta_at=self.beta_at)
        else:
            shift = self._shift(arena.rows.shape[0])
            field = CandidateField(arena, form, bandwidth=None if form.uses_index else bandwidth, shift=shift)
        return GPPlayer(self, arena, form, field)

    def _form(self, arena: Arena) -> ModelForm:
        d = arena.encoder.dimension
        numbers = d - len(arena.encoder.categories)
        given = None if self.lengthscale is None else tuple(np.broadcast_to(self.lengthscale, (max(numbers, 1),)))
        return ModelForm(
            kernel=self.kernel if isinstance(self.kernel, str) else np.array(self.kernel, dtype=float),
            dimension=d,
            categories=tuple(arena.encoder.categories),
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


class GPPlayer:
    """CE-GP-UCB at work: observations, the scale and the hyperparameters they gave, and the field they make up.

    Now and then the field is made anew from the observations that are not forgotten, and the others are let go: a
    player does not grow as training goes on, and can be restored bit for bit from what it holds.
    """

    def __init__(self, strategy: CEGPUCB, arena: Arena, form: ModelForm, field: Field) -> None:
        self._strategy, self._arena, self._form, self._field = strategy, arena, form, field
        self._rule = strategy.asking_rule
        self._design = [*map(arena.place, arena.initial), *field.design(self._design_size())]
        self._scale: Scale | None = self._given_scale()
        self._asked = 0
        self._built = 0
        self._built_at = 0
        self.observations: list[Observation] = []
        self.hyperparameters = form.first()
        field.reset(self.hyperparameters)

    def decide(self, round: int) -> Choice:
        if self._asked < len(self._design):
            return Choice(self._design[self._asked], True, "first observations, from which the model is learnt")
        outlook = self._outlook(round)
        query = self._query(outlook)
        if query is not None and self._arena.rows is None:
            outlook = self._outlook(round, fresh=True)
            query = self._query(outlook)
        if query is not None:
            return Choice(self._field.place(query.place), True, query.reason)
        row = outlook.best_mean if self._strategy.silent == "mean" else outlook.choice
        return Choice(self._field.place(row), False, "not worth its price")

    def observe(self, observation: Observation) -> None:
        self.observations.append(observation)
        self._asked += 1
        if self._scale is None and self._asked < len(self._design):
            return
        if self._is_due():
            self._learn()
        else:
            self._take(observation)

    def exploit(self, round: int) -> Place:
        if self._asked >= max(len(self._design), 1):
            return self._field.place(self._outlook(round).best_mean)
        seen = max(self.observations, key=lambda each: each.reward, default=None)
        return seen.place if seen else self._design[0] if self._design else self._field.place(0)

    def predict(self, places: Sequence[Place], round: int) -> tuple[Array, Array] | None:
        """Mean and standard deviation of the reward at some places, in its own units; None before anything is known."""
        if self._scale is None or self._asked < max(len(self._design), 1):
            return None
        belief = self._field.belief_at(places, round)
        scale, offset = self._scale.scale, self._scale.offset
        return offset + scale * belief.mean(), scale * np.sqrt(belief.variance())

    def memory(self) -> Json:
        return {
            "hyperparameters": self.hyperparameters.to_json(),
            "scale": None if self._scale is None else [self._scale.offset, self._scale.scale],
            "asked": self._asked,
            "built": self._built,
            "built_at": self._built_at,
            "drawn_at": self._field.drawn_at(),
        }

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        self.observations = list(observations)
        self.hyperparameters = Hyperparameters.from_json(memory["hyperparameters"])
        self._scale = None if memory["scale"] is None else self._scale_from(memory["scale"])
        self._asked, self._built, self._built_at = memory["asked"], memory["built"], memory["built_at"]
        if self._scale is not None:
            self._build()
            for observation in self.observations[self._built :]:
                self._take(observation)
        if memory["drawn_at"] is not None:
            self._field.draw(memory["drawn_at"])

    # ------------------------------------------------------------------------------------------------------ deciding

    def _outlook(self, round: int, *, fresh: bool = False) -> Outlook:
        view = self._field.view(round, fresh=fresh)
        height = self._strategy.height(view.belief.mean(), view.belief.variance(), round=round)
        return Outlook(
            round=round,
            rounds=self._arena.rounds,
            asked=self._asked,
            belief=view.belief,
            choice=int(np.argmax(height)),
            height=height,
            beta=self._strategy.beta_at(round),
            noise=self.hyperparameters.noise,
            deviation=self._form.deviation(self.hyperparameters),
            lasting=sqrt(1.0 - self.hyperparameters.forgetting),
            neighbourhood=view.neighbourhood,
            randomness=self._arena.randomness,
        )

    def _query(self, outlook: Outlook) -> Query | None:
        if self._asked == 0:
            return Query(outlook.choice, "nothing is known yet")
        return self._rule.ask(outlook)

    # ------------------------------------------------------------------------------------------------------ learning

    def _design_size(self) -> int:
        """None where all is given; a space needs one place to begin with, because no argmax is known there."""
        if self._form.learns or self._strategy.scale is None:
            return 2 * self._form.width + 3
        return 0 if self._arena.rows is not None else 1

    def _given_scale(self) -> Scale | None:
        if self._strategy.scale is None:
            return None
        return Scale.of((), offset=self._strategy.base_offset, scale=self._strategy.scale, clip=self._strategy.clip)

    def _scale_from(self, form: Sequence[float]) -> Scale:
        offset, scale = form
        return Scale(offset, scale, self._strategy.clip)

    def _is_due(self) -> bool:
        """Whether the field is to be made anew: when the design is complete, to learn again, or to let go."""
        if self._asked == len(self._design):
            return self._form.learns or self._scale is None
        if self._form.learns:
            return self._asked >= min(GROWTH * self._built_at, self._built_at + SELDOM) > len(self._design)
        return self._asked % LET_GO == 0 and 2 * len(self._kept()) <= len(self.observations)

    def _learn(self) -> None:
        if self._scale is None:
            first = [observation.reward for observation in self.observations]
            self._scale = Scale.of(first, offset=self._strategy.base_offset, scale=None, clip=self._strategy.clip)
        if self._form.learns:
            recent = self.observations[-FITTED:]
            X = np.stack([self._field.row(observation.place) for observation in recent])
            rounds = [observation.round for observation in recent]
            self.hyperparameters = self._form.learnt(X, rounds, self._z(recent), start=self.hyperparameters)
        self.observations = self._kept()
        self._built, self._built_at = len(self.observations), self._asked
        self._build()

    def _kept(self) -> list[Observation]:
        """The observations that are not forgotten, and those that the next fit needs."""
        fitted = len(self.observations) - FITTED if self._form.learns else len(self.observations)
        last = self.observations[-1].round
        lasting = [i >= fitted or self._lasts(each, last) for i, each in enumerate(self.observations)]
        return [each for each, lasts in zip(self.observations, lasting, strict=True) if lasts][-MOST:]

    def _lasts(self, observation: Observation, last: int) -> bool:
        weight = (1.0 - self.hyperparameters.forgetting) ** (0.5 * (last - observation.round))
        return bool(weight >= FORGOTTEN)

    def _build(self) -> None:
        """The field from the observations it was last made of."""
        self._field.reset(self.hyperparameters)
        made_of = self.observations[: self._built]
        for observation in made_of:
            if self._lasts(observation, made_of[-1].round):
                self._take(observation)

    def _take(self, observation: Observation) -> None:
        self._field.observe(observation.place, float(self._z([observation])[0]), round=observation.round)

    def _z(self, observations: Sequence[Observation]) -> Array:
        assert self._scale is not None
        return self._scale.apply([observation.reward for observation in observations])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
