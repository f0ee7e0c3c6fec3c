"""The HTTP request of a binding and its arguments (NIP-7, Tool Bindings; P10). Pure.

An argument fills the placeholder of its name, or goes where `parameters` says; what is left becomes
the query of GET and DELETE, and the body of other methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, unquote_plus

import orjson
from yarl import URL

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.manifest.bindings.http_auth import auths
from capdex.manifest.bindings.http_header import HEADER_VALUE, header_fault
from capdex.manifest.bindings.http_request import (
    FORM,
    JSON,
    PLACEHOLDER,
    QUERY_METHODS,
    STYLES,
    method_of,
)
from capdex.manifest.urls import has_dots
from capdex_router.bindings.styles import (
    ArgumentPlace,
    Quote,
    header_value,
    in_form,
    in_url,
    json_text,
    named_texts,
    path_text,
    scalar,
    unsendable,
)
from capdex_router.model.refs import AUTHOR

MAX_URL_CHARS: Final = 8192  # longer than what servers take
MAX_HEADER_CHARS: Final = 4096
_ACCEPT: Final = {"Accept": "application/json, text/*;q=0.9, */*;q=0.5"}
DEFAULT_HEADERS: Final = _ACCEPT | {"Content-Type": JSON}  # unless a binding sets them

_URL: Final = re.compile(
    r"((?i:https?)://[^/?#{}\s\\@]+)((?:/[^?#]*)?)(\?[^#]*)?(?:#.*)?", re.ASCII
)
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")  # written by the author: no request line holds it


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request that is ready to be sent, but for its credentials."""

    method: str
    url: URL
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """The request that an `http_get`, `http_post` or `http` binding describes.

    `origin` is the scheme, host and port as written; `places` has the place of each mapped
    parameter; `content` is the media type of the body, and `whole` the argument that is all of it;
    `reserved` are names in the query that secrets have.
    """

    method: str
    origin: str
    path: str
    query: str
    places: Mapping[str, ArgumentPlace]
    headers: Mapping[str, str]
    styled: bool = False
    content: str = ""
    whole: str = ""
    reserved: tuple[str, ...] = ()

    @classmethod
    def of(cls, binding: Mapping[str, Any]) -> RequestTemplate:
        """Return the template of a binding; raises InvalidInput if it cannot be sent.

        That its fields have a form is known of the manifest of a verified package.
        """
        match, method = _URL.fullmatch(binding["url"]), method_of(binding)
        if match is None:
            raise unusable_binding(
                "its URL names no host, or a placeholder stands in front of its path"
            )
        origin, path, query = match[1], match[2] or "/", (match[3] or "?")[1:]
        if has_dots(path):
            raise unusable_binding("a segment of its path is `.` or `..`")
        styled = binding["type"] == "http"
        places = dict(_places(binding, styled))
        headers = dict(binding.get("headers") or {})
        body = (binding.get("body") if styled else None) or {}
        has_body = method != "GET" and (body or not styled)
        content = str(body.get("content") or JSON) if has_body else ""
        whole = str(body.get("parameter") or "")
        reserved = tuple(str(x.get("name")) for x in auths(binding) if x.get("type") == "query")
        return cls(method, origin, path, query, places, headers, styled, content, whole, reserved)

    def fill(self, arguments: Json) -> Outgoing:
        """Return the request for valid arguments, which have a form in JSON.

        Raises InvalidInput if an argument is missing, has no text form, or would change the path.
        """
        address, query, used = self._address(arguments)
        fixed = self._fixed()
        headers, body = dict(self.headers), dict[str, Any]()
        form: list[tuple[str, str]] = []
        for parameter, value in arguments.items():
            place = self._place(parameter)
            if place.place == "path" or (parameter in used and parameter not in self.places):
                continue
            if self.whole and parameter == self.whole:
                continue
            if place.place == "header":
                headers |= self._header(parameter, value, place)
                continue
            # Also in a body: some servers read a name there before the one in the query.
            _check_new(parameter, place.name, fixed)
            if place.place == "query":
                named = self._named(parameter, arguments, place, fixed, in_url)
                query += (f"{in_url(key)}={text}" for key, text in named)
            elif self.content == FORM:
                form += self._named(parameter, arguments, place, fixed, in_form)
            else:
                body[place.name] = value
        text = f"{address}{'?' if query else ''}{'&'.join(query)}"
        text = _NOT_ASCII.sub(lambda match: quote(match[0]), text)
        if len(text) > MAX_URL_CHARS:
            raise InvalidInput("the arguments make a URL that is too long", fix="give shorter ones")
        url = URL(text, encoded=True)
        data = self._body(arguments, body, form)
        defaults = _ACCEPT if data is None else _ACCEPT | {"Content-Type": self.content or JSON}
        return Outgoing(self.method, url, _with_defaults(headers, defaults), data)

    def _place(self, parameter: str) -> ArgumentPlace:
        """Return where a parameter goes that fills no placeholder of its own name."""
        if parameter in self.places:
            return self.places[parameter]
        in_query = self.method in QUERY_METHODS
        style = "form" if in_query and self.styled else ""
        return ArgumentPlace("query" if in_query else "body", parameter, style, explode=True)

    def _address(self, arguments: Json) -> tuple[str, list[str], set[str]]:
        """Return origin and path, the query as written, and the parameters in their placeholders.

        Raises InvalidInput for a path that would change, and for a name that stands in the query.
        """
        simple = "simple" if self.styled else ""
        in_path = {place.name: key for key, place in self.places.items() if place.place == "path"}
        used: set[str] = set()

        def filled(match: re.Match[str]) -> str:
            parameter = in_path.get(match[1], match[1])
            used.add(parameter)
            value = arguments.get(parameter)
            place = self.places.get(parameter) or ArgumentPlace("path", match[1], simple)
            value = json_text(value) if place.as_json and parameter in arguments else value
            if not place.style:
                value = scalar(parameter, value)
            return path_text(parameter, match[1], value, place.style or "simple", place.explode)

        path = PLACEHOLDER.sub(filled, self.path)
        query = [PLACEHOLDER.sub(filled, self.query)] if self.query else []
        segments = zip(self.path.split("/"), path.split("/"), strict=True)
        if has_dots(path) or any(written and not sent for written, sent in segments):
            raise InvalidInput(
                "an argument would change the path of the URL",
                why="a segment of the path would be empty, `.` or `..`",
                fix="give a value that is not empty or dots alone between slashes",
            )
        fixed = self._fixed()
        for key in filter(PLACEHOLDER.search, _keys(self.query)):
            _check_new(key, PLACEHOLDER.sub(filled, key), fixed)
        return f"{self.origin}{path}", query, used

    def _fixed(self) -> list[list[str]]:
        """Return the names in the query that the author and the secrets have given."""
        written = [key for key in _keys(self.query) if not PLACEHOLDER.search(key)]
        return [_steps(key) for key in (*written, *self.reserved)]

    def _header(self, parameter: str, value: object, place: ArgumentPlace) -> dict[str, str]:
        """Return the header of an argument, none for null.

        Raises InvalidInput for one that the binding fixes, and for what is no line of text.
        """
        if value is None:
            return {}
        if place.name.lower() in {name.lower() for name in self.headers}:
            raise _replaces(parameter)
        text = header_value(parameter, value, place)
        check_header(place.name, text)
        return {place.name: text}

    def _named(
        self,
        parameter: str,
        arguments: Json,
        place: ArgumentPlace,
        fixed: list[list[str]],
        escape: Quote,
    ) -> Iterator[tuple[str, str]]:
        """Yield the names and texts of an argument; raises InvalidInput for another one's name."""
        others: list[list[str]] = []  # all of them, once a name needs them: there may be thousands
        for key, text in named_texts(parameter, arguments[parameter], place, escape):
            if key != place.name and not others:
                known = {*self.places, *arguments} - {parameter}
                others = [_steps(self._place(x).name) for x in known]
            _check_new(parameter, key, fixed if key == place.name else fixed + others)
            yield key, text

    def _body(self, arguments: Json, body: Json, form: list[tuple[str, str]]) -> bytes | None:
        """Return the body, None for a request without one."""
        if self.whole:
            if self.whole not in arguments:
                return None
            value = arguments[self.whole]
            if self.content != FORM:
                return orjson.dumps(value)
            if not isinstance(value, dict):
                raise unsendable(self.whole, "a form is an object", "give an object of its fields")
            for key, item in value.items():
                _check_new(self.whole, key, self._fixed())
                form += named_texts(key, item, ArgumentPlace("body", ""), in_form)
        if self.content == FORM:
            return "&".join(f"{in_form(key)}={text}" for key, text in form).encode()
        return orjson.dumps(body) if self.content or body else None


