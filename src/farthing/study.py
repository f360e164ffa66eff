"""The study: what a user holds. It has words only; the rooms below do the work."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypeAlias, TypedDict, Unpack, cast, overload

from farthing.analysis import export
from farthing.analysis.best import Best, MeasuredBest, best_chosen, find_best, keep_recommendation, learned_best
from farthing.analysis.runs import Lineage
from farthing.analysis.text import Top, study_html, study_text
from farthing.costs import Budget, Clock, Ledger, PricesGiven
from farthing.errors import InvalidArgument, NoResult, NoSuggestion
from farthing.execution import CarriesOut, Checkpoints, Executor, RunningTrial, Work, as_work
from farthing.execution.ranks import refuse_other_ranks
from farthing.execution.ray import Resources
from farthing.fields import Flag, Number, Whole
from farthing.knowledge.earlier import LearnFrom, begin_with
from farthing.running.ask_tell import (
    HandedOut,
    Trace,
    completed,
    number_of,
    obtained,
    read_comment,
    read_tags,
    suggested,
    told,
)
from farthing.running.display import Callbacks, check_progress, display_for, read_callbacks, say_how_to_resume
from farthing.running.executors import ExecutorLike, executor_for
from farthing.running.loop import Loop, Observer
from farthing.running.stopping import (
    COMPLETE,
    Limits,
    OnInterrupt,
    Stopped,
    StopReason,
    check_budget,
    check_on_interrupt,
    require_budget,
    require_judged_by_one,
    require_set_budget,
)
from farthing.running.tracking import Tracker, Tracking, read_trackers
from farthing.running.verification import Chosen, Verification, require_covered
from farthing.session import Session
from farthing.session.creation import closed_on_error, extension_of, refuse_retiring_for, require_space
from farthing.session.upkeep import collect_checkpoints, log_lost_prefixes, note_code
from farthing.space import Space
from farthing.storage import StorageLike
from farthing.strategies import Strategy
from farthing.trials import DeclaredCost, History, Params, Problem, Trial
from farthing.trials.objectives import Bound, Limit
from farthing.trials.trial import ADDED
from farthing.validation import explained, no_attribute, refuse_unknown_arguments

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from farthing.analysis.diagnosis import Diagnosis, Share
    from farthing.analysis.front import Front
    from farthing.analysis.outlook import Outlook
    from farthing.dashboard.report import Report
    from farthing.plots import PlotKind


log = logging.getLogger("farthing")

WORKERS = "workers"
"""The setting that has the number of workers of the last run, so that a verification has as many threads for each."""


ExportFormat: TypeAlias = Literal["csv", "json"]
Callback: TypeAlias = Callable[["Study", Trial], object]


class RareStudySettings(TypedDict, total=False):
    """The arguments of `Study` that few studies need."""

    folder: str | Path | None
    lease: float
    lost_retries: int
    clock: Clock | None
    noise: bool | None
    prices: PricesGiven | None


class StudySettings(RareStudySettings, total=False):
    """The arguments of `Study` beside its space and its value."""

    strategy: Strategy | str | None
    storage: StorageLike | None
    name: str
    seed: int | None
    cost: DeclaredCost | None
    cost_unit: str | None
    learn_from: LearnFrom | None
    constraints: Mapping[str, Limit] | None


class WorkSettings(TypedDict, total=False):
    """How work is carried out: the arguments that `Study.run` and `Study.verify` share, beside the budget."""

    workers: int
    executor: ExecutorLike
    time_limit: float | None
    retries: int | None
    devices: Sequence[str] | None
    resources: Resources | None
    progress: bool | None


class RareRunSettings(TypedDict, total=False):
    """The arguments of `Study.run` that few runs need."""

    retries: int | None
    on_interrupt: OnInterrupt
    keep_going: bool
    harmless_change: bool


class RunSettings(RareRunSettings, WorkSettings, total=False):
    """The arguments of `Study.run` beside the work and its budget."""

    callbacks: Iterable[Callback]
    trackers: Iterable[Tracker]
    verify: bool


class WholeSettings(StudySettings, RunSettings, total=False):
    """The arguments that `minimize` and `maximize` pass on."""


class Study:
    """Tunes one thing: suggests trials, runs or hands them out, and keeps their results and costs.

    A study of an existing name in the same storage is continued; with another space or value it is refused. A `with`
    block closes it at its end.

    Args:
        minimize, maximize: the name of the value, or several: `minimize=["error", "latency"]`, or both arguments.
            With several, work returns and reports a mapping with all of them.
        constraints: limits of other numbers that work returns or reports with its value:
            `{"memory": ft.AtMost(8e9), "recall": ft.AtLeast(0.9)}`; `ft.Succeeds()` learns where trials fail.
        strategy: the strategy, or its name; None chooses by the shape of the space at the first suggestion. It is
            stored with the study, for whoever opens it by name. If the study has another one, yours takes over from
            its first suggestion on, also for those who open the study later.
        storage: None keeps everything in memory; `sqlite:///file.db` or `postgresql://…` keeps it for good.
        cost: a function of (params, fidelity) that returns the cost of a run from the start to that fidelity. Without
            it, cost is the measured seconds of the work, or the amounts that trials charge.
        cost_unit: the unit of cost: seconds, or with prices dollars, unless it is given. With another unit than
            seconds nothing is measured: charge, tell or declare it, or give prices.
        learn_from: earlier studies, whose best configurations are tried first: names in the same storage,
            `"sqlite:///old.db#name"`, studies, or "all" for every finished study of the same value there that has
            parameters in common. They are read once, as the study begins.

    Other Parameters:
        prices: what resources cost, `{"gpu": 2.5, "cpu": 0.05, "per": "hour"}`: cost is then the measured seconds
            times the prices of the `resources` that a run says its trials hold. The study remembers them.
        folder: the place for checkpoints and logs, in a folder of the study's name; by default beside the database. A
            URL, `s3://bucket/studies`, is one for machines that share no disk.
        lease: seconds, 60 by default, after which a trial whose owner no longer answers is offered again.
        lost_retries: the number of times, 3 by default, that a trial may be lost in that way before it is given up.
        noise: False declares that equal params give equal values: then a value measured at full fidelity is never
            passed over for a prediction that is worse, and models of full trainings go through their results. The study
            remembers it, from the next trial on.
        clock: what tells the time, where it is not the computer's: a simulated study brings its own.
    """

    @explained
    def __init__(
        self,
        space: Space | Session,
        *,
        minimize: str | Sequence[str] | None = None,
        maximize: str | Sequence[str] | None = None,
        strategy: Strategy | str | None = None,
        storage: StorageLike | None = None,
        name: str = "study",
        seed: int | None = None,
        cost: DeclaredCost | None = None,
        cost_unit: str | None = None,
        learn_from: LearnFrom | None = None,
        constraints: Mapping[str, Limit] | None = None,
        **rare: Unpack[RareStudySettings],
    ) -> None:
        if isinstance(space, Session):  # of `load`: it is stored already, with everything else
            session = space
        else:
            session = Session.created(
                space,
                minimize=minimize,
                maximize=maximize,
                constraints=constraints,
                strategy=strategy,
                storage=storage,
                name=name,
                seed=seed,
                cost=cost,
                cost_unit=cost_unit,
                **rare,
            )
        if learn_from is not None:
            with closed_on_error(session.records.storage, given=storage):
                begin_with(session.records, learn_from)
        self.name = session.name
        self._session = session
        self._handed_out = HandedOut(session.records, session.files, clock=session.clock)
        self._loop: Loop | None = None

    @classmethod
    def load(
        cls,
        name: str,
        storage: StorageLike,
        *,
        strategy: Strategy | str | None = None,
        cost: DeclaredCost | None = None,
        lease: float = 60.0,
        lost_retries: int = 3,
        import_strategy: bool = False,
    ) -> Self:
        """The study of that name, as it was stored: no space needs to be given again.

        Reading it imports nothing that the database names. A strategy of your own is imported when the study runs or is
        asked for a trial; with `import_strategy` at once, so that `best` is its recommendation.
        """
        Flag().checked(import_strategy, what="import_strategy", advice="Leave it out to import nothing.")
        session = Session.loaded(name, storage, strategy=strategy, cost=cost, lease=lease, lost_retries=lost_retries)
        if import_strategy:
            session.strategy.imported()
        return cls(session)

    # ---- running ----------------------------------------------------------------------------------------------------

    @explained
    def run(
        self,
        work: Work,
        *,
        budget: Budget | None = None,
        workers: int = 1,
        executor: ExecutorLike = "processes",
        time_limit: float | None = None,
        devices: Sequence[str] | None = None,
        resources: Resources | None = None,
        callbacks: Iterable[Callback] = (),
        trackers: Iterable[Tracker] = (),
        progress: bool | None = None,
        verify: bool = False,
        **rare: Unpack[RareRunSettings],
    ) -> Stopped:
        """Runs trials of `work` until the budget, which counts all runs of the study, is spent; returns why it ended.

        It waits for trials that other programs run, and not for those that `ask` has given to this one.

        Args:
            budget: the limits of the study in all. It is stored with the study, and `set_budget` changes it while runs
                go on; the same program, started again, leaves such a change as it is. Not needed once the study has
                one, or if the strategy has an end of its own, as `PB2` has.
            executor: "processes" gives each worker a process of its own; "async" runs coroutines in one event loop;
                "inline" runs the work here, for debugging; "ray" runs it on a Ray cluster, and so does
                `ft.RayExecutor(address=…)`.
            time_limit: seconds after which a trial, with every process it started, is ended as failed.
            devices: for example `["cuda:0", "cuda:1"]`, given to the workers in turn.
            resources: what each worker holds, with Ray and in a study with prices: `{"cpu": 1, "gpu": 0.25}`; a list of
                such bundles for work on several nodes; or a function of the params that returns either.
            callbacks: each is called as `callback(study, trial)` when a trial has ended; it may call `study.stop()`.
            trackers: programs that are told how the study goes: `[ft.trackers.MLflow()]`. One that fails or is slow
                neither stops nor slows the study.
            progress: a live display; None shows it in a terminal or a notebook, and elsewhere a line a minute.
            verify: ends with `study.verify`, which trains the recommendation to full fidelity. What that is predicted
                to cost is set aside from the start, so that the budget holds for both.

        Other Parameters:
            retries: the number of times a failed trial is tried again, for any reason. By default a trial is tried
                again once when the system killed its worker (a signal, no memory, pre-emption), and never after an
                exception or the time limit; in a population once after any failure.
            on_interrupt: Ctrl-C gives running trials back, and then raises `KeyboardInterrupt`; "return" ends the run
                with the reason `StopReason.INTERRUPTED` instead.
            keep_going: a run whose first three trials fail in the same way, before any succeeded, ends with the
                reason `StopReason.WORK_FAILS`; True spends the budget all the same.
            harmless_change: trials of an older version of a pipeline's stage leave the best and the model; True
                declares that the last change left values as they were.
        """
        retries, on_interrupt = rare.get("retries"), rare.get("on_interrupt", "raise")
        check_on_interrupt(on_interrupt)
        Flag().checked(verify, what="verify", advice="Write verify=True to train the recommendation to the end.")
        check_progress(progress)
        strategy = self._session.strategy.imported()
        check_budget(budget)
        limits = Limits.of(
            None, time_limit, retries=retries, strategy=strategy, keep_going=rare.get("keep_going", False)
        )
        limits = replace(limits, verifies=verify)
        called, followers = read_callbacks(callbacks), read_trackers(trackers)
        shape, strategy = self._taken_up(work, budget, harmless=rare.get("harmless_change", False))
        runner = self._executor(
            shape, executor, workers=workers, devices=devices, resources=resources, time_limit=time_limit
        )
        if self._session.records.settings.get(WORKERS, 1) != workers:
            self._session.records.remember({WORKERS: workers})
        if budget is not None:
            self._session.records.set_budget(budget, given=True)
        try:
            stopped = self._loop_through(
                strategy, runner, limits, callbacks=called, trackers=followers, progress=progress
            )
            if verify and stopped.reason in COMPLETE and self.history.done:
                self._verify_after_run(
                    work,
                    workers=workers,
                    executor=executor,
                    time_limit=time_limit,
                    retries=retries,
                    devices=devices,
                    resources=resources,
                    progress=progress,
                )
            return stopped
        except KeyboardInterrupt:
            say_how_to_resume(self._session.records)
            if on_interrupt == "raise":
                raise
            return Stopped(StopReason.INTERRUPTED, "interrupted")

    def _verify_after_run(self, work: Work, **settings: Unpack[WorkSettings]) -> None:
        """Trains the recommendation to the end. If that fails, its trial and a warning say so: the run has its result.

        Its cost was set aside; only a hard budget may end it.
        """
        budget = self.budget
        try:
            self.verify(work, budget=budget if budget is not None and budget.hard else None, **settings)
        except (NoResult, InvalidArgument) as error:
            log.warning("The recommendation was not trained to the end: %s", error)

    @overload
    def verify(
        self,
        work: Work,
        *,
        measured: bool = False,
        top: None = None,
        repeats: None = None,
        budget: Budget | None = None,
        **settings: Unpack[WorkSettings],
    ) -> Trial: ...
    @overload
    def verify(
        self,
        work: Work,
        *,
        measured: bool = False,
        top: int,
        repeats: int | None = None,
        budget: Budget | None = None,
        **settings: Unpack[WorkSettings],
    ) -> Verification: ...
    @overload
    def verify(
        self,
        work: Work,
        *,
        measured: bool = False,
        top: None = None,
        repeats: int,
        budget: Budget | None = None,
        **settings: Unpack[WorkSettings],
    ) -> Verification: ...
    def verify(
        self,
        work: Work,
        *,
        measured: bool = False,
        top: int | None = None,
        repeats: int | None = None,
        budget: Budget | None = None,
        workers: int = 1,
        executor: ExecutorLike = "processes",
        time_limit: float | None = None,
        retries: int | None = None,
        devices: Sequence[str] | None = None,
        resources: Resources | None = None,
        progress: bool | None = None,
    ) -> Trial | Verification:
        """Trains the recommendation of `study.best` to full fidelity and returns that trial, with value and checkpoint.

        Continues from the configuration's own checkpoint if there is one, and is recorded like any other trial.
        If the recommendation is already trained to the end, returns that trial and runs nothing. Other
        waiting trials are left alone. The other arguments are those of `run`; without a budget there is no limit.

        With `top` or `repeats`, several configurations are trained to the end, each several times in all, and a
        `Verification` is returned: the mean and the spread of each, the best first.

        Args:
            measured: goes by the values measured at full fidelity instead of what the model recommends.
            top: the number of configurations, the most promising first.
            repeats: the number of full trainings of each, those that there are counted. New ones start afresh.
        """
        check_progress(progress)
        limits = Limits.of(budget, time_limit, retries=retries, strategy=self._session.strategy.imported())
        chosen = Chosen.of(find_best(self._session), self.history, measured=measured, top=top, repeats=repeats)
        numbers = chosen.waiting(self.history)
        missing = chosen.missing(self.history)
        if missing or numbers:
            shape = self._checked(work)
            if budget is not None:
                left = budget.remaining(self.history, seconds=self._session.records.seconds_run())
                require_covered(missing, left, in_seconds=self.problem.cost_unit == "seconds")
            runner = self._executor(
                shape,
                executor,
                workers=workers,
                devices=devices,
                resources=resources,
                time_limit=time_limit,
                sharing=self._session.records.settings.get(WORKERS, 1),
            )
            numbers += [self._session.records.enqueue(one, tags=["verification"]).number for one in missing]
            self._loop_through(self.strategy, runner, limits, progress=progress, only=numbers)
        done = chosen.checked(self.history, ran=numbers)
        return done if top is not None or repeats is not None else done[0].trials[0]

    def _loop_through(
        self,
        strategy: Strategy,
        executor: Executor,
        limits: Limits,
        *,
        callbacks: Iterable[Callback] = (),
        trackers: Iterable[Tracker] = (),
        progress: bool | None,
        only: Collection[int] | None = None,
        shares: bool = False,
    ) -> Stopped:
        if not shares:
            self._session.records.withdraw_stop()
        display = display_for(self._session, wanted=progress)
        observers: list[Observer] = [
            Callbacks(self, tuple(callbacks)),
            *(Tracking(self._session, one) for one in trackers),
        ]
        self._loop = Loop(
            self._session.records,
            strategy,
            executor,
            limits=limits,
            checkpoints=self.checkpoints,
            clock=self._session.clock,
            observers=[*observers, *([display] if display else [])],
            only=only,
            shares=shares,
            only_runs=shares and self._session.lacks_declared_cost,
        )
        try:
            stopped = self._loop.run()
            keep_recommendation(self._session)
            return stopped
        finally:
            self._loop = None

    def _executor(
        self,
        work: CarriesOut,
        executor: ExecutorLike,
        *,
        workers: int,
        devices: Sequence[str] | None,
        resources: Resources | None,
        time_limit: float | None,
        sharing: int = 1,
        prices: Mapping[str, float] | None = None,
        label: str | None = None,
    ) -> Executor:
        self._session.records.hold(resources, must_cost=True, prices=prices, label=label)
        return executor_for(
            work,
            self.problem,
            executor,
            files=self._session.files,
            clock=self._session.clock,
            workers=workers,
            devices=devices,
            resources=resources,
            time_limit=time_limit,
            sharing=sharing,
        )

    def _taken_up(self, work: Work, budget: Budget | None, *, harmless: bool) -> tuple[CarriesOut, Strategy]:
        """The work and the strategy of a run that may begin; what changed since the last one is noted."""
        records, strategy = self._session.records, self._session.strategy
        shape = self._checked(work)
        require_budget(budget or self.budget, strategy.imported())
        require_judged_by_one(budget or self.budget, self.problem)
        log_lost_prefixes(records, shape, self.checkpoints)
        note_code(records, shape, harmless=harmless)
        return shape, strategy.stored_in(records)

    def _checked(self, work: Work) -> CarriesOut:
        refuse_other_ranks()
        shape = as_work(work)
        shape.check(self.problem)
        return shape

    def stop(self) -> None:
        """Ends this program's run once its running trials have ended; to be called from a callback or another thread.

        `request_stop` ends the runs of all programs.
        """
        if self._loop is not None:
            self._loop.stop()

    # ---- for every program that works on the study ------------------------------------------------------------------

    @property
    def budget(self) -> Budget | None:
        """The limits of the study in all, as they were set last; None before the first run."""
        return Budget.in_force(self.history)

    def set_budget(self, budget: Budget) -> None:
        """Changes the limits of the study in all. Every run takes them up within two seconds, on any machine.

        It is an event of the history. Trials that run are finished; a run that has ended does not begin again.
        """
        require_set_budget(budget)
        require_judged_by_one(budget, self.problem)
        self._session.records.set_budget(budget)
        self._wake()

    def request_stop(self) -> None:
        """Asks every run of the study, on any machine, to end once its running trials have ended.

        They start no trial after two seconds. The request stands until a `run` or `verify` is started.
        """
        self._session.records.request_stop()
        self._wake()

    def _wake(self) -> None:
        """Lets a run of this program look at once; those of others look every second."""
        loop = self._loop
        if loop is not None:
            loop.wake()

    # ---- one step at a time -----------------------------------------------------------------------------------------

    @overload
    def ask(self, count: None = None, *, budget: Budget | None = None) -> RunningTrial: ...
    @overload
    def ask(self, count: int, *, budget: Budget | None = None) -> list[RunningTrial]: ...
    def ask(self, count: int | None = None, *, budget: Budget | None = None) -> RunningTrial | list[RunningTrial]:
        """The next trial to run, or a list of up to `count`. Its lease is renewed as long as this process lives.

        There is none once the budget is spent: the one given here or, without it, that of the study.
        """
        if count is not None:
            Whole(least=1).checked(count, what="The count of trials to ask for", advice="Leave it out for one trial.")
        refuse_other_ranks()
        check_budget(budget)
        asked = self._handed_out.ask(
            count or 1, budget, lambda: self._session.strategy.stored_in(self._session.records)
        )
        if count is not None:
            return asked
        if not asked:
            raise NoSuggestion(self._handed_out.why_none())
        return asked[0]

    @explained
    def tell(
        self,
        trial: RunningTrial | Trial | int,
        value: float | Mapping[str, float] | None = None,
        *,
        cost: float | None = None,
        trace: Trace = (),
        metrics: Mapping[str, float] | None = None,
        gradient: Mapping[str, float] | None = None,
        failure: str | None = None,
        pruned: bool = False,
    ) -> Trial:
        """Gives a trial its one result: a value, or `failure="why"`, or `pruned=True`. Several values come by name.

        `trace` holds points of its curve as (fidelity, value), in the order in which they were measured; `cost` is
        that of the whole trial, instead of the seconds since it was asked for. `gradient` has derivatives of the value
        along numeric params, in their own units.
        """
        running = self._handed_out.find(trial)
        outcome = told(
            running,
            value=value,
            cost=cost,
            trace=trace,
            metrics=metrics,
            gradient=gradient,
            failure=failure,
            pruned=pruned,
        )
        closed = self._handed_out.close(running, outcome)
        if self._session.strategy.is_at_hand:
            collect_checkpoints(self._session.records, self.strategy, self.checkpoints, ended=closed)
        return closed

    # ---- results from elsewhere, and wishes --------------------------------------------------------------------------

    def add(
        self,
        params: Params,
        value: float | Mapping[str, float],
        *,
        cost: float | None = None,
        fidelity: Mapping[str, float] | None = None,
        trace: Trace = (),
        tags: Sequence[str] = (),
    ) -> Trial:
        """Adds a result that was obtained elsewhere; without a cost it counts as free. A budget of trials ignores it.

        `trace` holds points of its curve, as for `tell`.
        """
        suggestion = replace(suggested(self.problem, params, fidelity), note={ADDED: True})
        outcome = obtained(self.problem, value, cost=cost, fidelity=suggestion.fidelity, trace=trace)
        return self._session.records.add(suggestion, outcome, tags=read_tags(tags))

    def enqueue(
        self, params: Params, *, fidelity: Mapping[str, float] | None = None, tags: Sequence[str] = ()
    ) -> Trial:
        """Puts a configuration of your own in line: it is run, or handed out, before the strategy is asked again.

        It may have some of the params only; the strategy proposes the others.
        """
        whole = completed(self.history, params, self._session.strategy.imported, self._session.records.randomness)
        return self._session.records.enqueue(suggested(self.problem, whole, fidelity), tags=read_tags(tags))

    def extend(self, space: Space, *, fill: Params | None = None) -> None:
        """Changes the space: wider bounds, more options, new parameters, retired ones. All results are kept.

        It is an event of the history: trials before it were suggested in the old space, and every program that works on
        the study goes on in the new one.

        Args:
            space: the whole new space, in which every trial so far must be possible. A parameter that it leaves out is
                retired: new trials all have one value of it. Trials with another value teach the model, but are no
                longer the best.
            fill: for each new parameter the value that it had in the trials so far, `{"dropout": 0.0}`; for each
                retired one the value that it has from now on.
        """
        require_space(space)
        refuse_retiring_for(self._session.strategy.imported(), self.space, space)
        self._session.records.extend(
            extension_of(self.history, self._session.strategy.imported().shaped(space), fill or {})
        )

    def annotate(
        self, trial: RunningTrial | Trial | int, *, tags: Sequence[str] | None = None, comment: str | None = None
    ) -> None:
        """Replaces a trial's tags or comment."""
        own = None if tags is None else read_tags(tags)
        self._session.records.annotate(number_of(trial), tags=own, comment=read_comment(comment))

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        """The space, the value that is optimised, and the unit in which cost is paid."""
        return self._session.records.problem

    @property
    def space(self) -> Space:
        return self.problem.space

    @property
    def strategy(self) -> Strategy:
        """The strategy in use: the one given, else the one stored, else one chosen by the shape of the problem."""
        return self._session.strategy.get()

    @property
    def history(self) -> History:
        """Everything that happened so far, as one immutable value."""
        return self._session.records.refresh()

    @property
    def trials(self) -> list[Trial]:
        return list(self.history)

    @property
    def ledger(self) -> Ledger:
        """The bill: costs by kind, and savings; with a strategy such as `Grid` also the cost that is to come."""
        history, strategy = self.history, self._session.strategy.get_if_at_hand()
        return Ledger.of(history, to_come=None if strategy is None else strategy.to_come(history))

    @property
    def best(self) -> Best:
        """The strategy's recommendation so far. Raises `NoResult` before any trial is done, unless the study learnt
        from earlier ones: then it is the first of their configurations, `source` names the study it comes from, and
        `value` is None.

        If a model recommends, it is the lowest value predicted at full fidelity among the configurations seen;
        `verify` trains it to the end. If the strategy would have to be imported first, it is the best measured, and
        `is_fallback` says so.

        Under limits it is the best that is expected to keep them; with several objectives the knee of `front`, and
        `pick` chooses otherwise. What it prints says so.
        """
        try:
            return find_best(self._session)
        except NoResult:
            if (found := learned_best(self.history)) is None:
                raise
            return found

    @property
    def front(self) -> "Front":
        """The configurations that none other is expected to beat, with what models expect of every objective and limit.

        Models judge, so that a lucky measurement makes no point of it; with `noise=False` it is as measured. Of one
        objective under limits it is the best that is expected to keep them. Raises `NoResult` before any trial is done.
        """
        from farthing.analysis.front import Front

        return Front.of(self.history)

    def pick(self, **wishes: "float | Bound") -> MeasuredBest:
        """One of the configurations seen, by weights and limits: `study.pick(error=1, latency=0.1)`.

        A weight says what a unit of its objective is worth: the least weighted sum of the expected values is picked, in
        which those to maximise count with a minus. `study.pick(latency=ft.AtMost(5))` is the best of the other
        objective among those that are expected to keep the limit, or the knee where several others are left.
        """
        from farthing.analysis.front import picked

        return best_chosen(self.history, picked(self.history, wishes))

    @property
    def checkpoints(self) -> Checkpoints:
        """The study's files: checkpoints and logs. Nothing is written before a trial runs."""
        return self._session.files.checkpoints

    @overload
    def export(self, path: None = None, *, format: ExportFormat | None = None) -> str: ...
    @overload
    def export(self, path: str | Path | TextIO, *, format: ExportFormat | None = None) -> None: ...
    def export(self, path: str | Path | TextIO | None = None, *, format: ExportFormat | None = None) -> str | None:
        """The trials as CSV (a row a trial) or JSON (everything).

        They are written to `path`, whose ending decides the format, or to a file that is open; one by one, however many
        there are. Without either, the text is returned.
        """
        return export.export(self.history, path, format=format)

    def to_pandas(self) -> "pd.DataFrame":
        """A data frame with a row for each trial: params, fidelities, metrics, costs, times and predictions."""
        return export.to_pandas(self.history)

    def top(self, count: int = 10) -> Top:
        """The best runs: a list of trials that prints as a table. What went furthest comes first, then the best."""
        return Top.of(self.history, count)

    def outlook(self, cost: float | None = None) -> "Outlook":
        """The improvement expected from another `cost`, with an interval; by default the cost of ten configurations.

        It is a model of the study that speaks, whatever the strategy; `NoResult` is raised before there are five
        configurations with a result. `Budget(worth=…)` stops a run by it.
        """
        if cost is not None:
            Number(above=0.0).checked(
                cost, what="The cost of an outlook", advice="Leave it out for ten configurations."
            )
        from farthing.analysis.outlook import Prospects

        return Prospects.of(self.history).outlook(cost)

    def diagnose(self, of: str | None = None) -> "Diagnosis":
        """Fits a model to the trials: which parameters matter, and how far to trust the answer.

        With several objectives it is `of` one of them: `study.diagnose("latency")`.
        """
        from farthing.analysis.diagnosis import diagnose
        from farthing.analysis.one_value import by_value

        return diagnose(by_value(self.history, of, example=f"study.diagnose({self.problem.value!r})"))

    def importance(self, of: str | None = None) -> "dict[str, Share]":
        """Which parameters matter: each one's share of the variance over the space, with its standard deviation.

        By a model of the full trainings; if there are too few, by a model of the learning curves. With several
        objectives it is `of` one of them.
        """
        from farthing.analysis.diagnosis import importance_of
        from farthing.analysis.one_value import by_value

        return importance_of(by_value(self.history, of, example=f"study.importance({self.problem.value!r})"))

    def plot(self, kind: "PlotKind" = "all", *, of: str | None = None) -> "Figure":
        """A picture of the study, as a matplotlib figure: `study.plot("curves").savefig("curves.png")`.

        Kinds: `progress` is the best value against the cost; `curves` the learning curves; `fidelities` how far
        each configuration was trained; `stages` the cost of each stage of a pipeline and its savings; `params`
        the value against each parameter; `model` a model of the study, with several objectives `of` one of them;
        `front` the front of several objectives, and how limits are kept; `all` the kinds that suit the study.
        Needs the extra `farthing[plot]`.
        """
        from farthing.plots import plot

        return plot(self, kind, of=of)

    def report(self, path: str | Path | None = None) -> "Report":
        """The study as one HTML page with its charts, which asks the network for nothing.

        It is written to `path` if there is one. A notebook shows what is returned inline.
        """
        from farthing.dashboard.report import report

        made = report(self._session.records.storage, self.name)
        if path is not None:
            Path(path).write_text(made.text, encoding="utf-8")
        return made

    @property
    def lineage(self) -> Lineage:
        """The members of a population, or the runs of other strategies, with the donor of each copy."""
        return Lineage.of(self.history)

    def close(self) -> None:
        """Closes the storage, unless it was given open: whoever opens it closes it.

        Trials that were asked for and not told keep their lease until it ends.
        """
        self._session.records.let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # a checker that sees it takes every misspelt name for an attribute

        def __getattr__(self, name):
            raise no_attribute("a study", name)

    def __repr__(self) -> str:
        problem = self.problem
        aim = f"{problem.direction}={problem.value!r}" if problem.is_simple else problem.aim
        return f"Study({self.name!r}, {aim}, {len(self.history)} trials)"

    def __str__(self) -> str:
        return study_text(self._session)

    def _repr_html_(self) -> str:
        return study_html(self._session)


