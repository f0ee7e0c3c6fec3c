"""Secrets that an HTTP binding sends, by their names (P10).

A package names a secret and never holds its value: whoever runs it binds the value to a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from capdex.diagnostics import show
from capdex.manifest.bindings.http_header import HEADER_NAME, header_fault
from capdex.manifest.fields import MAX_UNKNOWN, Fields
from capdex.problems import Reason

AUTH_TYPES: Final = ("bearer", "basic", "header")
HTTP_AUTH_TYPES: Final = (*AUTH_TYPES, "query", "cookie")  # of the binding type `http`
NAMED: Final = ("header", "query", "cookie")  # types that need the name under which it is sent
MAX_AUTHS: Final = 4
_CODE: Final = Reason.BAD_BINDING
MAX_SECRET_CHARS: Final = 64
MAX_PARAMETER_CHARS: Final = 128

SECRET_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*", re.ASCII)
# Keys consist of long random words; those of names are words and abbreviations.
_RANDOM: Final = re.compile(r"[A-Z0-9]{25,}|(?=[A-Z]*[0-9])[A-Z0-9]{16,}", re.ASCII)
SECRET_WORDS: Final = re.compile(
    r"(?:.*[-_])?(?:api[-_]?key|access[-_]?key|secret(?:[-_]?key)?|password|passwd|credentials?"
    r"|(?:access|api|auth|bearer|session)[-_]?token)|(?:x[-_])?token",
    re.ASCII | re.IGNORECASE,
)


def is_secret_name(text: str) -> bool:
    """True if a text is the name of a secret, and does not look like a secret itself."""
    if len(text) > MAX_SECRET_CHARS or not SECRET_NAME.fullmatch(text):
        return False
    return not any(_RANDOM.fullmatch(word) for word in text.split("_"))


def auths(binding: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the secrets of a binding: its `auth`, or for `http` each of a list."""
    value = binding.get("auth")
    yield from (x for x in (value if isinstance(value, list) else [value]) if isinstance(x, dict))


def check_auth(fields: Fields, *, several: bool) -> list[tuple[str, str]]:
    """Check the secrets of a binding; return the place of each, and its name there.

    `several` allows a list, and the words of `http`. Names of headers are in lower case.
    """
    value = fields.values.get("auth")
    if not several or not isinstance(value, list):
        read = [fields.mapping("auth", _CODE)]
    else:
        listed = enumerate(fields.items("auth", MAX_AUTHS))
        read = [
            Fields.of(item, (*fields.at("auth"), i), fields.findings, _CODE) for i, item in listed
        ]
    secrets = [x for x in read if x is not None]
    places: list[tuple[str, str]] = []
    for auth in secrets:
        if (place := _check_one(auth, several)) is None:
            continue
        if place in places:
            fields.wrong("auth", f"two secrets are sent in one place, {' '.join(place)}")
        places.append(place)
    return places


def _check_one(auth: Fields, several: bool) -> tuple[str, str] | None:
    type_ = auth.text("type", required=True)
    types = HTTP_AUTH_TYPES if several else AUTH_TYPES
    if type_ is not None:
        auth.one_of("type", type_, types, "a type of auth")
    known = ["type", "secret", *(["name"] if type_ in NAMED else [])]
    if several:
        known.append("optional")
        auth.get("optional", bool)
    for other in [x for x in auth.values if x not in known][:MAX_UNKNOWN]:
        hint = "the value of a secret never stands in a package"
        auth.wrong(other, f"auth has {', '.join(known)} and nothing else", hint=hint)
    _check_secret(auth)
    if type_ not in NAMED:
        return "header", "authorization"
    name = auth.text("name", required=True, most_chars=MAX_PARAMETER_CHARS, one_line=True)
    if name is None:
        return None
    if type_ == "query":
        return "query", name
    if type_ == "cookie":
        if not HEADER_NAME.fullmatch(name):
            auth.wrong("name", f"{show(name)} is not the name of a cookie")
        return "cookie", name
    fault = None if name.lower() == "authorization" else header_fault(name)
    if fault:
        auth.wrong("name", fault)
    return "header", name.lower()


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