def check_header(name: str, value: str) -> None:
    """Raise InvalidInput for a header that a binding may not set, or that would end early."""
    if fault := header_fault(name):
        what = f"a binding may not set the header {name[:64]!r}"
        raise InvalidInput(what, why=fault, fix=AUTHOR)
    if len(value) > MAX_HEADER_CHARS or not HEADER_VALUE.fullmatch(value):
        what = f"the value of the header {name} is not printable ASCII on one line"
        raise InvalidInput(what, fix="give such a text")


def _with_defaults(headers: dict[str, str], defaults: dict[str, str]) -> dict[str, str]:
    """Return the headers with those defaults that they do not set, in whatever case."""
    known = {name.lower() for name in headers}
    return {**{name: defaults[name] for name in defaults if name.lower() not in known}, **headers}


def _places(binding: Mapping[str, Any], styled: bool) -> Iterator[tuple[str, ArgumentPlace]]:
    for parameter, rule in (binding.get("parameters") or {}).items():
        place, named = rule["in"], rule.get("name") or ""
        name = named if named.strip() else parameter
        words = ("style", "explode", "content")
        if not styled or (place == "body" and not any(rule.get(key) is not None for key in words)):
            yield parameter, ArgumentPlace(place, name)
            continue
        style, explode = rule.get("style") or STYLES[place][0], rule.get("explode")
        explode = style in ("form", "deepObject") if explode is None else explode
        yield parameter, ArgumentPlace(place, name, style, explode, bool(rule.get("content")))


def _keys(query: str) -> list[str]:
    return [part.partition("=")[0] for part in re.split("[&;]", query)]


def _steps(key: str) -> list[str]:
    """Return the names in a key of a query: servers read `a`, `A`, `%61`, `a[]` and `[a]` alike."""
    text = unquote(unquote_plus(key)).partition("\0")[0].strip().lower()  # as PHP does
    return [re.sub("[ .]", "_", name) for name in re.split(r"[\[\]]", text) if name]


def _check_new(parameter: str, key: str, fixed: list[list[str]]) -> None:
    """Refuse a key that a server may take for one of the author's: `a` and `a[b]`, not `a[c]`."""
    steps = _steps(key)
    if any(steps[: len(other)] == other[: len(steps)] for other in fixed if other):
        raise _replaces(parameter)


def _replaces(parameter: str) -> InvalidInput:
    return InvalidInput(
        f"the argument {parameter[:64]} would replace what the tool's binding fixes",
        why="its query or its headers have that name already",
        fix="leave it out",
    )


def unusable_binding(why: str) -> InvalidInput:
    """Return the error for a binding that a router cannot carry out."""
    return InvalidInput("the binding of this tool cannot be used", why=why, fix=AUTHOR)
