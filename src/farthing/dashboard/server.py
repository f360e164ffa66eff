"""Serves the dashboard: where it may listen, and under which conditions."""

import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from farthing.errors import InvalidArgument, MissingExtra
from farthing.storage import Storage
from farthing.validation import shown

TOKEN_VARIABLE = "FARTHING_DASHBOARD_TOKEN"  # noqa: S105  # the name of a variable
PORT = 8017


@dataclass(frozen=True)
class Listening:
    """A checked address to listen at: away from this machine only on purpose, and never in the clear by mistake."""

    host: str = "127.0.0.1"
    port: int = PORT
    base_path: str = ""
    is_exposed: bool = False
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidArgument(f"A port must be 0 to 65535, got {self.port}. 0 takes a free one.")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument(
                "TLS needs a certificate and its key, got one of them. Give --tls-cert and --tls-key."
            )
        self._check_base_path()
        self._check_proxy()
        if not is_loopback(self.host):
            self._check_exposed()

    def _check_base_path(self) -> None:
        path = self.base_path
        is_plain = path.startswith("/") and not path.endswith("/") and "//" not in path and ".." not in path
        if path and not (is_plain and all(letter.isalnum() or letter in "/-_." for letter in path) and path.isascii()):
            raise InvalidArgument(f"A base path must look like /farthing, got {shown(path)}. Leave out a last slash.")

    def _check_proxy(self) -> None:
        if self.proxy is None:
            return
        parts = urlsplit(self.proxy)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
            raise InvalidArgument(
                f"A proxy is named by its origin, got {shown(self.proxy)}. Write --behind-proxy https://host.example."
            )

    def _check_exposed(self) -> None:
        if not self.is_exposed:
            raise InvalidArgument(
                f"A dashboard listens on this machine only, got --host {self.host}. To let others in, add --expose, "
                "and --tls-cert with --tls-key, or --behind-proxy ORIGIN."
            )
        if self.certificate is None and self.proxy is None:
            raise InvalidArgument(
                "A dashboard that others reach must be encrypted, got --expose without TLS. Give --tls-cert and "
                "--tls-key, or name the proxy that does it: --behind-proxy https://host.example."
            )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_server() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            "The dashboard needs Starlette and uvicorn, got a Python without them. "
            "Run: pip install 'farthing[dashboard]'."
        ) from error


def token_to_use(variable: str = TOKEN_VARIABLE) -> str:
    from farthing.dashboard.security import SHORTEST_TOKEN, new_token

    given = os.environ.get(variable)
    if given is not None and (len(given) < SHORTEST_TOKEN or not given.isascii() or not given.isprintable()):
        raise InvalidArgument(
            f"${variable} must be at least {SHORTEST_TOKEN} plain characters, got {len(given)}. "
            "Leave it out for a random one."
        )
    return given or new_token()


def serve(
    storage: Storage,
    listening: Listening,
    *,
    place: str,
    may_change: bool = False,
    follows: bool = False,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until it is interrupted; `on_ready` gets the address with the token once connections are taken."""
    require_server()
    import uvicorn

    from farthing.dashboard.application import application
    from farthing.dashboard.connections import PATIENCE, WatchedConnection
    from farthing.dashboard.reading import ShownStudies
    from farthing.dashboard.security import LOOPBACK, Access

    token, tls = token_to_use(), _tls(listening)
    bound = _bound(listening)
    port = int(bound.getsockname()[1])
    access = Access(
        token=token,
        port=port,
        hosts=(*LOOPBACK, listening.host.lower(), *(name.lower() for name in listening.names)),
        base_path=listening.base_path,
        is_tls=listening.certificate is not None,
        proxy=listening.proxy,
    )
    app = application(ShownStudies(storage, place=place, may_change=may_change, follows=follows), access)
    config = uvicorn.Config(
        app,
        http=partial(WatchedConnection, tls=tls),  # type: ignore[arg-type]  # it is called, and no more
        loop="asyncio",
        log_level="critical",  # endpoints log their own faults; open streams at the end are none
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(PATIENCE),
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=32 * 1024,
        ws="none",
        lifespan="off",
    )
    scheme = "https" if access.is_tls else "http"
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    origin = listening.proxy or f"{scheme}://{host}:{port}"
    server = uvicorn.Server(config)
    on_ready(f"{origin}{listening.base_path}/?token={access.token}")
    try:
        server.run(sockets=[bound])
    finally:
        bound.close()


def _tls(listening: Listening) -> ssl.SSLContext | None:
    if listening.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(listening.certificate, listening.key)
    except OSError as error:
        raise InvalidArgument(
            f"TLS needs a certificate and the key that belongs to it, got {str(listening.certificate)!r} and "
            f"{str(listening.key)!r} ({error}). Give both as PEM files."
        ) from None
    return context


def _bound(listening: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listening.host, listening.port))
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise InvalidArgument(
            f"A dashboard needs a free port, got {listening.host}:{listening.port}, which cannot be used "
            f"({error.strerror}). Choose another with --port, or --port 0 for any."
        ) from None
    return bound
