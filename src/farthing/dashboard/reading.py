"""Reads studies for pages: each at the price of what changed since the last look, and only what a page shows.

Reading runs nobody's code: strategies that the database names are not imported. It takes no lock that a running study
waits for, and it ends no lease.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from farthing.analysis.lines import Lines
from farthing.analysis.overview import Kind, kind_of
from farthing.analysis.text import where
from farthing.costs import Budget
from farthing.errors import FarthingError, StudyNotFound, TrialNotFound
from farthing.execution import Checkpoints
from farthing.execution.stored_checkpoints import StoredCheckpoints
from farthing.session.folder import find_folder, mark_for, stored_at
from farthing.session.records import IS_EXTENDED, RECOMMENDATION, stored_leaders
from farthing.storage import Storage, StudyRecord
from farthing.storage.storage import Leaders, ReadsOutlines
from farthing.trials import Event, History, Json, Problem, Trial
from farthing.trials.events import is_to_stop, limits_in_force

MANY_MEASUREMENTS = 25_000
"""Of a study with more, the first page and the commands that read show what lines tell: they show no bill by kind."""

MOST_STUDIES = 16
"""Studies that are kept in memory; the one that was looked at longest ago goes first."""

MOST_VIEWS = 32
GROWTH = 1.1
"""Slow work is done again once a study has grown by this factor, rather than after each change."""

FIRST_TRIALS = (0, 1, 2)


class _View:
    """Something that was made of a study, and what of."""

    __slots__ = ("lock", "made", "of")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.of: Hashable = None
        self.made: Any = None


class StudyReader:
    """One study. Every method may be called from any thread."""

    def __init__(self, storage: Storage, name: str, *, follows: bool = False) -> None:
        self.storage = storage
        self.name = name
        self._follows = follows
        self._lock = threading.RLock()
        self._lines: Lines | None = None
        self._lines_version = 0
        self._history: History | None = None
        self._finished: dict[int, Trial] = {}
        self._record: tuple[int, StudyRecord] | None = None
        self._views: OrderedDict[Hashable, _View] = OrderedDict()
        self._is_large = False
        self._counted_at = -1.0

    @property
    def record(self) -> StudyRecord:
        """Read again when the study has changed."""
        version = self.version()
        with self._lock:
            if self._record is None or self._record[0] != version:
                self._record = (version, self.storage.load_study(self.name))
            return self._record[1]

    @property
    def is_large(self) -> bool:
        """Whether its curves stay in the database; once large, it stays so. Counted again as the study grows."""
        if isinstance(self.storage, ReadsOutlines) and not self._is_large:
            version = self.version()
            if version >= self._counted_at * GROWTH:
                self._is_large = self.storage.count_measurements(self.name) > MANY_MEASUREMENTS
                self._counted_at = float(version)
        return self._is_large

    def lines(self) -> Lines:
        """A line for each trial, of now."""
        with self._lock:
            if not isinstance(self.storage, ReadsOutlines):
                return Lines.of(self.history())
            changes = self.storage.lines(self.name, since=self._lines_version)
            if self._lines is None or changes.version != self._lines_version:
                self._lines = (self._lines or Lines.from_rows(())).updated(changes.lines)
                self._lines_version = changes.version
            return self._lines

    def history(self) -> History:
        """Everything, of now; of a large study without its measurements, which are read when they are looked at."""
        with self._lock:
            known = self._history if self._history is not None else History(self.storage.load_study(self.name).problem)
            changes = self.storage.history(self.name, since=known.version)
            if self._history is None or changes.trials or changes.events or changes.version != known.version:
                self._history = known.updated(changes.trials, events=changes.events, version=changes.version)
            return self._history

    refresh = history

    def leaders(self) -> Leaders | None:
        """The best trials as the database finds them; None if it cannot."""
        return stored_leaders(self.storage, self.name, self.problem, self.record.settings)

    def kept_recommendation(self) -> Mapping[str, Any]:
        """The recommendation stored at the end of a run; nothing if the study changed since."""
        form = self.record.settings.get(RECOMMENDATION)
        return form if isinstance(form, Mapping) and form.get("version") == self.version() else {}

    def trials(self, numbers: Sequence[int]) -> list[Trial]:
        """Some trials whole; those that there are not are left out."""
        if isinstance(self.storage, ReadsOutlines) and self._history is None and not self.is_extended:
            return self.storage.trials(self.name, numbers)
        history = self.history()
        return [history[number] for number in numbers if 0 <= number < len(history)]

    def finished(self, numbers: Sequence[int]) -> list[Trial]:
        """Some trials that have ended. What was suggested, paid and measured does not change any more: read once."""
        with self._lock:
            unknown = [number for number in numbers if number not in self._finished]
            self._finished.update((trial.number, trial) for trial in (self.trials(unknown) if unknown else ()))
            found = [self._finished[number] for number in numbers if number in self._finished]
            self._finished = {trial.number: trial for trial in found}
            return found

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
        storage = self.storage
        if not isinstance(storage, ReadsOutlines):
            return self.history().events
        return self.remembered("events", lambda: storage.events(self.name))  # type: ignore[no-any-return]

    @property
    def budget(self) -> Budget | None:
        limits = limits_in_force(self.events())
        return Budget(**limits) if limits else None

    @property
    def is_to_stop(self) -> bool:
        return is_to_stop(self.events())

    def seconds_run(self) -> float:
        return self.storage.seconds_run(self.name)

    def runs_going(self) -> int:
        """The runs and workers that are alive: what waits is carried out by one of them."""
        return self.storage.runs_going(self.name)

    @property
    def files(self) -> Checkpoints:
        """The study's folder; nothing is created in it. A store that the database names is asked if it `follows`."""
        record = self.record
        mark = mark_for(record)
        if self._follows and (url := stored_at(mark, settings=record.settings, place=None)):
            return StoredCheckpoints(url, mark=mark)
        beside = self.storage.folder
        root = find_folder(mark, settings=record.settings, place=None, beside=beside, is_in_memory=beside is None)
        return Checkpoints(root, mark=mark)

    def version(self) -> int:
        if isinstance(self.storage, ReadsOutlines):
            found = self.storage.versions().get(self.name)
            if found is None:
                raise StudyNotFound(f"A study must be in the storage, got {self.name!r}. The list shows the studies.")
            return found
        return self.history().version

    def remembered(self, key: Hashable, make: Callable[[], Any], *, of: Hashable = None) -> Any:
        """The result of `make`, made again only when the study, or what it is made `of`, has changed.

        Who asks for the same meanwhile waits for it; other views do not.
        """
        of = self.version() if of is None else of
        with self._lock:
            view = self._views.setdefault(key, _View())
            self._views.move_to_end(key)
            if len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        with view.lock:
            if view.of != of:
                view.made, view.of = make(), of
            return view.made


