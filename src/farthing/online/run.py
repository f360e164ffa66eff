"""An online run in memory: what was decided and seen so far, and how it goes on."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from math import inf, isfinite
from typing import Any, Protocol, SupportsFloat, TypeAlias

import numpy as np

from farthing.costs import Clock
from farthing.errors import InvalidArgument, InvalidValue
from farthing.models.linalg import one_thread
from farthing.online import OnlineProblem, OnlineStrategy, Play, Player
from farthing.online.strategy import Observation, Skilled, Undoing, begun
from farthing.trials import Json, Params
from farthing.trials.measurement import finite_number

# ------------------------------------------------------------
# What an online tuner decides for one round, and the one way to answer it.


Value: TypeAlias = float | Callable[[], float]
"""A measured value, or the function that measures it."""


class Tuner(Protocol):
    """The tuner that a decision is answered to."""

    def _observe(self, decision: "Decision", value: Value, cost: float | None) -> None: ...

    def _observe_before(self, decision: "Decision", value: Value) -> None: ...


class NoTuner:
    """Stands for the tuner of a decision that was made by hand."""

    def _observe(self, decision: "Decision", value: Value, cost: float | None) -> None:
        raise InvalidArgument(
            f"A decision is observed by the tuner that made it, got one for round {decision.round} without a tuner. "
            "Write: for decision in tuner: …"
        )

    def _observe_before(self, decision: "Decision", value: Value) -> None:
        self._observe(decision, value, None)


@dataclass(frozen=True)
class Decision:
    """The setting of this round, whether to measure it, and why."""

    params: Params
    measure: bool
    reason: str
    round: int = 0
    measure_before: bool = False
    """Set for rewards that are gains, where the value before the round is not known."""
    _tuner: Tuner = field(default_factory=NoTuner, compare=False, repr=False)

    def observe(self, value: Value, cost: float | None = None) -> None:
        """The value after this round, or the function that measures it.

        A function is called only where `measure` is true, and it is timed; so it can be given in every round. NaN, an
        infinite value and a function that raises are observations too: the round was bad. Without a cost a value costs
        1, and a function its seconds. With a storage all of it is durable when this returns; where it raises, nothing
        has happened: call it again.
        """
        self._tuner._observe(self, value, cost)

    def observe_before(self, value: Value) -> None:
        """For `reward="gain"`: the value before this round is trained; a function is called only where it is needed.

        It is charged as a validation of its own. Without it the gain since the last measurement is shared among the
        rounds between.
        """
        self._tuner._observe_before(self, value)


# ------------------------------------------------------------
# Takes the value of a round, from a number or from the function that measures it.


log = logging.getLogger("farthing")


@dataclass(frozen=True)
class Reading:
    """A value, None where it was bad, and the seconds of the function that gave it."""

    value: float | None
    seconds: float | None = None


def read(given: Value, *, what: str, round: int, clock: Clock) -> Reading:
    """A function is called and timed; what it raises makes the value bad, and is logged."""
    if not callable(given):
        return Reading(_number_or_bad(given, what=what))
    began = clock.elapsed()
    value = _called(given, what=what, round=round)
    return Reading(value, max(clock.elapsed() - began, 0.0))


def _called(measure: Callable[[], float], *, what: str, round: int) -> float | None:
    try:
        value = measure()
    except Exception as error:
        log.warning("%s could not be measured in round %d, which counts as bad: %r", what, round, error)
        return None
    return _number_or_bad(value, what=what)


def _number_or_bad(value: object, *, what: str) -> float | None:
    """None for NaN and infinity; what is no number at all is a mistake in the program, and refused."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return finite_number(value, what=what)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(
            f"{what} must be one number, got {type(value).__name__}. Return a float from the validation."
        ) from error
    return number if isfinite(number) else None


TIMED = 9
"""The median of this many rounds is the time of one: a slow round says nothing about the others."""

LEAST_SECONDS = 1e-3
"""A round of training shorter than this is not timed: its time is mostly noise."""


