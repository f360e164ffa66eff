"""Trials that are handed out to the user, and the results that come back."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from farthing.costs import Budget, Clock, Remaining
from farthing.costs.expected import has_paid
from farthing.errors import InvalidArgument, InvalidParams, InvalidValue
from farthing.execution import Job, RunningTrial
from farthing.execution.executor import News
from farthing.execution.inline import begins_this_process
from farthing.execution.results import fidelity_of_report, next_step, read_gradient, read_report
from farthing.fields import Flag, Several, Text
from farthing.running.stopping import Stopping, end_beyond
from farthing.scalars import as_int
from farthing.session import Session
from farthing.session.folder import StudyFiles
from farthing.session.records import Records, Taken
from farthing.strategies import Randomness, Strategy
from farthing.strategies.shared.starts import draw
from farthing.trials import (
    Attempt,
    Failure,
    History,
    Measurement,
    Outcome,
    Params,
    Problem,
    State,
    Suggestion,
    Trial,
    rate_of,
)
from farthing.trials.measurement import cost_amount, finite_number
from farthing.trials.objectives import GRADIENT
from farthing.trials.problem import stops_early
from farthing.validation import refuse_non_mapping, refuse_unknown, shown, spelled_out

Told: TypeAlias = float | Mapping[str, float]
"""A value; with several objectives or constraints all of them by name."""

Trace: TypeAlias = Iterable[tuple[Mapping[str, float], Told]]
"""Points of a curve: where each was measured, as `trial.report` names it, and its value."""

WISH = "wish"
"""In the note of a trial that a study file put in line: its place there."""

DRAWS = 1000
"""Draws among which every parameter is active at least once, unless it hardly ever is."""


class HandedOut:
    """The trials that this process asked for and has not told yet."""

    def __init__(self, records: Records, files: StudyFiles, *, clock: Clock) -> None:
        self._records = records
        self._files = files
        self._clock = clock
        self._asked: dict[int, RunningTrial] = {}

    def ask(self, count: int, budget: Budget | None, strategy: Callable[[], Strategy]) -> list[RunningTrial]:
        """Up to `count` trials: those that wait first, then what the strategy suggests. All of them, or none."""
        return self._hand_out(partial(self._open, count, budget, strategy), budget)

    def ask_within(self, count: int, strategy: Callable[[], Strategy]) -> list[RunningTrial]:
        """As `ask`, but only what the budget of the study pays for, also of those that wait.

        As long as no trial has told what one costs, there is one in flight.
        """
        return self._hand_out(partial(self._open_within, count, strategy), None)

    def _hand_out(self, opened: Callable[[Taken], list[Trial]], budget: Budget | None) -> list[RunningTrial]:
        taken: Taken = {}
        try:
            trials = opened(taken)
            asked = {trial.number: self._running(trial, budget) for trial in trials}
        except BaseException:
            self._records.give_back(taken)
            raise
        self._asked |= asked
        return list(asked.values())

    def _open(self, count: int, budget: Budget | None, strategy: Callable[[], Strategy], taken: Taken) -> list[Trial]:
        history = self._records.sweep_to_suggest()
        claimed = self._records.claim(count, taken=taken) if history.waiting else []
        if len(claimed) == count:
            return claimed
        history = self._records.refresh() if claimed else history
        limits = budget or Budget.in_force(history)
        if limits is not None and Stopping().reason(limits, history, self._left(budget, history)):
            return claimed

        def plan(history: History) -> tuple[Remaining, int]:
            return self._left(budget, history), count - len(claimed)

        return [*claimed, *self._records.open(strategy(), plan, taken=taken).trials]

    def _open_within(self, count: int, strategy: Callable[[], Strategy], taken: Taken) -> list[Trial]:
        claimed = self._claim_within(count, taken)
        history = self._records.refresh()
        limits = Budget.in_force(history)
        if len(claimed) == count or Stopping().reason(limits, history, self._left(None, history)):
            return claimed

        def plan(history: History) -> tuple[Remaining, int]:
            return self._left(None, history), min(count - len(claimed), may_begin(history, len(history.in_flight)))

        return [*claimed, *self._records.open(strategy(), plan, taken=taken).trials]

    def _claim_within(self, count: int, taken: Taken) -> list[Trial]:
        """Waiting trials that the budget pays for. Where others took some meanwhile, what was taken is given back."""
        history = self._records.sweep_to_suggest()
        while True:
            running = _running(history)
            payable = min(count, self._payable(history), may_begin(history, len(running)))
            claimed = self._records.claim(payable, taken=taken) if payable > 0 else []
            if not claimed or _running(self._records.refresh()) <= running | {one.number for one in claimed}:
                return claimed
            self._records.give_back(taken)
            history = self._records.refresh()

    def _payable(self, history: History) -> int:
        """How many of the trials that wait the budget pays for; of one of trials, those that are beyond it wait."""
        limits = Budget.in_force(history)
        if limits is None:
            return history.waiting
        seconds = 0.0 if limits.seconds is None else self._records.seconds_run()
        left = limits.remaining_for_waiting(history, seconds=seconds)
        beyond = int(max(0.0, -left.trials))
        return min(self._records.payable(history, left), history.waiting - beyond)

    def _left(self, budget: Budget | None, history: History) -> Remaining:
        """The rest of the budget that was given, else of the study's own, which counts the seconds of its runs."""
        if budget is not None:
            return budget.remaining(history, seconds=0.0)
        own = Budget.in_force(history)
        if own is None:
            return Remaining()
        return own.remaining(history, seconds=0.0 if own.seconds is None else self._records.seconds_run())

    def why_none(self) -> str:
        if self._records.refresh().in_flight:
            return (
                "The strategy waits for trials in flight, so there is none to ask for. Tell a result, then ask again."
            )
        return (
            "The strategy or the budget has no trial left to ask for. See `study.best`, or give a larger budget: "
            "study.set_budget(…)."
        )

    def find(self, trial: RunningTrial | Trial | int) -> RunningTrial:
        """The trial that this or another process handed out."""
        if isinstance(trial, RunningTrial):
            return trial
        number = number_of(trial)
        return self._asked.get(number) or self._elsewhere(self._records.refresh()[number])

    def _elsewhere(self, trial: Trial) -> RunningTrial:
        """A trial that another process handed out: what it cost is the time since it was taken or last reported."""
        running = self._running(trial)
        if self._records.problem.measures_cost:
            seconds = self._records.now() - max([trial.began_at, *(point.time for point in trial.measurements)])
            rate = rate_of(self._records.rate, running.params)
            running._charge_with_report(seconds if rate is None else seconds * rate)
        return running

    def close(self, running: RunningTrial, outcome: Outcome) -> Trial:
        attempt = Attempt(running.number, running.attempt)
        is_measured = outcome.state is State.DONE and not any(point.charged for point in outcome.measurements)
        if is_measured and begins_this_process():
            self._records.note_worker(attempt)
        closed = self._records.close(attempt, outcome)
        self._asked.pop(running.number, None)
        return closed

    def _running(self, trial: Trial, budget: Budget | None = None) -> RunningTrial:
        """The trial as its worker sees it, ready to report; a budget that it was asked for with holds for it."""
        checkpoints = self._files.to_write()
        limits = budget or Budget.in_force(self._records.history)
        return RunningTrial(
            Job.of(trial, checkpoints, tells_charges=limits is not None and limits.hard),
            self._records.problem,
            send=partial(self._record, trial, budget),
            checkpoints=checkpoints,
            clock=self._clock,
            first_sequence=1 + max((point.sequence for point in trial.measurements), default=-1),
        )

    def _record(self, trial: Trial, budget: Budget | None, news: News) -> None:
        """Makes news durable; raises `Pruned` if a hard budget is spent with it."""
        self._records.record(Attempt(trial.number, trial.attempt), news)
        limits = budget or Budget.in_force(self._records.history)
        if limits is not None and limits.hard and isinstance(news, Measurement):
            history = self._records.refresh()
            seconds = 0.0 if budget is not None or limits.seconds is None else self._records.seconds_run()
            end_beyond(budget or Budget.in_force(history), history, trial, heard=news, seconds=seconds)


