"""Writes the rounds of an online run down: silent ones in batches, an observation at once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from farthing.costs import Remaining
from farthing.errors import NoSuggestion, StudyMismatch, StudyNotFound
from farthing.fields.serialization import to_json
from farthing.online import online_strategy_from_json
from farthing.session.creation import create_or_continue, require_same_problem
from farthing.session.leases import Leases, held_interrupts, is_gone, this_process
from farthing.storage import Storage, StudyRecord
from farthing.strategies import Randomness, Strategy
from farthing.trials import Attempt, History, Json, Measurement, Outcome, Params, Problem, State, Suggestion, Trial
from farthing.trials.measurement import BAD

# ------------------------------------------------------------
# An online run as a study keeps it: what its tuner was told, and the rounds it played.


@dataclass(frozen=True)
class Online(Strategy):
    """Stands for an online tuner in a stored study: it decides inside its run, so there is no trial to suggest.

    Its fields are what the run can be played again from.
    """

    strategy: Mapping[str, Json] = field(default_factory=dict)
    rounds: int = 1
    reward: str = "value"
    candidates: Sequence[Params] | None = None
    initial: Sequence[Params] = ()
    trusted: bool = True
    can_undo: bool = False
    hold: int = 1
    overhead: float | None = 0.1
    validation_cost: float | None = None
    price: float = 0.0
    validation_size: int | None = None

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        raise NoSuggestion(
            "An online study has one trial a run, which its own tuner opens; there is none to ask for. "
            "Start the program that has the ft.OnlineTuner again."
        )


def with_new_arguments(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Settings of a run; arguments that its strategy had not yet when they were written have their defaults.

    A start that nobody gave is not trusted: earlier versions wrote that it was.
    """
    known = {"trusted": True, **settings}
    known["trusted"] = known["trusted"] and bool(known.get("initial"))
    if known.get("strategy"):
        known["strategy"] = json.loads(json.dumps(to_json(online_strategy_from_json(known["strategy"]))))
    return known


LEASE = 60.0
RETRIES = 1000
"""How often a run may be killed and continued: each time is another attempt."""

LATER = {
    "trusted": True,
    "can_undo": False,
    "hold": 1,
    "overhead": 0.1,
    "validation_cost": None,
    "price": 0.0,
    "validation_size": None,
}
"""Settings that runs of earlier versions were stored without, as they were then; their validations were not bounded,
and are from now on.
"""

BATCH = 256
"""Silent rounds that are kept back at most, until something is measured."""


class RoundLog:
    """Each method happens wholly or raises and changes nothing: it can be called again.

    The study is created, and its trial opened, when the first batch is written: only then is the unit of cost known.
    """

    def __init__(
        self, storage: Storage, *, name: str, problem: Problem, online: Online, closes_storage: bool = False
    ) -> None:
        self.name = name
        self._storage = storage
        self._closes_storage = closes_storage
        self._record = StudyRecord(name, problem, strategy=online.to_json())
        self._leases = Leases(storage, name, seconds=LEASE)
        self._attempt: Attempt | None = None
        self._waiting: Sequence[Measurement] = ()
        self._written = 0

    def interrupted_run(self) -> tuple[Trial, str] | None:
        """Takes over the run that no process continues: its trial and its unit of cost; None without one."""
        try:
            found = self._storage.load_study(self._record.name)
        except StudyNotFound:
            return None
        self._require_same(found)
        with held_interrupts():
            trial = self._claimed()
            if trial is None:
                return None
            self._hold(trial)
        return trial, found.problem.cost_unit

    def ended_run(self) -> tuple[Trial, str] | None:
        """The last run, which has ended, and its unit of cost; None while one is played, or was lost."""
        try:
            found = self._storage.load_study(self._record.name)
        except StudyNotFound:
            return None
        trials = self._storage.history(found.name).trials
        has_ended = bool(trials) and trials[-1].state is State.DONE and all(trial.is_finished for trial in trials)
        return (trials[-1], found.problem.cost_unit) if has_ended else None

    def add(self, measurement: Measurement, *, cost_unit: str) -> None:
        """Keeps a round; one with a value is written at once, with all that wait, in one transaction."""
        points = self._with_waiting(measurement)
        if measurement.value is not None or BAD in measurement.metrics or len(points) >= BATCH:
            attempt = self._opened(points, cost_unit)
            self._storage.record(self._record.name, attempt, points, lease=LEASE)
            self._written, points = self._written + len(points), ()
        self._waiting = points

    def finish(self, measurement: Measurement | None, *, value: float | None, cost_unit: str) -> None:
        """Ends the trial with the last value as its result, and with all that waits, in one transaction."""
        points = self._waiting if measurement is None else self._with_waiting(measurement)
        if points or self._attempt:
            attempt = self._opened(points, cost_unit)
            self._storage.close_trial(
                self._record.name, attempt, Outcome(State.DONE, value=value, measurements=tuple(points))
            )
            self._leases.drop(attempt)
        self._leases.close()
        if self._closes_storage:
            self._storage.close()

    def _with_waiting(self, measurement: Measurement) -> Sequence[Measurement]:
        return (*self._waiting, replace(measurement, sequence=self._written + len(self._waiting)))

    def _opened(self, points: Sequence[Measurement], cost_unit: str) -> Attempt:
        if self._attempt is None:
            wanted = replace(self._record, problem=replace(self._record.problem, cost_unit=cost_unit))
            self._require_same(create_or_continue(self._storage, wanted, seed=wanted.problem.seed))
            with held_interrupts():
                self._hold(self._new_trial(points[0].params or {}))
        assert self._attempt is not None
        return self._attempt

    def _hold(self, trial: Trial) -> None:
        self._attempt = Attempt(trial.number, trial.attempt)
        self._leases.hold(self._attempt)

    def _new_trial(self, params: Params) -> Trial:
        return self._storage.open_trials(
            self._record.name, [Suggestion(params)], owner=this_process(), lease=LEASE, retries=RETRIES
        )[0]

    def _claimed(self) -> Trial | None:
        name = self._record.name
        running = [trial for trial in self._storage.history(name).trials if not trial.is_finished]
        dead = sorted({trial.owner for trial in running if trial.owner and is_gone(trial.owner)})
        self._storage.sweep(name, dead=dead)
        return self._storage.claim_trial(name, owner=this_process(), lease=LEASE)

    def _require_same(self, found: StudyRecord) -> None:
        """The same problem, whatever its unit of cost, and a tuner that was told the same."""
        require_same_problem(found, replace(self._record.problem, cost_unit=found.problem.cost_unit))
        old, new = _arguments(found), _arguments(self._record)
        different = [name for name in new if new[name] != old.get(name)]
        if different:
            raise StudyMismatch(
                f"An online study has the settings it began with, got others for {', '.join(different)} where "
                f"{found.name!r} exists. Give the tuner another name=, or the settings of before."
            )


def _arguments(record: StudyRecord) -> dict[str, object]:
    form = json.loads(json.dumps(record.strategy or {}))
    return with_new_arguments({**LATER, **form.get("arguments", {})})
