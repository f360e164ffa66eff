"""Small probes around the present setting, each compared with what staying would have given.

Training has a state: a bad round spoils the rounds after it, and a value says as much about the past as about the
params. So nothing far away is tried, a probe counts only against a forecast of the same run, and probing that gains
nothing is done ever more seldom.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Literal

import numpy as np

from farthing.fields import Declaration, number, share, whole
from farthing.strategies.online.forecast import Forecast
from farthing.strategies.online.steps import Gradient, Steps
from farthing.strategies.online.strategy import Observation, OnlineProblem, Place, Play
from farthing.trials import Json

DECISIONS = 30
"""About as many times a run decides, where `hold` is not given."""

SURE = 1.0
"""Deviations of the forecast by which a probe must differ to be better, or worse, than staying."""

HARMFUL = 2.0
"""Deviations below the forecast at which a probe is taken back where that is possible; less is soon made good."""

LARGEST = 4.0
"""Deviations at which a difference is cut off: a run that diverges is no more than bad."""

BETTER, UNCLEAR, WORSE = 1.6, 1.3, 0.6
SMALLEST_STEP, LARGEST_UNCLEAR_STEP, LARGEST_STEP = 0.5, 2.0, 3.0
"""How the step changes after a probe, and its bounds as multiples of the first one.

Too short a step shows nothing. Only one that has paid grows far.
"""

PATIENCE = 1.3
"""After each failure in a row the next probe is this much later."""

CHECKED = 2.0
"""Blocks before a probe that are measured: the last value, and how it changes."""

SETTLED = 0.25
"""The last part of a run, in which nothing is tried: there is no time left to profit from it."""

AT_ONCE = 0.5
"""The share of what may be spent that is there from the beginning; the rest comes as training goes on."""

Kind = Literal["stay", "check", "probe"]


@dataclass(frozen=True)
class PairedProbes(Declaration):
    """Stays with the present setting, tries one nearby now and then, and moves where the forecast of staying is beaten.

    The present setting is `initial=`, or the middle of the space. It is held for `hold` rounds and measured;
    then a neighbour is held as long and measured too. A neighbour that beats the forecast by a deviation is the present
    setting from then on, and the next step is longer. Else the tuner goes back, and the next probe is later. Nothing is
    tried in the last quarter of a run. Where the value falls after a move, the first setting is tried again.

    Args:
        hold: how many rounds a setting is held; None makes about 30 decisions of a run.
        step: how far the first probes go, in the unit cube.
        overhead: the most that validations and rounds taken back may cost, as a share of the rounds of training.
        validation_cost: what a validation costs, in rounds of training; None takes the time of both.
    """

    hold: int | None = whole(None, least=1)
    step: float = number(0.1, above=0.0, most=1.0)
    overhead: float = share(0.1)
    validation_cost: float | None = number(None, least=0.0)

    def begin(self, problem: OnlineProblem) -> "ProbingPlayer":
        return ProbingPlayer(self, problem)

    def rounds_held(self, rounds: int) -> int:
        return self.hold if self.hold is not None else max(1, round(rounds / DECISIONS))


@dataclass
class Block:
    """Rounds that are played with one setting, and whether the last of them is measured."""

    kind: Kind
    last: int
    first: int = 1
    place: Json = None
    reason: str = ""


@dataclass
class Progress:
    """All that a player knows, as plain data."""

    block: Block
    incumbent: Json
    step: float
    wait: float = 1.0
    """Blocks until the next probe may begin."""
    failures: int = 0
    probes: int = 0
    may_return: bool = False
    """Whether the start has not been tried again since the last move."""
    spent: float = 0.0
    """Rounds' worth of validations and of training that was taken back."""
    validation_cost: float = 0.0
    forecast: Forecast = field(default_factory=Forecast)
    gradient: Gradient = field(default_factory=Gradient)