def _running(history: History) -> set[int]:
    return {trial.number for trial in history.in_flight if trial.state is State.RUNNING}


def may_begin(history: History, in_flight: int) -> int:
    """How many trials may begin beside those in flight: without a limit once one has told what it costs.

    Before, it is one alone: a budget of cost cannot say how many more it pays for.
    """
    limits = Budget.in_force(history)
    is_told = history.problem.declared_cost is not None or any(has_paid(history, trial) for trial in history.done)
    return sys.maxsize if limits is None or limits.cost is None or is_told else max(0, 1 - in_flight)


def suggested(problem: Problem, params: Params, fidelity: Mapping[str, float] | None) -> Suggestion:
    """The configuration that a user asks for, once it is certain that the space has it."""
    return Suggestion(problem.space.check(params), problem.space.check_fidelity(fidelity))


def obtained(
    problem: Problem, value: Told, *, cost: float | None, fidelity: Mapping[str, float], trace: Trace = ()
) -> Outcome:
    """The outcome of a trial that was run elsewhere."""
    points, said = _trace_points(problem, fidelity, trace), read_report(value, None, problem)
    is_early = stops_early(problem, fidelity, points, is_continued=False)
    measurement = Measurement(
        value=said.value,
        metrics=said.metrics,
        cost={} if cost is None else {"training": cost_amount(cost)},
        charged=cost is not None,
        fidelity=points[-1].fidelity if is_early else fidelity,
    )
    return _joined(points, Outcome(State.DONE, value=measurement.value, measurements=[measurement]), None)


