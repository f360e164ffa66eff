"""An online run as a stored trial: its rounds are measurements, written in batches and durable at each observation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from farthing.costs import Remaining
from farthing.errors import NoSuggestion
from farthing.storage import Storage, StudyRecord
from farthing.study.leases import Leases
from farthing.study.opening import create_or_continue
from farthing.study.owner import is_gone, this_process
from farthing.systems import Randomness, Strategy
from farthing.trials import Attempt, History, Json, Measurement, Outcome, Params, Problem, State, Suggestion, Trial

LEASE = 60.0
RETRIES = 1000
"""How often a run may be killed and carried on: every time leaves an attempt."""

BATCH = 256
"""Silent rounds that are kept back at most, until something is measured."""


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

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        raise NoSuggestion(
            "An online study has one trial a run, which its own tuner opens; there is none to ask for. "
            "Start the program that has the ft.OnlineTuner again."
        )


class RoundLog:
    """Writes rounds down. The study is created, and its trial opened, when the first batch is written."""

    def __init__(self, storage: Storage, *, name: str, problem: Problem, online: Online) -> None:
        self._storage = storage
        self._record = StudyRecord(name, problem, strategy=online.to_json())
        self._leases: Leases | None = None
        self._attempt: Attempt | None = None
        self._waiting: list[Measurement] = []
        self._sequence = 0

    @property
    def trial(self) -> int | None:
        """The number of the run's trial, once it is opened."""
        return None if self._attempt is None else self._attempt.number

    def add(self, measurement: Measurement, *, cost_unit: str) -> None:
        """Keeps a round; one with a value is written at once, with all that wait."""
        self._waiting.append(replace(measurement, sequence=self._sequence))
        self._sequence += 1
        if measurement.value is not None or len(self._waiting) >= BATCH:
            self.flush(cost_unit=cost_unit)

    def flush(self, *, cost_unit: str) -> None:
        if not self._waiting:
            return
        attempt = self._attempt or self._open(self._waiting[0].params or {}, cost_unit)
        for measurement in self._waiting:
            self._storage.record(self._record.name, attempt, measurement, lease=LEASE)
        self._waiting = []

    def finish(self, value: float | None, *, cost_unit: str) -> None:
        """Ends the trial: with the last value measured as its result."""
        self.flush(cost_unit=cost_unit)
        if self._attempt is None:
            return
        self._storage.close_trial(self._record.name, self._attempt, Outcome(State.DONE, value=value))
        if self._leases is not None:
            self._leases.drop(self._attempt)
            self._leases.close()

    def _open(self, params: Params, cost_unit: str) -> Attempt:
        problem = replace(self._record.problem, cost_unit=cost_unit)
        create_or_continue(self._storage, replace(self._record, problem=problem), seed=problem.seed)
        trial = self._carried_on() or self._opened(params)
        self._attempt = Attempt(trial.number, trial.attempt)
        self._leases = Leases(self._storage, self._record.name, seconds=LEASE)
        self._leases.hold(self._attempt)
        return self._attempt

    def _carried_on(self) -> Trial | None:
        """The run that was interrupted, if there is one."""
        name = self._record.name
        running = [trial for trial in self._storage.history(name).trials if not trial.is_finished]
        self._storage.sweep(
            name, dead=sorted({trial.owner for trial in running if trial.owner and is_gone(trial.owner)})
        )
        return self._storage.claim_trial(name, owner=this_process(), lease=LEASE)

    def _opened(self, params: Params) -> Trial:
        return self._storage.open_trials(
            self._record.name, [Suggestion(params)], owner=this_process(), lease=LEASE, retries=RETRIES
        )[0]
