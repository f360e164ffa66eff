"""CE-GP-UCB at work: decides round by round, and learns its model from what it observes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from farthing.models.linalg import Array
from farthing.online.context import Query, RoundContext
from farthing.online.fields import Field
from farthing.online.forecast import Skill, least_deviation
from farthing.online.model import Hyperparameters, ModelForm
from farthing.online.strategy import Observation, OnlineProblem, Place, Play, valued
from farthing.trials import Json

if TYPE_CHECKING:
    from farthing.online.ce_gp_ucb import CEGPUCB


# ------------------------------------------------------------
# Rewards on a fixed scale: set once, from the first observations or by the user, and never again.


LEAST_SHARE = 1e-3
"""A spread below this share of the values' size is none: equal first values would make the smallest change enormous."""


@dataclass(frozen=True)
class Scale:
    """z = (reward − offset)/scale, clipped to ±clip."""

    offset: float = 0.0
    scale: float = 1.0
    clip: float | None = None

    @classmethod
    def of(cls, rewards: Sequence[float], *, offset: float | None, scale: float | None, clip: float | None) -> "Scale":
        """Fills in the mean and the deviation of these rewards; a given scale keeps an offset of zero."""
        if scale is not None:
            return cls(0.0 if offset is None else offset, scale, clip)
        r = np.array(rewards, dtype=float)
        centre = float(np.mean(r)) if offset is None else offset
        spread = float(np.sqrt(np.mean((r - centre) ** 2)))
        least = LEAST_SHARE * float(np.max(np.abs(r))) or 1.0
        return cls(centre, max(spread, least), clip)

    def apply(self, rewards: Sequence[float] | Array) -> Array:
        z = (np.asarray(rewards, dtype=float) - self.offset) / self.scale
        return z if self.clip is None else np.clip(z, -self.clip, self.clip)


FITTED, MOST = 150, 2000
"""Hyperparameters are learnt from the last 150 observations; a player holds at most 2000."""

GROWTH, SELDOM = 1.25, 40
"""The model is learnt again when there are 25 % more observations, or 40."""

LET_GO = 256
"""After this many observations a model that learns nothing is built again if half of what it holds is forgotten."""

FORGOTTEN = 1e-6
"""Observations with a weight below this are dropped."""


SELDOM_CHECKED = 5
"""Without skill what is best so far is measured at most this often, so that skill can come back."""


