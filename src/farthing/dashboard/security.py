"""Who may ask: a known host, with the token, from a page of our own.

A dashboard listens on a machine where a browser runs pages of strangers. They can send requests to it (cross-site
requests), and give their own name its address (DNS rebinding). So every request must name a host of ours, and carry a
cookie that only our page gets. A browser sends that cookie to every other port of the host, too, and whoever listens
there can replay it. So it lets only look: whatever changes something must also say that it comes from our page, and
bring a second secret, which is told to a page that comes with the token, and travels in a header of our own.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 64 * 1024
SHORTEST_TOKEN = 16
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE_METHODS = ("GET", "HEAD")
SECRET_HEADER = "x-farthing-secret"  # noqa: S105  # the name of a header

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


def new_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Access:
    """The rules of a server: hosts by name, without port, and the token. `proxy` is the origin of a stated proxy."""

    token: str
    port: int
    hosts: tuple[str, ...] = LOOPBACK
    base_path: str = ""
    is_tls: bool = False
    proxy: str | None = None
    change_secret: str = field(default_factory=new_token)

    @property
    def cookie_name(self) -> str:
        """Cookies are shared by all ports of a host, so that the port is in the name."""
        return f"farthing-{self.port}"

    @property
    def session(self) -> str:
        """The content of the cookie: not the token itself, which would let in by an address."""
        return hmac.new(self.token.encode(), b"farthing dashboard session", hashlib.sha256).hexdigest()

    @property
    def known_hosts(self) -> tuple[str, ...]:
        proxied = urlsplit(self.proxy).hostname if self.proxy else None
        return (*self.hosts, proxied) if proxied else self.hosts

    def knows(self, host: str) -> bool:
        return _host_name(host) in self.known_hosts

    def is_own(self, origin: str, host: str) -> bool:
        """Whether an Origin header names the page that this server serves."""
        if self.proxy is not None and _host_name(host) == urlsplit(self.proxy).hostname:
            return origin == self.proxy
        return origin == f"{'https' if self.is_tls else 'http'}://{host}"

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())

    def is_session(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.session.encode())

    def is_change_secret(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.change_secret.encode())


def _host_name(host: str) -> str:
    """Without the port; an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


@dataclass(frozen=True)
class Refusal:
    """An answer instead of the one that was asked for."""

    status: int
    text: str


