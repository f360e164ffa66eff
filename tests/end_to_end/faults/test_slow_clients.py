"""Clients that keep a dashboard waiting shut it for nobody, and are let go of; none of them needs a token for it."""

import json
import os
import random
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import farthing as ft
from farthing.dashboard.connections import MOST_STALLED, PATIENCE

MANY = 300
"""More than the server takes at once."""

HALF_A_HEAD = b"GET /api/studies HTTP/1.1\r\nHost: localhost\r\n"
HALF_A_BODY = (
    b"POST /api/studies/slow/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"
)
A_READ = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass
class Served:
    """A dashboard in a process of its own."""

    port: int
    token: str
    process: int
    certificate: Path | None = None

    def connection(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=600)

    def opened(self) -> socket.socket:
        """One by which requests are sent: encrypted, if the dashboard is."""
        if self.certificate is None:
            return self.connection()
        trusting = ssl.create_default_context(cafile=self.certificate)
        return trusting.wrap_socket(self.connection(), server_hostname="localhost")

    def studies(self) -> list[str]:
        """What somebody with the token sees, by a connection of their own."""
        with self.opened() as asking:
            head = f"GET /api/studies HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
            asking.sendall(f"{head}Connection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: asking.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return [study["name"] for study in json.loads(body)["studies"]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with dashboard(tmp_path_factory.mktemp("slow")) as started:
        yield started


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("encrypted")
    if not shutil.which("openssl"):
        pytest.skip("A certificate is made by openssl, which is absent.")
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost"
    subprocess.run([*made.split(), "-addext", names], cwd=folder, check=True, capture_output=True)
    with dashboard(folder, "--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")) as started:
        yield replace(started, certificate=folder / "cert.pem")


@contextmanager
def dashboard(folder: Path, *options: str) -> Iterator[Served]:
    path = folder / "slow.db"
    ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage=path, name="slow").close()
    command = [sys.executable, "-m", "farthing", "dashboard", "--storage", str(path), "--port", "0", "--no-browser"]
    with subprocess.Popen([*command, "--allow-changes", *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/\?token=(\S+)", process.stdout.readline())
        assert found is not None
        yield Served(int(found[1]), found[2], process.pid)
        process.terminate()


@pytest.mark.parametrize("said", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["nothing", "half a head", "half a body"])
def test_many_who_do_not_finish_their_requests_shut_it_for_nobody(served: Served, said: bytes) -> None:
    with ExitStack() as opened:
        for _ in range(MANY):
            opened.enter_context(served.connection()).sendall(said)
        assert served.studies() == ["slow"]


HALF_A_HELLO = b"\x16\x03\x01\x02"


@pytest.mark.parametrize("said", [b"", HALF_A_HELLO], ids=["nothing", "half a hello"])
def test_many_who_do_not_agree_on_encryption_shut_it_for_nobody(encrypted: Served, said: bytes) -> None:
    assert encrypted.studies() == ["slow"]
    with ExitStack() as opened:
        first = opened.enter_context(encrypted.connection())
        for _ in range(MANY):
            opened.enter_context(encrypted.connection()).sendall(said)
        assert encrypted.studies() == ["slow"]
        first.setblocking(False)
        assert first.recv(1) == b"", "who had waited for longest went before the last was answered"


def test_who_asks_in_the_clear_is_told_nothing(encrypted: Served) -> None:
    with encrypted.connection() as asking, suppress(ConnectionError):
        asking.sendall(A_READ)
        assert b"HTTP" not in b"".join(iter(lambda: asking.recv(65536), b""))
    assert encrypted.studies() == ["slow"]


def test_of_those_who_wait_the_one_who_waited_longest_goes(served: Served) -> None:
    with ExitStack() as opened:
        waiting = [opened.enter_context(served.connection()) for _ in range(MOST_STALLED + 1)]
        assert is_closed(waiting[0])
        waiting[-1].sendall(A_READ)
        assert waiting[-1].recv(12) == b"HTTP/1.1 401"


def test_a_crowd_that_asks_while_the_server_is_busy_is_answered(served: Served) -> None:
    """Whoever has sent a whole request is not cut, though all connect before the server comes to read any."""
    with ExitStack() as opened:
        os.kill(served.process, signal.SIGSTOP)
        try:
            asking = [opened.enter_context(served.connection()) for _ in range(MOST_STALLED + 40)]
            for one in asking:
                one.sendall(A_READ)
        finally:
            os.kill(served.process, signal.SIGCONT)
        assert [one.recv(12) for one in asking] == [b"HTTP/1.1 401"] * len(asking)


WHOLE = A_READ.replace(b"\r\n\r\n", b"\r\nAccept: text/html\r\nCookie: a=b\r\nContent-Length: 3\r\n\r\n{}x")


def odd_request(dice: random.Random) -> bytes:
    """A request in which some bytes were changed, left out or repeated, or which is nothing but bytes."""
    if dice.random() < 0.1:
        return dice.randbytes(dice.randrange(1, 400))
    text = bytearray(WHOLE)
    for _ in range(dice.randrange(1, 6)):
        place = dice.randrange(len(text))
        other = dice.choice(
            [b"", dice.randbytes(1), b"\r\n", b"\x00", b": ", b"%00", b"\xff" * 50, bytes(text[:place])]
        )
        text[place : place + dice.randrange(3)] = other
    return bytes(text)


def test_requests_of_any_bytes_end_in_an_answer_or_a_closed_connection(served: Served) -> None:
    dice, statuses = random.Random(0), Counter[bytes]()
    for _ in range(2000):
        request = odd_request(dice)
        with served.connection() as asking:
            asking.sendall(request)
            with suppress(ConnectionError):
                asking.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: asking.recv(65536), b""))
                assert re.match(rb"HTTP/1.1 (4\d\d|2\d\d) |$", answer), (request, answer)
                statuses[answer[9:12]] += 1
    assert statuses[b"400"], "some are refused by their form"
    assert statuses[b"401"], "some are requests still"
    assert served.studies() == ["slow"]


