"""Puts the endpoints, the pages and the guard together."""

import base64
import gzip
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from farthing.dashboard.endpoints import Download, Endpoint, name_of, openapi, strict_json
from farthing.dashboard.live import ChangeFeed, Pulse
from farthing.dashboard.reading import ShownStudies
from farthing.dashboard.routes import ENDPOINTS
from farthing.dashboard.security import CSP, Access, App, BodyTooLarge, Guard
from farthing.errors import (
    FarthingError,
    InvalidArgument,
    NoResult,
    StorageError,
    StudyNotFound,
    TrialFinished,
    TrialNotFound,
)

log = logging.getLogger("farthing")

STATIC = Path(__file__).parent / "static"
MEDIA = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
STYLES = ("vendor/uPlot.min.css", "style.css")
STYLE_PLACE = "<!-- style -->"
PIECE = 64 * 1024
STATUS: tuple[tuple[type[FarthingError], int], ...] = (
    (StudyNotFound, 404),
    (TrialNotFound, 404),
    (NoResult, 404),
    (TrialFinished, 409),
    (StorageError, 503),
    (FarthingError, 422),
)
PASSWORD = re.compile(r"(://[^/@:\s]*):[^/@\s]*@")


def application(studies: ShownStudies, access: Access) -> App:
    """The whole server as an ASGI application."""
    pulse = Pulse(studies.versions)
    changes = ChangeFeed(pulse.versions)
    base = access.base_path
    routes = [
        *(Route(base + one.path, _answering(one, studies, pulse), methods=[one.method]) for one in ENDPOINTS),
        Route(f"{base}/api/events", _events(changes), methods=["GET"]),
        Route(f"{base}/api/openapi.json", _document(ENDPOINTS), methods=["GET"]),
        *_static_routes(base),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
        exception_handlers={404: _not_found, 405: _not_allowed},
    )
    app.router.redirect_slashes = False
    return Guard(_in_pieces(app), access)


def _in_pieces(app: Any) -> App:
    async def answering(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            for part in _parts(message):
                await send(part)

        await app(scope, receive, sending)

    return answering


def _parts(message: Any) -> Iterator[Any]:
    """A long body in pieces: the server waits for the reader between them, and holds no more than one."""
    body = message.get("body", b"")
    for start in range(0, len(body) - PIECE, PIECE):
        yield {**message, "body": body[start : start + PIECE], "more_body": True}
    yield {**message, "body": body[(len(body) - 1) // PIECE * PIECE :]} if len(body) > PIECE else message


def _answering(endpoint: Endpoint, studies: ShownStudies, pulse: Pulse) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if endpoint.changes and not studies.may_change:
            return _error(403, "This server only shows. Start it with --allow-changes.")
        try:
            arguments = {
                one.name: one.read(
                    [request.path_params[one.name]] if one.in_path else request.query_params.getlist(one.name)
                )
                for one in endpoint.arguments
            }
            if endpoint.body is not None:
                arguments["body"] = endpoint.body.read(_json(await request.body()))

            def made() -> Response:
                found = endpoint.handle(studies, **arguments)
                return _download(found) if isinstance(found, Download) else _fresh(request, found)

            return await pulse.beside(made)
        except FarthingError as error:
            if isinstance(error, StudyNotFound) and "study" in request.path_params:
                studies.forget(name_of(request.path_params["study"]))
            status = next(status for kind, status in STATUS if isinstance(error, kind))
            return _error(status, PASSWORD.sub(r"\1:***@", str(error)))
        except BodyTooLarge:
            return _error(413, "A request's body is too large.")
        except Exception:
            log.exception("The dashboard failed to answer %s", endpoint.path)
            return _error(503, "The dashboard failed at this; its log says why.")

    answer.__name__ = endpoint.handle.__name__
    return answer


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidArgument("A request's body must be JSON, got something else.") from None


def _fresh(request: Request, found: Any) -> Response:
    """The answer, or a word that the page has it already."""
    body = strict_json(found).encode()
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def _download(found: Download) -> Response:
    """A browser shows pictures; everything else it keeps, whatever it looks like."""
    place = "inline" if found.is_shown else "attachment"
    name = re.sub(r"[^A-Za-z0-9._-]", "_", found.name)
    headers = {
        "content-disposition": f'{place}; filename="{name}"',
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "private, no-store",
    }
    if isinstance(found.content, bytes):
        return Response(found.content, media_type=found.media, headers=headers)
    headers["content-length"] = str(os.fstat(found.content.fileno()).st_size)
    return StreamingResponse(_pieces(found.content), media_type=found.media, headers=headers)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """As much as the file had when it was opened: it may grow meanwhile."""
    with file:
        left = os.fstat(file.fileno()).st_size
        while piece := file.read(min(PIECE, left)):
            left -= len(piece)
            yield piece


def _error(status: int, text: str) -> Response:
    body = json.dumps({"error": text}).encode()
    return Response(body, status, media_type="application/json", headers={"cache-control": "no-store"})


async def _not_found(request: Request, error: Exception) -> Response:
    return _error(404, "There is nothing at that address.")


async def _not_allowed(request: Request, error: Any) -> Response:
    answer = _error(405, "That address does not answer this method.")
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


def _events(changes: ChangeFeed) -> Callable[[Request], Any]:
    async def events(request: Request) -> Response:
        if changes.is_full:
            return _error(503, "Too many pages are connected. Close some.")
        stream = changes.stream(request.headers.get("last-event-id"))
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    return events


def _document(endpoints: Sequence[Endpoint]) -> Callable[[Request], Any]:
    text = json.dumps(openapi(endpoints), indent=1).encode()

    async def document(request: Request) -> Response:
        return Response(text, media_type="application/json", headers={"cache-control": "no-store"})

    return document


def _static_routes(base: str) -> list[Route]:
    """A route for each file that there is: no path of a request ever reaches the disk."""
    routes = [Route(f"{base}/", _page(), methods=["GET"])]
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in MEDIA:
            answer = _static(path.read_bytes(), MEDIA[path.suffix])
            routes.append(Route(f"{base}/static/{path.relative_to(STATIC).as_posix()}", answer, methods=["GET"]))
    return routes


def _page() -> Callable[[Request], Any]:
    """The page with its style inside, allowed by its hash: it is painted after one request."""
    style = "".join((STATIC / name).read_text(encoding="utf-8") for name in STYLES)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = (STATIC / "page.html").read_text(encoding="utf-8").replace(STYLE_PLACE, f"<style>{style}</style>")
    policy = CSP.replace("style-src 'self'", f"style-src 'self' 'sha256-{digest}'")
    return _static(page.encode(), "text/html; charset=utf-8", {"content-security-policy": policy})


def _static(content: bytes, media: str, more: Mapping[str, str] = MappingProxyType({})) -> Callable[[Request], Any]:
    packed = gzip.compress(content, 9, mtime=0)
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "accept-encoding", **more}

    async def answer(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type=media, headers={**headers, "content-encoding": "gzip"})
        return Response(content, media_type=media, headers=headers)

    return answer