class GPPlayer:
    """Observations, the scale and the hyperparameters they gave, and the field they make up.

    Now and then the field is built again from the observations that are not forgotten, and the others are dropped: a
    player does not grow as training goes on, and can be restored bit for bit from what it holds.
    """

    def __init__(self, strategy: "CEGPUCB", problem: OnlineProblem, form: ModelForm, field: Field) -> None:
        self._strategy, self._problem, self._form, self._field = strategy, problem, form, field
        self._rule = strategy.asking_rule
        self._gates = strategy.gates(form)
        self._design = [*map(problem.place, problem.initial), *field.design(self._design_size())]
        self._scale: Scale | None = self._given_scale()
        self._asked = 0
        self._built = 0
        self._built_at = 0
        self._measured_at = 0
        self._skill = Skill()
        self.observations: list[Observation] = []
        self.hyperparameters = form.first()
        field.reset(self.hyperparameters)

    def decide(self, round: int) -> Play:
        if self._asked < len(self._design):
            return Play(self._design[self._asked], True, "first observations, from which the model is learnt")
        context = self._context(round)
        query = self._query(context)
        if query is not None and self._lacks_skill():
            return self._without_exploring(context)
        if query is not None and self._problem.rows is None:
            context = self._context(round, fresh=True)
            query = self._query(context)
        if query is not None:
            return Play(self._field.place(query.place), True, query.reason)
        row = context.best_mean if self._strategy.silent == "mean" else context.choice
        return Play(self._field.place(row), False, "not worth its price")

    def _lacks_skill(self) -> bool:
        """Whether predictions are no better than the last value, where that is to end exploring."""
        return self._gates and self.skill is not None and self.skill <= 0.0

    def _without_exploring(self, context: RoundContext) -> Play:
        """The argmax of the mean, measured now and then where the rule asks."""
        is_due = context.round - self._measured_at >= SELDOM_CHECKED
        reason = f"no skill ({self.skill:.2f}): what is best so far, measured in every fifth decision"
        return Play(self._field.place(context.best_mean), is_due, reason)

    @property
    def skill(self) -> float | None:
        return self._skill.score

    def observe(self, observation: Observation) -> None:
        self._learn_skill(observation)
        known = valued(observation, self.observations)
        self._asked += 1
        self._measured_at = observation.round
        if known is not None:
            self.observations.append(known)
        if not self.observations or (self._scale is None and self._asked < len(self._design)):
            return
        if self._is_due():
            self._learn()
        elif known is not None:
            self._take(known)

    def exploit(self, round: int) -> Place:
        if self._asked >= max(len(self._design), 1) and self.observations:
            return self._field.place(self._context(round).best_mean)
        seen = max(self.observations, key=lambda each: each.reward, default=None)
        return seen.place if seen else self._design[0] if self._design else self._field.place(0)

    def predict(self, places: Sequence[Place], round: int) -> tuple[Array, Array] | None:
        """Mean and standard deviation of the reward at some places, in its own units; None before anything is known."""
        if self._scale is None or self._asked < max(len(self._design), 1):
            return None
        posterior = self._field.posterior_at(places, round)
        scale, offset = self._scale.scale, self._scale.offset
        return offset + scale * posterior.shown_mean(), scale * np.sqrt(posterior.shown_variance())

    def memory(self) -> Json:
        return {
            "hyperparameters": self.hyperparameters.to_json(),
            "scale": None if self._scale is None else [self._scale.offset, self._scale.scale],
            "asked": self._asked,
            "built": self._built,
            "built_at": self._built_at,
            "drawn_at": self._field.drawn_at(),
            "measured_at": self._measured_at,
            "skill": asdict(self._skill),
        }

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        self.observations = list(observations)
        self.hyperparameters = Hyperparameters.from_json(memory["hyperparameters"])
        self._scale = None if memory["scale"] is None else self._scale_from(memory["scale"])
        self._asked, self._built, self._built_at = memory["asked"], memory["built"], memory["built_at"]
        self._measured_at, self._skill = memory.get("measured_at", 0), Skill(**memory.get("skill", {}))
        if self._scale is not None:
            self._build()
            for observation in self.observations[self._built :]:
                self._take(observation)
        if memory["drawn_at"] is not None:
            self._field.draw(memory["drawn_at"])

    # ------------------------------------------------------------------------------------------------------ deciding

    def _context(self, round: int, *, fresh: bool = False) -> RoundContext:
        view = self._field.view(round, fresh=fresh)
        height = self._strategy.height(view.posterior.mean(), view.posterior.variance(), round=round)
        return RoundContext(
            round=round,
            rounds=self._problem.rounds,
            asked=self._asked,
            posterior=view.posterior,
            choice=int(np.argmax(height)),
            height=height,
            beta=self._strategy.beta_at(round),
            noise=self.hyperparameters.noise,
            deviation=self._form.deviation(self.hyperparameters),
            lasting=sqrt(1.0 - self.hyperparameters.forgetting),
            neighbourhood=view.neighbourhood,
            randomness=self._problem.randomness,
            price=self._price(),
        )

    def _price(self) -> float | None:
        """The gain that the user asks of a measurement, in scaled values summed over decisions."""
        if not self._problem.price or self._scale is None:
            return None
        return self._problem.price / (self._scale.scale * self._problem.hold)

    def _query(self, context: RoundContext) -> Query | None:
        if self._asked == 0:
            return Query(context.choice, "nothing is known yet")
        return self._rule.ask(context)

    # ------------------------------------------------------------------------------------------------------ learning

    def _learn_skill(self, observation: Observation) -> None:
        if observation.is_bad:
            return
        predicted = self.predict([observation.place], observation.round) if self._gates else None
        self._skill.learn(observation.reward, predicted=None if predicted is None else float(predicted[0][0]))

    def _design_size(self) -> int:
        """None where all is given; a space needs one place to begin with, because no argmax is known there."""
        if self._form.learns or self._strategy.scale is None:
            return 2 * self._form.width + 3
        return 0 if self._problem.rows is not None else 1

    def _given_scale(self) -> Scale | None:
        if self._strategy.scale is None:
            return None
        return Scale.of((), offset=self._strategy.base_offset, scale=self._strategy.scale, clip=self._strategy.clip)

    def _scale_from(self, form: Sequence[float]) -> Scale:
        offset, scale = form
        return Scale(offset, scale, self._strategy.clip)

    def _is_due(self) -> bool:
        """Whether to build the field again: when the design is complete, to learn again, or to drop observations."""
        if self._asked == len(self._design) or self._scale is None:
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
            form = self._form_knowing_noise(recent)
            self.hyperparameters = form.learnt(X, rounds, self._z(recent), start=self.hyperparameters)
        self.observations = self._kept()
        self._built, self._built_at = len(self.observations), self._asked
        self._build()

    def _form_knowing_noise(self, observations: Sequence[Observation]) -> ModelForm:
        """The form with a prior about the noise of a share of that many examples, where the user gives their number."""
        size = self._problem.validation_size
        if size is None:
            return self._form
        assert self._scale is not None
        share = float(np.median([abs(each.reward) for each in observations]))
        return self._form.knowing((least_deviation(share, size) / self._scale.scale) ** 2)

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
