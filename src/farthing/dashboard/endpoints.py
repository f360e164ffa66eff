"""Declares what the server answers: each endpoint once, from which come its route, its checks and its documentation."""

import json
import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal
from urllib.parse import unquote

from farthing.errors import InvalidArgument
from farthing.trials import Json
from farthing.validation import shown

ArgumentKind = Literal["text", "whole", "flag", "texts"]
LONGEST_TEXT = 1_000
MOST_TEXTS = 20
SCHEMAS: dict[ArgumentKind, dict[str, Json]] = {
    "text": {"type": "string", "maxLength": LONGEST_TEXT},
    "whole": {"type": "integer"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string", "maxLength": LONGEST_TEXT}, "maxItems": MOST_TEXTS},
}


@dataclass(frozen=True)
class Input:
    """One value of a request. A text may be limited to some `choices`, a whole number to a range."""

    name: str
    kind: ArgumentKind = "text"
    about: str = ""
    default: Json = None
    choices: Sequence[str] = ()
    least: int | None = None
    most: int | None = None
    pattern: str = ""
    in_path: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        schema = dict(SCHEMAS[self.kind])
        if self.choices and self.kind == "texts":
            schema["items"] = {"type": "string", "enum": list(self.choices)}
        elif self.choices:
            schema["enum"] = list(self.choices)
        bounds = {"minimum": self.least, "maximum": self.most, "pattern": self.pattern or None}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        return schema if self.default is None else {**schema, "default": self.default}

    def read(self, given: Sequence[str]) -> Json:
        """The value of what came, checked."""
        if self.kind == "texts":
            return self._texts(given)
        if len(given) > 1:
            raise InvalidArgument(f"{self.name} must be given once, got it {len(given)} times. Leave out the others.")
        if not given:
            return self.default
        return {"text": self._text, "whole": self._whole, "flag": self._flag}[self.kind](given[0])

    def _texts(self, given: Sequence[str]) -> list[str]:
        if len(given) > MOST_TEXTS:
            raise InvalidArgument(
                f"{self.name} must be given at most {MOST_TEXTS} times, got {len(given)}. Give fewer."
            )
        return [self._text(one) for one in given]

    def _text(self, given: str) -> str:
        if len(given) > LONGEST_TEXT or "\x00" in given:
            raise InvalidArgument(f"{self.name} must be a text of up to {LONGEST_TEXT} characters, got {shown(given)}.")
        if self.choices and given not in self.choices:
            raise InvalidArgument(f"{self.name} must be one of {', '.join(self.choices)}, got {shown(given)}.")
        return given

    def _whole(self, given: str) -> int:
        digits = given[1:] if given.startswith("-") else given
        number = int(given) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None
        low, high = self.least, self.most
        if number is None or (low is not None and number < low) or (high is not None and number > high):
            raise InvalidArgument(f"{self.name} must be a whole number from {low} to {high}, got {shown(given)}.")
        return number

    def _flag(self, given: str) -> bool:
        if given not in ("true", "false"):
            raise InvalidArgument(f"{self.name} must be true or false, got {shown(given)}.")
        return given == "true"


@dataclass(frozen=True)
class Body:
    """The JSON object that a request carries: JSON schemas of its fields, and which must be there."""

    fields: Mapping[str, Mapping[str, Json]]
    required: Sequence[str] = ()

    @property
    def schema(self) -> dict[str, Json]:
        return {
            "type": "object",
            "properties": {name: dict(schema) for name, schema in self.fields.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }

    def read(self, given: Json) -> dict[str, Json]:
        if not isinstance(given, dict):
            raise InvalidArgument(f"A request's body must be a JSON object, got {shown(given)}.")
        missing = [name for name in self.required if name not in given]
        unknown = [name for name in given if name not in self.fields]
        if missing or unknown:
            raise InvalidArgument(
                f"A request's body must have {', '.join(self.fields)}, got "
                f"{f'none for {missing[0]}' if missing else f'an unknown field {shown(unknown[0])}'}."
            )
        for name, value in given.items():
            _check(name, value, self.fields[name])
        return given


def _check(name: str, value: Json, schema: Mapping[str, Any]) -> None:
    """The few words of JSON schema that our bodies use."""
    kinds: dict[str, Any] = {"string": str, "number": (int, float), "integer": int, "boolean": bool}
    kinds |= {"object": dict, "array": list}
    kind = schema["type"]
    fits = isinstance(value, kinds[kind]) and not (kind in ("number", "integer") and isinstance(value, bool))
    if fits and isinstance(value, str):
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", LONGEST_TEXT)
    if fits and isinstance(value, (int, float)) and not isinstance(value, bool):
        fits = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        fits = fits and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
    if fits and isinstance(value, list):
        fits = len(value) <= schema.get("maxItems", MOST_TEXTS)
        for item in value if fits else ():
            _check(name, item, schema["items"])
    if not fits:
        raise InvalidArgument(f"{name} must fit {dict(schema)}, got {shown(value)}.")


Handler = Callable[..., Any]


@dataclass(frozen=True)
class Endpoint:
    """One thing that the server answers. `handle` gets the reader of the storage and the arguments by name."""

    method: Literal["GET", "POST", "PATCH"]
    path: str
    handle: Handler
    about: str
    arguments: tuple[Input, ...] = ()
    body: Body | None = None
    answer: Mapping[str, Json] = field(default_factory=lambda: {"type": "object"})
    media: str = "application/json"

    @property
    def changes(self) -> bool:
        return self.method != "GET"


STUDY = Input("study", about="The key of a study, as the list of studies has it.", in_path=True)
TRIAL = Input("number", "whole", "The number of a trial.", least=0, most=10**9, in_path=True)


def openapi(endpoints: Sequence[Endpoint]) -> dict[str, Json]:
    """The document of the API."""
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Farthing's dashboard",
            "version": "1",
            "description": "Studies and what they cost. Every request needs the cookie of a page that was opened with "
            "the token, or the header Authorization: Bearer TOKEN. Requests that change something are answered only by "
            "a server that was started with --allow-changes, and the cookie is not enough for them: a page adds the "
            "secret that came with the token, in the header X-Farthing-Secret.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}},
                    "required": ["error"],
                    "additionalProperties": False,
                }
            },
        },
        "security": [{"token": []}],
    }


ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
ERRORS = {
    "400": "The request is not one that this server answers.",
    "401": "The token is missing or wrong.",
    "403": "The server was started without --allow-changes, or the request comes from another page.",
    "404": "There is no such study or trial, or not enough of it.",
    "409": "The study is in a state in which this cannot be done.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "An argument does not fit.",
    "503": "The storage does not answer, or too many readers are connected.",
}