def completed(history: History, params: Params, strategy: Callable[[], Strategy], rng: Randomness) -> Params:
    """The params with values for those active parameters that have none: as the strategy proposes, else drawn."""
    space = history.problem.space
    refuse_non_mapping(params, what="Params", error=InvalidParams)
    refuse_unknown(params, space.parameters, what="Parameters", error=InvalidParams)
    missing = [name for name in space.active_names(params) if name not in params]
    if not missing:
        return params
    proposed = [one.params for one in strategy().suggest(history, Remaining(), 1, rng) if one.resume_from is None]
    whole = dict(params)
    while missing:
        drawn = draw(history, range(len(history), len(history) + DRAWS), rng)
        source = next(one for one in [*proposed, *drawn] if missing[0] in one)
        whole[missing[0]] = source[missing[0]]
        missing = [name for name in space.active_names(whole) if name not in whole]
    return whole


def enqueue_once(session: Session, place: int, params: Params, *, fidelity: Mapping[str, float] | None = None) -> None:
    """As `Study.enqueue`, for the wish of that place in a study file, once, also if two do it at the same moment."""
    records = session.records

    def wished(history: History) -> Suggestion:
        whole = completed(history, params, session.strategy.imported, records.randomness)
        return suggested(records.problem, whole, fidelity)

    records.enqueue_once(wished, note={WISH: place})