def no_log(files: Checkpoints, trial: Trial) -> TrialNotFound:
    """The error that says where the log of a trial may be."""
    place = files.root / f"{trial.number:06d}"
    ran = f", which {where(trial.owner)} took" if trial.owner else ""
    return TrialNotFound(
        f"A trial's log is in the study's folder on the machine that ran it, got none in {str(place)!r} here for trial "
        f"{trial.number}{ran}. Look there, or give the study a folder that all machines see. Trials that were asked "
        "for, added or run inline print where they run."
    )


Row = dict[str, Json]


class ShownStudies:
    """The studies of a storage."""

    def __init__(self, storage: Storage, *, place: str = "", may_change: bool = False, follows: bool = False) -> None:
        self.storage = storage
        self.place = place
        self.may_change = may_change
        self._follows = follows
        self._lock = threading.Lock()
        self._readers: OrderedDict[str, StudyReader] = OrderedDict()
        self._rows: dict[str, tuple[int, Row]] = {}

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
            found = StudyReader(self.storage, name, follows=self._follows)
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
            self._rows.pop(name, None)

    def rows(
        self, of_each: Callable[[Collection[str]], Mapping[str, Row]], of_one: Callable[[StudyReader], Row]
    ) -> tuple[list[Row], list[str]]:
        """A row for each study by name, made again only where the study has changed, and the names of those without:
        what is stored of them cannot be read.

        Studies that are seen for the first time are added up by the database (`of_each`). Those that change while they
        are looked at are followed (`of_one`): their readers know all but the latest of their trials.
        """
        versions, known = self.versions(), self._rows
        changed = [name for name, version in versions.items() if known.get(name, (None,))[0] != version]
        is_followed = len(changed) <= MOST_STUDIES // 2 and all(name in known for name in changed)
        made = self._followed(changed, of_one) if is_followed else of_each(changed) if changed else {}
        rows = {**known, **{name: (versions[name], row) for name, row in made.items() if name in versions}}
        self._rows = {name: rows[name] for name in sorted(versions) if name in rows}
        return [row for _, row in self._rows.values()], sorted(name for name in versions if name not in rows)

    def _followed(self, names: Iterable[str], of_one: Callable[[StudyReader], Row]) -> dict[str, Row]:
        found = {}
        for name in names:
            with suppress(FarthingError):  # deleted just now, or it cannot be read
                found[name] = of_one(self.reader(name))
        return found
