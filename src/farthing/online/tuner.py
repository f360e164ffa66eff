"""The online tuner: it lives in the user's own training loop."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from farthing.costs import Ledger, as_clock
from farthing.errors import InvalidArgument, NoResult
from farthing.fields import Number, OneOf, Whole
from farthing.fields.serialization import to_json
from farthing.knowledge.earlier import LearnFrom
from farthing.online import CEGPUCB, OnlineProblem, OnlineStrategy, PairedProbes, as_online_strategy
from farthing.online.arguments import RareSettings, candidates_of, initial_params, learned_params
from farthing.online.log import Online, RoundLog, with_new_arguments
from farthing.online.run import Decision, Measured, OnlineRun, Reading, Value, read
from farthing.online.strategy import Holding
from farthing.session.creation import require_space
from farthing.space import Space
from farthing.storage import MemoryStorage, Storage, open_storage
from farthing.trials import Json, Measurement, Params, Problem, Trial
from farthing.trials.measurement import BAD, cost_amount, played_rounds
from farthing.trials.objectives import objectives_given
from farthing.validation import explained, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger("farthing")

FORMAT = 4
OVERHEAD = 0.1
"""The share of training that validations may cost where the user does not say."""
SKIPPED = "skipped validations"
BEFORE, BAD_BEFORE = "before", "bad before"
"""Metrics of a gain's round: the value before it, or that there was none."""
ROUNDS_PAID, ROUNDS_UNDONE = "validation in rounds", "rounds taken back"
"""Metrics of a measured round: what its validation cost in rounds of training, and how many it took back."""

VALIDATIONS = "validations"
"""The unit of a run whose validations cost 1 each."""

NOTHING = object()
"""Stands for a state that was never saved; a saved one may be anything, None too."""


