"""PgBouncer in front of a server of `tests/postgres.py`, with the configuration that the guide to clusters shows."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from configparser import RawConfigParser
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import make_url

from farthing.errors import StorageError
from tests.postgres import (
    START_SECONDS,
    PostgresServer,
    die_with_parent,
    free_port,
    hand_over,
    unprivileged_account,
)

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "cluster.md"
_BLOCK = re.compile(r'```ini title="pgbouncer.ini"\n(.*?)```', re.DOTALL)
_APT = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]


class PgBouncer:
    """Pools the connections to a server, `pool` of them for a database. Root starts it as `postgres`: it refuses root.

    Where it is absent, root installs Debian's.
    """

    def __init__(self, server: PostgresServer, *, pool: int, **settings: object) -> None:
        self.server = server
        self._settings: Mapping[str, object] = {"default_pool_size": pool, **settings}
        self._account = unprivileged_account()
        self._folder = Path()
        self._port = 0
        self._process: subprocess.Popen[Any] | None = None
        self._leftovers = ExitStack()

    def start(self) -> None:
        """Raises `StorageError` with the reason when it cannot."""
        self._program = _program()
        temporary = TemporaryDirectory(prefix="farthing-pgbouncer-", ignore_cleanup_errors=True)
        self._folder = Path(self._leftovers.enter_context(temporary))
        self._leftovers.callback(self.crash)
        try:
            hand_over(self._folder, self._account)
            self._port = free_port()
            self._write_configuration()
            self.resume()
        except BaseException:
            self.stop()
            raise

    def crash(self) -> None:
        """Ends it at once, with the connections of all clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def resume(self) -> None:
        """Starts it again on the port it had."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, str(self._folder / "pgbouncer.ini")],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
                preexec_fn=die_with_parent,
                **self._account,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        self._leftovers.close()

    def url(self, database: str) -> str:
        return self.in_front_of(self.server.url(database))

    def in_front_of(self, url: str) -> str:
        """The same database of the server, by way of the pool."""
        return make_url(url).set(port=self._port).render_as_string(hide_password=False)

    def new_database(self) -> str:
        return self.in_front_of(self.server.new_database())

    def count_clients(self) -> int:
        """The number of clients that are connected now, without the one that asks."""
        import psycopg

        with psycopg.connect(self.url("pgbouncer"), autocommit=True) as connection:
            return len(connection.execute("SHOW CLIENTS").fetchall()) - 1

    @property
    def _log(self) -> Path:
        return self._folder / "pgbouncer.log"

    def _write_configuration(self) -> None:
        """The guide's, where it must differ changed: addresses, files, and what a test asks for."""
        server = make_url(self.server.url())
        users = self._folder / "userlist.txt"
        users.write_text(f'"{server.username}" "{server.password}"\n')
        configuration = RawConfigParser()
        configuration.read_string(guides_configuration())
        [database] = configuration["databases"]
        configuration["databases"][database] = f"host={server.host} port={server.port}"
        own = {"listen_addr": "127.0.0.1", "listen_port": self._port, "auth_file": users, "unix_socket_dir": ""}
        for name, value in {**own, "admin_users": server.username, **self._settings}.items():
            configuration["pgbouncer"][name] = str(value)
        with (self._folder / "pgbouncer.ini").open("w") as file:
            configuration.write(file)
        for path in self._folder.iterdir():
            path.chmod(0o644)  # inside a folder that only its user and root may enter

    def _wait_until_ready(self) -> None:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.url("pgbouncer"), connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return
        last = " ".join(self._log.read_text(errors="replace").split())[-300:]
        raise StorageError(f"PgBouncer must start, got {last!r}.")


def guides_configuration() -> str:
    """The file that the guide shows."""
    found = _BLOCK.search(GUIDE.read_text(encoding="utf-8"))
    assert found is not None, "the guide shows a pgbouncer.ini"
    return found[1]


def _program() -> str:
    """Debian has it in a folder of the system's own programs."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    if shutil.which("pgbouncer", path=path) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}  # starts no service
        for command in (["install", "--yes", "pgbouncer"], ["update"], ["install", "--yes", "pgbouncer"]):
            subprocess.run([*_APT, "--quiet", *command], capture_output=True, env=quiet)
            if shutil.which("pgbouncer", path=path):
                break
    found = shutil.which("pgbouncer", path=path)
    if found is None:
        raise StorageError("PgBouncer must be installed, got a machine without it. Run: apt-get install pgbouncer")
    return found