@dataclass
class Guard:
    """Stands before the application: lets in what `Access` allows, and puts the same headers on every answer."""

    app: App
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = _headers(scope["headers"])
        guarded = _with_headers(send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(guarded, refusal, is_page=self._wants_page(scope, headers))
            return
        if self._enters(scope):
            await self._let_in(guarded)
            return
        await self.app(scope, _Bounded(receive), guarded)

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> Refusal | None:
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self.access.knows(hosts[0]):
            return Refusal(400, "This server does not go by that name. Open the address that it printed.")
        if not self._is_known(scope, headers):
            return Refusal(401, "Open the address with the token that `farthing dashboard` printed.")
        if scope["method"] in SAFE_METHODS:
            if _one(headers, "sec-fetch-site") == "cross-site" and not self._enters(scope):
                return Refusal(403, "Requests must come from a page of this server.")
            return None
        return self._refusal_of_a_change(headers, hosts[0])

    def _refusal_of_a_change(self, headers: dict[str, list[str]], host: str) -> Refusal | None:
        """Browsers say where a request comes from; a program with the token in a header says nothing."""
        origin, site = _one(headers, "origin"), _one(headers, "sec-fetch-site")
        has_token = _bearer(headers) is not None
        by_program = origin is None and site is None and has_token
        if not by_program and not (origin is not None and self.access.is_own(origin, host)):
            return Refusal(403, "A change must come from a page of this server.")
        if site is not None and site != "same-origin":
            return Refusal(403, "A change must come from a page of this server.")
        if not has_token and not self.access.is_change_secret(_one(headers, SECRET_HEADER) or ""):
            return Refusal(403, "To change something, open the address with the token again: this browser only looks.")
        length = _one(headers, "content-length")
        if length is not None and length.isdecimal() and int(length) > LARGEST_BODY:
            return Refusal(413, f"A request's body must be at most {LARGEST_BODY} bytes.")
        media = (_one(headers, "content-type") or "").partition(";")[0].strip().lower()
        has_body = length not in (None, "0") or "transfer-encoding" in headers
        if has_body and media != "application/json":
            return Refusal(415, "A request's body must be JSON, with content-type: application/json.")
        return None

    def _is_known(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        if self._enters(scope):
            return True
        if (given := _bearer(headers)) is not None:
            return self.access.is_token(given)
        return any(
            self.access.is_session(value) for value in _cookies(headers.get("cookie", []), self.access.cookie_name)
        )

    def _enters(self, scope: Scope) -> bool:
        """Whether the address of a page carries the token."""
        if scope["method"] != "GET" or scope["path"] != f"{self.access.base_path}/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return len(given) == 1 and self.access.is_token(given[0])

    async def _let_in(self, send: Send) -> None:
        """Sets the cookie, and tells the secret of changes to a script, which keeps it and asks for the page.

        Without the token, so that it stays in no history. Not by a redirect: a browser that was sent here from another
        site would leave a strict cookie out.
        """
        path = f"{self.access.base_path}/"
        secure = "; Secure" if self.access.is_tls or (self.access.proxy or "").startswith("https:") else ""
        cookie = f"{self.access.cookie_name}={self.access.session}; Path={path}; HttpOnly; SameSite=Strict{secure}"
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Farthing</title>'
            f'<meta name="farthing-secret" content="{self.access.change_secret}">'
            '<script src="static/enter.js" type="module"></script></head><body></body></html>'
        )
        headers = [(b"set-cookie", cookie.encode()), (b"content-type", b"text/html; charset=utf-8")]
        await _send_whole(send, 200, headers, page.encode())

    def _wants_page(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        return scope["method"] == "GET" and "text/html" in (_one(headers, "accept") or "")


class BodyTooLarge(Exception):
    """More came than a body may have."""


class _Bounded:
    """Counts what a request brings, whatever it said about its length."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._taken = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken > LARGEST_BODY:
            raise BodyTooLarge
        return message


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in raw:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _one(headers: dict[str, list[str]], name: str) -> str | None:
    """Several of a header count as none of ours."""
    values = headers.get(name)
    return None if values is None else values[0] if len(values) == 1 else "several"


def _bearer(headers: dict[str, list[str]]) -> str | None:
    """The token that a program gives in a header."""
    kind, _, given = (_one(headers, "authorization") or "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else None


def _cookies(headers: Iterable[str], name: str) -> list[str]:
    found = []
    for header in headers:
        try:
            jar: SimpleCookie = SimpleCookie(header)
        except CookieError:
            continue
        if name in jar:
            found.append(jar[name].value)
    return found


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message.get("headers", [])}
            added = [(name, value) for name, value in HEADERS if name not in own]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sending


async def _answer(send: Send, refusal: Refusal, *, is_page: bool) -> None:
    challenge = [(b"www-authenticate", b"Bearer")] if refusal.status == 401 else []
    if is_page:
        text = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Farthing</title></head>'
            f"<body><main><h1>Farthing</h1><p>{refusal.text}</p></main></body></html>"
        )
        headers = [(b"content-type", b"text/html; charset=utf-8"), *challenge]
        await _send_whole(send, refusal.status, headers, text.encode())
        return
    headers = [(b"content-type", b"application/json"), *challenge]
    await _send_whole(send, refusal.status, headers, json.dumps({"error": refusal.text}).encode())


async def _send_whole(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [*headers, length, (b"cache-control", b"no-store")],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
