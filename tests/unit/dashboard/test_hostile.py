"""The table of hostile requests: each is refused."""

import asyncio

import pytest

from farthing.dashboard.security import LARGEST_BODY, LOOPBACK, Access
from tests.unit.dashboard.conftest import SECRET, TOKEN, client_of

BEARER = {"authorization": f"Bearer {TOKEN}"}
JSON = {"content-type": "application/json"}
SESSION = Access(TOKEN, 8000).session
COOKIE = {"cookie": f"farthing-8000={SESSION}"}
REPLAYED = {"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}
OWN = {**REPLAYED, "x-farthing-secret": SECRET}
STOP = "/api/studies/asha/stop"

HOSTILE = {
    "no token": ("GET", "/api/studies", {}, None, 401),
    "no token, the page": ("GET", "/", {"accept": "text/html"}, None, 401),
    "no token, a script of the page": ("GET", "/static/app.js", {}, None, 401),
    "a wrong token": ("GET", "/api/studies", {"authorization": "Bearer guess"}, None, 401),
    "a wrong token in the address": ("GET", "/?token=guess", {}, None, 401),
    "two tokens in the address": ("GET", f"/?token={TOKEN}&token={TOKEN}", {}, None, 401),
    "the token in the address of the API": ("GET", f"/api/studies?token={TOKEN}", {}, None, 401),
    "the token as the cookie": ("GET", "/api/studies", {"cookie": f"farthing-8000={TOKEN}"}, None, 401),
    "the cookie of another port": ("GET", "/api/studies", {"cookie": f"farthing-9000={SESSION}"}, None, 401),
    "a broken cookie": ("GET", "/api/studies", {"cookie": 'farthing-8000="\x01'}, None, 401),
    "a foreign host": ("GET", "/api/studies", {**BEARER, "host": "evil.example"}, None, 400),
    "a rebinding name": ("GET", "/api/studies", {**COOKIE, "host": "127.0.0.1.evil.example:8000"}, None, 400),
    "a host with a user": ("GET", "/api/studies", {**BEARER, "host": "localhost@evil.example"}, None, 400),
    "an empty host": ("GET", "/api/studies", {**BEARER, "host": ""}, None, 400),
    "a read from another site": ("GET", "/api/studies", {**COOKIE, "sec-fetch-site": "cross-site"}, None, 403),
    "a foreign origin": ("POST", STOP, {**COOKIE, **JSON, "origin": "https://evil.example"}, b"{}", 403),
    "a null origin": ("POST", STOP, {**COOKIE, **JSON, "origin": "null"}, b"{}", 403),
    "an origin of another port": ("POST", STOP, {**COOKIE, **JSON, "origin": "http://localhost:9000"}, b"{}", 403),
    "an origin of another scheme": ("POST", STOP, {**COOKIE, **JSON, "origin": "https://localhost:8000"}, b"{}", 403),
    "a foreign origin with the token": ("POST", STOP, {**BEARER, **JSON, "origin": "https://evil.example"}, b"{}", 403),
    "a cookie without an origin": ("POST", STOP, {**COOKIE, **JSON}, b"{}", 403),
    "a same-site neighbour": ("POST", STOP, {**COOKIE, **JSON, **OWN, "sec-fetch-site": "same-site"}, b"{}", 403),
    "a replayed cookie": ("POST", STOP, {**COOKIE, **JSON, **REPLAYED}, b"{}", 403),
    "a replayed cookie and a guess": (
        "POST", STOP, {**COOKIE, **JSON, **REPLAYED, "x-farthing-secret": "guess"}, b"{}", 403,
    ),
    "a replayed cookie as the secret": (
        "POST", STOP, {**COOKIE, **JSON, **REPLAYED, "x-farthing-secret": SESSION}, b"{}", 403,
    ),
    "a replayed cookie of a program": ("POST", STOP, {**COOKIE, **JSON, "authorization": "Basic eDp5"}, b"{}", 403),
    "the secret without a cookie": ("POST", STOP, {**JSON, **OWN}, b"{}", 401),
    "the secret from elsewhere": (
        "POST", STOP, {**COOKIE, **JSON, **OWN, "origin": "https://evil.example"}, b"{}", 403,
    ),
    "a form": ("POST", STOP, {**COOKIE, **OWN, "content-type": "text/plain"}, b"{}", 415),
    "a form, urlencoded": (
        "POST", STOP, {**COOKIE, **OWN, "content-type": "application/x-www-form-urlencoded"}, b"_method=DELETE", 415,
    ),
    "DELETE from a form": ("POST", "/api/studies/asha?_method=DELETE", {**COOKIE, **OWN, **JSON}, b"{}", 405),
    "DELETE": ("DELETE", "/api/studies/asha", {**COOKIE, **OWN}, None, 405),
    "DELETE from elsewhere": ("DELETE", "/api/studies/asha", {**COOKIE, "origin": "https://evil.example"}, None, 403),
    "PUT": ("PUT", "/api/studies/asha", {**COOKIE, **OWN, **JSON}, b"{}", 405),
    "a preflight": ("OPTIONS", STOP, {"origin": "https://evil.example"}, None, 401),
    "a large body": ("POST", STOP, {**BEARER, **JSON}, b"x" * (LARGEST_BODY + 1), 413),
    "a body that is no JSON": ("POST", STOP, {**BEARER, **JSON}, b"{", 422),
    "a deep body": ("POST", STOP, {**BEARER, **JSON}, b"[" * 50_000, 422),
    "a path upwards": ("GET", "/static/../application.py", BEARER, None, 404),
    "a path upwards, in code": ("GET", "/static/%2e%2e%2fapplication.py", BEARER, None, 404),
    "a path upwards, twice in code": ("GET", "/static/%252e%252e/application.py", BEARER, None, 404),
    "an absolute path": ("GET", "/static//etc/passwd", BEARER, None, 404),
    "a file upwards": ("GET", "/api/studies/asha/trials/0/file?name=../../stored.db", BEARER, None, 404),
    "an absolute file": ("GET", "/api/studies/asha/trials/0/file?name=/etc/passwd", BEARER, None, 404),
    "a study upwards": ("GET", "/api/studies/~2E~2E~2F", BEARER, None, 404),
    "a study with a null byte": ("GET", "/api/studies/~00", BEARER, None, 404),
    "a huge number": ("GET", "/api/studies/asha/trials/99999999999999999999", BEARER, None, 422),
    "SQL": ("GET", "/api/studies/asha/trials?sort=number;drop%20table%20study", BEARER, None, 422),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_refused(storage, name: str) -> None:
    method, path, headers, body, status = HOSTILE[name]
    client = client_of(storage, may_change=True, with_token=False)
    before = storage.versions()

    answer = client.request(method, path, headers=headers, content=body)

    assert answer.status_code == status, answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert storage.versions() == before


def test_a_body_that_grows_beyond_what_it_said_is_refused(storage) -> None:
    def parts():
        for _ in range(200):
            yield b" " * 1024

    client = client_of(storage, may_change=True)
    answer = client.post(STOP, headers=JSON, content=parts())

    assert answer.status_code == 413


def test_a_body_in_small_parts_is_refused_once_they_are_too_many(storage) -> None:
    """The client above joins its parts; a server passes them on as they come."""
    told, taken = [], []

    async def receive():
        taken.append(b" " * 1024)
        return {"type": "http.request", "body": taken[-1], "more_body": len(taken) < 200}

    async def send(message):
        told.append(message)

    headers = {**BEARER, **JSON, "host": "localhost:8000"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": STOP,
        "raw_path": STOP.encode(),
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "server": ("localhost", 8000),
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(client_of(storage, may_change=True).app(scope, receive, send))

    assert told[0]["status"] == 413
    assert len(taken) == LARGEST_BODY // 1024 + 1


def test_the_token_lets_a_page_in_once_and_leaves_a_strict_cookie(stranger) -> None:
    entered = stranger.get(f"/?token={TOKEN}")

    cookie = entered.headers["set-cookie"]
    assert entered.status_code == 200
    assert TOKEN not in cookie
    assert TOKEN not in entered.text
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get("/").status_code == 200
    assert stranger.get("/api/studies").status_code == 200


def test_the_secret_of_changes_is_told_to_the_token_and_to_no_cookie(stranger) -> None:
    """A cookie goes to every port of its host, so that whoever has it must not learn more by it."""
    entered = stranger.get(f"/?token={TOKEN}")
    assert SECRET in entered.text
    assert SECRET not in str(entered.headers)
    places = ["/", "/?token=", "/static/api.js", "/static/enter.js", "/api/studies", "/api/studies/asha"]
    for answer in (stranger.get(place) for place in [*places, "/api/openapi.json"]):
        assert SECRET not in answer.text + str(answer.headers), answer.url


def test_a_server_makes_a_secret_of_its_own_each_time() -> None:
    """A fixed token may be read by a program that took the port meanwhile; what that one kept is then of no use."""
    assert Access(TOKEN, 8000).change_secret != Access(TOKEN, 8000).change_secret


def test_a_page_of_ours_may_change_what_it_shows(stranger) -> None:
    answer = stranger.post(STOP, headers={**COOKIE, **JSON, **OWN}, content=b"{}")

    assert answer.status_code == 200, answer.text


def test_a_server_that_only_shows_changes_nothing(client, storage) -> None:
    before = storage.versions()

    assert client.post(STOP, json={}).status_code == 403
    assert storage.versions() == before


def test_hosts_are_told_apart_without_their_port() -> None:
    access = Access("x" * 20, 8000, hosts=(*LOOPBACK, "tower.example"), proxy="https://board.example")

    known = ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "[::1]", "tower.example:9", "board.example"]
    assert all(access.knows(host) for host in known)
    assert not any(access.knows(host) for host in ["evil.example", "localhost.evil.example", "", "::2", "[::2]:1"])


def test_a_proxys_origin_is_ours(storage) -> None:
    client = client_of(storage, may_change=True, with_token=False, proxy="https://board.example")
    headers = {**COOKIE, **JSON, **OWN, "host": "board.example"}

    assert client.post(STOP, headers={**headers, "origin": "https://board.example"}, content=b"{}").status_code == 200
    assert client.post(STOP, headers={**headers, "origin": "http://board.example"}, content=b"{}").status_code == 403
    assert "Secure" in client.get(f"/?token={TOKEN}", headers={"host": "board.example"}).headers["set-cookie"]
