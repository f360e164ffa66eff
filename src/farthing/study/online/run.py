"""An online run in memory: what was decided and seen so far, and how it goes on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from farthing.costs import Clock
from farthing.models.threads import one_thread
from farthing.strategies.online import OnlineProblem, OnlineStrategy, Play, Player
from farthing.strategies.online.strategy import Observation, Undoing
from farthing.study.online.decision import Decision, Stopwatch
from farthing.trials import Json, Params

TIMED = 9
"""Rounds of whose seconds the median is taken: one that was slow says nothing of the others."""

LEAST_SECONDS = 1e-3
"""A round of training shorter than this is not worth timing, and its time mostly noise."""


@dataclass
class Standing:
    """What changes from round to round, apart from the player and the decision that is due."""

    round: int = 0
    is_observed: bool = True
    last_value: float | None = None
    last_measured: int | None = None
    validations: int = 0
    paid: float = 0.0
    silent: int = 0
    is_timed: bool = False
    saved_at: int | None = None
    """The round before which the state was last saved."""
    undone: int = 0
    """Rounds that were taken back."""

    @property
    def mean_price(self) -> float:
        return self.paid / self.validations if self.validations else 1.0


@dataclass(frozen=True)
class Measured:
    """What a round gave: its value, the value before it where that was measured too, and what both cost."""

    value: float
    before: float | None
    cost: float
    rounds: float | None = None
    """The cost in rounds of training; None where that is not known."""


class OnlineRun:
    """A player and where it stands. `sign` times the value is to be made large, or with `gains` what a round adds."""

    def __init__(
        self, strategy: OnlineStrategy, problem: OnlineProblem, *, sign: float, gains: bool, clock: Clock
    ) -> None:
        self.player: Player = strategy.begin(problem)
        self.standing = Standing()
        self.pending: Decision | None = None
        self._choice: Play | None = None
        self._problem, self._sign, self._gains, self._clock = problem, sign, gains, clock
        self._decided_at: float | None = None
        self._training_seconds: list[float] = []

    # ---- rounds ------------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a round was decided of which nothing has been said yet."""
        return self.pending is not None and not self.standing.is_observed

    @property
    def best(self) -> Params:
        with one_thread():
            return self._problem.params(self.player.exploit(self.standing.round + self.standing.is_observed))

    def next_decision(self) -> tuple[Decision, Play]:
        """What the player says to the next round; nothing is entered yet."""
        round = self.standing.round + 1
        with one_thread():
            choice = self.player.decide(round)
        needs_baseline = self._gains and choice.measure and self.standing.last_measured != round - 1
        return self._decision(choice, round, needs_baseline), choice

    def enter(self, decision: Decision, choice: Play) -> None:
        self.pending, self._choice = decision, choice
        self.standing.round, self.standing.is_observed = decision.round, False
        if choice.saves:
            self.standing.saved_at = decision.round
        self._decided_at = None

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

    def rounds_of(self, decision: Decision) -> float | None:
        """What the validation that ends now has cost, in rounds of training; None where rounds take no time."""
        if self._decided_at is None:
            return None
        whole, timed = self._clock.elapsed() - self._decided_at, decision.timed_seconds
        known = self._training_seconds
        training = float(np.median(known)) if known else whole - timed if timed is not None else 0.0
        validation = timed if timed is not None else max(whole - training, 0.0)
        return validation / training if training >= LEAST_SECONDS else None

    def rounds_undone(self, measured: Measured) -> int:
        """How many rounds are taken back after that, which is not taken in yet."""
        saved_at, reward = self.standing.saved_at, self._reward_of(measured)
        if not isinstance(self.player, Undoing) or reward is None or saved_at is None:
            return 0
        assert self._choice is not None
        observation = Observation(self.standing.round, self._choice.place, reward, measured.rounds)
        return self.standing.round - saved_at + 1 if self.player.undoes(observation) else 0

    def take(self, measured: Measured, *, params: Params | None = None) -> None:
        """Takes in what the round gave, for its own params or those that were played in their place."""
        standing, reward = self.standing, self._reward_of(measured)
        standing.undone += self.rounds_undone(measured)
        assert self._choice is not None
        place = self._choice.place if params is None else self._problem.place(params)
        if reward is not None:
            with one_thread():
                self.player.observe(Observation(standing.round, place, reward, measured.rounds))
        standing.last_value, standing.last_measured, standing.is_observed = measured.value, standing.round, True
        standing.validations += 1 + (measured.before is not None)
        standing.paid += measured.cost

    def _reward_of(self, measured: Measured) -> float | None:
        """What the strategy is to make large; None where a gain has nothing to start from."""
        standing = self.standing
        if not self._gains:
            return self._sign * measured.value
        if measured.before is not None:
            return self._sign * (measured.value - measured.before)
        if standing.last_value is None or standing.last_measured is None:
            return None
        return self._sign * (measured.value - standing.last_value) / (standing.round - standing.last_measured)

    def _decision(self, choice: Play, round: int, measure_before: bool) -> Decision:
        params = self._problem.params(choice.place)
        return Decision(params, choice.measure, choice.reason, round, measure_before, Stopwatch(self._clock))

    # ---- as plain data -----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Json]:
        state = {
            "observations": [
                [each.round, self._place_form(each.place), each.reward] for each in self.player.observations
            ],
            "player": self.player.memory(),
            "pending": self._pending_form(),
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
            place_form, measure, reason, round, measure_before = state["pending"]
            self._choice = Play(self._place_of(place_form), measure, reason)
            self.pending = self._decision(self._choice, round, measure_before)

    def _pending_form(self) -> Json:
        if self.pending is None or self._choice is None:
            return None
        due = self.pending
        return [self._place_form(self._choice.place), due.measure, due.reason, due.round, due.measure_before]

    def _place_form(self, place: Any) -> Json:
        return place if isinstance(place, int) else dict(self._problem.params(place))

    def _place_of(self, form: Json) -> Any:
        return form if isinstance(form, int) else self._problem.place(form)
