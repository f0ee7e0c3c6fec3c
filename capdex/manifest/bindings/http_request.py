"""What `http_get` and `http_post` send: mapped parameters, fixed headers, a named secret (P10).

A package names a secret and never holds its value: whoever runs it binds the value to a host.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from capdex.diagnostics import Path, show, type_name
from capdex.manifest.bindings.placeholder import PLACEHOLDER
from capdex.manifest.fields import MAX_UNKNOWN, Fields
from capdex.problems import Reason

HTTP_TYPES: Final = ("http_get", "http_post")
SENT: Final = ("parameters", "headers", "auth")  # the optional fields of these types
PLACES: Final = ("path", "query", "header", "body")
AUTH_TYPES: Final = ("bearer", "basic", "header")
MAX_MAPPED: Final = 64  # parameters
MAX_HEADERS: Final = 16
MAX_NAME_CHARS: Final = 128  # in a query or a body
MAX_HEADER_CHARS: Final = 1024
MAX_SECRET_CHARS: Final = 64

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)  # RFC 9110, 5.6.2
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
SECRET_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*", re.ASCII)
# Keys consist of long random words; those of names are words and abbreviations.
_RANDOM: Final = re.compile(r"[A-Z0-9]{25,}|(?=[A-Z]*[0-9])[A-Z0-9]{16,}", re.ASCII)
_CREDENTIALS: Final = frozenset(["authorization", "cookie", "proxy-authorization"])
# These say how a message is framed, where it goes and what it does: the runtime's own business.
_OWN: Final = frozenset(
    [
        *("accept-encoding", "connection", "content-encoding", "content-length", "expect", "host"),
        *("keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("x-http-method", "x-http-method-override", "x-method-override"),
    ]
)
_OWN_PREFIXES: Final = ("proxy-", "sec-")
_SECRET_WORDS: Final = re.compile(
    r"(?:.*[-_])?(?:api[-_]?key|access[-_]?key|secret(?:[-_]?key)?|password|passwd|credentials?"
    r"|(?:access|api|auth|bearer|session)[-_]?token)|(?:x[-_])?token",
    re.ASCII | re.IGNORECASE,
)

_Place = tuple[str, str]  # where an argument goes, and its name there


def header_fault(name: str) -> str | None:
    """Return the reason why a binding may not set a header, or None."""
    if not HEADER_NAME.fullmatch(name):
        return f"{show(name)} is not the name of a header"
    if name.lower() in _CREDENTIALS:
        return f"{name} is for credentials, which a package never holds"
    if name.lower() in _OWN or name.lower().startswith(_OWN_PREFIXES):
        return f"{name} is set by the runtime alone"
    return None


def is_secret_name(text: str) -> bool:
    """True if a text is the name of a secret, and does not look like a secret itself."""
    if len(text) > MAX_SECRET_CHARS or not SECRET_NAME.fullmatch(text):
        return False
    return not any(_RANDOM.fullmatch(word) for word in text.split("_"))


def check_request(fields: Fields, parameters: Collection[str] | None) -> frozenset[str]:
    """Check the optional fields of an HTTP binding; `parameters` are the tool's, None if unknown.

    Return the placeholders of its URL that a mapped parameter of another name fills.
    """
    mapped = _read_mapping(fields, parameters)
    headers = _check_headers(fields)
    secret_in = _check_auth(fields)
    used = [name.lower() for place, name in mapped.values() if place == "header"]
    for name in [*used, *([secret_in] if secret_in else [])]:
        if name in headers:
            fields.wrong("headers", f"{show(headers[name])} is set twice")
    if secret_in in used:
        fields.wrong("auth", f"a parameter is sent in {show(secret_in)}, too")
    _check_places(fields, mapped, parameters or ())
    return frozenset(name for place, name in mapped.values() if place == "path")


def _read_mapping(fields: Fields, parameters: Collection[str] | None) -> dict[str, _Place]:
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
        place = _read_place(rule, parameter, (*at, parameter), fields)
        if place is not None:
            places[parameter] = place
    return places


def _read_place(rule: Any, parameter: str, path: Path, binding: Fields) -> _Place | None:
    fields = Fields.of(rule, path, binding.findings, Reason.BAD_BINDING)
    if fields is None:
        return None
    fields.note_unknown(("in", "name"))
    place = fields.text("in", required=True)
    named = fields.text("name", most_chars=MAX_NAME_CHARS, one_line=True)
    if place is None:
        return None
    if place not in PLACES:
        hint = binding.findings.suggest(place, PLACES)
        message = f"{show(place)} is not a place; there are {', '.join(PLACES)}"
        fields.wrong("in", message, hint=hint)
        return None
    name = named or parameter
    if place == "body" and binding.values.get("type") == "http_get":
        fields.wrong("in", "a GET request has no body")
    elif place == "header" and (fault := header_fault(name)):
        fields.wrong("name", fault)
    elif place == "path" and name not in _placeholders(binding):
        fields.wrong("in", f"the path of the URL has no placeholder named {show(name)}")
    elif place in ("header", "query"):
        _lint_name(fields.at("name"), (name, parameter), fields)
    return place, name


def _check_places(
    fields: Fields, mapped: Mapping[str, _Place], parameters: Collection[str]
) -> None:
    """Report two parameters that go to one place under one name."""
    rest = "query" if fields.values.get("type") == "http_get" else "body"
    inside = PLACEHOLDER.findall(str(fields.values.get("url")))
    taken: dict[_Place, str] = {}
    for parameter in dict.fromkeys([*mapped, *sorted(parameters)]):
        unmapped = ("path" if parameter in inside else rest, parameter)
        place, name = mapped.get(parameter, unmapped)
        key = place, name.lower() if place == "header" else name
        other = taken.setdefault(key, parameter)
        if other != parameter:
            message = f"{show(other)} and {show(parameter)} go to one place, {place} {show(name)}"
            fields.wrong("parameters", message, hint="map the other one, too")


def _placeholders(binding: Fields) -> list[str]:
    path, _, _ = str(binding.values.get("url")).partition("?")
    return PLACEHOLDER.findall(path)


def _check_headers(fields: Fields) -> dict[str, str]:
    """Return the fixed headers, each as written under its name in lower case."""
    values: dict[str, Any] = fields.get("headers", dict) or {}
    headers = Fields(values, fields.at("headers"), fields.findings, Reason.BAD_BINDING)
    if len(values) > MAX_HEADERS:
        message = f"{len(values)} headers are set; at most {MAX_HEADERS} are allowed"
        fields.findings.error(Reason.TOO_MANY, headers.path, message)
    found: dict[str, str] = {}
    for name, value in list(values.items())[:MAX_HEADERS]:
        if fault := header_fault(name):
            hint = "name a secret in auth" if name.lower() in _CREDENTIALS else ""
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
        if found.setdefault(name.lower(), name) != name:
            headers.wrong(name, f"{show(name)} is set twice")
    return found


def _check_auth(fields: Fields) -> str | None:
    """Return the name of the header that carries the secret, in lower case."""
    value: dict[str, Any] | None = fields.get("auth", dict)
    if value is None:
        return None
    auth = Fields(value, fields.at("auth"), fields.findings, Reason.BAD_BINDING)
    type_ = auth.text("type", required=True)
    if type_ is not None and type_ not in AUTH_TYPES:
        hint = auth.findings.suggest(type_, AUTH_TYPES)
        message = f"{show(type_)} is not a type of auth; there are {', '.join(AUTH_TYPES)}"
        auth.wrong("type", message, hint=hint)
    known = ("type", "secret", "name") if type_ == "header" else ("type", "secret")
    for name in [name for name in value if name not in known][:MAX_UNKNOWN]:
        hint = "the value of a secret never stands in a package"
        auth.wrong(name, f"auth has {', '.join(known)} and nothing else", hint=hint)
    _check_secret(auth)
    if type_ != "header":
        return "authorization"
    header: str | None = auth.text("name", required=True)
    if header is None:
        return None
    fault = None if header.lower() == "authorization" else header_fault(header)
    if fault:
        auth.wrong("name", fault)
    return header.lower()


def _check_secret(auth: Fields) -> None:
    secret: str | None = auth.get("secret", str, required=True)
    if secret is None:
        return
    if not is_secret_name(secret):
        # The text is not repeated: it may be what nobody else should read.
        auth.wrong(
            "secret",
            "this is not the name of a secret: words of A-Z and 0-9 with _ between them, such as "
            "WEATHER_API_KEY",
            hint="if it is the secret itself, take it out of the file and have it replaced",
        )


def _lint_name(path: Path, names: tuple[str, ...], fields: Fields) -> None:
    if any(_SECRET_WORDS.fullmatch(name) for name in names):
        message = f"{show(names[0])} is named like a secret"
        fields.findings.warn(Reason.LINT_SECRET_VALUE, path, message)