def read_tags(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(Several(Text()).checked(given, what="tags", advice="Write for example tags=['baseline']."))


def read_comment(given: str | None) -> str | None:
    if given is not None:
        Text().checked(given, what="A comment", advice="Write for example comment='a new seed'.")
    return given


def number_of(trial: RunningTrial | Trial | int) -> int:
    number = as_int(trial.number if isinstance(trial, (RunningTrial, Trial)) else trial)
    if number is None or number < 0:
        raise InvalidArgument(
            f"A trial must be given itself or by its number, from 0 on, got {shown(trial)}. Pass the trial from ask()."
        )
    return number


def report_paid(
    running: RunningTrial, value: Told, *, cost: float | None, step: int | None, place: Mapping[str, Any]
) -> None:
    """Reports a value together with what was paid for it: both are stored, or none."""
    if cost is not None:
        running._charge_with_report(cost)
    running.report(value, step=step, **place)


def told(
    running: RunningTrial,
    *,
    value: Told | None,
    cost: float | None = None,
    trace: Trace = (),
    metrics: Mapping[str, float] | None = None,
    gradient: Mapping[str, float] | None = None,
    failure: str | None = None,
    pruned: bool = False,
) -> Outcome:
    """The outcome that `tell` describes. Raises for any mistake in it, before anything is recorded."""
    Flag().checked(pruned, what="pruned", advice="Write pruned=True, or leave it out.")
    if failure is not None:
        text = spelled_out(failure) if isinstance(failure, str) else failure  # an exception's text is nobody's choice
        Text().checked(text, what="A failure", advice="Write for example failure='out of memory'.")
    if sum([value is not None, failure is not None, pruned]) > 1:
        raise InvalidArgument(
            f"A trial has one result, got value={value!r}, failure={failure!r}, pruned={pruned}. Tell one of them."
        )
    points = _trace_points(running.problem, running.fidelity, trace)
    refuse_non_mapping(metrics or {}, what="Metrics", error=InvalidValue)
    slopes = read_gradient(gradient, running.problem.space, running.params)
    if slopes and (failure is not None or pruned or (value is None and not points)):
        raise InvalidArgument(
            f"A gradient belongs to a value, got {shown(slopes)} without one. Tell the value too, or leave it out."
        )
    charge = None if cost is None else {"training": cost_amount(cost)}
    if failure is not None:
        return _joined(points, running._fail(Failure(failure)), charge)
    if pruned:
        return _joined(points, running._prune(), charge)
    name = running.problem.value
    if value is None and points:
        value = {one: number for one, number in points[-1].metrics.items() if number is not None}
        value[name] = points[-1].value or 0.0
    if value is not None and not isinstance(value, Mapping):
        value = {name: finite_number(value, what=f"The value {name!r}")}
    result = None if value is None else {**(metrics or {}), **value}
    outcome = running._finish(result if slopes is None else {**(result or {}), GRADIENT: slopes})
    if outcome.state is State.FAILED:
        raise InvalidValue(outcome.failure.reason if outcome.failure else "The result could not be read.")
    return _joined(points, _ending_early(running, points, outcome), charge)


def _ending_early(running: RunningTrial, points: list[Measurement], outcome: Outcome) -> Outcome:
    """The outcome where the trace ends, if the work stopped by itself there."""
    is_continued = running.resume_from is not None
    if not stops_early(running.problem, running.fidelity, points, is_continued=is_continued):
        return outcome
    closing = [replace(point, fidelity=points[-1].fidelity) for point in outcome.measurements]
    return replace(outcome, measurements=closing)


def _trace_points(problem: Problem, own: Mapping[str, float], trace: Trace) -> list[Measurement]:
    """Points as `trial.report` takes them: below the least amount too, and by steps where there are no fidelities."""
    points: list[Measurement] = []
    for place, value in _pairs(trace):
        refuse_non_mapping(place, what="The place of a point in a trace", error=InvalidValue)
        named = {name: amount for name, amount in place.items() if name != "step"}
        fidelity = fidelity_of_report(problem.space, own, named)
        last = (points[-1].step or 0) if points else 0
        said = read_report(value, None, problem)
        step = None if fidelity else next_step(place.get("step"), last)
        points.append(Measurement(value=said.value, metrics=said.metrics, fidelity=fidelity, step=step))
    return points


def _pairs(trace: Trace) -> list[tuple[Mapping[str, float], Told]]:
    try:
        return [(place, value) for place, value in trace]
    except (TypeError, ValueError):
        raise InvalidValue(
            f"A trace must be pairs of fidelity and value, got {shown(trace)}. Write trace=[({{'epochs': 1}}, 0.5)]."
        ) from None


def _joined(points: list[Measurement], outcome: Outcome, charge: Mapping[str, float] | None) -> Outcome:
    """The outcome with the points of a trace before its own measurement, which takes what was charged."""
    closing = [_after(points, last) for last in outcome.measurements]
    own = [replace(last, cost=charge, charged=True) if charge is not None else last for last in closing]
    first = own[0].sequence
    measurements = [replace(point, sequence=first + index) for index, point in enumerate([*points, *own])]
    return replace(outcome, measurements=measurements)


def _after(points: list[Measurement], last: Measurement) -> Measurement:
    """A result without a fidelity comes a step after its trace, unless it is the value that the trace ends with."""
    if not points or points[-1].step is None or last.value is None:
        return last
    return replace(last, step=points[-1].step + (last.value != points[-1].value))
