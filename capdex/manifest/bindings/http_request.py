"""What `http_get`, `http_post` and `http` send: mapped parameters, fixed headers, a body (P10)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from capdex.diagnostics import Path, show, type_name
from capdex.manifest.bindings.http_auth import SECRET_WORDS, check_auth
from capdex.manifest.bindings.http_header import CREDENTIALS, HEADER_VALUE, header_fault
from capdex.manifest.fields import Fields
from capdex.problems import Reason

SENT: Final = ("parameters", "headers", "auth")  # the optional fields of HTTP types
HTTP_TYPES: Final = {"http_get": SENT, "http_post": SENT, "http": (*SENT, "body")}
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")  # of `http`
QUERY_METHODS: Final = ("GET", "DELETE")  # unmapped arguments become the query, not the body
PLACES: Final = ("path", "query", "header", "body")
_IN_QUERY: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
STYLES: Final = {  # of lists and objects (OpenAPI 3.1, 4.8.12.3, Style Values); the first is usual
    "path": ("simple", "label", "matrix"),
    "query": _IN_QUERY,
    "header": ("simple",),
    "body": _IN_QUERY,
}
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MAX_MAPPED: Final = 64  # parameters
MAX_HEADERS: Final = 16
MAX_NAME_CHARS: Final = 128  # in a query or a body
MAX_HEADER_CHARS: Final = 1024
MAX_CONTENT_CHARS: Final = 128

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.-]{1,64})\}", re.ASCII)  # of a parameter
CONTENT = re.compile(rf"application/(?:[A-Za-z0-9.+_-]+\+)?json|{re.escape(FORM)}", re.ASCII)
_Place = tuple[str, str]  # where an argument goes, and its name there


def method_of(binding: Mapping[str, Any]) -> str:
    """Return the method of an HTTP binding: that of its type, or the one that `http` names."""
    known = {"http_get": "GET", "http_post": "POST"}
    return known.get(str(binding.get("type"))) or str(binding.get("method"))


def check_request(fields: Fields, parameters: Collection[str] | None) -> frozenset[str]:
    """Check the optional fields of an HTTP binding; `parameters` are the tool's, None if unknown.

    Return the placeholders of its URL that a mapped parameter of another name fills.
    """
    body = _read_body(fields, parameters) if "body" in _known(fields) else None
    mapped = _read_mapping(fields, parameters, body)
    headers = _check_headers(fields)
    secrets = check_auth(fields, several=fields.values.get("type") == "http")
    used = [name.lower() for place, name in mapped.values() if place == "header"]
    for name in [*used, *(name for place, name in secrets if place == "header")]:
        if name in headers:
            fields.wrong("headers", f"{show(headers[name])} is set twice")
    for place, name in secrets:
        sent = used if place == "header" else [x for where, x in mapped.values() if where == place]
        if name in sent:
            fields.wrong("auth", f"a parameter is sent in {show(name)}, too")
    if body is not None and "content" in body and "content-type" in headers:
        fields.wrong("headers", "Content-Type is set twice: body.content says it")
    _check_places(fields, mapped, parameters or (), str((body or {}).get("parameter") or ""))
    return frozenset(name for place, name in mapped.values() if place == "path")


def _known(fields: Fields) -> tuple[str, ...]:
    return HTTP_TYPES[str(fields.values.get("type"))]


def _read_body(fields: Fields, parameters: Collection[str] | None) -> dict[str, Any] | None:
    """Return the body of an `http` binding, None where it says nothing of one."""
    body = fields.mapping("body", Reason.BAD_BINDING)
    if body is None:
        return None
    body.note_unknown(("content", "parameter"))
    if method_of(fields.values) == "GET":
        fields.wrong("body", "a GET request has no body")
    content = body.text("content", most_chars=MAX_CONTENT_CHARS, one_line=True)
    if content is not None and not CONTENT.fullmatch(content):
        message = f"{show(content)} cannot be sent; there are application/json, …+json and {FORM}"
        body.wrong("content", message)
    whole = body.text("parameter", most_chars=MAX_NAME_CHARS, one_line=True)
    if whole is not None and parameters is not None and whole not in parameters:
        hint = fields.findings.suggest(whole, parameters)
        body.wrong("parameter", f"the tool has no parameter {show(whole)}", hint=hint)
    return body.values


def _read_mapping(
    fields: Fields, parameters: Collection[str] | None, body: Mapping[str, Any] | None
) -> dict[str, _Place]:
    """Return the place of each parameter that is mapped in a usable way."""
    mapping: Mapping[str, Any] = fields.get("parameters", dict) or {}
    at = fields.at("parameters")
    if len(mapping) > MAX_MAPPED:
        message = f"{len(mapping)} parameters are mapped; at most {MAX_MAPPED} are allowed"
        fields.findings.error(Reason.TOO_MANY, at, message)
    places = {}
    for parameter, rule in list(mapping.items())[:MAX_MAPPED]:
        if parameters is not None and parameter not in parameters:
            hint = fields.findings.suggest(parameter, parameters)
            message = f"the tool has no parameter {show(parameter)}"
            fields.findings.error(Reason.BAD_BINDING, (*at, parameter), message, hint=hint)
        place = _read_place(rule, parameter, (*at, parameter), fields, body)
        if place is not None:
            places[parameter] = place
    return places


def _read_place(
    rule: object, parameter: str, path: Path, binding: Fields, body: Mapping[str, Any] | None
) -> _Place | None:
    fields = Fields.of(rule, path, binding.findings, Reason.BAD_BINDING)
    if fields is None:
        return None
    written = ("style", "explode", "content") if "body" in _known(binding) else ()
    fields.note_unknown(("in", "name", *written))
    place = fields.text("in", required=True)
    named = fields.text("name", most_chars=MAX_NAME_CHARS, one_line=True)
    if place is None or not fields.one_of("in", place, PLACES, "a place"):
        return None
    name = named or parameter
    method, url = method_of(binding.values), str(binding.values.get("url"))
    if place == "body" and method in QUERY_METHODS and (method == "GET" or body is None):
        fields.wrong(
            "in",
            f"a {method} request has no body"
            + ("" if method == "GET" else " unless the binding has the field body"),
        )
    elif place == "header" and (fault := header_fault(name)):
        fields.wrong("name", fault)
    elif place == "path" and name not in PLACEHOLDER.findall(url.partition("?")[0]):
        fields.wrong("in", f"the path of the URL has no placeholder named {show(name)}")
    elif place in ("header", "query"):
        _lint_name(fields.at("name"), (name, parameter), fields)
    if written:
        _check_style(fields, place, body)
    return place, name


def _check_style(fields: Fields, place: str, body: Mapping[str, Any] | None) -> None:
    """Check how a list or an object is written in its place."""
    style, explode = fields.text("style"), fields.get("explode", bool)
    content = fields.text("content")
    if style is not None and style not in STYLES[place]:
        hint = fields.findings.suggest(style, STYLES[place])
        known = ", ".join(STYLES[place])
        fields.wrong("style", f"{show(style)} is no style of {place}; there are {known}", hint=hint)
    if content is not None and (content != JSON or place == "body"):
        fields.wrong("content", f"a parameter of path, query or header is {JSON}, or has a style")
    if content is not None and (style is not None or explode is not None):
        fields.wrong("content", "content and style exclude each other")
    if place == "body" and (style or explode is not None) and (body or {}).get("content") != FORM:
        fields.wrong("style", f"only a body of {FORM} has styles")


def _check_places(
    fields: Fields, mapped: Mapping[str, _Place], parameters: Collection[str], whole: str
) -> None:
    """Report two parameters that go to one place; `whole` is the one that is the whole body."""
    rest = "query" if method_of(fields.values) in QUERY_METHODS else "body"
    inside = PLACEHOLDER.findall(str(fields.values.get("url")))
    taken: dict[_Place, str] = {}
    if whole and whole in mapped:
        fields.wrong("body", f"{show(whole)} is the whole body, and has another place, too")
    for parameter in dict.fromkeys([*mapped, *sorted(parameters)]):
        if whole and parameter == whole:
            continue
        unmapped = ("path" if parameter in inside else rest, parameter)
        place, name = mapped.get(parameter, unmapped)
        key = place, name.lower() if place == "header" else name
        if whole and place == "body":
            message = f"{show(whole)} is the whole body, so {show(parameter)} has no place in it"
            fields.wrong("parameters", message, hint=f"map {parameter} to path, query or header")
        other = taken.setdefault(key, parameter)
        if other != parameter:
            message = f"{show(other)} and {show(parameter)} go to one place, {place} {show(name)}"
            fields.wrong("parameters", message, hint="map the other one, too")


def _check_headers(fields: Fields) -> dict[str, str]:
    """Return the fixed headers, each as written under its name in lower case."""
    values: dict[str, Any] = fields.get("headers", dict) or {}
    headers = Fields(values, fields.at("headers"), fields.findings, Reason.BAD_BINDING)
    if len(values) > MAX_HEADERS:
        message = f"{len(values)} headers are set; at most {MAX_HEADERS} are allowed"
        fields.findings.error(Reason.TOO_MANY, headers.path, message)
    names: dict[str, str] = {}
    for name, value in list(values.items())[:MAX_HEADERS]:
        if fault := header_fault(name):
            hint = "name a secret in auth" if name.lower() in CREDENTIALS else ""
            headers.wrong(name, fault, hint=hint)
        elif not isinstance(value, str):
            message = f"this is {type_name(value)}; text belongs here"
            fields.findings.error(Reason.WRONG_TYPE, headers.at(name), message)
        elif len(value) > MAX_HEADER_CHARS or not HEADER_VALUE.fullmatch(value):
            message = f"a header is printable ASCII, at most {MAX_HEADER_CHARS} characters"
            headers.wrong(name, message)
        elif "{" in value or "}" in value:
            hint = "map a parameter with in: header"
            headers.wrong(name, "a fixed header has no placeholders", hint=hint)
        else:
            _lint_name(headers.at(name), (name,), fields)
        if names.setdefault(name.lower(), name) != name:
            headers.wrong(name, f"{show(name)} is set twice")
    return names


def _lint_name(path: Path, names: tuple[str, ...], fields: Fields) -> None:
    if any(SECRET_WORDS.fullmatch(name) for name in names):
        message = f"{show(names[0])} is named like a secret"
        fields.findings.warn(Reason.LINT_SECRET_VALUE, path, message)
