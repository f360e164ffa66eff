"""The study: what a user holds."""

import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, overload

from farthing.costs import Budget, Clock, Ledger, Remaining, SystemClock
from farthing.errors import InvalidArgument, NoResult, NoSuggestion
from farthing.execution import (
    CarriesOut,
    Checkpoints,
    Executor,
    InlineExecutor,
    ProcessExecutor,
    RunningTrial,
    Work,
    as_work,
)
from farthing.execution.executor import check_workers
from farthing.fields import Number, Several, Text, Whole
from farthing.space import Space
from farthing.storage import Storage, StudyRecord, open_storage
from farthing.strategies import Strategy, as_strategy, best_by_value, strategy_from_json
from farthing.study import results
from farthing.study.asking import hand_out, number_of, told
from farthing.study.choosing import default_strategy, require_budget
from farthing.study.collecting import collect_checkpoints, log_lost_prefixes
from farthing.study.display import Callbacks, Progress, read_callbacks, say_how_to_resume, shows_progress
from farthing.study.folder import (
    FOLDER,
    find_folder,
    folder_path,
    mark_for,
    new_identity,
    temporary_folder,
)
from farthing.study.lineage import Lineage
from farthing.study.loop import Limits, Loop, Observer, check_budget, check_retries
from farthing.study.opening import create_or_continue, require_space, value_name
from farthing.study.records import Records, Taken, is_waiting
from farthing.study.results import Best
from farthing.study.schedule import schedule_along, schedule_of
from farthing.study.settings import Callback, ExecutorName, ExportFormat, OnInterrupt, StorageLike
from farthing.study.stopping import Stopped, StopReason, check_on_interrupt
from farthing.study.stored_strategy import is_at_hand, name_of, strategy_at_hand
from farthing.study.verifying import require_covered, require_done, verification, verified
from farthing.study.views import study_html, study_text
from farthing.trials import (
    Attempt,
    DeclaredCost,
    History,
    Json,
    Measurement,
    Outcome,
    Params,
    Problem,
    State,
    Suggestion,
    Trial,
)
from farthing.trials.measurement import cost_amount, finite_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from farthing.plots import PlotKind
    from farthing.study.diagnosing import Diagnosis

log = logging.getLogger("farthing")


