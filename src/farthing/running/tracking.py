"""Trackers: programs outside that are told how a study goes. They never stop it and never slow it down."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from queue import Full, Queue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from farthing.costs import Ledger
from farthing.errors import InvalidArgument, WorkError
from farthing.names import name_of
from farthing.session import Session
from farthing.trials import History, Json, Measurement, Problem, State, Trial
from farthing.trials.objectives import MeasuredFront, attained, losses_of, values_of
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.running.loop import Loop

log = logging.getLogger("farthing")

ROOM = 10_000
"""Events that wait for a tracker at most: some megabytes. A guess; what is dropped is made up for at the end."""


@dataclass(frozen=True)
class StudyFacts:
    """The study that a tracker is told about. `identity` stays the same when the study is resumed."""

    name: str
    identity: str
    strategy: str
    problem: Problem

    @property
    def settings(self) -> dict[str, str]:
        """The facts that a reader of the tracker wants to know first."""
        problem = self.problem
        aim = {problem.direction: problem.value} if problem.is_simple else {"aim": problem.aim}
        return {"strategy": self.strategy, **aim, "cost_unit": problem.cost_unit}

    def step_of(self, point: Measurement) -> int | None:
        """The place of a point on the axis of its curve: the whole amount of the trace fidelity, or the step."""
        fidelities = self.problem.space.fidelities
        traces = [name for name, fidelity in fidelities.items() if fidelity.trace and name in point.fidelity]
        return round(point.fidelity[traces[0]]) if traces else point.step


@dataclass(frozen=True)
class SoFar:
    """How a study stands: the trials that have ended, what they cost, the best value measured and its trial.

    With several objectives there is no best; `front` has the trials that no other dominates as measured, of those that
    keep the limits. `results` and `kept` count the results and those within the limits, whose losses lie from `least`
    to `most`.
    """

    trials: int = 0
    cost: float = 0.0
    best: float | None = None
    best_trial: Trial | None = None
    front: MeasuredFront = field(default_factory=MeasuredFront)
    results: int = 0
    kept: int = 0
    least: tuple[float, ...] = ()
    most: tuple[float, ...] = ()

    @classmethod
    def of(cls, history: History) -> "SoFar":
        so_far = cls()
        for trial in history:
            if trial.is_finished:
                so_far = so_far.after(trial, history.problem)
        return so_far

    def after(self, trial: Trial, problem: Problem) -> "SoFar":
        best, best_trial = self.best, self.best_trial
        if not problem.is_simple:
            return self._after_one_of_several(trial, problem)
        if (
            trial.state is State.DONE
            and trial.value is not None
            and (best is None or problem.better(trial.value, best))
        ):
            best, best_trial = trial.value, trial
        return SoFar(self.trials + 1, self.cost + trial.cost, best, best_trial)

    def _after_one_of_several(self, trial: Trial, problem: Problem) -> "SoFar":
        front = self.front.after(trial, problem)
        found = front.trials[-1] if front.trials and not problem.further else None
        value = None if found is None else found.value
        is_result = trial.state is State.DONE and values_of(problem, trial) is not None
        counted = replace(
            self,
            trials=self.trials + 1,
            cost=self.cost + trial.cost,
            best=value,
            best_trial=found,
            front=front,
            results=self.results + is_result,
        )
        if (values := attained(problem, trial)) is None:
            return counted
        losses = losses_of(problem, values)
        least, most = (tuple(map(one, of or losses, losses)) for one, of in ((min, self.least), (max, self.most)))
        return replace(counted, kept=self.kept + 1, least=least, most=most)


class Tracker(ABC):
    """Is told how a study goes, by calls in this order, all of them from one thread of its own.

    A call may fail or take long: the study does not notice. The first failure is logged as a warning, and what was
    missed is told again at the end, as far as `patience` allows. A study that is resumed begins again with the same
    identity.
    """

    patience: float = 10.0
    """Seconds that the end of a run waits for the last calls."""

    def address(self, study: StudyFacts) -> dict[str, Json]:
        """The address that `reach` needs in the process that works; empty where trials have nothing to be reached."""
        return {}

    @staticmethod
    def reach(address: Mapping[str, Any], number: int) -> AbstractContextManager[Any]:
        """The run of the trial with this number, which `trial.tracker` gives to work in the process that does it."""
        raise WorkError(
            f"A tracker that gives trials an address must say how work reaches it, got {shown(dict(address))} without "
            "that. Define reach(address, number) beside address(study)."
        )

    @abstractmethod
    def begin(self, study: StudyFacts) -> None:
        """A run of the study begins."""

    @abstractmethod
    def start(self, trial: Trial) -> None:
        """A trial starts, or another attempt at it."""

    @abstractmethod
    def report(self, trial: Trial, point: Measurement) -> None:
        """A point of the trial's curve."""

    @abstractmethod
    def end(self, trial: Trial, so_far: SoFar) -> None:
        """The trial has ended, in whatever state; `so_far` is how the study stands with it."""

    @abstractmethod
    def finish(self, ledger: Ledger) -> None:
        """The run has ended; `ledger` is the bill of the study."""


def read_trackers(given: Iterable[Tracker]) -> tuple[Tracker, ...]:
    """The trackers, once it is certain that they are some."""
    trackers = tuple(given) if isinstance(given, Iterable) else None
    if trackers is None or not all(isinstance(tracker, Tracker) for tracker in trackers):
        raise InvalidArgument(
            f"trackers must be a list of trackers, got {shown(given)}. Write trackers=[ft.trackers.MLflow()]."
        )
    return trackers