def is_closed(connection: socket.socket) -> bool:
    """Waits for a word of the server, of which the end of the connection is the last."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_who_does_not_go_on_is_let_go_of(served: Served) -> None:
    """pytest's own time limit fails it otherwise."""
    said = [b"", HALF_A_HEAD, HALF_A_BODY, A_READ, A_READ + HALF_A_HEAD]
    with ExitStack() as opened:
        slow = [opened.enter_context(served.connection()) for _ in said]
        for connection, words in zip(slow, said, strict=True):
            connection.sendall(words)
        assert all(is_closed(connection) for connection in slow)


def test_who_reads_no_answer_is_let_go_of(served: Served) -> None:
    """It asks so often, without a token, that the answers fill all buffers."""
    with served.connection() as slow:
        slow.setblocking(False)
        with suppress(BlockingIOError):
            while slow.send(A_READ * 10):
                pass
        cut = select.poll()
        cut.register(slow, select.POLLHUP)
        assert cut.poll()


def test_who_sends_a_letter_at_a_time_is_let_go_of(served: Served) -> None:
    """However steadily: the limit is on the whole head."""
    with served.connection() as slow, suppress(ConnectionError):
        slow.sendall(HALF_A_HEAD + b"X-Long: ")
        slow.settimeout(PATIENCE / 20)
        is_open = True
        while is_open:
            slow.sendall(b"x")
            with suppress(TimeoutError):
                is_open = bool(slow.recv(65536))


def test_a_stream_outlasts_the_limit(served: Served) -> None:
    """Who has asked, and takes what comes, is not slow, however little comes."""
    with served.connection() as stream, served.connection() as slow:
        head = f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\n\r\n"
        stream.sendall(head.encode())
        assert b"200" in stream.recv(65536)
        assert is_closed(slow), "the limit has passed, for one that came later"
        text = b""
        while b"still here" not in text:
            more = stream.recv(65536)
            assert more, "the stream was cut"
            text += more
