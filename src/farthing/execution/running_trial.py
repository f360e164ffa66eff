"""A trial as the work sees it while it runs, and the meter of what an attempt costs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias

from farthing.costs.clock import Clock, SystemClock
from farthing.errors import FarthingError, InvalidArgument, InvalidValue, Pruned, WorkError
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.executor import Checkpointed, Job, News
from farthing.execution.failures import failure_of
from farthing.execution.results import (
    Result,
    fidelity_of_report,
    is_result,
    next_step,
    read_gradient,
    read_report,
    read_result,
)
from farthing.names import TRACKER, find_class
from farthing.trials import Failure, Kind, Measurement, Outcome, Problem, State
from farthing.trials.measurement import check_kind, cost_amount
from farthing.trials.prefixes import Eviction
from farthing.trials.problem import stops_early
from farthing.validation import explained, no_attribute, refuse_unknown

Send: TypeAlias = Callable[[News], None]
"""Takes a running trial's news and returns when they are durable."""


class CutShort(BaseException):
    """Unwinds the work of a trial that may not go on and keeps its value. No Exception, so that work lets it pass."""


class RunningTrial:
    """One attempt at a trial: its params, its reports, and its cost so far.

    `params` and `fidelity` are the choice; `number` and `attempt` name the trial and the try at it. `resume_from`
    is the number of the trial to continue, and `resume_dir` holds the checkpoint to start with, if there is
    one: that trial's, or one that an earlier attempt at this trial left.

    Methods that begin with an underscore are for what runs the work, in this package: executors, pipelines, the study.
    """

    def __init__(
        self,
        job: Job,
        problem: Problem,
        *,
        send: Send,
        checkpoints: Checkpoints,
        clock: Clock | None = None,
        first_sequence: int = 0,
    ) -> None:
        self.number = job.attempt.number
        self.attempt = job.attempt.attempt
        self.params = dict(job.params)
        self.fidelity = {**problem.space.full_fidelity, **job.fidelity}
        self.resume_from = job.resume_from
        self.resume_dir = None if job.resume_dir is None else checkpoints.local(job.resume_dir)
        self.problem = problem
        self._job = job
        self._hand_over = send
        self._checkpoints = checkpoints
        self._meter = Meter(clock or SystemClock(), measures=problem.measures_cost)
        self._sequence = count(first_sequence)
        self._reported: list[Measurement] = []
        self._staging: Path | None = None
        self._announced: str | None = None

    if not TYPE_CHECKING:  # a checker that sees it takes every misspelt name for an attribute

        def __getattr__(self, name):
            raise no_attribute("a trial", name)

    def __repr__(self) -> str:
        return f"RunningTrial(number={self.number}, params={self.params!r}, fidelity={self.fidelity!r})"

    @property
    def spent(self) -> float:
        """Seconds of work so far. Waiting for reports to be written is not counted."""
        return self._meter.seconds

    @property
    def _study_folder(self) -> Path:
        """The folder of the study's files."""
        return self._checkpoints.root

    @property
    def checkpoint_dir(self) -> Path:
        """A folder to leave a checkpoint in. It is committed, all at once, when the work returns."""
        if self._staging is None:
            self._staging = self._checkpoints.stage(self._job.attempt)
        return self._staging

    @explained
    def report(
        self,
        value: SupportsFloat | Mapping[str, SupportsFloat],
        /,
        *,
        step: int | None = None,
        metrics: Mapping[str, SupportsFloat | None] | None = None,
        gradient: Mapping[str, SupportsFloat] | None = None,
        **fidelity: float,
    ) -> None:
        """Adds a point to the trial's curve; when this returns, the point is durable.

        The fidelity is that of the point: `trial.report(error, epochs=3)`. One that is not named is as in
        `trial.fidelity`; in a space without fidelities `step` counts 1, 2, 3, … unless it is given. `gradient` has the
        derivatives of the value along some or all numeric params, each in the param's own units, also where its scale
        is logarithmic: `gradient={"lr": …}` is ∂value/∂lr.

        With several objectives or constraints `value` is a mapping that has all of them:
        `trial.report({"error": 0.1, "latency": 3.2}, epochs=4)`.
        """
        space = self.problem.space
        place, said = fidelity_of_report(space, self.fidelity, fidelity), read_report(value, metrics, self.problem)
        point = self._measurement(
            value=said.value,
            fidelity=place,
            step=next_step(step, self._last_step) if step is not None or not place else None,
            metrics=said.metrics,
            gradient=read_gradient(said.gradient if gradient is None else gradient, space, self.params),
        )
        try:
            self._send(point)
        except (Pruned, CutShort):
            self._reported.append(point)
            raise
        self._reported = [*(self._reported if self.problem.best_so_far else ()), point]

    def charge(self, amount: SupportsFloat, kind: Kind = "training") -> None:
        """Adds to the cost of the trial. Once charged, its measured seconds do not count."""
        self._meter.charge(amount, kind=kind)
        if self._job.tells_charges:
            self._settle()

    def _charge_with_report(self, amount: SupportsFloat) -> None:
        """As `charge`, for an amount that belongs to the report that follows."""
        self._meter.charge(amount, kind="training")

    def timing(self, kind: Kind) -> AbstractContextManager[None]:
        """The seconds inside `with trial.timing("validation"):` are of that kind instead of training."""
        return self._meter.timing(kind)

    @contextmanager
    def tracker(self, name: str | None = None) -> Iterator[Any]:
        """The trial's own run in a tracker of the study; where there are several, the one of that name.

        In the block MLflow's own functions write to the run. Weights & Biases gives its run, TensorBoard its folder.
        """
        given = self._job.trackers
        if not given or (name is None and len(given) > 1):
            raise WorkError(
                f"A trial reaches a tracker of its run, got {'several: ' + ', '.join(given) if given else 'none'}. "
                "Write study.run(…, trackers=[ft.trackers.MLflow()]), and of several trial.tracker('MLflow')."
            )
        refuse_unknown([name or next(iter(given))], given, what="Trackers of this run", error=InvalidArgument)
        where: Any = given[name or next(iter(given))]
        with ExitStack() as opened:
            with self._waiting():
                run = opened.enter_context(find_class(where["class"], TRACKER).reach(where["address"], self.number))
            yield run

    def _count_as(self, kind: Kind) -> None:
        """Seconds since the last measurement are of that kind, as are those to come, outside of `timing` blocks."""
        self._meter.count_as(kind)

    def _waiting(self) -> AbstractContextManager[None]:
        """The seconds inside do not count as work: they cost nothing."""
        return self._meter.paused()

    def _settle(self, *, step: int | None = None, saved: Mapping[str, float] | None = None) -> None:
        """Stores the cost so far, as a measurement without a value.

        In work of several stages `step` is the place of the one that has ended, from 0. `saved` has savings
        by reason: a stage that was loaded instead of computed saves its cost under "cache".
        """
        self._send(self._measurement(step=step, saved=dict(saved or {})))

    def _tell_eviction(self, eviction: Eviction) -> None:
        """Adds to the history that the output of some stages is not cached any more."""
        self._send(eviction)

    @contextmanager
    def checkpoint(self) -> Iterator[Path]:
        """Commits the files written to the folder when the block ends; nothing when it raises."""
        staging = self._checkpoints.stage(self._job.attempt)
        try:
            yield staging
            name = self._checkpoints.commit(staging)
        except BaseException:
            self._checkpoints.discard(staging)
            raise
        if name is not None:
            self._send(Checkpointed(name))
            self._announced = name

    def _finish(self, returned: object) -> Outcome:
        """The outcome of the trial, given the work's return value. An invalid result makes a failed outcome.

        A report counts if the work returns something that is no result, such as its model.
        """
        has_reported = self._last is not None or self._job.reported is not None
        if has_reported and not is_result(returned, self.problem):
            returned = None
        try:
            result = self._counting(read_result(returned, self.problem))
            gradient = read_gradient(result.gradient, self.problem.space, self.params)
            self._commit()
        except (FarthingError, OSError) as error:
            return self._fail(failure_of(error))
        return self._outcome(State.DONE, value=result.value, closing=self._closing(returned, result, gradient))

    def _fail(self, failure: Failure) -> Outcome:
        return self._outcome(State.FAILED, closing=self._measurement(), failure=failure)

    def _prune(self) -> Outcome:
        value = self._last.value if self._last else self._job.reported
        return self._outcome(State.PRUNED, value=value, closing=self._measurement())

    @property
    def _last(self) -> Measurement | None:
        return self._reported[-1] if self._reported else None

    @property
    def _last_step(self) -> int:
        return (self._last.step or 0) if self._last else 0

    def _counting(self, result: Result) -> Result:
        """The result that counts: where none was returned, the last that was reported, also by an earlier attempt."""
        if result.value is not None:
            return result
        if self._last is None and self._job.reported is not None:
            return Result(self._job.reported)
        if self._last is None:
            named = " and ".join(map(repr, self.problem.returned))
            it, what = ("it", "a number") if len(self.problem.returned) == 1 else ("them", "a mapping")
            raise InvalidValue(
                f"Work must return {named} or report {it}, but returned no value and reported none. Return {what}."
            )
        return Result(self._last.value)

    def _closing(self, returned: object, result: Result, gradient: Mapping[str, float] | None) -> Measurement:
        """The last measurement: the returned value where the work ended, or only the rest of the cost.

        Where the price of a run is asked for, the rest belongs to it: it comes with the last report once more.
        """
        if returned is None and self._last is not None and self.problem.prices_runs:
            rest = self._measurement()
            return replace(self._last, cost=rest.cost, charged=rest.charged, sequence=rest.sequence)
        if returned is None:
            return self._measurement(fidelity=self._closing_fidelity) if self._stopped_early else self._measurement()
        return self._measurement(
            value=result.value,
            fidelity=self._closing_fidelity,
            step=self._closing_step(result),
            metrics=result.metrics,
            gradient=gradient or self._gradient_reported_with(result),
        )

    @property
    def _closing_fidelity(self) -> Mapping[str, float]:
        """The trial's own, or the last reported if the work stopped by itself there."""
        return self._last.fidelity if self._last and self._stopped_early else self.fidelity

    @property
    def _stopped_early(self) -> bool:
        is_continued = self.resume_from is not None
        return stops_early(self.problem, self.fidelity, self._reported, is_continued=is_continued)

    def _gradient_reported_with(self, result: Result) -> Mapping[str, float] | None:
        """A result that was reported before takes the place of that report, and must not lose its gradient."""
        if self._last is None or (self._last.value, self._last.fidelity) != (result.value, self.fidelity):
            return None
        return self._last.gradient

    def _closing_step(self, result: Result) -> int | None:
        """A value that was just reported stays one point of the curve; another one comes after it."""
        if self._last is None or self._last.step is None or self.fidelity:
            return None
        return self._last.step if self._last.value == result.value else self._last.step + 1

    def _commit(self) -> None:
        if self._staging is not None:
            staging, self._staging = self._staging, None
            self._announced = self._checkpoints.commit(staging) or self._announced

    def _outcome(
        self, state: State, *, closing: Measurement, value: float | None = None, failure: Failure | None = None
    ) -> Outcome:
        if self._staging is not None:
            self._checkpoints.discard(self._staging)
        return Outcome(state, value=value, measurements=(closing,), failure=failure, checkpoint=self._announced)

    def _send(self, news: News) -> None:
        with self._meter.paused():
            self._hand_over(news)

    def _measurement(self, **point: Any) -> Measurement:
        bill = self._meter.bill()
        return Measurement(
            cost=bill.cost, charged=bill.charged, attempt=self.attempt, sequence=next(self._sequence), **point
        )


