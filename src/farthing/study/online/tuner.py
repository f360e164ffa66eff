"""The online tuner: it lives in the user's own training loop."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from farthing.costs import Clock, as_clock
from farthing.errors import InvalidArgument
from farthing.fields import OneOf, Whole
from farthing.fields.serialization import to_json
from farthing.space import Space
from farthing.storage import Storage, open_storage
from farthing.strategies.online import OnlineProblem, OnlineStrategy, PairedProbes, as_online_strategy
from farthing.study.online.candidates import candidates_of, initial_params
from farthing.study.online.decision import Decision
from farthing.study.online.log import RoundLog
from farthing.study.online.run import Measured, OnlineRun
from farthing.study.online.stored import Online, played_rounds
from farthing.study.opening import require_space, value_name
from farthing.trials import Json, Measurement, Params, Problem
from farthing.trials.measurement import cost_amount, finite_number
from farthing.validation import shown

log = logging.getLogger("farthing")

FORMAT = 3
SKIPPED = "skipped validations"
BEFORE = "before"
"""Under which a gain's first value is kept among the metrics of its round."""
ROUNDS_PAID, ROUNDS_UNDONE = "validation in rounds", "rounds taken back"
"""Metrics of a measured round: what its validation cost in rounds of training, and how many it took back."""

NOTHING = object()
"""Stands for a state that was never saved; a saved one may be anything, None too."""


