"""The online tuner: it lives in the user's own training loop."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from farthing.costs import Clock, SystemClock
from farthing.errors import InvalidArgument
from farthing.models.threads import one_thread
from farthing.space import Space
from farthing.space.encoding import Encoder
from farthing.storage import Storage, open_storage
from farthing.study.online_log import Online, RoundLog
from farthing.study.opening import value_name
from farthing.systems.online import CEGPUCB, Arena, Choice, OnlineStrategy, Player
from farthing.systems.online.strategy import Observation, to_json
from farthing.trials import Json, Measurement, Params, Problem
from farthing.trials.measurement import cost_amount, finite_number

MOST_ENUMERATED = 1000
"""A space of at most so many configurations is played as candidates, with the exact filter."""

FORMAT = 1
SKIPPED = "skipped validations"


class Stopwatch:
    """Adds up the seconds of the blocks it runs in."""

    def __init__(self, clock: Clock) -> None:
        self.seconds: float | None = None
        self._clock = clock

    @contextmanager
    def running(self) -> Iterator[None]:
        began = self._clock.elapsed()
        try:
            yield
        finally:
            self.seconds = (self.seconds or 0.0) + self._clock.elapsed() - began


@dataclass(frozen=True)
class Decision:
    """What to train with in this round, whether to measure it, and why.

    `measure_before` is set for rewards that are gains, where the value before the round is not known: measure it
    before training and pass it to `observe(…, before=…)`, or leave it out and the gain is shared among the rounds since
    the last measurement.
    """

    params: Params
    measure: bool
    reason: str
    round: int = 0
    measure_before: bool = False
    _stopwatch: Stopwatch = field(default_factory=lambda: Stopwatch(SystemClock()), compare=False, repr=False)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Charges the seconds inside the block as this round's validation."""
        with self._stopwatch.running():
            yield


@dataclass
class _Run:
    """What changes from round to round, apart from the player."""

    round: int = 0
    pending: Decision | None = None
    choice: Choice | None = None
    is_observed: bool = True
    last_value: float | None = None
    last_measured: int | None = None
    validations: int = 0
    paid: float = 0.0
    silent: int = 0
    is_timed: bool = False


