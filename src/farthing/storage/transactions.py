"""Runs functions in transactions: wholly or not at all, once more where that is safe."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from farthing.storage import engines
from farthing.storage.faults import explained, is_busy
from farthing.storage.forking import close_before_forks, no_fork_meanwhile

Result = TypeVar("Result")
Steps = Callable[[Connection], Result]

_TRIES_WHEN_BUSY = 3


class Transactions:
    """A database in which functions run. Whatever goes wrong there comes out as a `StorageError`."""

    def __init__(self, url: URL) -> None:
        self.location = engines.location(url)
        self.folder = engines.folder(url)
        self.engine = close_before_forks(engines.make_engine(url))
        self._looking = engines.looking(self.engine)
        self._reading = engines.reading(self.engine)
        self._writing = engines.writing(self.engine)

    def look(self, steps: Steps[Result]) -> Result:
        """What `steps` reads, each statement from a moment of its own: no transaction, so the fewest round trips."""
        return self._run(self._looking, steps, again=steps)

    def read(self, steps: Steps[Result]) -> Result:
        """What `steps` reads, all from one moment."""
        return self._run(self._reading, steps, again=steps)

    def write(self, steps: Steps[Result], *, again: Steps[Result] | None = None) -> Result:
        """What `steps` returns, once what it wrote is durable.

        When the connection breaks, the steps are taken once more, unless it broke while committing. Then nobody knows
        whether they took effect: `again` is what to do in that case, and without it there is an error.
        """
        return self._run(self._writing, steps, again=again)

    def migrate(self, steps: Steps[None]) -> None:
        """Takes steps that change the tables themselves."""
        try:
            self._run(engines.migrating(self.engine), steps, again=None)
        finally:
            self.engine.dispose()

    def close(self) -> None:
        self.engine.dispose()

    def _run(self, engine: Engine, steps: Steps[Result], *, again: Steps[Result] | None) -> Result:
        attempt = _Attempt(engine)
        try:
            return attempt.take(steps)
        except SQLAlchemyError as error:
            repeat = again if attempt.is_committing else steps
            if repeat is None or not _is_disconnected(error):
                raise explained(error, location=self.location) from error
        try:
            return _Attempt(engine).take(repeat)
        except SQLAlchemyError as error:
            raise explained(error, location=self.location) from error


class _Attempt:
    """One try at a transaction. `is_committing` tells whether it got as far as that."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.is_committing = False

    def take(self, steps: Steps[Result]) -> Result:
        with no_fork_meanwhile(), self._begun() as connection:
            result = steps(connection)
            self.is_committing = True
            connection.commit()
            return result

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


def _is_disconnected(error: SQLAlchemyError) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated
