"""Opens a database and kills itself before the given statement of the migration: run by `test_schema.py`."""

import itertools
import os
import signal
import sys

from sqlalchemy import Engine, event

from farthing.storage import schema
from farthing.storage.sql import SqlStorage

address, last = sys.argv[1], int(sys.argv[2])
migrate = schema._migrate


def migrate_and_die(connection):
    counted = itertools.count(1)

    @event.listens_for(Engine, "before_cursor_execute")
    def count(*_):
        if next(counted) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    migrate(connection)
    if next(counted) <= last:
        os.kill(os.getpid(), signal.SIGKILL)  # all is done but the commit


schema._migrate = migrate_and_die
SqlStorage(address).close()