class OnlineTuner:
    """Tunes inside one training run: `decide()` at the start of each round, `observe(value)` where it asked.

    Args:
        rounds: how many rounds the run has; a round is what you train between two decisions.
        strategy: who decides; CE-GP-UCB that asks by the value of information by default.
        candidates: the params to choose from; None is the whole space, enumerated where it is small.
        initial: params to be measured in the first rounds, in that order; one of them, or a list.
        minimize, maximize: the name of the value; `maximize="value"` if neither is given.
        reward: "value" compares measured values, "gain" what a round adds to the value.
        storage, name: where the run is kept as a trial of that study; None keeps nothing.
        cost_unit: the unit of what validations cost; by default seconds if the first one is timed, else validations,
            which cost 1 each.
    """

    def __init__(
        self,
        space: Space,
        *,
        rounds: int,
        strategy: OnlineStrategy | None = None,
        candidates: Sequence[Params] | None = None,
        initial: Params | Sequence[Params] | None = None,
        minimize: str | None = None,
        maximize: str | None = None,
        reward: Literal["value", "gain"] = "value",
        storage: str | Path | Storage | None = None,
        name: str = "online",
        seed: int = 0,
        cost_unit: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        _check(space, rounds=rounds, reward=reward)
        if minimize is None and maximize is None:
            maximize = "value"
        self.problem = Problem(
            space,
            value=value_name(minimize, maximize),
            minimize=minimize is not None,
            seed=seed,
            cost_unit=cost_unit or "seconds",
            measures_cost=False,
        )
        self.rounds = rounds
        self.strategy: OnlineStrategy = CEGPUCB() if strategy is None else strategy
        self._reward = reward
        self._cost_unit = cost_unit
        self._clock = clock or SystemClock()
        self._arena = Arena(
            space.encoder,
            rounds,
            seed,
            candidates=_candidates(space, candidates),
            initial=[space.check(params) for params in _listed(initial)],
        )
        self._player: Player = self.strategy.begin(self._arena)
        self._run = _Run()
        self._log = None if storage is None else self._new_log(open_storage(storage), name)

    # ---- the two calls -----------------------------------------------------------------------------------------------

    def decide(self) -> Decision:
        """What to train with in the next round, and whether a validation is worth its price."""
        run = self._run
        if run.pending is not None and run.pending.measure and not run.is_observed:
            raise InvalidArgument(
                f"A round that asked for a measurement must be observed, got nothing for round {run.round}. "
                "Call observe(value) where decision.measure is true."
            )
        if run.round >= self.rounds:
            raise InvalidArgument(
                f"This run has {self.rounds} rounds, and all are decided. Give OnlineTuner more rounds=."
            )
        self._end_silent_round()
        run.round += 1
        with one_thread():
            run.choice = self._player.decide(run.round)
        run.is_observed = False
        run.pending = Decision(
            self._arena.params(run.choice.place),
            run.choice.measure,
            run.choice.reason,
            run.round,
            measure_before=self._needs_baseline(run.choice.measure),
            _stopwatch=Stopwatch(self._clock),
        )
        if run.round == self.rounds and not run.choice.measure:
            self._end_silent_round()
            self._finish()
        return run.pending

    def observe(self, value: float, cost: float | None = None, *, before: float | None = None) -> None:
        """The value measured after the round that was decided last, and what measuring it cost.

        Without a cost the seconds of `decision.timing()` count, and without those 1. `before` is the value measured
        before the round was trained, where the decision asked for it; it is charged as a second validation.
        """
        run, decision = self._run, self._to_be_observed()
        measured = finite_number(value, what=f"The value {self.problem.value!r}")
        baseline = None if before is None else finite_number(before, what=f"The value {self.problem.value!r} before")
        amount = self._price(decision, cost, is_paired=baseline is not None)
        reward = self._reward_of(measured, baseline)
        assert run.choice is not None
        if reward is not None:
            with one_thread():
                self._player.observe(Observation(run.round, run.choice.place, reward))
        run.last_value, run.last_measured, run.is_observed = measured, run.round, True
        run.is_timed = run.is_timed or decision._stopwatch.seconds is not None
        run.validations, run.paid = run.validations + 1 + (baseline is not None), run.paid + amount
        self._write(decision, value=measured, cost={"validation": amount})
        if run.round == self.rounds:
            self._finish()

    def _to_be_observed(self) -> Decision:
        run = self._run
        if run.pending is None:
            raise InvalidArgument("A value belongs to a decision, got one before any. Call decide() first.")
        if run.is_observed:
            raise InvalidArgument(
                f"A round has one value, got a second for round {run.round}. Call decide() before the next observe()."
            )
        return run.pending

    # ---- continuing --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Json]:
        """All that was seen and decided, as plain data: a tuner that loads it goes on bit for bit as this one would."""
        run = self._run
        state = {
            "format": FORMAT,
            "settings": self._settings(),
            "round": run.round,
            "observations": [
                [each.round, self._place_form(each.place), each.reward] for each in self._player.observations
            ],
            "player": self._player.memory(),
            "pending": None if run.pending is None else self._pending_form(run.pending),
            "is_observed": run.is_observed,
            "last_value": run.last_value,
            "last_measured": run.last_measured,
            "validations": run.validations,
            "paid": run.paid,
            "silent": run.silent,
            "is_timed": run.is_timed,
        }
        return json.loads(json.dumps(state))  # type: ignore[no-any-return]

    def load_state_dict(self, state: Mapping[str, Json]) -> None:
        """Goes on from where `state_dict` was called; with other settings it refuses, and nothing is changed."""
        self._check_state(state)
        observations = [
            Observation(round, self._place_of(form), reward) for round, form, reward in state["observations"]
        ]
        player = self.strategy.begin(self._arena)
        with one_thread():
            player.restore(observations, state["player"])
        run = _Run()
        for name in (
            "round",
            "is_observed",
            "last_value",
            "last_measured",
            "validations",
            "paid",
            "silent",
            "is_timed",
        ):
            setattr(run, name, state[name])
        if state["pending"] is not None:
            run.pending, run.choice = self._pending_of(state["pending"])
        self._player, self._run = player, run

    def _check_state(self, state: Mapping[str, Json]) -> None:
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise InvalidArgument(
                f"A state must be one that state_dict() returned, of format {FORMAT}, got "
                f"{state.get('format') if isinstance(state, Mapping) else type(state).__name__!r}. Load another file."
            )
        mine = json.loads(json.dumps(self._settings()))
        different = [name for name, value in mine.items() if state["settings"].get(name) != value]
        if different:
            raise InvalidArgument(
                f"A state is continued with the settings it began with, got others for {', '.join(different)}. "
                "Make the tuner with the same arguments as before."
            )

    def _settings(self) -> dict[str, Json]:
        return {
            "space": self.problem.space.to_json(),
            "value": self.problem.value,
            "minimize": self.problem.minimize,
            "reward": self._reward,
            "rounds": self.rounds,
            "seed": self.problem.seed,
            "strategy": to_json(self.strategy),
            "candidates": None if self._arena.candidates is None else [dict(each) for each in self._arena.candidates],
            "initial": [dict(each) for each in self._arena.initial],
        }

    def _place_form(self, place: Any) -> Json:
        return place if isinstance(place, int) else dict(self._arena.params(place))

    def _place_of(self, form: Json) -> Any:
        return form if isinstance(form, int) else self._arena.place(form)

    def _pending_form(self, decision: Decision) -> Json:
        assert self._run.choice is not None
        place = self._place_form(self._run.choice.place)
        return [place, decision.measure, decision.reason, decision.round, decision.measure_before]

    def _pending_of(self, form: Json) -> tuple[Decision, Choice]:
        place_form, measure, reason, round, measure_before = form
        place = self._place_of(place_form)
        decision = Decision(self._arena.params(place), measure, reason, round, measure_before, Stopwatch(self._clock))
        return decision, Choice(place, measure, reason)

    # ---- what is there -----------------------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The round that was decided last; 0 before the first."""
        return self._run.round

    @property
    def best(self) -> Params:
        """What would be played without measuring: the params with the highest expected value now."""
        with one_thread():
            return self._arena.params(self._player.exploit(self._run.round + self._run.is_observed))

    @property
    def summary(self) -> dict[str, float]:
        """Rounds, validations paid for and skipped, what they cost, and what the skipped ones would have cost."""
        run = self._run
        return {
            "rounds": run.round,
            "validations": run.validations,
            "paid": run.paid,
            "skipped": run.silent,
            "saved": run.silent * self._mean_price(),
        }

    def close(self) -> None:
        """Ends a run early: what was decided and measured is kept, and its trial is done."""
        self._end_silent_round()
        self._finish()

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def _new_log(self, storage: Storage, name: str) -> RoundLog:
        settings = self._settings()
        online = Online(**{key: settings[key] for key in ("strategy", "rounds", "reward", "candidates", "initial")})
        return RoundLog(storage, name=name, problem=self.problem, online=online)

    def _needs_baseline(self, measure: bool) -> bool:
        return self._reward == "gain" and measure and self._run.last_measured != self._run.round - 1

    def _reward_of(self, value: float, before: float | None) -> float | None:
        """What the strategy is to make large; None where a gain has nothing to start from."""
        sign = -self.problem.sign
        if self._reward == "value":
            return sign * value
        if before is not None:
            return sign * (value - before)
        run = self._run
        if run.last_value is None or run.last_measured is None:
            return None
        return sign * (value - run.last_value) / (run.round - run.last_measured)

    def _price(self, decision: Decision, cost: float | None, *, is_paired: bool) -> float:
        if cost is not None:
            return cost_amount(cost)
        timed = decision._stopwatch.seconds
        return timed if timed is not None else 1.0 + is_paired

    def _mean_price(self) -> float:
        return self._run.paid / self._run.validations if self._run.validations else 1.0

    def _end_silent_round(self) -> None:
        run = self._run
        if run.pending is None or run.is_observed:
            return
        run.is_observed = True
        run.silent += 1
        self._write(run.pending, saved={SKIPPED: self._mean_price()})

    def _write(self, decision: Decision, *, value: float | None = None, **amounts: Mapping[str, float]) -> None:
        if self._log is not None:
            measurement = Measurement(value=value, charged=True, step=decision.round, params=decision.params)
            self._log.add(replace(measurement, **amounts), cost_unit=self._unit())  # type: ignore[arg-type]

    def _finish(self) -> None:
        if self._log is not None:
            self._log.finish(self._run.last_value, cost_unit=self._unit())
            self._log = None

    def _unit(self) -> str:
        return self._cost_unit or ("seconds" if self._run.is_timed else "validations")


def _check(space: Space, *, rounds: int, reward: str) -> None:
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise InvalidArgument(f"rounds must be a whole number ≥ 1, got {rounds!r}. Count the decisions of the run.")
    if reward not in ("value", "gain"):
        raise InvalidArgument(f"reward must be 'value' or 'gain', got {reward!r}. Leave it out for 'value'.")
    if space.fidelities:
        raise InvalidArgument(
            f"An online run has no fidelity of its own, got {', '.join(space.fidelities)}. Leave fidelities= out."
        )


def _listed(initial: Params | Sequence[Params] | None) -> list[Params]:
    if initial is None:
        return []
    return [initial] if isinstance(initial, Mapping) else list(initial)


def _candidates(space: Space, given: Sequence[Params] | None) -> list[Params] | None:
    """The candidates, checked; all configurations where there are none given and few of them."""
    if given is None:
        return _enumerated(space)
    checked = [space.check(params) for params in given]
    if len(checked) < 2 or len({json.dumps(params, sort_keys=True) for params in checked}) < len(checked):
        raise InvalidArgument(
            f"Candidates must be at least two, all different, got {len(checked)}. Leave duplicates out."
        )
    return list(checked)


def _grid(encoder: Encoder, column: int) -> list[float]:
    grid = encoder.grid(column)
    assert grid is not None
    return [float(x) for x in grid]


def _enumerated(space: Space) -> list[Params] | None:
    encoder = space.encoder
    counts = [(encoder.categories | encoder.discrete).get(j) for j in range(encoder.dimension)]
    known = [count for count in counts if count]
    if len(known) < len(counts) or not 2 <= prod(known) <= MOST_ENUMERATED:
        return None
    grids = [range(count) if j in encoder.categories else _grid(encoder, j) for j, count in enumerate(known)]
    rows = np.array(list(product(*grids)), dtype=np.float64)
    distinct = {json.dumps(params, sort_keys=True): params for params in encoder.decode(rows)}
    return list(distinct.values()) if len(distinct) > 1 else None