def _operation(endpoint: Endpoint) -> dict[str, Json]:
    errors = {code: {"description": text, "content": ERROR} for code, text in ERRORS.items()}
    operation: dict[str, Json] = {
        "operationId": endpoint.handle.__name__,
        "summary": endpoint.about,
        "parameters": [_parameter(argument) for argument in endpoint.arguments],
        "responses": {
            "200": {"description": endpoint.about, "content": {endpoint.media: {"schema": dict(endpoint.answer)}}},
            **errors,
        },
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": endpoint.body.schema}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameter(argument: Input) -> dict[str, Json]:
    return {
        "name": argument.name,
        "in": "path" if argument.in_path else "query",
        "required": argument.in_path,
        "description": argument.about,
        "schema": argument.schema,
    }


# ------------------------------------------------------------
# Answers that are not JSON.


@dataclass(frozen=True)
class Download:
    """A file: the browser keeps it, unless `is_shown`."""

    name: str
    media: str
    content: bytes | BinaryIO
    is_shown: bool = False


# ------------------------------------------------------------
# JSON as browsers read it, which has no NaN and no infinity: where one is stored, there is nothing.


def strict_json(form: Any) -> str:
    try:
        return _dumped(form)
    except ValueError:
        return _dumped(_finite(form))


def _dumped(form: Any) -> str:
    return json.dumps(form, separators=(",", ":"), default=str, allow_nan=False)


def _finite(form: Any) -> Any:
    match form:
        case dict():
            return {name: _finite(part) for name, part in form.items()}
        case list() | tuple():
            return [_finite(part) for part in form]
        case float() if not math.isfinite(form):
            return None
        case _:
            return form


# ------------------------------------------------------------
# Names of studies in addresses: readable where they can be, and never a path.


PLAIN = frozenset(string.ascii_letters + string.digits + "-_")


def key_of(name: str) -> str:
    """`digits 2/3` is `digits~202~2F3`: letters, digits, `-` and `_` stay, other bytes of UTF-8 are spelled out."""
    return "".join(letter if letter in PLAIN else _spelled(letter) for letter in name)


def _spelled(letter: str) -> str:
    return "".join(f"~{byte:02X}" for byte in letter.encode(errors="surrogatepass"))


def name_of(key: str) -> str:
    return unquote(key.replace("%", "%25").replace("~", "%"), errors="replace")