class OnlineTuner(Iterator[Decision]):
    """Tunes inside one training run:

        for decision in tuner:
            train(**decision.params)
            decision.observe(validate)

    A round is one pass of this loop; it is measured only where `decision.measure` is true.

    Args:
        rounds: how many rounds the run has.
        strategy: what decides, or its name; by default `PairedProbes`, which tries neighbours of the present setting,
            and `CEGPUCB` where rounds are `stateless`.
        initial: the present setting, which is played until a better one is found; more of them, as a list, are tried
            first. Without it the default begins in the middle of the space, as from a `guess`.
        overhead: the most that validations and rounds taken back may cost, as a share of the time of training; None
            lifts the bound. "auto" is 0.1, and None where rounds are `stateless`.
        minimize, maximize: the name of the value; `maximize="value"` if neither is given.
        stateless: whether a round leaves nothing behind, so that its value depends on its params and the time alone:
            prices, sensors, arms, requests to a server.
        save, restore: what returns the state of your training, and what puts it back: a probe that did harm is taken
            back. Both or none.
        storage, name: where the run is kept as a trial of that study; None keeps nothing. A run of that name that was
            killed is continued after its last observation: `round` says where it stands. One that has ended is not
            begun anew: the log says so, and there are no rounds.

    Other Parameters:
        candidates: the params to choose from; None is the whole space, enumerated where it is small.
        guess: the present setting, where it may be far from a good one: the default then takes longer steps.
        learn_from: earlier studies, as for `Study`: their best configurations are the `initial` ones, instead of it.
        hold: how many rounds a setting is held before it is measured; None makes about 30 decisions of a run with
            `PairedProbes`, and one in each round with other strategies.
        validation_cost: what a validation costs, in rounds of training; None takes the time of both.
        price: what a validation must be expected to bring, in units of the value times rounds: 0.05 is a gain of 0.001
            over 50 rounds. It is asked for beside the time that a validation takes.
        validation_size: the number of validation examples, where the value is a share of them, such as an accuracy
            or an error rate: differences that are chance on so few do not count. None learns the noise from values.
        reward: "value" compares measured values, "gain" what a round adds to the value.
        clock: what tells the time, where it is not the computer's.
        cost_unit: the unit of what validations cost; by default seconds if the first value comes from a function, else
            validations, which cost 1 each.
    """

    @explained
    def __init__(
        self,
        space: Space,
        *,
        rounds: int,
        strategy: OnlineStrategy | str | None = None,
        initial: Params | Sequence[Params] | None = None,
        overhead: float | Literal["auto"] | None = "auto",
        minimize: str | None = None,
        maximize: str | None = None,
        stateless: bool = False,
        save: Callable[[], Any] | None = None,
        restore: Callable[[Any], object] | None = None,
        storage: str | Path | Storage | None = None,
        name: str = "online",
        seed: int = 0,
        **rare: Unpack[RareSettings],
    ) -> None:
        reward, hold, guess = rare.get("reward", "value"), rare.get("hold"), rare.get("guess")
        price, cost_unit = rare.get("price", 0.0), rare.get("cost_unit")
        validation_cost, validation_size = rare.get("validation_cost"), rare.get("validation_size")
        _check(space, rounds=rounds, reward=reward, hold=hold)
        _check_stateless(stateless, save)
        if overhead == "auto":
            overhead = None if stateless else OVERHEAD
        _check_prices(overhead=overhead, validation_cost=validation_cost, price=price, cost_unit=cost_unit)
        _check_pair(save, restore)
        if minimize is None and maximize is None:
            maximize = "value"
        first, *others = objectives_given(minimize, maximize)
        if others:
            named = ", ".join(one.name for one in (first, *others))
            raise InvalidArgument(
                f"An online tuner has one value, got {named}. Combine them in what you "
                "measure, or tune whole runs with ft.Study(minimize=[…])."
            )
        self.problem = Problem(
            space,
            value=first.name,
            minimize=first.minimize,
            seed=seed,
            cost_unit=cost_unit or "seconds",
            measures_cost=False,
        )
        self.rounds = rounds
        usual = CEGPUCB() if stateless else PairedProbes()
        self.strategy: OnlineStrategy = usual if strategy is None else as_online_strategy(strategy)
        _check_price_is_used(self.strategy, price)
        _check_size_is_used(self.strategy, validation_size, reward=reward)
        self.hold = min(hold or _usual_hold(self.strategy, rounds), rounds)
        self._reward = reward
        self._cost_unit = cost_unit
        self._clock = as_clock(rare.get("clock"))
        starts = self._initial(initial, guess, rare.get("learn_from"), storage, name)
        self._online_problem = OnlineProblem(
            space.encoder,
            ceil(rounds / self.hold),
            seed,
            candidates=candidates_of(space, rare.get("candidates")),
            initial=starts,
            trusted=guess is None and bool(starts),
            can_undo=save is not None,
            hold=self.hold,
            overhead=overhead,
            validation_cost=None if validation_cost is None else validation_cost / self.hold,
            price=price,
            validation_size=validation_size,
            gains=reward == "gain",
        )
        self._save, self._restore = save, restore
        self._saved: Any = NOTHING
        self._run = self._new_run()
        self._is_closed = self._has_ended = False
        self._is_loaded_unobserved = False
        self._name = name
        self._played: list[Measurement] = []
        """For pictures: rounds that were measured, and the first of those in which nothing changed."""
        self._log = None if storage is None else self._new_log(storage)
        self._continue()

    def _initial(
        self,
        given: Params | Sequence[Params] | None,
        guess: Params | None,
        learn_from: LearnFrom | None,
        storage: str | Path | Storage | None,
        name: str,
    ) -> list[Params]:
        starts = {"initial": given, "guess": guess, "learn_from": learn_from}
        named = [f"{argument}={shown(start)}" for argument, start in starts.items() if start is not None]
        if len(named) > 1:
            raise InvalidArgument(
                f"A run begins with initial=, with guess=, or with what it learns, got {' and '.join(named)}. "
                "Keep initial= for a setting that you trust, guess= for one that you do not."
            )
        if learn_from is None:
            return initial_params(self.problem.space, given if guess is None else [guess])
        return learned_params(learn_from, self.problem, name=name, storage=storage)

    # ---- the loop ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> "OnlineTuner":
        return self

    def __next__(self) -> Decision:
        """The setting for the next round, and whether a validation is worth its price."""
        run = self._run
        if self._is_loaded_unobserved and run.is_open and run.pending is not None:
            self._is_loaded_unobserved = False
            return run.pending
        self._require_observed()
        if run.standing.round >= self.rounds or self._has_ended:
            raise StopIteration
        self._require_not_closed("another round")
        self._end_silent_round()
        decision, choice = run.next_decision()
        if run.saves(decision, choice) and self._save is not None:
            self._saved = self._save()
        is_silent_end = decision.round == self.rounds and not decision.measure
        if is_silent_end:
            self._finish(self._silent(decision), value=run.standing.last_value)
        run.enter(replace(decision, _tuner=self), choice)
        if is_silent_end:
            run.end_silent_round()
        run.start_timing()
        assert run.pending is not None
        return run.pending

    def _end_silent_round(self) -> None:
        run = self._run
        if run.is_open and run.pending is not None:
            run.stop_timing()
            self._write(self._silent(run.pending))
            run.end_silent_round()

    def _observe(self, decision: Decision, value: Value, cost: float | None) -> None:
        if callable(value) and not decision.measure:
            return
        self._require_pending(decision)
        reading = self._read(value)
        before = self._run.before
        seconds = None if reading.seconds is None else reading.seconds + ((before and before.seconds) or 0.0)
        measured = Measured(
            reading.value,
            None if before is None else before.value,
            self._price(reading, before, cost),
            self._run.rounds_of(seconds),
            is_paired=before is not None,
        )
        self._take(decision, measured, is_timed=self._is_timed(reading, cost))

    def _take(self, decision: Decision, measured: Measured, *, is_timed: bool) -> None:
        undone = self._run.rounds_undone(measured)
        point = _point(decision, measured, undone)
        if decision.round == self.rounds:
            last = self._run.standing.last_value if measured.value is None else measured.value
            self._finish(point, value=last, is_timed=is_timed)
        else:
            self._write(point, is_timed=is_timed)
        self._run.standing.is_timed = is_timed
        self._run.take(measured)
        if undone:
            self._take_back(undone)

    def _observe_before(self, decision: Decision, value: Value) -> None:
        if callable(value) and not decision.measure_before:
            return
        self._require_pending(decision)
        if self._reward != "gain":
            raise InvalidArgument(
                f"Only a gain has a value before its round, got one for round {decision.round} of a run with "
                "reward='value'. Leave observe_before() out, or make the tuner with reward='gain'."
            )
        self._run.before = self._read(value)

    def _read(self, value: Value) -> Reading:
        reading = read(value, what=f"The value {self.problem.value!r}", round=self.round, clock=self._clock)
        size = self._online_problem.validation_size
        if size is not None and reading.value is not None and not 0.0 <= reading.value <= 1.0:
            raise InvalidArgument(
                f"With validation_size={size} a value must be a share of that many examples, from 0 to 1, got "
                f"{reading.value:g} in round {self.round}. Give 0.93 and not 93, or leave validation_size= out."
            )
        return reading

    def _take_back(self, rounds: int) -> None:
        if self._saved is NOTHING:
            log.warning("Nothing was saved since this run was continued: %d rounds are not taken back.", rounds)
        elif self._restore is not None:
            self._restore(self._saved)

    def _require_observed(self) -> None:
        standing, pending = self._run.standing, self._run.pending
        if self._run.is_open and pending is not None and pending.measure and not self._is_closed:
            raise InvalidArgument(
                f"A round that asked for a measurement must be observed, got nothing for round {standing.round}. "
                "Call decision.observe(validate) in every round, or where decision.measure is true."
            )

    def _require_not_closed(self, call: str) -> None:
        if self._is_closed:
            raise InvalidArgument(
                f"A run that was closed has ended, got {call} after round {self.round}. Make another OnlineTuner."
            )

    def _require_pending(self, decision: Decision) -> None:
        run = self._run
        self._require_not_closed("a value")
        if run.pending is None or decision.round != run.standing.round:
            raise InvalidArgument(
                f"Only the present round can be observed, got a value for round {decision.round} where round "
                f"{run.standing.round} is played. Call decision.observe(…) before the loop goes on."
            )
        if not run.is_open and not decision.measure and decision.round == self.rounds:
            raise InvalidArgument(
                f"A run ends with its last round, got a value for round {decision.round}, not to be measured. "
                "Call decision.observe(…) where decision.measure is true."
            )
        if not run.is_open:
            raise InvalidArgument(
                f"A round has one value, got a second for round {run.standing.round}. "
                "Call decision.observe(…) once in each round."
            )

    # ---- what validations cost ---------------------------------------------------------------------------------------

    def _is_timed(self, reading: Reading, cost: float | None) -> bool:
        """Whether validations of this run are paid in their seconds: the first one decides, unless there is a unit."""
        if self._cost_unit is not None:
            return self._cost_unit == "seconds"
        known = self._run.standing.is_timed
        return known if known is not None else reading.seconds is not None and cost is None

    def _price(self, reading: Reading, before: Reading | None, cost: float | None) -> float:
        """The cost that was given; else seconds in a run that is paid in them, and 1 for each validation in others."""
        if cost is not None:
            return cost_amount(cost)
        readings = [reading] if before is None else [reading, before]
        if self._is_timed(reading, cost):
            return sum(self._seconds(each) for each in readings)
        if self._cost_unit not in (None, VALIDATIONS):
            raise self._missing_cost()
        return float(len(readings))

    def _seconds(self, reading: Reading) -> float:
        if reading.seconds is None:
            raise self._missing_cost()
        return reading.seconds

    def _missing_cost(self) -> InvalidArgument:
        unit = self._unit(None)
        how = "the function that validates, which is timed, or its cost" if unit == "seconds" else "its cost"
        return InvalidArgument(
            f"Validations of this run cost {unit}, got a value in round {self.round} that does not say how much. "
            f"Give {how}: decision.observe(value, cost=…)."
        )

    # ---- what is there -----------------------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The round that was decided last; 0 before the first."""
        return self._run.standing.round

    @property
    def best(self) -> Params:
        """The params with the highest expected value now, which a round without a validation plays."""
        return self._run.best

    @property
    def summary(self) -> dict[str, float]:
        """Rounds, validations paid for and skipped, their cost and what the skipped ones would have cost, bad
        validations, rounds taken back, and the skill of predictions: 0 is as good as the last value.
        """
        standing = self._run.standing
        return {
            "rounds": standing.round,
            "validations": standing.validations,
            "paid": standing.paid,
            "skipped": standing.silent,
            "saved": standing.silent * standing.mean_price,
            "bad": standing.bad,
            "undone": standing.undone,
            **({} if self._run.skill is None else {"skill": self._run.skill}),
        }

    @property
    def ledger(self) -> Ledger:
        """The cost of the validations so far, and of those that were skipped."""
        standing = self._run.standing
        saved = {SKIPPED: standing.silent * standing.mean_price} if standing.silent and standing.validations else {}
        return Ledger(self._unit(None), {"validation": standing.paid} if standing.validations else {}, saved)

    def __repr__(self) -> str:
        standing, aim = self._run.standing, f"{self.problem.direction}={self.problem.value!r}"
        played = f"round {standing.round} of {self.rounds}"
        return f"OnlineTuner({aim}, {played}, {standing.validations} validations, {standing.silent} skipped)"

    def plot(self) -> "Figure":
        """A picture of the rounds so far, as a matplotlib figure: values, settings and which validations were paid for.

        It is the one that `farthing plot` draws of a stored run. After `load_state_dict` it begins there. Needs the
        extra `farthing[plot]`.
        """
        from farthing.study import Study

        if all(point.value is None for point in self._played):
            raise NoResult(f"A picture needs a round that was measured, got none of {self._name!r}. Play some first.")
        place, unit = MemoryStorage(), self._unit(None)
        kept = self._new_log(place)
        for point in _with_silent_rounds(self._played, self.round - self._run.is_open):
            kept.add(point, cost_unit=unit)
        kept.finish(None, value=self._run.standing.last_value, cost_unit=unit)
        return Study.load(self._name, place).plot()

    def close(self) -> None:
        """Ends a run early: what was decided and measured is kept, and its trial is done."""
        run = self._run
        silent = run.pending if run.is_open and run.pending is not None and not run.pending.measure else None
        self._finish(None if silent is None else self._silent(silent), value=run.standing.last_value)
        if silent is not None:
            run.end_silent_round()
        self._is_closed = True

    # ---- continuing --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Json]:
        """All that was seen and decided, as plain data: a tuner that loads it goes on bit for bit as this one would."""
        settings = json.loads(json.dumps(self._settings()))
        return {"format": FORMAT, "settings": settings, **self._run.to_json()}

    def load_state_dict(self, state: Mapping[str, Json]) -> None:
        """Goes on from where `state_dict` was called; with other settings it refuses, and nothing is changed.

        A round that was to be measured, and was not yet, is played again.
        """
        self._check_state(state)
        self._saved, self._played = NOTHING, []
        run = self._new_run()
        run.restore(state)
        if run.pending is not None:
            run.pending = replace(run.pending, _tuner=self)
        self._run = run
        self._is_loaded_unobserved = run.is_open and run.pending is not None and run.pending.measure

    def _check_state(self, state: Mapping[str, Json]) -> None:
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise InvalidArgument(
                f"A state must be one that state_dict() returned, of format {FORMAT}, got "
                f"{state.get('format') if isinstance(state, Mapping) else type(state).__name__!r}. Load another file."
            )
        mine, theirs = json.loads(json.dumps(self._settings())), with_new_arguments(state["settings"])
        different = [name for name, value in mine.items() if theirs.get(name) != value]
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
            "candidates": None
            if self._online_problem.candidates is None
            else [dict(each) for each in self._online_problem.candidates],
            "initial": [dict(each) for each in self._online_problem.initial],
            "trusted": self._online_problem.trusted,
            "can_undo": self._online_problem.can_undo,
            "hold": self.hold,
            "overhead": self._online_problem.overhead,
            "validation_cost": self._online_problem.validation_cost,
            "price": self._online_problem.price,
            "validation_size": self._online_problem.validation_size,
        }

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def _new_run(self) -> OnlineRun:
        return OnlineRun(
            self.strategy,
            self._online_problem,
            rounds=self.rounds,
            sign=-self.problem.sign,
            gains=self._reward == "gain",
            clock=self._clock,
        )

    def _new_log(self, storage: str | Path | Storage) -> RoundLog:
        settings = self._settings()
        online = Online(**{each.name: settings[each.name] for each in fields(Online)})
        place = open_storage(storage)
        closes = place is not storage
        return RoundLog(place, name=self._name, problem=self.problem, online=online, closes_storage=closes)

    def _continue(self) -> None:
        """Plays the rounds of an interrupted run again, so that the next one is decided as it would have been.

        One that has ended is played again too, and nothing follows.
        """
        if self._log is None:
            return
        if interrupted := self._log.interrupted_run():
            log.info("Continuing online run %d, which was interrupted.", interrupted[0].number)
            self._play_all_again(*interrupted)
        elif ended := self._log.ended_run():
            self._play_all_again(*ended)
            self._has_ended = True
            log.warning(
                "The online run %r has ended, after %d of %d rounds: there is nothing to play. Give another name= to "
                "begin anew.",
                self._log.name,
                self.round,
                self.rounds,
            )
            self._finish(None, value=None)

    def _play_all_again(self, trial: Trial, unit: str) -> None:
        self._run.standing.is_timed = unit == "seconds"
        for point in played_rounds(trial):
            self._play_again(point)

    def _play_again(self, point: Measurement) -> None:
        """Rounds before this one that were never written were silent. What was played counts, whatever is decided."""
        assert point.step is not None
        assert point.params is not None
        run = self._run
        while run.standing.round < point.step:
            if run.is_open:
                run.end_silent_round()
            run.enter(*run.next_decision())
        if point.value is None and BAD not in point.metrics:
            run.end_silent_round()
        else:
            run.take(_measured(point), params=point.params)
        self._keep(point)

    def _silent(self, decision: Decision) -> Measurement:
        standing = self._run.standing
        saved = {SKIPPED: standing.mean_price} if standing.validations else {}
        return Measurement(charged=True, step=decision.round, params=decision.params, saved=saved)

    def _write(self, point: Measurement, *, is_timed: bool | None = None) -> None:
        if self._log is not None:
            self._log.add(point, cost_unit=self._unit(is_timed))
        self._keep(point)

    def _finish(self, point: Measurement | None, *, value: float | None, is_timed: bool | None = None) -> None:
        if self._log is not None:
            self._log.finish(point, value=value, cost_unit=self._unit(is_timed))
            self._log = None
        if point is not None:
            self._keep(point)

    def _keep(self, point: Measurement) -> None:
        is_news = bool(point.cost) or not self._played or self._played[-1].params != point.params
        if is_news:
            self._played.append(point)

    def _unit(self, is_timed: bool | None) -> str:
        is_in_seconds = self._run.standing.is_timed if is_timed is None else is_timed
        return self._cost_unit or ("seconds" if is_in_seconds else VALIDATIONS)