@dataclass
class Standing:
    """The state that changes from round to round, apart from the player and the decision that is due."""

    round: int = 0
    is_observed: bool = True
    last_value: float | None = None
    last_measured: int | None = None
    validations: int = 0
    paid: float = 0.0
    silent: int = 0
    bad: int = 0
    """Validations that gave no value."""
    is_timed: bool | None = None
    """Whether validations are paid in their seconds; None before the first."""
    saved_at: int | None = None
    """The round before which the state was last saved."""
    undone: int = 0
    """Rounds that were taken back."""

    @property
    def mean_price(self) -> float:
        return self.paid / self.validations if self.validations else 1.0


@dataclass(frozen=True)
class Measured:
    """The result of a round: its value, the value before it where that was measured too, and what both cost."""

    value: float | None
    """None where it was bad."""
    before: float | None
    cost: float
    rounds: float | None = None
    """The cost in rounds of training; None where that is not known."""
    is_paired: bool = False
    """Whether the value before the round was measured, even if that was bad."""

    @property
    def is_bad(self) -> bool:
        return self.value is None or (self.is_paired and self.before is None)


class OnlineRun:
    """A player and where it stands. `sign` times the value is to be made large, or with `gains` what a round adds.

    The player decides once for `hold` rounds; the last of them is the one that is measured.
    """

    def __init__(
        self,
        strategy: OnlineStrategy,
        problem: OnlineProblem,
        *,
        rounds: int,
        sign: float,
        gains: bool,
        clock: Clock,
    ) -> None:
        self.player: Player = begun(strategy, problem)
        self.standing = Standing()
        self.pending: Decision | None = None
        self.before: Reading | None = None
        """The value before the pending round, where it was measured."""
        self._choice: Play | None = None
        self._problem, self._sign, self._gains, self._clock = problem, sign, gains, clock
        self._rounds, self._hold = rounds, problem.hold
        self._decided_at: float | None = None
        self._training_seconds: list[float] = []

    # ---- rounds ------------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the last round that was decided has not ended yet."""
        return self.pending is not None and not self.standing.is_observed

    @property
    def best(self) -> Params:
        with one_thread():
            round = self.standing.round + self.standing.is_observed
            return self._problem.params(self.player.exploit(self._decision_of(max(round, 1))))

    @property
    def skill(self) -> float | None:
        return self.player.skill if isinstance(self.player, Skilled) else None

    def next_decision(self) -> tuple[Decision, Play]:
        """The decision for the next round; nothing is entered yet."""
        round = self.standing.round + 1
        choice = self._choice
        if choice is None or self._begins(round):
            with one_thread():
                choice = self.player.decide(self._decision_of(round))
        return self._decision(choice, round), choice

    def saves(self, decision: Decision, choice: Play) -> bool:
        """Whether the state is to be saved before that round."""
        return choice.saves and self._begins(decision.round)

    def enter(self, decision: Decision, choice: Play) -> None:
        self.pending, self._choice, self.before = decision, choice, None
        self.standing.round, self.standing.is_observed = decision.round, False
        if self.saves(decision, choice):
            self.standing.saved_at = decision.round
        self._decided_at = None

    def _decision_of(self, round: int) -> int:
        """The number of the player's decision that a round belongs to."""
        return (round - 1) // self._hold + 1

    def _begins(self, round: int) -> bool:
        return (round - 1) % self._hold == 0

    def _ends(self, round: int) -> bool:
        return round % self._hold == 0 or round == self._rounds

    def end_silent_round(self) -> None:
        self.standing.is_observed = True
        self.standing.silent += 1

    def start_timing(self) -> None:
        """From now on the user trains."""
        self._decided_at = self._clock.elapsed()

    def stop_timing(self) -> None:
        """The round that ends now was trained without a validation."""
        if self._decided_at is not None:
            seconds = self._clock.elapsed() - self._decided_at
            self._training_seconds = [*self._training_seconds, seconds][-TIMED:]

    def rounds_of(self, timed: float | None) -> float | None:
        """The cost of the validation that ends now, in rounds of training; None where rounds take no time.

        `timed` are its seconds, where they are known.
        """
        if self._decided_at is None:
            return None
        whole = self._clock.elapsed() - self._decided_at
        known = self._training_seconds
        training = float(np.median(known)) if known else whole - timed if timed is not None else 0.0
        validation = timed if timed is not None else max(whole - training, 0.0)
        return validation / training if training >= LEAST_SECONDS else None

    def rounds_undone(self, measured: Measured) -> int:
        """How many rounds are taken back after that, which is not taken in yet."""
        saved_at, observation = self.standing.saved_at, self._observation(measured)
        if not isinstance(self.player, Undoing) or observation is None or saved_at is None:
            return 0
        return self.standing.round - saved_at + 1 if self.player.undoes(observation) else 0

    def take(self, measured: Measured, *, params: Params | None = None) -> None:
        """Takes in what the round gave, for its own params or for others that were played instead."""
        standing, observation = self.standing, self._observation(measured, params=params)
        undone = self.rounds_undone(measured)
        standing.undone += undone
        if undone:
            standing.saved_at = None
        if observation is not None:
            with one_thread():
                self.player.observe(observation)
        if not measured.is_bad:
            standing.last_value, standing.last_measured = measured.value, standing.round
        standing.is_observed, self.before = True, None
        standing.validations += 1 + measured.is_paired
        standing.bad += measured.is_bad
        standing.paid += measured.cost

    def _observation(self, measured: Measured, *, params: Params | None = None) -> Observation | None:
        """The player's observation; None where a gain has nothing to start from, and in the middle of a decision."""
        reward = self._reward_of(measured)
        if reward is None or not self._ends(self.standing.round):
            return None
        assert self._choice is not None
        place = self._choice.place if params is None else self._problem.place(params)
        cost = None if measured.rounds is None else measured.rounds / self._hold
        return Observation(self._decision_of(self.standing.round), place, reward, cost)

    def _reward_of(self, measured: Measured) -> float | None:
        """The reward to be made large, −∞ where it was bad; None where a gain has nothing to start from."""
        standing = self.standing
        if measured.is_bad or measured.value is None:
            return -inf
        if not self._gains:
            return self._sign * measured.value
        if measured.before is not None:
            return self._sign * (measured.value - measured.before)
        if standing.last_value is None or standing.last_measured is None:
            return None
        return self._sign * (measured.value - standing.last_value) / (standing.round - standing.last_measured)

    def _decision(self, choice: Play, round: int) -> Decision:
        is_measured = choice.measure and self._ends(round)
        needs_baseline = self._gains and is_measured and self.standing.last_measured != round - 1
        params = self._problem.params(choice.place)
        return Decision(params, is_measured, choice.reason, round, needs_baseline)

    # ---- as plain data -----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Json]:
        state = {
            "observations": [
                [each.round, self._place_form(each.place), each.reward] for each in self.player.observations
            ],
            "player": self.player.memory(),
            "pending": self._pending_form(),
            "before": None if self.before is None else [self.before.value, self.before.seconds],
            **asdict(self.standing),
        }
        return json.loads(json.dumps(state))  # type: ignore[no-any-return]

    def restore(self, state: Mapping[str, Json]) -> None:
        """Makes a new run the one that `to_json` was called of."""
        observations = [
            Observation(round, self._place_of(form), reward) for round, form, reward in state["observations"]
        ]
        with one_thread():
            self.player.restore(observations, state["player"])
        self.standing = Standing(**{field.name: state[field.name] for field in fields(Standing)})
        if state["pending"] is not None:
            place_form, is_to_be_measured, reason, round, measure, measure_before = state["pending"]
            self._choice = Play(self._place_of(place_form), is_to_be_measured, reason)
            params = self._problem.params(self._choice.place)
            self.pending = Decision(params, measure, reason, round, measure_before)
            self.before = None if state["before"] is None else Reading(*state["before"])

    def _pending_form(self) -> Json:
        if self.pending is None or self._choice is None:
            return None
        due, choice = self.pending, self._choice
        place = self._place_form(choice.place)
        return [place, choice.measure, choice.reason, due.round, due.measure, due.measure_before]

    def _place_form(self, place: Any) -> Json:
        return place if isinstance(place, int) else dict(self._problem.params(place))

    def _place_of(self, form: Json) -> Any:
        return form if isinstance(form, int) else self._problem.place(form)
