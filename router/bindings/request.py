"""The HTTP request of a binding and its arguments (NIP-7, Tool Bindings; P10). Pure.

An argument fills the placeholder of its name, or goes where `parameters` says; what is left becomes
the query of `http_get`, and the JSON body of `http_post`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, unquote_plus, urlencode

import orjson
from yarl import URL

from capdex.errors import InvalidInput
from capdex.manifest.bindings import PLACEHOLDER
from capdex.manifest.bindings.http_request import HEADER_VALUE, PLACES, header_fault
from router.model.refs import Json

MAX_URL_CHARS: Final = 8192  # longer than what servers take
MAX_HEADER_CHARS: Final = 4096
MAX_BODY_BYTES: Final = 1024 * 1024
_ACCEPT: Final = {"Accept": "application/json, text/*;q=0.9, */*;q=0.5"}
_JSON: Final = {"Content-Type": "application/json"}
DEFAULT_HEADERS: Final = _ACCEPT | _JSON  # unless a binding sets them
METHODS: Final = {"http_get": "GET", "http_post": "POST"}

_URL: Final = re.compile(r"(https?://[^/?#{}\s\\@]+)((?:/[^?#]*)?)(\?[^#]*)?(?:#.*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request that is ready to be sent, but for its credentials."""

    method: str
    url: URL
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """The request that an `http_get` or `http_post` binding describes.

    `origin` is the scheme, host and port as written; `places` holds, for each mapped parameter, its
    place and its name there.
    """

    method: str
    origin: str
    path: str
    query: str
    places: Mapping[str, tuple[str, str]]
    headers: Mapping[str, str]

    @classmethod
    def of(cls, binding: Mapping[str, Any]) -> RequestTemplate:
        """Return the template of a binding; raises InvalidInput if it cannot be sent."""
        match = _URL.fullmatch(binding.get("url", ""))
        if match is None or binding["type"] not in METHODS:
            raise _unusable("its URL names no host, or a placeholder stands in front of its path")
        origin, path, query = match[1], match[2] or "/", (match[3] or "?")[1:]
        places = dict(_places(binding))
        headers = {name: str(value) for name, value in _mapping(binding, "headers").items()}
        for name, value in headers.items():
            check_header(name, value)
        if binding["type"] == "http_get" and any(place == "body" for place, _ in places.values()):
            raise _unusable("a GET request has no body")
        return cls(METHODS[binding["type"]], origin, path, query, places, headers)

    def fill(self, arguments: Json) -> Outgoing:
        """Return the request for valid arguments.

        Raises InvalidInput if an argument is missing, has no text form, or would change the path.
        """
        in_url = {name: key for key, (place, name) in self.places.items() if place == "path"}
        used: set[str] = set()

        def filled(match: re.Match[str]) -> str:
            parameter = in_url.get(match[1], match[1])
            used.add(parameter)
            return quote(_text(parameter, arguments.get(parameter)), safe="")

        path = PLACEHOLDER.sub(filled, self.path)
        query = [PLACEHOLDER.sub(filled, self.query)] if self.query else []
        _check_path(path)
        fixed = [_steps(key) for key in _keys(self.query) if not PLACEHOLDER.search(key)]
        for key in filter(PLACEHOLDER.search, _keys(self.query)):
            _check_new(key, PLACEHOLDER.sub(filled, key), fixed)
        headers = dict(self.headers)
        fixed_headers = {name.lower() for name in headers}
        pairs: list[tuple[str, str]] = []
        body: Json = {}
        default = "query" if self.method == "GET" else "body"
        for parameter, value in arguments.items():
            place, name = self.places.get(parameter, (default, parameter))
            if place == "path" or (parameter in used and parameter not in self.places):
                continue
            if place != "header":  # a server may read a body's fields beside its query
                _check_new(parameter, name, fixed)
            if place == "body":
                body[name] = value
            elif value is not None and place == "query":
                values = value if isinstance(value, list) else [value]
                pairs += [(name, _query_text(parameter, item)) for item in values]
            elif value is not None:
                if name.lower() in fixed_headers:
                    raise _replaces(parameter)
                headers[name] = _text(parameter, value)
                check_header(name, headers[name])
        if pairs:
            query.append(urlencode(pairs, quote_via=quote, safe=""))
        text = f"{self.origin}{path}{'?' if query else ''}{'&'.join(query)}"
        if len(text) > MAX_URL_CHARS:
            raise InvalidInput("the arguments make a URL that is too long")
        url = URL(text, encoded=True)
        if self.method == "GET":
            return Outgoing(self.method, url, _with_defaults(headers, _ACCEPT), None)
        headers = _with_defaults(headers, DEFAULT_HEADERS)
        return Outgoing(self.method, url, headers, json_body(body))