class OnlineTuner:
    """Tunes inside one training run: `decide()` at the start of each round, `observe(value)` where it asked.

    Args:
        rounds: how many rounds the run has; a round is what you train between two decisions.
        strategy: who decides, or its name; by default `PairedProbes`, which tries neighbours of the present setting.
        candidates: the params to choose from; None is the whole space, enumerated where it is small.
        initial: the present setting, which is played until a better one is found; more of them, as a list, are tried
            first. Without it the default begins in the middle of the space, which is a gamble.
        minimize, maximize: the name of the value; `maximize="value"` if neither is given.
        reward: "value" compares measured values, "gain" what a round adds to the value.
        storage, name: where the run is kept as a trial of that study; None keeps nothing. A run of that name that was
            killed is carried on after its last observation: `round` says where it stands.
        save, restore: what returns the state of your training, and what puts it back: a probe that did harm is taken
            back. Both or none.
        cost_unit: the unit of what validations cost; by default seconds if the first one is timed, else validations,
            which cost 1 each.
    """

    def __init__(
        self,
        space: Space,
        *,
        rounds: int,
        strategy: OnlineStrategy | str | None = None,
        candidates: Sequence[Params] | None = None,
        initial: Params | Sequence[Params] | None = None,
        minimize: str | None = None,
        maximize: str | None = None,
        reward: Literal["value", "gain"] = "value",
        save: Callable[[], Any] | None = None,
        restore: Callable[[Any], object] | None = None,
        storage: str | Path | Storage | None = None,
        name: str = "online",
        seed: int = 0,
        cost_unit: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        _check(space, rounds=rounds, reward=reward)
        _check_pair(save, restore)
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
        self.strategy: OnlineStrategy = PairedProbes() if strategy is None else as_online_strategy(strategy)
        self._reward = reward
        self._cost_unit = cost_unit
        self._clock = as_clock(clock)
        self._online_problem = OnlineProblem(
            space.encoder,
            rounds,
            seed,
            candidates=candidates_of(space, candidates),
            initial=initial_params(space, initial),
            can_undo=save is not None,
        )
        self._save, self._restore = save, restore
        self._saved: Any = NOTHING
        self._run = self._new_run()
        self._is_closed = False
        self._log = None if storage is None else self._new_log(open_storage(storage), name)
        self._carry_on()

    # ---- the two calls -----------------------------------------------------------------------------------------------

    def decide(self) -> Decision:
        """What to train with in the next round, and whether a validation is worth its price."""
        self._require_may_decide()
        run = self._run
        if run.is_open and run.pending is not None:
            run.stop_timing()
            self._write(self._silent(run.pending))
            run.end_silent_round()
        decision, choice = run.next_decision()
        if choice.saves and self._save is not None:
            self._saved = self._save()
        is_silent_end = decision.round == self.rounds and not decision.measure
        if is_silent_end:
            self._finish(self._silent(decision), value=run.standing.last_value)
        run.enter(decision, choice)
        if is_silent_end:
            run.end_silent_round()
        run.start_timing()
        return decision

    def observe(self, value: float, cost: float | None = None, *, before: float | None = None) -> None:
        """The value measured after the round that was decided last, and what measuring it cost.

        Without a cost the seconds of `decision.timing()` count, and without those 1. `before` is the value measured
        before the round was trained, where the decision asked for it; it is charged as a second validation. With a
        storage all of it is durable when this returns; where it raises, nothing has happened: call it again.
        """
        decision = self._to_be_observed()
        rounds_paid = self._run.rounds_of(decision)
        name = f"The value {self.problem.value!r}"
        baseline = None if before is None else finite_number(before, what=f"{name} before")
        measured = Measured(
            finite_number(value, what=name),
            baseline,
            _price(decision, cost, is_paired=before is not None),
            rounds_paid,
        )
        undone = self._run.rounds_undone(measured)
        standing = self._run.standing
        is_timed = standing.is_timed or decision.timed_seconds is not None
        point = _point(decision, measured, undone)
        if decision.round == self.rounds:
            self._finish(point, value=measured.value, is_timed=is_timed)
        else:
            self._write(point, is_timed=is_timed)
        standing.is_timed = is_timed
        self._run.take(measured)
        if undone:
            self._take_back(undone)

    def _take_back(self, rounds: int) -> None:
        if self._saved is NOTHING:
            log.warning("Nothing was saved since this run was continued: %d rounds are not taken back.", rounds)
        elif self._restore is not None:
            self._restore(self._saved)

    def _require_may_decide(self) -> None:
        standing, pending = self._run.standing, self._run.pending
        if self._run.is_open and pending is not None and pending.measure:
            raise InvalidArgument(
                f"A round that asked for a measurement must be observed, got nothing for round {standing.round}. "
                "Call observe(value) where decision.measure is true."
            )
        if standing.round >= self.rounds:
            raise InvalidArgument(
                f"This run has {self.rounds} rounds, and all are decided. Give OnlineTuner more rounds=."
            )
        self._require_not_closed("decide()")

    def _require_not_closed(self, call: str) -> None:
        if self._is_closed:
            raise InvalidArgument(
                f"A run that was closed has ended, got {call} after round {self.round}. Make another OnlineTuner."
            )

    def _to_be_observed(self) -> Decision:
        run = self._run
        self._require_not_closed("observe()")
        if run.pending is None:
            raise InvalidArgument("A value belongs to a decision, got one before any. Call decide() first.")
        if not run.is_open:
            raise InvalidArgument(
                f"A round has one value, got a second for round {run.standing.round}. "
                "Call decide() before the next observe()."
            )
        return run.pending

    # ---- what is there -----------------------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The round that was decided last; 0 before the first."""
        return self._run.standing.round

    @property
    def best(self) -> Params:
        """What would be played without measuring: the params with the highest expected value now."""
        return self._run.best

    @property
    def summary(self) -> dict[str, float]:
        """Rounds, validations paid for and skipped, what they cost, what the skipped ones would have cost, and how many
        rounds were taken back.
        """
        standing = self._run.standing
        return {
            "rounds": standing.round,
            "validations": standing.validations,
            "paid": standing.paid,
            "skipped": standing.silent,
            "saved": standing.silent * standing.mean_price,
            "undone": standing.undone,
        }

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
        """Goes on from where `state_dict` was called; with other settings it refuses, and nothing is changed."""
        self._check_state(state)
        self._saved = NOTHING
        run = self._new_run()
        run.restore(state)
        self._run = run

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
            "candidates": None
            if self._online_problem.candidates is None
            else [dict(each) for each in self._online_problem.candidates],
            "initial": [dict(each) for each in self._online_problem.initial],
            "can_undo": self._online_problem.can_undo,
        }

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def _new_run(self) -> OnlineRun:
        return OnlineRun(
            self.strategy,
            self._online_problem,
            sign=-self.problem.sign,
            gains=self._reward == "gain",
            clock=self._clock,
        )

    def _new_log(self, storage: Storage, name: str) -> RoundLog:
        settings = self._settings()
        kept = ("strategy", "rounds", "reward", "candidates", "initial", "can_undo")
        online = Online(**{key: settings[key] for key in kept})
        return RoundLog(storage, name=name, problem=self.problem, online=online)

    def _carry_on(self) -> None:
        """Plays the rounds of an interrupted run again, so that the next one is decided as it would have been."""
        interrupted = None if self._log is None else self._log.interrupted_run()
        if interrupted is None:
            return
        trial, unit = interrupted
        log.info("Carrying on online run %d, which was interrupted.", trial.number)
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
        if point.value is None:
            run.end_silent_round()
        else:
            paid, metrics = point.cost.get("validation", 0.0), point.metrics
            measured = Measured(point.value, metrics.get(BEFORE), paid, metrics.get(ROUNDS_PAID))
            run.take(measured, params=point.params)

    def _silent(self, decision: Decision) -> Measurement:
        saved = {SKIPPED: self._run.standing.mean_price}
        return Measurement(charged=True, step=decision.round, params=decision.params, saved=saved)

    def _write(self, point: Measurement, *, is_timed: bool | None = None) -> None:
        if self._log is not None:
            self._log.add(point, cost_unit=self._unit(is_timed))

    def _finish(self, point: Measurement | None, *, value: float | None, is_timed: bool | None = None) -> None:
        if self._log is not None:
            self._log.finish(point, value=value, cost_unit=self._unit(is_timed))
            self._log = None

    def _unit(self, is_timed: bool | None) -> str:
        is_in_seconds = self._run.standing.is_timed if is_timed is None else is_timed
        return self._cost_unit or ("seconds" if is_in_seconds else "validations")


def _point(decision: Decision, measured: Measured, undone: int) -> Measurement:
    """With what the round cost: its validation, and the training that it takes back, in the same unit."""
    a_round = measured.cost / measured.rounds if measured.rounds else 0.0
    metrics = {BEFORE: measured.before, ROUNDS_PAID: measured.rounds, ROUNDS_UNDONE: float(undone) or None}
    return Measurement(
        value=measured.value,
        cost={"validation": measured.cost, **({"overhead": undone * a_round} if undone else {})},
        charged=True,
        step=decision.round,
        metrics={name: value for name, value in metrics.items() if value is not None},
        params=decision.params,
    )


def _price(decision: Decision, cost: float | None, *, is_paired: bool) -> float:
    if cost is not None:
        return cost_amount(cost)
    return decision.timed_seconds if decision.timed_seconds is not None else 1.0 + is_paired


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


def _check(space: Space, *, rounds: int, reward: str) -> None:
    require_space(space)
    Whole(least=1).checked(rounds, what="rounds", advice="Count the decisions of the run.")
    OneOf(("value", "gain")).checked(reward, what="reward", advice="Leave it out for 'value'.")
    if space.fidelities:
        raise InvalidArgument(
            f"An online run has no fidelity of its own, got {', '.join(space.fidelities)}. Leave fidelities= out."
        )