# ------------------------------------------------------------
# The cost of an attempt.


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost since the last bill, by kind. `charged` amounts replace the measured seconds of the attempt."""

    cost: dict[str, float]
    charged: bool


class Meter:
    """Counts seconds by kind, until an amount is charged: from then on only charged amounts count.

    Every moment belongs to one kind, at first training. With `measures` false the study's cost is no time, and only
    charges are billed.
    """

    def __init__(self, clock: Clock, *, measures: bool = True) -> None:
        self._clock = clock
        self._measures = measures
        self._kind = "training"
        self._since = clock.elapsed()
        self._seconds: dict[str, float] = {}
        self._billed_seconds = 0.0
        self._charges: dict[str, float] = {}
        self._charging = False

    @property
    def seconds(self) -> float:
        """All that was measured so far, billed or not."""
        return self._billed_seconds + sum(self._seconds.values()) + self._clock.elapsed() - self._since

    def charge(self, amount: object, *, kind: str) -> None:
        check_kind(kind)
        self._charges[kind] = cost_amount(self._charges.get(kind, 0.0) + cost_amount(amount))
        self._charging = True

    def count_as(self, kind: str) -> None:
        """All that is measured from the last bill on is of that kind, unless a `timing` block says otherwise."""
        before, self._kind = self._kind, check_kind(kind)
        if before != kind and before in self._seconds:
            self._seconds[kind] = self._seconds.get(kind, 0.0) + self._seconds.pop(before)

    @contextmanager
    def timing(self, kind: str) -> Iterator[None]:
        outer = self._switch(check_kind(kind))
        try:
            yield
        finally:
            self._switch(outer)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time inside costs nothing: waiting for a report to be written is not part of the work."""
        self._switch(self._kind)
        try:
            yield
        finally:
            self._since = self._clock.elapsed()

    def bill(self) -> Bill:
        self._switch(self._kind)
        seconds, self._seconds = self._seconds, {}
        charges, self._charges = self._charges, {}
        self._billed_seconds += sum(seconds.values())
        if self._charging:
            return Bill(charges, charged=True)
        return Bill(seconds if self._measures else {}, charged=False)

    def _switch(self, kind: str) -> str:
        """Puts the time since the last switch on the kind it belongs to; returns that kind."""
        now, before = self._clock.elapsed(), self._kind
        if now > self._since:
            self._seconds[before] = self._seconds.get(before, 0.0) + now - self._since
        self._since, self._kind = now, kind
        return before