def _usual_hold(strategy: OnlineStrategy, rounds: int) -> int:
    return strategy.usual_hold(rounds) if isinstance(strategy, Holding) else 1


def _with_silent_rounds(played: Sequence[Measurement], last: int) -> Iterator[Measurement]:
    """The rounds up to the last, where only those are kept that changed something."""
    for point, following in zip(played, [*(each.step for each in played[1:]), last + 1], strict=True):
        yield point
        for round in range((point.step or 0) + 1, following or 0):
            yield Measurement(charged=True, step=round, params=point.params)


def _point(decision: Decision, measured: Measured, undone: int) -> Measurement:
    """With what the round cost: its validation, and the training that it takes back, in the same unit."""
    a_round = measured.cost / measured.rounds if measured.rounds else 0.0
    metrics = {
        BEFORE: measured.before,
        BAD_BEFORE: 1.0 if measured.is_paired and measured.before is None else None,
        BAD: 1.0 if measured.value is None else None,
        ROUNDS_PAID: measured.rounds,
        ROUNDS_UNDONE: float(undone) or None,
    }
    return Measurement(
        value=measured.value,
        cost={"validation": measured.cost, **({"overhead": undone * a_round} if undone else {})},
        charged=True,
        step=decision.round,
        metrics={name: value for name, value in metrics.items() if value is not None},
        params=decision.params,
    )


