"""Small probes around the present setting, each compared with what staying would have given.

Training has a state: a bad decision spoils the ones after it, and a value says as much about the past as about the
params. So nothing far away is tried, unless the start is a guess and the run has just begun; a probe counts only
against a forecast of the same run, a gain must last before it is believed, and probing that gains nothing is done less
and less often.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from farthing.acquisition.expected_improvement import expected_excess
from farthing.fields import Declaration, number
from farthing.online.forecast import Forecast, Skill
from farthing.online.steps import Gradient, Steps
from farthing.online.strategy import Allowance, Observation, OnlineProblem, Place, Play
from farthing.trials import Json

DECISIONS = 30
"""About this many decisions are made in a run, where the tuner is not told how long to hold a setting."""

SURE = 1.0
"""A probe must differ from the forecast by this many deviations to be better, or worse, than staying."""

HARMFUL = 2.0
"""A probe this many deviations below the forecast is taken back where that is possible; less is soon made good."""

LARGEST = 4.0
"""Differences are cut off at this many deviations: a run that diverges is no more than bad."""

FIRST_STEP = {False: 0.1, True: 0.2}
"""How far the first probes go; farther where what they do to the training can be taken back."""

FROM_GUESS = 0.3
"""How far they go from a setting that is not trusted."""

SPREAD = 5
"""Settings all over the space that are tried first from a setting that is not trusted, while there is little to lose.

The rules from such a setting, and those for longer steps, were chosen by `benchmarks.tuning.probe_rules` on tasks that
are not reported (`benchmarks/results/tuning-probe-rules.jsonl.xz`).
"""

BETTER, UNCLEAR, WORSE = 1.6, 1.3, 0.6
SMALLEST_STEP = 0.5
LARGEST_UNCLEAR_STEP, LARGEST_STEP = {False: 2.0, True: 1.0}, {False: 2.0, True: 1.5}
"""How the step changes after a probe, and its bounds as multiples of the first one, without and with taking back.

Too short a step shows nothing. A long one can destroy a network.
"""

BOLD = 2.0
"""Steps are this much longer where there is little to lose: staying loses more and more."""

PATIENCE = 1.3
"""After each failure in a row the next probe is this much later."""

CHECKED = 2.0
"""Decisions before a probe that are measured: the last value, and how it changes."""

AFTER_MOVE, ELSEWHERE = 4.0, 2.0
"""Variances that predictions have beside that of the forecast: after a move, and for a setting that is not in force.