class Tracking:
    """Tells a tracker what happens, as an observer of the loop: through a bounded queue, from a thread of its own."""

    def __init__(self, session: Session, tracker: Tracker, *, room: int = ROOM) -> None:
        self._session, self._tracker = session, tracker
        self._delivery = Delivery(tracker, room=room)
        self._so_far = SoFar()

    @contextmanager
    def watching(self, loop: "Loop") -> Iterator[None]:
        self._so_far = SoFar.of(self._session.records.refresh())
        loop.trackers.update(self._reached_at())
        self._delivery.open(_facts(self._session))
        try:
            yield
        finally:
            self._delivery.close(Ledger.of(self._session.records.refresh()))

    def _reached_at(self) -> dict[str, Json]:
        """How work reaches its own run of the tracker, by the tracker's name; empty where it cannot."""
        kind, address = type(self._tracker), self._tracker.address(_facts(self._session))
        return (
            {kind.__name__: {"class": f"{kind.__module__}:{kind.__qualname__}", "address": address}} if address else {}
        )

    def on_start(self, trial: Trial) -> None:
        self._delivery.start(trial)

    def on_report(self, trial: Trial, measurement: Measurement) -> None:
        if measurement.value is not None:
            self._delivery.report(trial, measurement)

    def on_end(self, trial: Trial) -> None:
        if trial.is_finished:
            self._so_far = self._so_far.after(trial, self._session.records.problem)
            self._delivery.end(trial, self._so_far)


def _facts(session: Session) -> StudyFacts:
    strategy = name_of(type(session.strategy.get()))
    return StudyFacts(session.name, session.files.identity, strategy, session.records.problem)


class Delivery:
    """The calls of one tracker, in a thread; the methods of this class only put them in line, and return at once.

    The end of a trial that found no room, or failed, is kept and told again when the run ends; the end of a trial also
    tells the points of its curve that were missed.
    """

    def __init__(self, tracker: Tracker, *, room: int) -> None:
        self._tracker = tracker
        self._queue: Queue[Callable[[], None] | None] = Queue(maxsize=room)
        self._facts: StudyFacts | None = None
        self._told: dict[int, set[tuple[int, int]]] = {}
        self._missed: dict[int, tuple[Trial, SoFar]] = {}
        self._has_begun = self._has_warned = self._is_given_up = False
        self._thread = Thread(target=self._deliver, name=f"farthing {type(tracker).__name__}", daemon=True)

    def open(self, facts: StudyFacts) -> None:
        self._facts = facts
        self._thread.start()
        self._offer(lambda: None)

    def start(self, trial: Trial) -> None:
        self._offer(lambda: self._tell_start(trial))

    def report(self, trial: Trial, point: Measurement) -> None:
        self._offer(lambda: self._tell_report(trial, point))

    def end(self, trial: Trial, so_far: SoFar) -> None:
        self._missed[trial.number] = (trial, so_far)  # until it is told
        self._offer(lambda: self._tell_end(trial, so_far))

    def close(self, ledger: Ledger) -> None:
        """Waits for the tracker as long as its patience lasts, and no longer."""
        until = monotonic() + self._tracker.patience
        try:
            self._queue.put(lambda: self._tell_rest(ledger), timeout=self._tracker.patience)
            self._queue.put(None, timeout=max(0.0, until - monotonic()))
            self._thread.join(timeout=max(0.0, until - monotonic()))
        except Full:
            pass
        finally:
            self._is_given_up = True
        if self._thread.is_alive():
            self._warn(f"did not take all of it within {self._tracker.patience:g} seconds, and the rest is left out")

    def _offer(self, call: Callable[[], None]) -> None:
        try:
            self._queue.put_nowait(call)
        except Full:
            self._warn("is slower than the study; what finds no room in its queue is told when trials end")

    def _deliver(self) -> None:
        while not self._is_given_up and (call := self._queue.get()) is not None:
            self._try(call)

    def _try(self, call: Callable[[], None]) -> None:
        try:
            self._begin()
            call()
        except Exception as error:
            self._warn(f"failed, and the study goes on without it: {type(error).__name__}: {error}")

    def _begin(self) -> None:
        if not self._has_begun:
            assert self._facts is not None, "opened before the thread starts"
            self._tracker.begin(self._facts)
            self._has_begun = True

    def _tell_start(self, trial: Trial) -> None:
        self._tracker.start(trial)
        self._told.setdefault(trial.number, set())

    def _tell_report(self, trial: Trial, point: Measurement) -> None:
        if trial.number not in self._told:
            self._tell_start(trial)
        self._tracker.report(trial, point)
        self._told[trial.number].add((point.attempt, point.sequence))

    def _tell_end(self, trial: Trial, so_far: SoFar) -> None:
        if trial.number not in self._told:
            self._tell_start(trial)
        for point in trial.points:
            if (point.attempt, point.sequence) not in self._told[trial.number]:
                self._tell_report(trial, point)
        self._tracker.end(trial, so_far)
        self._told.pop(trial.number)
        self._missed.pop(trial.number)

    def _tell_rest(self, ledger: Ledger) -> None:
        for trial, so_far in list(self._missed.values()):
            self._try(lambda trial=trial, so_far=so_far: self._tell_end(trial, so_far))  # type: ignore[misc]
        self._tracker.finish(ledger)

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("The tracker %s %s", type(self._tracker).__name__, " ".join(what.split()))
