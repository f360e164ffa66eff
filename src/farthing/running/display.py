"""A live display of a run, and the words at its end."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from farthing.analysis.text import short_params, short_point
from farthing.errors import InvalidArgument
from farthing.fields import Flag
from farthing.session import Session
from farthing.trials import Measurement, State, Trial
from farthing.trials.objectives import MeasuredFront
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.running.loop import Loop, Observer
    from farthing.session.records import Records


Callback = TypeVar("Callback", bound=Callable[..., object])

SECONDS_BETWEEN_LINES = 60.0
SECONDS_BETWEEN_PICTURES = 0.5


def check_progress(wanted: bool | None) -> None:
    if wanted is not None:
        Flag().checked(wanted, what="progress", advice="Leave it out to see it in a terminal or a notebook.")


def display_for(session: Session, *, wanted: bool | None) -> "Observer | None":
    """In a notebook a bar, in a terminal a live picture, elsewhere a line now and then; False is none."""
    if wanted is False:
        return None
    if is_notebook():
        return NotebookProgress(session)
    return LiveProgress(session) if wanted or sys.stderr.isatty() else ProgressLines(session)


def is_notebook() -> bool:
    """Whether this runs in a Jupyter kernel; asked of IPython only if the program has imported it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and getattr(shell, "kernel", None) is not None


def read_callbacks(given: Iterable[Callback]) -> tuple[Callback, ...]:
    """The callbacks, once it is certain that they can be called."""
    callbacks = tuple(given) if isinstance(given, Iterable) else None
    if callbacks is None or not all(map(callable, callbacks)):
        raise InvalidArgument(
            f"callbacks must be a list of functions of (study, trial), got {shown(given)}. Write callbacks=[function]."
        )
    return callbacks


class Callbacks:
    """The user's callbacks, as an observer."""

    def __init__(self, study: object, callbacks: Sequence[Callable[[Any, Trial], object]]) -> None:
        self._study = study
        self._callbacks = callbacks

    @contextmanager
    def watching(self, loop: "Loop") -> Iterator[None]:
        yield

    def on_start(self, trial: Trial) -> None: ...

    def on_report(self, trial: Trial, measurement: Measurement) -> None: ...

    def on_end(self, trial: Trial) -> None:
        for callback in self._callbacks:
            callback(self._study, trial)