class ProbingPlayer:
    """Plans a block at a time: stay, check what staying gives, or probe."""

    def __init__(self, strategy: PairedProbes, problem: OnlineProblem) -> None:
        self._strategy, self._problem = strategy, problem
        self._steps = Steps(problem)
        self._hold = strategy.rounds_held(problem.rounds)
        start = problem.place(problem.initial[0]) if problem.initial else self._steps.middle()
        self._start = self._form(start)
        self._now = Progress(
            Block("stay", last=0),
            self._start,
            strategy.step,
            validation_cost=strategy.validation_cost or 0.0,
        )
        self.observations: list[Observation] = []

    # ------------------------------------------------------------------------------------------------------- the calls

    def decide(self, round: int) -> Play:
        if round > self._now.block.last:
            self._now.block = self._next_block(round)
        block = self._now.block
        is_measured = block.kind != "stay" and round == block.last
        begins_probe = block.kind == "probe" and round == block.first
        return Play(self._place(block.place), is_measured, block.reason, saves=begins_probe)

    def observe(self, observation: Observation) -> None:
        now = self._now
        if now.block.kind == "probe":
            self._judge(observation)
        elif self._form(observation.place) == now.incumbent:
            now.forecast.stayed(observation.round, observation.reward, block=self._hold)
        self._charge(observation)

    def undoes(self, observation: Observation) -> bool:
        if self._now.block.kind != "probe" or not self._problem.can_undo:
            return False
        cost = self._validation_cost(observation) + self._hold
        is_covered = self._now.spent + cost <= self._allowed(observation.round)
        return is_covered and self._deviations(observation) < -HARMFUL

    def exploit(self, round: int) -> Place:
        return self._place(self._now.incumbent)

    def memory(self) -> Json:
        return asdict(self._now)

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        parts = {
            "block": Block(**memory["block"]),
            "forecast": Forecast(**memory["forecast"]),
            "gradient": Gradient(**memory["gradient"]),
        }
        self._now = Progress(**{**memory, **parts})

    # -------------------------------------------------------------------------------------------------------- planning

    def _next_block(self, first: int) -> Block:
        kind, reason = self._plan(first)
        place = self._next_probe() if kind == "probe" else self._now.incumbent
        # a first block of one round would be measured before a round without a validation was timed
        length = max(self._hold, 2) if first == 1 else self._hold
        return Block(kind, min(first + length - 1, self._problem.rounds), first, place, reason)

    def _plan(self, first: int) -> tuple[Kind, str]:
        now = self._now
        if self._problem.rounds - first + 1 < self._final_rounds():
            return "stay", "too late in the run for a probe to pay"
        if not self._can_afford(first):
            return "stay", f"validations have cost {now.spent:.3g} rounds, and may cost no more by now"
        if now.wait > CHECKED:
            now.wait -= 1.0
            return "stay", f"the last {now.failures} probes gained nothing: waiting before the next"
        if now.wait > 1.0 or not now.forecast.is_ready(first - 1):
            now.wait = max(now.wait - 1.0, 1.0)
            return "check", "the value of staying, with which a probe is compared"
        return "probe", f"a probe: is this better than staying by {now.forecast.deviation:.3g}?"

    def _final_rounds(self) -> int:
        return max(2 * self._hold, ceil(SETTLED * self._problem.rounds))

    def _can_afford(self, first: int) -> bool:
        """Whether what a probe needs is covered: its own validation, and one before it where there is none yet."""
        now = self._now
        validations = 1 if now.forecast.is_ready(first - 1) else 2
        return now.spent + validations * now.validation_cost <= self._allowed(first)

    def _allowed(self, round: int) -> float:
        """What may have been spent by that round, in rounds of training."""
        return self._strategy.overhead * (AT_ONCE * self._problem.rounds + (1.0 - AT_ONCE) * round)

    def _next_probe(self) -> Json:
        now = self._now
        rng = self._problem.randomness.at("probe", now.probes)
        now.probes += 1
        if now.probes < len(self._problem.initial):
            return self._form(self._problem.place(self._problem.initial[now.probes]))
        if now.may_return and now.forecast.has_fallen(HARMFUL):
            now.may_return = False
            return self._start
        return self._form(self._steps.towards(now.gradient, self._place(now.incumbent), step=now.step, rng=rng))

    # --------------------------------------------------------------------------------------------------------- judging

    def _charge(self, observation: Observation) -> None:
        self._now.validation_cost = self._validation_cost(observation)
        self._now.spent += self._now.validation_cost

    def _validation_cost(self, observation: Observation) -> float:
        given = self._strategy.validation_cost
        cost = given if given is not None else observation.cost
        return self._now.validation_cost if cost is None else cost

    def _deviations(self, observation: Observation) -> float:
        """How far a probe is above the forecast of staying."""
        forecast = self._now.forecast
        difference = forecast.difference(observation.round, observation.reward)
        return float(np.clip(difference / forecast.deviation, -LARGEST, LARGEST))

    def _judge(self, observation: Observation) -> None:
        now, z, is_undone = self._now, self._deviations(observation), self.undoes(observation)
        moved = self._steps.between(self._place(now.incumbent), observation.place)
        now.gradient.learn(moved, z)
        is_return = self._form(observation.place) == self._start
        if z > (0.0 if is_return else SURE):
            self._move(observation)
        else:
            self._go_back(is_worse=z < -SURE)
        if is_undone:
            now.spent += self._hold
            now.forecast.taken_back(observation.round)

    def _move(self, observation: Observation) -> None:
        now = self._now
        now.incumbent, now.failures, now.wait = self._form(observation.place), 0, 1.0
        now.may_return = now.incumbent != self._start
        self._rescale_step(BETTER, most=LARGEST_STEP * self._strategy.step)
        now.forecast.moved(observation.round, observation.reward)

    def _go_back(self, *, is_worse: bool) -> None:
        now = self._now
        now.failures += 1
        now.wait = PATIENCE**now.failures
        most = max(now.step, LARGEST_UNCLEAR_STEP * self._strategy.step)
        self._rescale_step(WORSE if is_worse else UNCLEAR, most=most)

    def _rescale_step(self, factor: float, *, most: float) -> None:
        self._now.step = min(max(self._now.step * factor, SMALLEST_STEP * self._strategy.step), most)

    # ---------------------------------------------------------------------------------------------------- as plain data

    def _form(self, place: Place) -> Json:
        return place if isinstance(place, int) else dict(self._problem.params(place))

    def _place(self, form: Json) -> Place:
        return form if isinstance(form, int) else self._problem.place(form)