def _measured(point: Measurement) -> Measured:
    """The inputs that `_point` was made of."""
    metrics = point.metrics
    return Measured(
        point.value,
        metrics.get(BEFORE),
        point.cost.get("validation", 0.0),
        metrics.get(ROUNDS_PAID),
        is_paired=BEFORE in metrics or BAD_BEFORE in metrics,
    )


def _check_pair(save: object, restore: object) -> None:
    for name, given in {"save": save, "restore": restore}.items():
        if given is not None and not callable(given):
            raise InvalidArgument(
                f"{name} must be a function, got {shown(given)}. Give save= what returns a state of your training, and "
                "restore= what takes it back."
            )
    if (save is None) != (restore is None):
        raise InvalidArgument(
            f"save and restore must be given together, got only {'save' if restore is None else 'restore'}. "
            "Give both, or none."
        )


def _check_stateless(stateless: object, save: object) -> None:
    if not isinstance(stateless, bool):
        raise InvalidArgument(
            f"stateless must be true or false, got {shown(stateless)}. Say True where a round leaves nothing behind."
        )
    if stateless and save is not None:
        raise InvalidArgument(
            f"stateless=True says that there is nothing to take back, got save={shown(save)}. "
            "Leave save= and restore= out, or stateless=."
        )


def _check_prices(
    *, overhead: float | None, validation_cost: float | None, price: float, cost_unit: str | None
) -> None:
    if overhead is not None:
        Number(least=0.0, most=1.0).checked(overhead, what="overhead", advice="Give a share, or None for no bound.")
    if validation_cost is not None:
        Number(least=0.0).checked(validation_cost, what="validation_cost", advice="Give it in rounds of training.")
    Number(least=0.0).checked(price, what="price", advice="Give it in units of the value times rounds.")
    if cost_unit is not None and (not isinstance(cost_unit, str) or not cost_unit.strip()):
        raise InvalidArgument(
            f"cost_unit must be the name of a unit, got {shown(cost_unit)}. Write cost_unit='seconds', or leave it out."
        )