def json_body(value: Json) -> bytes:
    """Return arguments as JSON; raises InvalidInput if they are too large, or no JSON."""
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError as error:  # a lone surrogate, or an integer over 64 bits
        raise InvalidInput("the arguments cannot be sent as JSON", why=str(error)) from None
    if len(data) > MAX_BODY_BYTES:
        raise InvalidInput("the arguments are too large", why=f"over {MAX_BODY_BYTES} bytes")
    return data


def check_header(name: str, value: str) -> None:
    """Raise InvalidInput for a header that a binding may not set, or that would end early."""
    if fault := header_fault(name):
        raise InvalidInput(f"a binding may not set the header {name[:64]!r}", why=fault)
    if len(value) > MAX_HEADER_CHARS or not HEADER_VALUE.fullmatch(value):
        raise InvalidInput(f"the value of the header {name} is not printable ASCII on one line")


def _with_defaults(headers: dict[str, str], defaults: dict[str, str]) -> dict[str, str]:
    """Return the headers with those defaults that they do not set, in whatever case."""
    known = {name.lower() for name in headers}
    return {**{x: y for x, y in defaults.items() if x.lower() not in known}, **headers}


def _mapping(binding: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = binding.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _unusable(f"its {field} are no mapping")
    return found


def _places(binding: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    for parameter, rule in _mapping(binding, "parameters").items():
        where = rule if isinstance(rule, dict) else {}
        place, name = where.get("in"), where.get("name")
        if place not in PLACES or not isinstance(name, str | None):
            raise _unusable(f"the parameter {parameter} has no known place")
        if name is None or not name.strip():
            name = parameter
        if place == "header":
            check_header(name, "")
        yield parameter, (place, name)


def _text(parameter: str, value: Any) -> str:
    """Return a scalar as text, without control characters, which servers and logs misread."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return orjson.dumps(value).decode() if abs(value) < 2**63 else str(value)
        case str() if all(x >= " " and x != "\x7f" for x in value) and _is_utf8(value):
            return value
        case str():
            why = "it holds control characters, or what is not Unicode text"
        case None:
            why = "it is missing, and the URL needs it"
        case _:
            why = "a list or an object does not fit into a URL or a header"
    raise InvalidInput(f"the argument {parameter} cannot be sent", why=why)


def _query_text(parameter: str, value: Any) -> str:
    if not isinstance(value, str):
        return orjson.dumps(value).decode() if isinstance(value, dict | list) else _json_text(value)
    if _is_utf8(value) and "\x00" not in value:
        return value  # line ends are percent-encoded, and belong to long texts
    raise InvalidInput(f"the argument {parameter} cannot be sent", why="it is not Unicode text")


def _json_text(value: Any) -> str:
    return "null" if value is None else _text("", value)


def _is_utf8(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= x <= "\udfff" for x in value)


def _check_path(path: str) -> None:
    """Refuse a path that a server could resolve to another one (RFC 3986, 5.2.4)."""
    decoded = unquote(unquote(path)).replace("\\", "/")  # some servers decode twice
    if any(segment.partition(";")[0] in (".", "..") for segment in decoded.split("/")):
        raise InvalidInput(
            "an argument would change the path of the URL",
            why="a segment of the path would be `.` or `..`",
            fix="give a value without dots alone between slashes",
        )


def _keys(query: str) -> list[str]:
    return [part.partition("=")[0] for part in re.split("[&;]", query)]


def _steps(key: str) -> list[str]:
    """Return the names in a key of a query: servers read `a`, `A`, `%61`, `a[]` and `[a]` alike."""
    text = unquote(unquote_plus(key)).strip().lower()
    return [re.sub("[ .]", "_", name) for name in re.split(r"[\[\]]", text) if name]


def _check_new(parameter: str, key: str, fixed: list[list[str]]) -> None:
    """Refuse a key that a server may take for one of the author's: `a` and `a[b]`, not `a[c]`."""
    steps = _steps(key)
    if any(all(x == y for x, y in zip(steps, other, strict=False)) for other in fixed if other):
        raise _replaces(parameter)


def _replaces(parameter: str) -> InvalidInput:
    return InvalidInput(
        f"the argument {parameter[:64]} would replace what the tool's binding fixes",
        why="its query or its headers have that name already",
        fix="leave it out",
    )


def _unusable(why: str) -> InvalidInput:
    return InvalidInput("the binding of this tool cannot be used", why=why)
