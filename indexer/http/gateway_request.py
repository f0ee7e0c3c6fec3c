"""What a request asks the trustless gateway for: raw or CAR, which blocks, under which file name.

https://specs.ipfs.tech/http-gateways/trustless-gateway/ : `format` in the URL goes before `Accept`,
and `car-…` parameters in the URL before those of the media type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import Headers, QueryParams

from capdex.errors import InvalidInput


class Form(StrEnum):
    """The forms that can be checked by the CID alone: all that a trustless gateway gives."""

    RAW = "raw"
    CAR = "car"

    @property
    def media_type(self) -> str:
        """Its name in `Accept` and `Content-Type`."""
        return f"application/vnd.ipld.{self}"


SCOPES: Final = ("block", "entity", "all")
_OF_CAR: Final = {"version": ("1",), "order": ("dfs", "unk"), "dups": ("y", "n")}
_KEPT: Final = ("dag-scope", "entity-bytes", "filename")  # of a URL, in one that says the form too
_SPAN = re.compile(r"(-?[0-9]{1,19}):(\*|-?[0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Span:
    """`entity-bytes`: the first and the last byte wanted, from the end where negative."""

    first: int
    last: int | None

    @classmethod
    def parse(cls, text: str) -> Span:
        """Read `from:to`, where `to` may be `*`; raises InvalidInput."""
        found = _SPAN.fullmatch(text)
        if found is None:
            raise InvalidInput("entity-bytes is not from:to, two numbers or a number and *")
        first, last = found.groups()
        return cls(int(first), None if last == "*" else int(last))

    def within(self, size_bytes: int) -> range:
        """The bytes meant of an entity of that size, perhaps none; raises InvalidInput past it."""
        last = size_bytes - 1 if self.last is None else self.last
        first = max(0, size_bytes + self.first) if self.first < 0 else self.first
        if last < 0:
            last += size_bytes
        if size_bytes and first >= size_bytes and (self.last is None or first <= last):
            raise InvalidInput(f"entity-bytes begins past the end, which is at {size_bytes}")
        return range(first, max(first, min(last, size_bytes - 1) + 1))

    def __str__(self) -> str:
        return f"{self.first}:{'*' if self.last is None else self.last}"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read; `elsewhere` is the query of a URL that says by itself what this one got.

    The last three are of CARs alone.
    """

    form: Form
    elsewhere: str | None
    filename: str | None
    dups: bool = False
    scope: str = "all"
    span: Span | None = None

    @property
    def content_type(self) -> str:
        """The media type of the answer, with every parameter that is known."""
        if self.form is Form.RAW:
            return self.form.media_type
        return f"{self.form.media_type}; version=1; order=dfs; dups={'y' if self.dups else 'n'}"

    def tag(self, cid: str) -> str:
        """The strong ETag: whatever decides which bytes are answered is in it."""
        if self.form is Form.RAW:
            return f'"{cid}.raw"'
        span = f"{self.span}." if self.span else ""
        return f'"{self.scope}.{span}{"y" if self.dups else "n"}.{cid}.car"'


def read(query: QueryParams, headers: Headers) -> Asked | None:
    """What is asked for; None for a form that is not acceptable here.

    Raises InvalidInput for parameters that cannot be, and where nothing says a form.
    """
    accepted = dict(_accepted(headers.getlist("accept")))
    asked = query.get("format")
    if asked is None and not headers.get("accept"):
        raise InvalidInput("neither format nor Accept says what is wanted", fix="add ?format=raw")
    form = next(iter(accepted), None) if asked is None else _form(asked)
    if form is None:
        return None
    typed, in_url = accepted.get(form, {}), _in_url(query)
    chosen = typed | in_url if form is Form.CAR else {}
    elsewhere = None
    if asked is None or (accepted and form not in accepted) or (chosen and chosen != in_url):
        kept = {key: query[key] for key in _KEPT if key in query}
        car = {f"car-{key}": value for key, value in chosen.items()}
        elsewhere = urlencode({"format": str(form)} | kept | car)
    filename = query.get("filename")
    if form is Form.RAW:
        return Asked(form, elsewhere, filename)
    if any(value not in _OF_CAR[key] for key, value in chosen.items()):
        return None
    scope, span = query.get("dag-scope", "all"), query.get("entity-bytes")
    if scope not in SCOPES:
        raise InvalidInput(f"dag-scope is not one of {', '.join(SCOPES)}")
    dups = chosen.get("dups") == "y"
    return Asked(form, elsewhere, filename, dups, scope, None if span is None else Span.parse(span))


def _form(text: str) -> Form | None:
    return Form(text) if text in set(Form) else None


def _in_url(query: QueryParams) -> dict[str, str]:
    return {key: query[f"car-{key}"] for key in _OF_CAR if f"car-{key}" in query}


def _accepted(headers: list[str]) -> Iterator[tuple[Form, dict[str, str]]]:
    """The forms that `Accept` names and we have, best first, each with its parameters."""
    found: list[tuple[float, Form, dict[str, str]]] = []
    for text in ",".join(headers).split(","):
        kind, *rest = (part.strip() for part in text.split(";"))
        pairs = (part.partition("=") for part in rest)
        given = {key.strip().lower(): value.strip().strip('"').lower() for key, _, value in pairs}
        form = _form(kind.lower().removeprefix("application/vnd.ipld."))
        quality = _quality(given.pop("q", "1"))
        if form is not None and kind.lower() == form.media_type and quality > 0:
            known = {key: value for key, value in given.items() if key in _OF_CAR}
            found.append((quality, form, known if form is Form.CAR else {}))
    seen: set[Form] = set()
    for _, form, given in sorted(found, key=lambda entry: -entry[0]):
        if form not in seen and all(value in _OF_CAR[key] for key, value in given.items()):
            seen.add(form)
            yield form, given


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
