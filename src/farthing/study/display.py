"""A live display of a run, and the words at its end."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from farthing.costs import Budget, Remaining
from farthing.errors import InvalidArgument
from farthing.fields import Flag
from farthing.study.views import short_params, short_point
from farthing.trials import Measurement, State, Trial
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.study.loop import Loop
    from farthing.study.records import Records
    from farthing.study.settings import Callback
    from farthing.study.study import Study


def shows_progress(wanted: bool | None) -> bool:
    if wanted is None:
        return sys.stderr.isatty()
    return bool(Flag().checked(wanted, what="progress", advice="Leave it out to see it in a terminal."))


def read_callbacks(given: "Iterable[Callback]") -> "tuple[Callback, ...]":
    """The callbacks, once it is certain that they can be called."""
    callbacks = tuple(given) if isinstance(given, Iterable) else None
    if callbacks is None or not all(map(callable, callbacks)):
        raise InvalidArgument(
            f"callbacks must be a list of functions of (study, trial), got {shown(given)}. Write callbacks=[function]."
        )
    return callbacks


class Callbacks:
    """The user's callbacks, as an observer."""

    def __init__(self, study: "Study", callbacks: "Sequence[Callback]") -> None:
        self._study = study
        self._callbacks = callbacks

    def on_start(self, trial: Trial) -> None: ...

    def on_report(self, trial: Trial, measurement: Measurement) -> None: ...

    def on_end(self, trial: Trial) -> None:
        for callback in self._callbacks:
            callback(self._study, trial)


class Progress:
    """Trials, the best value, what is spent and left, and what each worker does, redrawn four times a second."""

    def __init__(self, study: "Study", budget: Budget | None) -> None:
        self._study = study
        self._budget = budget
        self._latest: dict[int, tuple[Trial, Measurement | None]] = {}
        self._best: Trial | None = None
        self._counts = dict.fromkeys(State, 0)

    def on_start(self, trial: Trial) -> None:
        self._latest[trial.number] = (trial, None)

    def on_report(self, trial: Trial, measurement: Measurement) -> None:
        self._latest[trial.number] = (trial, measurement)

    def on_end(self, trial: Trial) -> None:
        self._latest.pop(trial.number, None)
        self._count(trial)

    @contextmanager
    def showing(self, loop: "Loop") -> Iterator[None]:
        from rich.console import Console
        from rich.live import Live

        for trial in self._study.trials:
            self._count(trial)
        console = Console(stderr=True)
        with Live(console=console, refresh_per_second=4, get_renderable=lambda: self._render(loop), transient=True):
            yield
        console.print(self._summary(loop))

    def _count(self, trial: Trial) -> None:
        self._counts[trial.state] += 1
        better = self._study.problem.better
        if trial.state is State.DONE and trial.value is not None:
            is_first = self._best is None or self._best.value is None
            if is_first or better(trial.value, self._best.value):  # type: ignore[union-attr, arg-type]
                self._best = trial

    def _render(self, loop: "Loop") -> Any:
        from rich.console import Group
        from rich.table import Table

        workers = Table.grid(padding=(0, 2))
        for number, (trial, point) in sorted(self._latest.copy().items()):
            workers.add_row(f"[cyan]trial {number}[/]", short_params(trial.params), short_point(trial, point))
        return Group(self._summary(loop), self._bars(loop.remaining(loop.history)), workers)

    def _summary(self, loop: "Loop") -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self._counts.items() if count)
        best = f"best {self._study.problem.value} [bold]{self._best.value:.6g}[/]" if self._best else "no result yet"
        cost = f"{loop.history.cost:.4g} {self._study.problem.cost_unit} spent"
        return f"[bold]{self._study.name}[/] · {best} · {counts or 'starting'} · {cost}"

    def _bars(self, left: Remaining) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        bars = Table.grid(padding=(0, 2))
        for name, limit in (self._budget.to_json() if self._budget else {}).items():
            spent = min(max(limit - getattr(left, name), 0.0), limit)
            bars.add_row(
                f"{name} budget", ProgressBar(total=limit, completed=spent, width=40), f"{spent:.4g} of {limit:g}"
            )
        return bars


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