class RunStanding:
    """How a run stands: the trials by state, the best value, what each worker does."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._latest: dict[int, tuple[Trial, Measurement | None]] = {}
        self._best: Trial | None = None
        self._front = MeasuredFront()
        self._counts = dict.fromkeys(State, 0)

    def on_start(self, trial: Trial) -> None:
        self._latest[trial.number] = (trial, None)

    def on_report(self, trial: Trial, measurement: Measurement) -> None:
        self._latest[trial.number] = (trial, measurement)

    def on_end(self, trial: Trial) -> None:
        self._latest.pop(trial.number, None)
        self._count(trial)

    def _count_all(self) -> None:
        for trial in self._session.records.refresh():
            self._count(trial)

    def _count(self, trial: Trial) -> None:
        self._counts[trial.state] += 1
        if not self._session.records.problem.is_simple:
            self._front = self._front.after(trial, self._session.records.problem)
            return
        better = self._session.records.problem.better
        if trial.state is State.DONE and trial.value is not None:
            is_first = self._best is None or self._best.value is None
            if is_first or better(trial.value, self._best.value):  # type: ignore[union-attr, arg-type]
                self._best = trial

    def _best_text(self) -> str:
        problem = self._session.records.problem
        if not problem.is_simple:
            return self._front.summary(problem) or "nothing keeps the limits yet"
        return f"best {self._session.records.problem.value} {self._best.value:.6g}" if self._best else "no result yet"

    def _parts(self, loop: "Loop") -> list[str]:
        counts = ", ".join(f"{count} {state}" for state, count in self._counts.items() if count)
        cost = f"{loop.history.cost:.4g} {self._session.records.problem.cost_unit} spent"
        going_on = [] if loop.outlook is None else [str(loop.outlook)]
        return [self._best_text(), counts or "starting", cost, *going_on]

    def _limits(self, loop: "Loop") -> list[tuple[str, float, float]]:
        """For each limit of the budget its name, what is spent of it, and the limit."""
        history = loop.history
        budget, left = loop.budget(history), loop.remaining(history)
        limits = budget.amounts if budget else {}
        return [(name, min(max(limit - getattr(left, name), 0.0), limit), limit) for name, limit in limits.items()]


class LiveProgress(RunStanding):
    """A live picture in a terminal, redrawn four times a second."""

    @contextmanager
    def watching(self, loop: "Loop") -> Iterator[None]:
        from rich.console import Console
        from rich.live import Live

        self._count_all()
        console = Console(stderr=True)
        with Live(console=console, refresh_per_second=4, get_renderable=lambda: self._render(loop), transient=True):
            yield
        console.print(self._summary(loop))

    def _render(self, loop: "Loop") -> Any:
        from rich.console import Group
        from rich.table import Table

        workers, problem = Table.grid(padding=(0, 2)), self._session.records.problem
        for number, (trial, point) in sorted(self._latest.copy().items()):
            workers.add_row(f"[cyan]trial {number}[/]", short_params(trial.params), short_point(trial, point, problem))
        return Group(self._summary(loop), self._bars(loop), workers)

    def _summary(self, loop: "Loop") -> str:
        return " · ".join([f"[bold]{self._session.name}[/]", *self._parts(loop)])

    def _bars(self, loop: "Loop") -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        bars = Table.grid(padding=(0, 2))
        for name, spent, limit in self._limits(loop):
            bars.add_row(
                f"{name} budget", ProgressBar(total=limit, completed=spent, width=40), f"{spent:.4g} of {limit:g}"
            )
        return bars


class NotebookProgress(RunStanding):
    """A bar for each limit and a line for each worker, in the output of the cell; plain HTML, without widgets."""

    @contextmanager
    def watching(self, loop: "Loop") -> Iterator[None]:
        self._count_all()
        self._loop, self._drawn_at = loop, time.monotonic()
        self._shown: Any = import_module("IPython.display")  # a notebook has it; there are no types of it
        self._handle = self._shown.display(self._shown.HTML(self.html(loop)), display_id=True)
        try:
            yield
        finally:
            self._handle.update(self._shown.HTML(self.html(loop)))

    def on_report(self, trial: Trial, measurement: Measurement) -> None:
        super().on_report(trial, measurement)
        self._draw()

    def on_end(self, trial: Trial) -> None:
        super().on_end(trial)
        self._draw()

    def _draw(self) -> None:
        if time.monotonic() - self._drawn_at >= SECONDS_BETWEEN_PICTURES:
            self._drawn_at = time.monotonic()
            self._handle.update(self._shown.HTML(self.html(self._loop)))

    def html(self, loop: "Loop") -> str:
        title = " · ".join([f"<b>{escape(self._session.name)}</b>", *map(escape, self._parts(loop))])
        bars = "".join(
            f"<div>{name} <progress value='{spent:g}' max='{limit:g}'></progress> {spent:.4g} of {limit:g}</div>"
            for name, spent, limit in self._limits(loop)
        )
        problem = self._session.records.problem
        workers = "".join(
            f"<div>trial {number}: {escape(f'{short_params(trial.params)} {short_point(trial, point, problem)}')}</div>"
            for number, (trial, point) in sorted(self._latest.items())
        )
        return f"<div>{title}</div>{bars}{workers}"


class ProgressLines(RunStanding):
    """A line on standard error once a minute, for logs of batch jobs; nothing at all in a run of seconds."""

    @contextmanager
    def watching(self, loop: "Loop") -> Iterator[None]:
        self._loop, self._said_at = loop, time.monotonic()
        yield

    def on_start(self, trial: Trial) -> None: ...

    def on_report(self, trial: Trial, measurement: Measurement) -> None:
        self._say()

    def on_end(self, trial: Trial) -> None:
        self._say()

    def _say(self) -> None:
        if time.monotonic() - self._said_at < SECONDS_BETWEEN_LINES:
            return
        self._said_at = time.monotonic()
        self._counts, self._best, self._front = dict.fromkeys(State, 0), None, MeasuredFront()
        self._count_all()
        limits = [f"{spent:.4g} of {limit:g} {name}" for name, spent, limit in self._limits(self._loop)]
        sys.stderr.write(f"{self._session.name}: {', '.join([*self._parts(self._loop), *limits])}\n")


def say_how_to_resume(records: "Records") -> None:
    """Called when a run was interrupted: nothing is lost, and this text says how to continue."""
    history = records.refresh()
    waiting = sum(trial.state is State.PENDING for trial in history)
    again = f" {waiting} unfinished: they were given back and come first." if waiting else ""
    how = (
        "Call run again to continue; this study lives in memory and ends with the program."
        if records.is_in_memory
        else "Start the same program again to continue."
    )
    sys.stderr.write(f"\nInterrupted. {len(history.done)} trials done.{again} {how}\n")