def run_as_worker(
    study: Study,
    work: Work,
    *,
    budget: Budget | None,
    workers: int,
    limits: Limits,
    resources: Resources | None = None,
    prices: Mapping[str, float] | None = None,
    label: str | None = None,
    progress: bool | None = None,
) -> Stopped:
    """One of many that work on the study, as `farthing worker` does: one of them suggests for all.

    Unlike `run`, it ends at once if the study was asked to stop. `prices` are those of this worker instead of the
    study's, and `label` is what it is called on the bill.
    """
    shape, strategy = study._taken_up(work, budget, harmless=False)
    runner = study._executor(
        shape,
        "processes",
        workers=workers,
        devices=None,
        resources=resources,
        time_limit=limits.time_limit,
        prices=prices,
        label=label,
    )
    if budget is not None:
        study._session.records.set_budget(budget, given=True)
    return study._loop_through(strategy, runner, limits, progress=progress, shares=True)


def ask_within(study: Study, count: int) -> list[RunningTrial]:
    """As `Study.ask`, but only what the study's budget pays for, also of the trials that wait."""
    session = study._session
    return study._handed_out.ask_within(count, lambda: session.strategy.stored_in(session.records))


# ---- a whole study in one line ---------------------------------------------------------------------------------------


def minimize(
    work: Work,
    space: Space,
    *,
    budget: Budget | None = None,
    value: str | Sequence[str] = "value",
    **settings: Unpack[WholeSettings],
) -> Study:
    """Runs a whole study in one line and returns it; `settings` go to `Study` and to `Study.run`.

    `value` names what the work returns, or several: `value=["error", "latency"]`.
    """
    of_study, of_run = _split(settings)
    return _run_whole(Study(space, minimize=value, **of_study), work, budget, of_run)


def maximize(
    work: Work,
    space: Space,
    *,
    budget: Budget | None = None,
    value: str | Sequence[str] = "value",
    **settings: Unpack[WholeSettings],
) -> Study:
    """Like `minimize`, for a value that should be large."""
    of_study, of_run = _split(settings)
    return _run_whole(Study(space, maximize=value, **of_study), work, budget, of_run)


def _split(settings: WholeSettings) -> tuple[StudySettings, RunSettings]:
    refuse_unknown_arguments(settings, list(WholeSettings.__annotations__), what="minimize")
    given = cast(dict[str, Any], settings)
    of_study, of_run = (
        {name: value for name, value in given.items() if name in known.__annotations__}
        for known in (StudySettings, RunSettings)
    )
    return cast(StudySettings, of_study), cast(RunSettings, of_run)


def _run_whole(study: Study, work: Work, budget: Budget | None, settings: RunSettings) -> Study:
    study.run(work, budget=budget, **settings)
    return study
