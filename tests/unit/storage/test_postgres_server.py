"""The server that tests start leaves nothing behind."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from farthing.errors import StorageError
from tests import postgres as starter
from tests.postgres import PostgresServer


def is_listening(url: str) -> bool:
    address = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname or "", address.port or 0)) == 0


def test_a_stopped_server_is_gone_with_its_files(postgres: PostgresServer) -> None:
    """The fixture says where there can be no server at all."""
    with PostgresServer(durable=False) as server:
        url, folder = server.url(), server._folder
        assert is_listening(url)
    assert not is_listening(url)
    assert not folder.exists()
    assert is_listening(postgres.url())


STARTS = """
import time
from tests.postgres import PostgresServer
with PostgresServer(durable=False) as server:
    print(server.url(), server._folder, flush=True)
    time.sleep(3600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_a_killed_test_run_leaves_no_server(postgres: PostgresServer) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", STARTS], cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    url, folder = program.stdout.readline().split()
    assert is_listening(url)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate()
    while Path(folder, "data", "postmaster.pid").exists():
        time.sleep(0.05)
    assert not is_listening(url)
    shutil.rmtree(folder)


def test_missing_programs_are_an_error_that_says_where_was_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "_candidate_binaries", lambda: iter(()))
    with pytest.raises(StorageError, match="set FARTHING_POSTGRES_BIN"):
        PostgresServer().start()
