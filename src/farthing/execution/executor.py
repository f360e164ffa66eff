"""Executors: they run the work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from farthing.execution.checkpoints import Checkpoints
from farthing.fields import Whole
from farthing.trials import Attempt, Json, Outcome, Params, Problem, Trial
from farthing.trials.measurement import Measurement
from farthing.trials.prefixes import Eviction

if TYPE_CHECKING:
    from farthing.execution.work import CarriesOut


# ------------------------------------------------------------
# Messages of a running trial: one value, from the work to the records.


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A checkpoint of that name is committed."""

    checkpoint: str


News: TypeAlias = Measurement | Checkpointed | Eviction


# ------------------------------------------------------------
# The executor.


@dataclass(frozen=True)
class Job:
    """One attempt at a trial, as the work will see it.

    `resume_from` is the trial to continue and `resume_dir` its checkpoint, or one that an earlier attempt at this
    same trial left; `reported` is then the value which that attempt reported last. `time_limit` is in seconds of wall
    clock. Of a hard budget, `seconds_left` is what there was of it when the job was submitted: the job is then ended
    with the value that it has; and `tells_charges` says that each charge is told at once. `trackers` says how work
    reaches its runs in trackers, by their names.
    """

    attempt: Attempt
    params: Params
    fidelity: Mapping[str, float]
    resume_from: int | None = None
    resume_dir: Path | None = None
    reported: float | None = None
    time_limit: float | None = None
    seconds_left: float | None = None
    tells_charges: bool = False
    trackers: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        trial: Trial,
        checkpoints: Checkpoints,
        *,
        time_limit: float | None = None,
        seconds_left: float | None = None,
        tells_charges: bool = False,
        trackers: Mapping[str, Json] | None = None,
    ) -> "Job":
        """The job of a trial that was opened or claimed."""
        start = trial.checkpoint or trial.resume_checkpoint
        return cls(
            Attempt(trial.number, trial.attempt),
            trial.params,
            trial.fidelity,
            resume_from=trial.resume_from,
            resume_dir=checkpoints.named(start) if start else None,
            reported=trial.points[-1].value if trial.checkpoint and trial.points else None,
            time_limit=time_limit,
            seconds_left=seconds_left,
            tells_charges=tells_charges,
            trackers=trackers or {},
        )


def check_workers(workers: object) -> None:
    Whole(least=1).checked(workers, what="The number of workers", advice="Try workers=2.")


@dataclass(frozen=True)
class Ended:
    """A job that is over. Without an outcome there is nothing to record: the attempt had been taken over.

    `was_killed` says that its worker died of a signal that no time limit sent: memory ran out, to make room for
    others, or in a crash. `lost_node` says that the machine it ran on went away. `began_its_worker` says that it was
    the first job of its process, which paid for starting.
    """

    attempt: Attempt
    outcome: Outcome | None
    was_killed: bool = False
    lost_node: bool = False
    began_its_worker: bool = False


class Listener(Protocol):
    """Takes the messages of a running job. When a call returns, the message is durable and the work may continue.

    A call that raises `StaleAttempt` or `TrialFinished` ends the job without an outcome. One that raises `Pruned` took
    the message, and ends the job as pruned: a hard budget is spent.
    """

    def on_news(self, attempt: Attempt, news: News) -> None: ...


@runtime_checkable
class TakesWork(Protocol):
    """An executor of the user's that is told what to run by `study.run`, instead of when it is made."""

    def take_up(self, work: "CarriesOut", problem: Problem, *, checkpoints: Checkpoints) -> None: ...


@runtime_checkable
class Executor(Protocol):
    """Runs jobs. It keeps no record of its own: whatever matters goes through the listener or an outcome.

    Nothing that the work does (raise, hang, exit, crash, be killed) ends the executor: it ends one job.

    Two abilities are used where an executor has them. `give_back(after=seconds)` frees what workers hold that have been
    idle for that long (`running.loop.GivesBack`). `thinking_of(suggest, on_answer)` returns a place for the strategy to
    think in, instead of a thread (`running.suggestions.GivesTimeToThink`).
    """

    @property
    def works_in_wait(self) -> bool:
        """Whether `wait` does the work itself. If not, the strategy thinks in a thread, which calls `wake`."""
        ...

    @property
    def workers(self) -> int:
        """The number of jobs at once, when all that will run them is there."""
        ...

    @property
    def free(self) -> int:
        """The number of jobs that `submit` takes now."""
        ...

    @property
    def running(self) -> tuple[Attempt, ...]:
        """The attempts that are being worked on."""
        ...

    def submit(self, job: Job) -> None:
        """Takes a job without waiting for it."""
        ...

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        """Blocks until a job ends, `wake` is called, or `timeout` seconds pass; reports go to `listener` meanwhile."""
        ...

    def wake(self) -> None:
        """Makes a `wait` in another thread return."""
        ...

    def close(self) -> None:
        """Ends everything that runs, with all its processes. Running jobs have no outcome."""
        ...
