"""Reads studies for pages: each at the price of what changed since the last look, and only what a page shows.

Reading runs nobody's code: strategies that the database names are not imported. It takes no lock that a running study
waits for, and it ends no lease.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from farthing.costs import Budget
from farthing.errors import StudyNotFound
from farthing.execution import Checkpoints
from farthing.storage import Storage, StudyRecord
from farthing.storage.storage import ReadsOutlines
from farthing.study.folder import find_folder, mark_for
from farthing.study.records import IS_EXTENDED
from farthing.trials import Event, History, Json, Problem, Trial
from farthing.trials.requests import is_to_stop, limits_in_force
from farthing.views.lines import Line, Lines
from farthing.views.overview import Kind, kind_of

MANY_MEASUREMENTS = 100_000
"""Of a study with more, curves are read when they are looked at, and the first page shows no bill."""

MOST_STUDIES = 16
"""Studies that are kept in memory; the one that was looked at longest ago goes first."""

MOST_VIEWS = 32
FIRST_TRIALS = (0, 1, 2)


class StudyReader:
    """One study. Every method may be called from any thread; one reads at a time."""

    def __init__(self, storage: Storage, name: str) -> None:
        self.storage = storage
        self.name = name
        self._lock = threading.RLock()
        self._lines: dict[int, Line] = {}
        self._lines_version = 0
        self._history: History | None = None
        self._views: OrderedDict[Any, tuple[int, Any]] = OrderedDict()
        self._made: Lines | None = None
        self._is_large: bool | None = None

    @property
    def record(self) -> StudyRecord:
        return self.storage.load_study(self.name)

    @property
    def is_large(self) -> bool:
        """Whether its curves stay in the database; once large, it stays so."""
        if not self._is_large:
            self._is_large = self._counts_many()
        return self._is_large

    def _counts_many(self) -> bool:
        if not isinstance(self.storage, ReadsOutlines):
            return False
        return self.storage.count_measurements(self.name) > MANY_MEASUREMENTS

    def lines(self) -> Lines:
        """A line for each trial, of now."""
        with self._lock:
            if not isinstance(self.storage, ReadsOutlines):
                return Lines.of(self.history())
            changes = self.storage.lines(self.name, since=self._lines_version)
            if self._made is None or changes.lines or changes.version != self._lines_version:
                self._lines.update((line[0], line) for line in changes.lines)
                self._lines_version = changes.version
                self._made = Lines.from_rows(self._lines[number] for number in sorted(self._lines))
            return self._made

    def history(self) -> History:
        """Everything, of now; of a large study without its measurements, which are read when they are looked at."""
        with self._lock:
            known = self._history if self._history is not None else History(self.record.problem)
            changes = self._changes(known)
            if self._history is None or changes.trials or changes.events or changes.version != known.version:
                self._history = known.updated(changes.trials, events=changes.events, version=changes.version)
            return self._history

    def _changes(self, known: History) -> Any:
        problem = known.problem
        needs_curves = bool(problem.space.stages or problem.best_so_far)
        if isinstance(self.storage, ReadsOutlines) and self.is_large and not needs_curves:
            return self.storage.outline(self.name, since=known.version)
        return self.storage.history(self.name, since=known.version)

    def trials(self, numbers: Sequence[int]) -> list[Trial]:
        """Some trials whole; those that there are not are left out."""
        if isinstance(self.storage, ReadsOutlines) and self._history is None and not self.is_extended:
            return self.storage.trials(self.name, numbers)
        history = self.history()
        return [history[number] for number in numbers if 0 <= number < len(history)]

    @property
    def is_extended(self) -> bool:
        return bool(self.record.settings.get(IS_EXTENDED))

    @property
    def problem(self) -> Problem:
        """The problem of today."""
        return self.history().problem if self.is_extended else self.record.problem

    @property
    def kind(self) -> Kind:
        record = self.record
        return kind_of(record.problem, record.strategy, self.trials(FIRST_TRIALS))

    def events(self) -> Sequence[Event]:
        return self.storage.events(self.name) if isinstance(self.storage, ReadsOutlines) else self.history().events

    @property
    def budget(self) -> Budget | None:
        limits = limits_in_force(self.events())
        return Budget(**limits) if limits else None

    @property
    def is_to_stop(self) -> bool:
        return is_to_stop(self.events())

    def seconds_run(self) -> float:
        return self.storage.seconds_run(self.name)

    @property
    def files(self) -> Checkpoints:
        """The study's folder; nothing is created in it."""
        record = self.record
        mark = mark_for(record)
        beside = self.storage.folder
        root = find_folder(mark, settings=record.settings, place=None, beside=beside, is_in_memory=beside is None)
        return Checkpoints(root)

    def version(self) -> int:
        if isinstance(self.storage, ReadsOutlines):
            found = self.storage.versions().get(self.name)
            if found is None:
                raise StudyNotFound(f"A study must be in the storage, got {self.name!r}. The list shows the studies.")
            return found
        return self.history().version

    def remembered(self, key: Any, make: Callable[[], Any], *, of: int | None = None) -> Any:
        """What `make` makes, made again only when the study, or what it is made `of`, has changed."""
        version = self.version() if of is None else of
        with self._lock:
            known = self._views.get(key)
            if known is not None and known[0] == version:
                self._views.move_to_end(key)
                return known[1]
            made = make()
            self._views[key] = (version, made)
            if len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
            return made


class Studies:
    """The studies of a storage."""

    def __init__(self, storage: Storage, *, place: str = "", may_change: bool = False) -> None:
        self.storage = storage
        self.place = place
        self.may_change = may_change
        self._lock = threading.Lock()
        self._readers: OrderedDict[str, StudyReader] = OrderedDict()
        self._trends: dict[str, tuple[int, Json]] = {}

    def versions(self) -> dict[str, int]:
        if isinstance(self.storage, ReadsOutlines):
            return dict(self.storage.versions())
        return {one.record.name: self.reader(one.record.name).version() for one in self.storage.list_studies()}

    def reader(self, name: str) -> StudyReader:
        """Raises `StudyNotFound`."""
        with self._lock:
            found = self._readers.get(name)
        if found is None:
            self.storage.load_study(name)
            found = StudyReader(self.storage, name)
        with self._lock:
            self._readers[name] = found
            self._readers.move_to_end(name)
            if len(self._readers) > MOST_STUDIES:
                self._readers.popitem(last=False)
        return found

    def forget(self, name: str) -> None:
        """A study that was deleted, or begun again under its name."""
        with self._lock:
            self._readers.pop(name, None)
            self._trends.pop(name, None)

    def trend_of(self, name: str, version: int, make: Callable[[], Json]) -> Json:
        known = self._trends.get(name)
        if known is None or known[0] != version:
            known = self._trends[name] = (version, make())
        return known[1]