class Study:
    """Tunes one thing: suggests trials, runs or hands them out, and keeps their results and costs.

    A study of an existing name in the same storage is continued; with another space or value it is refused. A `with`
    block closes it at its end.

    Args:
        minimize, maximize: the name of the value; give one of the two.
        strategy: the strategy, or its name; None chooses by the shape of the space at the first suggestion.
        storage: None keeps everything in memory; `sqlite:///file.db` or `postgresql://…` keeps it for good.
        cost: a function of (params, fidelity) that returns the cost of a run from the start to that fidelity. Without
            it, cost is the measured seconds of the work, or the amounts that trials charge.
        cost_unit: the unit of cost. With another unit than seconds nothing is measured: charge, tell or declare it.
        folder: the place for checkpoints and logs, in a folder of the study's name; by default beside the database.
        lease: seconds after which a trial whose owner no longer answers is offered again.
        lost_retries: the number of times a trial may be lost in that way before it is given up.
    """

    def __init__(
        self,
        space: Space,
        *,
        minimize: str | None = None,
        maximize: str | None = None,
        strategy: Strategy | str | None = None,
        storage: StorageLike | None = None,
        name: str = "study",
        seed: int | None = None,
        cost: DeclaredCost | None = None,
        cost_unit: str = "seconds",
        folder: str | Path | None = None,
        lease: float = 60.0,
        lost_retries: int = 3,
        clock: Clock | None = None,
    ) -> None:
        require_space(space)
        strategy = None if strategy is None else as_strategy(strategy)
        problem = Problem(
            space if strategy is None else strategy.shaped(space),
            value=value_name(minimize, maximize),
            minimize=minimize is not None,
            seed=0 if seed is None else seed,
            cost_unit=cost_unit,
            measures_cost=cost is None and cost_unit == "seconds",
            declared_cost=cost,
        )
        place = open_storage(storage, patience=lease)
        record = create_or_continue(place, StudyRecord(name, problem, settings=new_identity()), seed=seed)
        self._join(
            place,
            record,
            strategy=strategy,
            cost=cost,
            folder=folder,
            lease=lease,
            lost_retries=lost_retries,
            clock=clock,
        )

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
    ) -> "Study":
        """The study of that name, as it was stored: no space needs to be given again.

        Reading it imports nothing that the database names. A strategy of your own is imported when the study runs or is
        asked for a trial; with `import_strategy` at once, so that `best` is its recommendation.
        """
        study = cls.__new__(cls)
        place = open_storage(storage, patience=lease)
        record = place.load_study(name)
        study._join(
            place, record, strategy=strategy, cost=cost, folder=None, lease=lease, lost_retries=lost_retries, clock=None
        )
        if import_strategy:
            study._import_strategy()
        return study

    def _join(
        self,
        storage: Storage,
        record: StudyRecord,
        *,
        strategy: Strategy | str | None,
        cost: DeclaredCost | None,
        folder: str | Path | None,
        lease: float,
        lost_retries: int,
        clock: Clock | None,
    ) -> None:
        self.name = record.name
        self.problem = replace(record.problem, declared_cost=cost)
        self._strategy = None if strategy is None else as_strategy(strategy)
        self._stored_strategy = record.strategy
        self._settings = dict(record.settings)
        self._mark = mark_for(record)
        self._clock = clock or SystemClock()
        known = replace(record, problem=self.problem)
        self._records = Records(storage, known, lease=lease, retries=lost_retries, clock=self._clock)
        Number(above=0.0).checked(lease, what="A lease, in seconds,", advice="60 suits most work.")
        check_retries(lost_retries, name="lost_retries")
        self._folder = None if folder is None else folder_path(folder)
        self._checkpoints: Checkpoints | None = None
        self._asked: dict[int, RunningTrial] = {}
        self._loop: Loop | None = None

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        work: Work,
        *,
        budget: Budget | None = None,
        workers: int = 1,
        executor: ExecutorName | Executor = "processes",
        time_limit: float | None = None,
        retries: int | None = None,
        devices: Sequence[str] | None = None,
        callbacks: Iterable[Callback] = (),
        progress: bool | None = None,
        on_interrupt: OnInterrupt = "raise",
    ) -> Stopped:
        """Runs trials of `work` until the budget, which counts all runs of the study, is spent; returns why it ended.

        It waits for trials that other programs run, and not for those that `ask` has given to this one.

        Args:
            budget: the limits of the study in all; not needed if the strategy has an end of its own, as `PB2` has.
            executor: "processes" gives each worker a process of its own; "inline" runs the work here, for debugging.
            time_limit: seconds after which a trial, with every process it started, is ended as failed.
            retries: the number of times a failed trial is tried again, for any reason. By default a trial is tried
                again once when the system killed its worker (a signal, no memory, pre-emption), and never after an
                exception or the time limit; in a population once after any failure.
            devices: for example `["cuda:0", "cuda:1"]`, given to the workers in turn.
            callbacks: each is called as `callback(study, trial)` when a trial has ended; it may call `study.stop()`.
            progress: a live display; None shows it when standard error is a terminal.
            on_interrupt: Ctrl-C gives running trials back, and then raises `KeyboardInterrupt`; "return" ends the run
                with the reason `StopReason.INTERRUPTED` instead.
        """
        check_on_interrupt(on_interrupt)
        self._import_strategy()
        limits = Limits.of(budget, time_limit, retries=retries, strategy=self.strategy)
        called = read_callbacks(callbacks)
        shape = as_work(work)
        shape.check(self.problem)
        require_budget(budget, self.strategy)
        log_lost_prefixes(self._records, shape, self.checkpoints)
        strategy = self._decider()
        runner = self._executor(shape, executor, workers=workers, devices=devices, time_limit=time_limit)
        try:
            return self._loop_through(strategy, runner, limits, callbacks=called, progress=progress)
        except KeyboardInterrupt:
            say_how_to_resume(self._records)
            if on_interrupt == "raise":
                raise
            return Stopped(StopReason.INTERRUPTED, "interrupted")

    def verify(
        self,
        work: Work,
        *,
        budget: Budget | None = None,
        executor: ExecutorName | Executor = "processes",
        time_limit: float | None = None,
        retries: int | None = None,
        devices: Sequence[str] | None = None,
        progress: bool | None = None,
    ) -> Trial:
        """Trains the recommendation of `study.best` to full fidelity and returns that trial, with value and checkpoint.

        Continues from the configuration's own checkpoint if there is one, and is recorded like any other trial.
        If the recommendation is already trained to the end, returns that trial and runs nothing. Other
        waiting trials are left alone. The arguments are those of `run`; without a budget there is no limit.
        """
        self._import_strategy()
        params, history = self.best.params, self.history
        found = verified(history, params)
        if found is not None and found.state is State.DONE:
            return found
        shape = as_work(work)
        shape.check(self.problem)
        limits = Limits.of(budget, time_limit, retries=retries, strategy=self.strategy)
        suggestion = verification(history, params)
        if budget is not None and found is None:
            left = budget.remaining(history, seconds=self._records.seconds_run())
            require_covered(suggestion, left, in_seconds=self.problem.cost_unit == "seconds")
        runner = self._executor(shape, executor, workers=1, devices=devices, time_limit=time_limit)
        number = (found or self._records.enqueue(suggestion, tags=["verification"])).number
        self._loop_through(self.strategy, runner, limits, progress=progress, only=number)
        return require_done(self.history[number])

    def _loop_through(
        self,
        strategy: Strategy,
        executor: Executor,
        limits: Limits,
        *,
        callbacks: Iterable[Callback] = (),
        progress: bool | None,
        only: int | None = None,
    ) -> Stopped:
        display = Progress(self, limits.budget) if shows_progress(progress) else None
        observers: list[Observer] = [Callbacks(self, tuple(callbacks)), *([display] if display else [])]
        self._loop = Loop(
            self._records,
            strategy,
            executor,
            limits=limits,
            checkpoints=self.checkpoints,
            clock=self._clock,
            observers=observers,
            only=only,
        )
        try:
            with display.showing(self._loop) if display else nullcontext():
                return self._loop.run()
        finally:
            self._loop = None

    def _executor(
        self,
        work: CarriesOut,
        executor: ExecutorName | Executor,
        *,
        workers: int,
        devices: Sequence[str] | None,
        time_limit: float | None,
    ) -> Executor:
        if not isinstance(executor, str) and callable(getattr(executor, "submit", None)):
            return executor
        check_workers(workers)
        if devices is not None:
            Several(Text()).checked(devices, what="devices", advice="Write for example devices=['cuda:0'].")
        files = self._files_to_write()
        files.claim()
        if executor == "processes":
            return ProcessExecutor(
                work, self.problem, workers=workers, checkpoints=files, devices=devices, clock=self._clock
            )
        if executor == "inline":
            if workers != 1 or time_limit is not None:
                raise InvalidArgument(
                    "The inline executor has one worker, which cannot be stopped, got "
                    f"workers={workers} and time_limit={time_limit}. Use executor='processes' for either."
                )
            return InlineExecutor(work, self.problem, checkpoints=files, clock=self._clock)
        raise InvalidArgument(
            f"An executor must be 'processes' or 'inline', got {executor!r}. Leave it out for processes."
        )

    def stop(self) -> None:
        """Ends a run once its running trials have ended; to be called from a callback or another thread."""
        if self._loop is not None:
            self._loop.stop()

    # ---- one step at a time -----------------------------------------------------------------------------------------

    @overload
    def ask(self, count: None = None, *, budget: Budget | None = None) -> RunningTrial: ...
    @overload
    def ask(self, count: int, *, budget: Budget | None = None) -> list[RunningTrial]: ...
    def ask(self, count: int | None = None, *, budget: Budget | None = None) -> RunningTrial | list[RunningTrial]:
        """The next trial to run, or a list of up to `count`. Its lease is renewed as long as this process lives."""
        if count is not None:
            Whole(least=1).checked(count, what="The count of trials to ask for", advice="Leave it out for one trial.")
        check_budget(budget)
        taken: Taken = {}
        try:
            asked = [self._hand_out(trial) for trial in self._open(count or 1, budget, taken)]
        except BaseException:
            self._records.give_back(taken)
            raise
        if count is not None:
            return asked
        if not asked:
            raise NoSuggestion(self._why_none())
        return asked[0]

    def _open(self, count: int, budget: Budget | None, taken: Taken) -> list[Trial]:
        self._records.sweep()
        history = self._records.refresh()
        claimed = self._records.claim(count, taken=taken) if is_waiting(history) else []
        if len(claimed) == count:
            return claimed
        if claimed:
            self._records.refresh()

        def plan(history: History) -> tuple[Remaining, int]:
            left = Remaining() if budget is None else budget.remaining(history, seconds=0.0)
            return left, count - len(claimed)

        return [*claimed, *self._records.open(self._decider(), plan, taken=taken).trials]

    def _hand_out(self, trial: Trial) -> RunningTrial:
        self._asked[trial.number] = hand_out(trial, self._records, self._files_to_write(), clock=self._clock)
        return self._asked[trial.number]

    def _why_none(self) -> str:
        if self._records.refresh().in_flight:
            return (
                "The strategy waits for trials in flight, so there is none to ask for. Tell a result, then ask again."
            )
        return "The strategy or the budget has no trial left to ask for. See `study.best`, or give a larger budget."

    def tell(
        self,
        trial: RunningTrial | Trial | int,
        value: float | None = None,
        *,
        cost: float | None = None,
        trace: Iterable[tuple[Mapping[str, float], float]] = (),
        metrics: Mapping[str, float] | None = None,
        gradient: Mapping[str, float] | None = None,
        failure: str | None = None,
        pruned: bool = False,
    ) -> Trial:
        """Gives a trial its one result: a value, or `failure="why"`, or `pruned=True`.

        `trace` holds points of its curve as (fidelity, value), in the order in which they were measured; `cost` is
        that of the whole trial, instead of the seconds since it was asked for. `gradient` has derivatives of the value
        along numeric params, in their own units.
        """
        number = number_of(trial)
        running = trial if isinstance(trial, RunningTrial) else self._handed_out(number)
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
        closed = self._records.close(Attempt(number, running.attempt), outcome)
        self._asked.pop(number, None)
        if self._has_strategy:
            collect_checkpoints(self._records, self.strategy, self.checkpoints, ended=closed)
        return closed

    def _handed_out(self, number: int) -> RunningTrial:
        """The trial that this or another process handed out under that number."""
        if number in self._asked:
            return self._asked[number]
        trial = self._records.refresh()[number]
        running = hand_out(trial, self._records, self._files_to_write(), clock=self._clock)
        if self.problem.measures_cost:
            running.charge(self._records.now() - max([trial.opened_at, *(point.time for point in trial.measurements)]))
        return running

    # ---- results from elsewhere, and wishes --------------------------------------------------------------------------

    def add(
        self,
        params: Params,
        value: float,
        *,
        cost: float | None = None,
        fidelity: Mapping[str, float] | None = None,
        tags: Sequence[str] = (),
    ) -> Trial:
        """Adds a result that was obtained elsewhere; without a cost it counts as free."""
        suggestion = self._suggestion(params, fidelity)
        measurement = Measurement(
            value=finite_number(value, what=f"The value {self.problem.value!r}"),
            cost={} if cost is None else {"training": cost_amount(cost)},
            charged=cost is not None,
            fidelity=suggestion.fidelity,
        )
        outcome = Outcome(State.DONE, value=measurement.value, measurements=[measurement])
        return self._records.add(suggestion, outcome, tags=tags)

    def enqueue(
        self, params: Params, *, fidelity: Mapping[str, float] | None = None, tags: Sequence[str] = ()
    ) -> Trial:
        """Puts a configuration of your own in line: it is run, or handed out, before the strategy is asked again."""
        return self._records.enqueue(self._suggestion(params, fidelity), tags=tags)

    def annotate(
        self, trial: RunningTrial | Trial | int, *, tags: Sequence[str] | None = None, comment: str | None = None
    ) -> None:
        """Replaces a trial's tags or comment."""
        self._records.annotate(number_of(trial), tags=tags, comment=comment)

    def _suggestion(self, params: Params, fidelity: Mapping[str, float] | None) -> Suggestion:
        space = self.problem.space
        return Suggestion(space.check(params), space.check_fidelity(fidelity))

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def space(self) -> Space:
        return self.problem.space

    @property
    def strategy(self) -> Strategy:
        """The strategy in use: the one given, else the one stored, else one chosen by the shape of the problem."""
        if self._strategy is None:
            stored = self._stored_strategy
            self._strategy = strategy_at_hand(stored) if stored else default_strategy(self.problem)
        return self._strategy

    @property
    def _has_strategy(self) -> bool:
        """Whether the strategy can be used without importing a module that only the database names."""
        return self._strategy is not None or not self._stored_strategy or is_at_hand(self._stored_strategy)

    @property
    def _strategy_json(self) -> dict[str, Json]:
        """The strategy's name and arguments; nothing is imported for them."""
        return self.strategy.to_json() if self._has_strategy else dict(self._stored_strategy)

    def _import_strategy(self) -> None:
        """Imports the strategy that the database names, and says so."""
        if not self._has_strategy:
            log.info("importing the strategy %s, which the study %r names", name_of(self._stored_strategy), self.name)
            self._strategy = strategy_from_json(self._stored_strategy)

    def _decider(self) -> Strategy:
        """The strategy, stored with the study from its first decision on."""
        self._import_strategy()
        form = self.strategy.to_json()
        if form != self._stored_strategy:
            self._records.store(strategy=form)
            self._stored_strategy = form
        return self.strategy

    @property
    def history(self) -> History:
        """Everything that happened so far, as one immutable value."""
        return self._records.refresh()

    @property
    def trials(self) -> list[Trial]:
        return list(self.history)

    @property
    def ledger(self) -> Ledger:
        """The bill: costs by kind, and savings."""
        return Ledger.of(self.history)

    @property
    def best(self) -> Best:
        """The strategy's recommendation so far. Raises `NoResult` before any trial is done.

        If a model recommends, it is the lowest value predicted at full fidelity among the configurations seen;
        `verify` trains it to the end. If the strategy would have to be imported first, it is the best measured, and
        `is_fallback` says so.
        """
        return self._best_by_search() or self._best_by_history()

    def _best_by_search(self) -> Best | None:
        """The recommendation by measured value, found by the database if the history is not read anyway."""
        is_by_value = not self._has_strategy or type(self.strategy).recommend is Strategy.recommend
        found = self._records.leaders() if is_by_value else None
        if found is None:
            return None
        best, schedule = found.lineage[-1], schedule_along(self.problem, found.lineage)
        assert best.value is not None, "only trials with a value are looked for"
        return Best(
            best.params, best.value, best, measured=found.full, schedule=schedule, is_fallback=not self._has_strategy
        )

    def _best_by_history(self) -> Best:
        history = self.history
        found = self.strategy.recommend(history) if self._has_strategy else best_by_value(history)
        if found is None or found.trial.value is None:
            raise NoResult(f"The best trial is one that is done, got none among {len(history)} trials. Run some first.")
        return Best(
            found.params,
            found.trial.value,
            found.trial,
            found.predicted,
            results.best_measured(history),
            schedule_of(history, found.trial),
            found.best_ever,
            is_fallback=not self._has_strategy,
        )

    @property
    def checkpoints(self) -> Checkpoints:
        """The study's files: checkpoints and logs. Nothing is written before a trial runs."""
        if self._checkpoints is None:
            self._checkpoints = self._find_files()
        return self._checkpoints

    def _remember(self, **settings: Json) -> None:
        """Stores settings with the study, for the command line and the integrations to find at a resume."""
        self._settings |= settings
        self._records.store(settings=settings)

    @overload
    def export(self, path: None = None, *, format: ExportFormat | None = None) -> str: ...
    @overload
    def export(self, path: str | Path | TextIO, *, format: ExportFormat | None = None) -> None: ...
    def export(self, path: str | Path | TextIO | None = None, *, format: ExportFormat | None = None) -> str | None:
        """The trials as CSV (a row a trial) or JSON (everything).

        They are written to `path`, whose ending decides the format, or to a file that is open; one by one, however many
        there are. Without either, the text is returned.
        """
        history = self.history
        if path is None:
            text = io.StringIO()
            results.export(history, format or "csv", text)
            return text.getvalue()
        if not isinstance(path, (str, Path)):
            results.export(history, format or "csv", path)
            return None
        form = results.known_format(format or Path(path).suffix.lstrip("."))
        with open(path, "w", encoding="utf-8") as file:
            results.export(history, form, file)
        return None

    def to_pandas(self) -> "pd.DataFrame":
        """A data frame with a row for each trial."""
        return results.to_pandas(self.history)

    def diagnose(self) -> "Diagnosis":
        """Fits a model to the trials: which parameters matter, and how far to trust the answer."""
        from farthing.study.diagnosing import diagnose

        return diagnose(self)

    def plot(self, kind: "PlotKind" = "all") -> "Figure":
        """A picture of the study, as a matplotlib figure: `study.plot("curves").savefig("curves.png")`.

        Kinds: `progress` is the best value against the cost; `curves` the learning curves; `fidelities` how far
        each configuration was trained; `stages` the cost of each stage of a pipeline and its savings; `params`
        the value against each parameter; `model` a model of the study; `all` the kinds that suit the study.
        Needs the extra `farthing[plot]`.
        """
        from farthing.plots import plot

        return plot(self, kind)

    @property
    def lineage(self) -> Lineage:
        """The members of a population, or the runs of other strategies, with the donor of each copy."""
        return Lineage.of(self.history)

    def close(self) -> None:
        """Closes the storage. Trials that were asked for and not told keep their lease until it ends."""
        self._records.close_storage()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.problem.direction}={self.problem.value!r}, {len(self.history)} trials)"

    def __str__(self) -> str:
        return study_text(self)

    def _repr_html_(self) -> str:
        return study_html(self)

    def _find_files(self) -> Checkpoints:
        if self._is_temporary:
            return Checkpoints(temporary_folder(self))
        folder = find_folder(
            self._mark,
            settings=self._settings,
            place=self._folder,
            beside=self._records.folder,
            is_in_memory=self._records.is_in_memory,
        )
        return Checkpoints(folder, mark=self._mark)

    @property
    def _is_temporary(self) -> bool:
        """Whether the files cannot be found again, so that they are deleted with this study."""
        return self._folder is None and self._records.is_in_memory and FOLDER not in self._settings

    def _files_to_write(self) -> Checkpoints:
        """The study's files for a trial that is about to run; from then on the study remembers where they are."""
        files = self.checkpoints
        if self._settings.get(FOLDER) != str(files.root) and not self._is_temporary:
            self._remember(**{FOLDER: str(files.root)})
        return files
