"""Runs functions in transactions: wholly or not at all, and again when a server was away."""

import logging
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import SQLAlchemyError

from farthing.errors import StorageError
from farthing.storage import engines
from farthing.storage.faults import DatabaseFile, explained, is_busy, is_outage
from farthing.storage.forking import close_before_forks, no_fork_meanwhile

Result = TypeVar("Result")
Steps = Callable[[Connection], Result]
Verdict = Callable[[Connection, Result], bool]

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""Seconds between two tries at a server that is away."""

_TRIES_WHEN_BUSY = 3


log = logging.getLogger("farthing")


class Transactions:
    """A database in which functions run. Every failure there becomes a `StorageError`.

    A server that is away is waited for, for up to `patience` seconds, once it has answered. `on_return` is called when
    it is back.
    """

    def __init__(self, url: URL, *, patience: float, on_return: Callable[[], None] = lambda: None) -> None:
        self.location = engines.location(url)
        self.folder = engines.folder(url)
        self.engine = engines.make_engine(url)
        self._looking = engines.looking(self.engine)
        self._reading = engines.reading(self.engine)
        self._writing = engines.writing(self.engine)
        self._file = _watched_file(url, self.engine) if self.engine.dialect.name == "sqlite" else None
        self._patience = patience
        self._on_return = on_return
        self._has_answered = False
        self._is_away = False
        self._open = threading.local()
        close_before_forks(self)
        weakref.finalize(self, self.engine.dispose)  # many studies go out of scope without having been closed

    def look(self, steps: Steps[Result]) -> Result:
        """Reads with `steps`, each statement at its own moment: no transaction, so the fewest round trips.

        Inside a transaction of this thread it reads by that one's connection: if all who hold one waited for another,
        a pool would have none left.
        """
        within: Connection | None = getattr(self._open, "connection", None)
        return self._run(self._looking, steps) if within is None else steps(within)

    def read(self, steps: Steps[Result]) -> Result:
        """Reads with `steps`, all from one moment; inside a transaction of this thread by its connection, as `look`."""
        within: Connection | None = getattr(self._open, "connection", None)
        return self._run(self._reading, self._noted(steps)) if within is None else steps(within)

    def write(self, steps: Steps[Result], *, took_effect: Verdict[Result] | None = None) -> Result:
        """Takes the steps and returns their result once they are durable.

        When the connection breaks, the steps are taken again. When it broke while committing, it is not known whether
        they took effect: `took_effect` then finds out, from the database and from what the steps returned. Without it
        they are taken again all the same, so they must be safe to repeat.
        """
        return self._run(self._writing, self._noted(steps), took_effect=took_effect)

    def migrate(self, steps: Steps[None]) -> None:
        """Takes steps that change the tables themselves."""
        try:
            self._run(engines.migrating(self.engine), steps)
        finally:
            self.close()

    def close(self) -> None:
        self.engine.dispose()

    def _noted(self, steps: Steps[Result]) -> Steps[Result]:
        """The same steps, during which this thread's connection is known."""

        def take(connection: Connection) -> Result:
            self._open.connection = connection
            try:
                return steps(connection)
            finally:
                self._open.connection = None

        return take

    def _run(self, engine: Engine, steps: Steps[Result], *, took_effect: Verdict[Result] | None = None) -> Result:
        pauses = self._pauses()
        taken = steps
        while True:
            attempt = _Attempt[Result](engine)
            try:
                result = self._take(attempt, taken)
            except UnicodeDecodeError as error:
                raise StorageError(
                    f"What is stored must be UTF-8, got {error.object[:20]!r}. Restore the database from a copy."
                ) from error
            except SQLAlchemyError as error:
                with no_fork_meanwhile():
                    self._check_file()
                pause = next(pauses, None) if is_outage(error) else None
                if pause is None:
                    raise explained(error, location=self.location) from error
                self._wait(pause, error)
                if attempt.is_committing and took_effect is not None:
                    taken = _unless_taken(steps, took_effect, attempt.results[0])
            else:
                self._note_answer()
                return result

    def _take(self, attempt: "_Attempt[Result]", steps: Steps[Result]) -> Result:
        """Takes the steps and looks at the file before and after; a fork, which closes connections, waits meanwhile."""
        with no_fork_meanwhile():
            self._check_file()
            result = attempt.take(steps)
            self._check_file(is_open=True)
            return result

    def _pauses(self) -> Iterator[float]:
        """The first time at once, as most connections that break can be made again; then for longer and longer."""
        if not self._has_answered:
            return
        yield 0.0
        began, pause = time.monotonic(), FIRST_PAUSE
        while time.monotonic() - began < self._patience:
            yield min(pause * random.uniform(0.5, 1.0), self._patience)  # noqa: S311 (so that not all come back at once)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _wait(self, seconds: float, error: SQLAlchemyError) -> None:
        if seconds and not self._is_away:
            self._is_away = True
            log.warning(
                "The database does not answer; waiting for up to %.0f s. %s",
                self._patience,
                explained(error, location=self.location),
            )
        time.sleep(seconds)

    def _note_answer(self) -> None:
        self._has_answered = True
        if self._is_away:
            self._is_away = False
            self._on_return()
            log.warning("The database at %s answers again", self.location)

    def _check_file(self, *, is_open: bool = False) -> None:
        if self._file is not None:
            self._file.check(is_open=is_open)


def _watched_file(url: URL, engine: Engine) -> DatabaseFile:
    """The file of a SQLite database. Connections end by `close`, but also by Ctrl-C in a statement."""
    file = DatabaseFile(str(url.database))
    event.listen(engine, "close", lambda *_: file.forget_log())
    return file


def _unless_taken(steps: Steps[Result], took_effect: Verdict[Result], result: Result) -> Steps[Result]:
    """Steps that may have been taken already, with that result."""
    return lambda connection: result if took_effect(connection, result) else steps(connection)


class _Attempt(Generic[Result]):
    """One try at a transaction. `results` has what the steps returned, once they did."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.results: list[Result] = []

    @property
    def is_committing(self) -> bool:
        return bool(self.results)

    def take(self, steps: Steps[Result]) -> Result:
        with self._begun() as connection:
            self.results = [steps(connection)]
            connection.commit()
            return self.results[0]

    def _begun(self) -> Connection:
        """A connection in a transaction, once it is our turn."""
        for _ in range(_TRIES_WHEN_BUSY - 1):
            try:
                return self._begin()
            except SQLAlchemyError as error:
                if not is_busy(error):
                    raise
            time.sleep(random.uniform(0.0, 0.1))  # noqa: S311 (so that those who wait do not wake together)
        return self._begin()

    def _begin(self) -> Connection:
        connection = self._engine.connect()
        try:
            connection.begin()
        except BaseException:
            connection.close()
            raise
        return connection