Chosen so that predictions of digits, stream and satimage are calibrated on seeds 100 to 103.
"""

SETTLED = 0.25
"""In the last part of a run nothing is tried: there is no time left to profit from it."""

Kind = Literal["stay", "check", "probe", "confirm"]
Plan: TypeAlias = tuple[Kind, str, Json]
"""An action, its reason, and its setting."""


@dataclass(frozen=True)
class PairedProbes(Declaration):
    """Stays with the present setting, tries one nearby now and then, and moves where the forecast of staying is beaten.

    The present setting is `initial=`, `guess=`, or the middle of the space. It is held and measured; then a neighbour,
    which differs in one param, is held as long and measured too. One that beats the forecast by a deviation is held
    once more. If the gain lasts, it is the present setting from then on, and the next step is longer. Else the tuner
    goes back, and the next probe is later. From a `guess=`, or where no start is given, settings all over the space are
    tried first. A probe is made only while predictions are better than the last value, or while what it may gain is
    worth its price. Nothing is tried in the last quarter of a run.

    Args:
        step: how far the first probes go, in the unit cube; None is 0.1, 0.2 where the tuner has `save` and
            `restore`, and 0.3 from a `guess=`.
    """

    step: float | None = number(None, above=0.0, most=1.0)

    def begin(self, problem: OnlineProblem) -> "ProbingPlayer":
        return ProbingPlayer(self, problem)

    def usual_hold(self, rounds: int) -> int:
        """How many rounds a setting is held where the user does not say."""
        return max(1, round(rounds / DECISIONS))


@dataclass
class Progress:
    """All that a player knows, as plain data."""

    incumbent: Json
    step: float
    kind: Kind = "stay"
    place: Json = None
    reason: str = ""
    decided: int = 0
    previous: Json = None
    """The setting before the last move."""
    saved_at: int | None = None
    """The decision before which the state was saved that can be gone back to."""
    tried: tuple[int, float] | None = None
    """The last probe, its decision and its value, until staying is measured after it."""
    wait: float = 1.0
    """Decisions until the next probe may begin."""
    failures: int = 0
    probes: int = 0
    may_return: bool = False
    """Whether the start has not been tried again since the last move."""
    allowance: Allowance = field(default_factory=Allowance)
    skill: Skill = field(default_factory=Skill)
    forecast: Forecast = field(default_factory=Forecast)
    before: Forecast = field(default_factory=Forecast)
    """The forecast of staying with the previous setting, by which a gain is confirmed."""
    gradient: Gradient = field(default_factory=Gradient)


class ProbingPlayer:
    """Plans one decision at a time: stay, check what staying gives, probe, or confirm that a gain lasts."""

    def __init__(self, strategy: PairedProbes, problem: OnlineProblem) -> None:
        self._problem = problem
        self._steps = Steps(problem)
        self._first = self._first_settings()
        self._start = self._first[0]
        usual = FIRST_STEP[problem.can_undo] if problem.trusted else FROM_GUESS
        self._first_step = usual if strategy.step is None else strategy.step
        self._now = Progress(self._start, self._first_step)
        self._now.forecast.size = self._now.before.size = problem.validation_size
        self._now.allowance.validation_cost = problem.validation_cost or 0.0
        self.observations: list[Observation] = []

    def _first_settings(self) -> list[Json]:
        """The setting to begin with, and those to be tried before its neighbours."""
        given = self._problem
        places = [given.place(params) for params in given.initial] or [self._steps.middle()]
        if not given.trusted:
            places += self._steps.spread(SPREAD, given.randomness.at("race", 0))
        forms = [self._form(place) for place in places]
        return [form for i, form in enumerate(forms) if form not in forms[:i]]

    # ------------------------------------------------------------------------------------------------------- the calls

    def decide(self, round: int) -> Play:
        now = self._now
        now.kind, now.reason, now.place = self._plan(round)
        now.decided = round
        if now.kind == "probe":
            now.probes += 1
            now.may_return = now.may_return and now.place != self._start
            now.saved_at = round
        return Play(self._place(now.place), now.kind != "stay", now.reason, saves=now.kind == "probe")

    def observe(self, observation: Observation) -> None:
        is_undone = self.undoes(observation)
        self._learn_skill(observation)
        {"probe": self._judge, "confirm": self._confirm}.get(self._now.kind, self._check)(observation)
        self._now.allowance.charge(observation.cost, declared=self._problem.validation_cost)
        if is_undone:
            self._take_back(observation.round)

    def undoes(self, observation: Observation) -> bool:
        now = self._now
        if now.saved_at is None or not self._problem.can_undo:
            return False
        if observation.is_bad:
            return True
        cost = now.allowance.cost_of(observation.cost, declared=self._problem.validation_cost)
        return self._is_harmful(observation) and self._covers(cost + self._lost(observation.round), observation.round)

    def exploit(self, round: int) -> Place:
        return self._place(self._now.incumbent)

    @property
    def spent(self) -> float:
        return self._now.allowance.spent

    @property
    def skill(self) -> float | None:
        return self._now.skill.score

    def predict(self, place: Place, decision: int) -> tuple[float, float] | None:
        """Mean and deviation of what is measured there after that decision; None before there is a forecast."""
        forecast = self._now.forecast
        if forecast.decision is None or forecast.slope is None:
            return None
        mean, deviation = self._now.gradient.predict(self._move_to(place))
        is_elsewhere = self._form(place) != self._now.incumbent
        variance = max(decision - forecast.decision, 1) + deviation**2
        variance += AFTER_MOVE * forecast.has_moved + ELSEWHERE * is_elsewhere
        scale = forecast.deviation
        return forecast.at(decision) + scale * mean, scale * float(np.sqrt(variance))

    def memory(self) -> Json:
        return asdict(self._now)

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        tried = memory["tried"]
        parts = {
            "tried": None if tried is None else (tried[0], tried[1]),
            "allowance": Allowance(**memory["allowance"]),
            "skill": Skill(**memory["skill"]),
            "forecast": Forecast(**memory["forecast"]),
            "before": Forecast(**memory["before"]),
            "gradient": Gradient(**memory["gradient"]),
        }
        known = {each.name: memory[each.name] for each in fields(Progress)}  # earlier versions remembered more
        self._now = Progress(**{**known, **parts})

    # -------------------------------------------------------------------------------------------------------- planning

    def _plan(self, decision: int) -> Plan:
        now = self._now
        if now.kind == "probe" and now.incumbent == now.place and now.decided == decision - 1:
            return self._plan_confirmation(decision)
        if self._remaining(decision) < self._settled():
            return self._stay("too late in the run for a probe to pay")
        if decision == 1 and self._problem.hold == 1 and self._problem.validation_cost is None:
            return self._stay("a round without a validation, to know how long one takes")
        validations = 1 if now.forecast.is_ready(decision - 1) else 2
        if not self._covers(validations * now.allowance.validation_cost, decision):
            return self._stay(f"validations have cost {now.allowance.spent:.3g} decisions, and may cost no more by now")
        if self._is_urgent():
            now.wait = 1.0
        if now.wait > CHECKED:
            now.wait -= 1.0
            return self._stay(f"the last {now.failures} probes gained nothing: waiting before the next")
        if now.wait > 1.0 or not now.forecast.is_ready(decision - 1):
            now.wait = 1.0
            return "check", "the value of staying, with which a probe is compared", now.incumbent
        return self._plan_probe(decision)

    def _stay(self, reason: str) -> Plan:
        return "stay", reason, self._now.incumbent

    def _plan_confirmation(self, decision: int) -> Plan:
        if self._covers(self._now.allowance.validation_cost, decision):
            return "confirm", "does the gain of the last probe last?", self._now.incumbent
        return self._stay("the last probe was better; no validation is left to confirm it")

    def _plan_probe(self, decision: int) -> Plan:
        """A probe, unless predictions are no better than the last value and it may gain too little for its price."""
        place, skill = self._next_probe(), self.skill
        gain, price = self._expected_gain(place), self._price(decision)
        if gain > price or (skill is not None and skill > 0.0):
            return "probe", f"a probe that may gain {gain:.2g}, for a price of {price:.2g}", place
        known = "too few predictions to tell their skill" if skill is None else f"no skill ({skill:.2f})"
        return self._stay(f"{known}, and a probe may gain {gain:.2g}, less than its price of {price:.2g}")

    def _expected_gain(self, place: Json) -> float:
        """E[(gain)₊] of a probe there, in units of the value."""
        mean, deviation = self._now.gradient.predict(self._move_to(self._place(place)))
        excess = expected_excess(np.array(mean), np.array(deviation**2))
        return float(excess) * self._now.forecast.deviation

    def _price(self, decision: int) -> float:
        """The cost of a probe in each round that is left: progress lost to two validations, and the price given."""
        now, rounds = self._now, self._problem.hold * self._remaining(decision)
        progress = max(now.forecast.slope or 0.0, 0.0)
        return CHECKED * now.allowance.validation_cost * progress + self._problem.price / rounds

    def _remaining(self, decision: int) -> int:
        return self._problem.rounds - decision + 1

    def _settled(self) -> int:
        return max(2, ceil(SETTLED * self._problem.rounds))

    def _covers(self, cost: float, decision: int) -> bool:
        given = self._problem
        return self._now.allowance.covers(cost, decision=decision, decisions=given.rounds, overhead=given.overhead)

    def _next_probe(self) -> Json:
        now = self._now
        rng = self._problem.randomness.at("probe", now.probes)
        if self._has_untried():
            return self._first[now.probes + 1]
        if now.may_return and self._is_urgent():
            return self._start
        step = min(now.step * (BOLD if self._is_urgent() else 1.0), 1.0)
        return self._form(self._steps.towards(now.gradient, self._place(now.incumbent), step=step, rng=rng))

    def _has_untried(self) -> bool:
        """Whether some of the first settings were not tried yet."""
        return self._now.probes + 1 < len(self._first)

    def _is_urgent(self) -> bool:
        """Whether staying loses more and more."""
        return self._now.forecast.has_fallen(HARMFUL)

    # --------------------------------------------------------------------------------------------------------- judging

    def _learn_skill(self, observation: Observation) -> None:
        if not observation.is_bad:
            predicted = self.predict(observation.place, observation.round)
            self._now.skill.learn(observation.reward, predicted=None if predicted is None else predicted[0])

    def _check(self, observation: Observation) -> None:
        if observation.is_bad:
            self._fail()
        elif self._form(observation.place) == self._now.incumbent:
            self._compare_again(observation)
            self._stayed(observation)

    def _judge(self, observation: Observation) -> None:
        now, z = self._now, self._deviations(observation)
        now.gradient.learn(self._move_to(observation.place), z)
        is_return = self._form(observation.place) == self._start
        if z > (0.0 if is_return else self._least_gain()):
            self._move(observation)
        else:
            now.tried = (observation.round, observation.reward) if z > -HARMFUL else None
            self._go_back(is_worse=z < -SURE)
            if z < -HARMFUL and not self.undoes(observation):
                now.forecast = Forecast(
                    errors=now.forecast.errors, size=now.forecast.size
                )  # what was known is of a training that is no more

    def _least_gain(self) -> float:
        """How far above the forecast a probe must be, in deviations.

        Anything will do for settings that are tried first from a guess: while a curve is steep, its forecast is so
        unsure that hardly a gain is above it by a deviation.
        """
        is_first = self._now.probes < len(self._first)
        return 0.0 if is_first and not self._problem.trusted else SURE

    def _compare_again(self, observation: Observation) -> None:
        """Compares the last probe with staying before and after it, which is better than a forecast."""
        now = self._now
        tried, now.tried = now.tried, None
        if tried is None or now.forecast.decision is None or now.forecast.decision >= tried[0]:
            return
        between = now.forecast.between(tried[0], observation.round, observation.reward)
        z = (tried[1] - between) / now.forecast.deviation
        now.gradient.correct_last(float(np.clip(z, -LARGEST, LARGEST)))

    def _move(self, observation: Observation) -> None:
        now = self._now
        now.previous, now.incumbent = now.incumbent, self._form(observation.place)
        now.place = now.incumbent
        now.before = Forecast(**asdict(now.forecast))
        now.forecast.moved(observation.round, observation.reward)

    def _confirm(self, observation: Observation) -> None:
        now, z = self._now, self._deviations(observation)
        if z < self._least_gain() and now.previous is not None:
            now.incumbent, now.forecast = now.previous, now.before
            self._go_back(is_worse=z < -SURE)
            return
        now.failures, now.wait = 0, 1.0
        now.may_return = now.incumbent != self._start
        self._rescale_step(BETTER, most=LARGEST_STEP[self._problem.can_undo] * self._first_step)
        self._stayed(observation)

    def _stayed(self, observation: Observation) -> None:
        self._now.forecast.stayed(observation.round, observation.reward)

    def _fail(self) -> None:
        """The present setting gave no value at all: go back to the one before it."""
        now = self._now
        if now.previous is not None:
            now.incumbent, now.previous = now.previous, None
        now.forecast = Forecast(errors=now.forecast.errors, peak=now.forecast.peak, size=now.forecast.size)
        self._go_back(is_worse=True)

    def _go_back(self, *, is_worse: bool) -> None:
        now = self._now
        now.failures += 1
        now.wait = 1.0 if self._has_untried() else PATIENCE**now.failures
        given = self._problem
        most = max(now.step, LARGEST_UNCLEAR_STEP[given.can_undo or not given.trusted] * self._first_step)
        self._rescale_step(WORSE if is_worse else UNCLEAR, most=most)

    def _take_back(self, decision: int) -> None:
        now = self._now
        now.allowance.spent += self._lost(decision)
        now.forecast.taken_back(decision)
        now.saved_at = None

    def _lost(self, decision: int) -> int:
        """Decisions that are lost when the state that was saved is put back."""
        return decision - (self._now.saved_at or decision) + 1

    def _is_harmful(self, observation: Observation) -> bool:
        return self._now.kind in ("probe", "confirm") and self._deviations(observation) < -HARMFUL

    def _deviations(self, observation: Observation) -> float:
        """How far a value is above the forecast of staying, or of having stayed; what is farther ahead is less sure."""
        if observation.is_bad:
            return -LARGEST
        forecast = self._now.before if self._now.kind == "confirm" else self._now.forecast
        ahead = max(observation.round - (forecast.decision or 0), 1)
        difference = forecast.difference(observation.round, observation.reward)
        return float(np.clip(difference / (ahead * forecast.deviation), -LARGEST, LARGEST))

    def _rescale_step(self, factor: float, *, most: float) -> None:
        self._now.step = min(max(self._now.step * factor, SMALLEST_STEP * self._first_step), most)

    # ---------------------------------------------------------------------------------------------------- as plain data

    def _move_to(self, place: Place) -> np.ndarray:
        return self._steps.between(self._place(self._now.incumbent), place)

    def _form(self, place: Place) -> Json:
        return place if isinstance(place, int) else dict(self._problem.params(place))

    def _place(self, form: Json) -> Place:
        return form if isinstance(form, int) else self._problem.place(form)