def _check_price_is_used(strategy: OnlineStrategy, price: float) -> None:
    if price and not isinstance(strategy, PairedProbes) and not (isinstance(strategy, CEGPUCB) and strategy.has_price):
        raise InvalidArgument(
            f"A price is for PairedProbes, and for CEGPUCB with a rule that has one, got price={price:g} for "
            f"{type(strategy).__name__}. Leave it out, or give rule=ft.rules.ValueOfInformation()."
        )


def _check_size_is_used(strategy: OnlineStrategy, size: int | None, *, reward: str) -> None:
    """The noise of a share follows from how many examples it is of; that of other values does not."""
    if size is None:
        return
    Whole(least=2).checked(size, what="validation_size", advice="Count the examples of a validation.")
    if reward == "gain":
        raise InvalidArgument(
            f"validation_size is for values that are shares, got {size} for a run with reward='gain'. Leave it out: "
            "the noise of gains is learnt."
        )
    if not isinstance(strategy, PairedProbes) and not (isinstance(strategy, CEGPUCB) and strategy.noise is None):
        raise InvalidArgument(
            f"validation_size is for PairedProbes, and for CEGPUCB where it learns the noise, got {size} for "
            f"{type(strategy).__name__}. Leave it out, or leave noise= out."
        )


def _check(space: Space, *, rounds: int, reward: str, hold: int | None) -> None:
    require_space(space)
    Whole(least=1).checked(rounds, what="rounds", advice="Count the passes of your loop.")
    if hold is not None:
        Whole(least=1).checked(hold, what="hold", advice="Count the rounds that a setting is held.")
    OneOf(("value", "gain")).checked(reward, what="reward", advice="Leave it out for 'value'.")
    if space.fidelities:
        raise InvalidArgument(
            f"An online run has no fidelity of its own, got {', '.join(space.fidelities)}. Leave fidelities= out."
        )
