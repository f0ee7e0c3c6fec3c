"""Requests to the trustless gateway: raw or CAR, which blocks, under which file name.

https://specs.ipfs.tech/http-gateways/trustless-gateway/ : `format` in the URL overrides
`Accept`, and `car-…` parameters in the URL override those of the media type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request

from capdex.errors import InvalidInput


class BlockFormat(StrEnum):
    """Formats that a client can check by the CID alone."""

    RAW = "raw"
    CAR = "car"

    @property
    def media_type(self) -> str:
        """Media type in `Accept` and `Content-Type`."""
        return f"application/vnd.ipld.{self}"


SCOPES: Final = ("block", "entity", "all")
_OF_CAR: Final = {"version": ("1",), "order": ("dfs", "unk"), "dups": ("y", "n")}
_KEPT_PARAMETERS: Final = ("dag-scope", "entity-bytes", "filename")  # copied into the full query
_BYTE_RANGE = re.compile(r"(-?[0-9]{1,19}):(\*|-?[0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`entity-bytes`: the first and the last byte, counted from the end if negative."""

    first: int
    last: int | None

    @classmethod
    def parse(cls, text: str) -> ByteRange:
        """Parse `from:to`, where `to` may be `*`; raise InvalidInput."""
        found = _BYTE_RANGE.fullmatch(text)
        if found is None:
            raise InvalidInput("entity-bytes is not from:to, two numbers or a number and *")
        first, last = found.groups()
        return cls(int(first), None if last == "*" else int(last))

    def within(self, size_bytes: int) -> range:
        """Return the range in an entity of that size; raise InvalidInput if it begins past it."""
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
class GatewayRequest:
    """A parsed request; the last three fields apply to CARs only.

    `full_query` is a URL query that gives the same answer without `Accept`, or None if the request
    has that already.
    """

    format_: BlockFormat
    full_query: str | None
    filename: str | None
    dups: bool = False
    scope: str = "all"
    byte_range: ByteRange | None = None

    @property
    def content_type(self) -> str:
        """Media type of the answer with its parameters."""
        if self.format_ is BlockFormat.RAW:
            return self.format_.media_type
        return f"{self.format_.media_type}; version=1; order=dfs; dups={'y' if self.dups else 'n'}"

    def etag(self, cid: str) -> str:
        """Return the strong ETag, made of all that determines the bytes of the answer."""
        if self.format_ is BlockFormat.RAW:
            return f'"{cid}.raw"'
        byte_range = f"{self.byte_range}." if self.byte_range else ""
        return f'"{self.scope}.{byte_range}{"y" if self.dups else "n"}.{cid}.car"'


def read_request(query: QueryParams, headers: Headers) -> GatewayRequest | None:
    """Parse a request; return None if it accepts no format of this gateway.

    Raises InvalidInput for malformed parameters, and if neither URL nor `Accept` names a format.
    """
    accepted = dict(_accepted(headers.getlist("accept")))
    given_format = query.get("format")
    if given_format is None and not headers.get("accept"):
        raise InvalidInput("neither format nor Accept says what is wanted", fix="add ?format=raw")
    format_ = next(iter(accepted), None) if given_format is None else _format(given_format)
    if format_ is None:
        return None
    in_media_type, in_url = accepted.get(format_, {}), _in_url(query)
    chosen = in_media_type | in_url if format_ is BlockFormat.CAR else {}
    full_query = None
    if (
        given_format is None
        or (accepted and format_ not in accepted)
        or (chosen and chosen != in_url)
    ):
        kept = {key: query[key] for key in _KEPT_PARAMETERS if key in query}
        car = {f"car-{key}": value for key, value in chosen.items()}
        full_query = urlencode({"format": str(format_)} | kept | car)
    filename = query.get("filename")
    if format_ is BlockFormat.RAW:
        return GatewayRequest(format_, full_query, filename)
    if any(value not in _OF_CAR[key] for key, value in chosen.items()):
        return None
    scope, byte_range = query.get("dag-scope", "all"), query.get("entity-bytes")
    if scope not in SCOPES:
        raise InvalidInput(f"dag-scope is not one of {', '.join(SCOPES)}")
    dups = chosen.get("dups") == "y"
    return GatewayRequest(
        format_,
        full_query,
        filename,
        dups,
        scope,
        None if byte_range is None else ByteRange.parse(byte_range),
    )


def _format(text: str) -> BlockFormat | None:
    return BlockFormat(text) if text in set(BlockFormat) else None


def _in_url(query: QueryParams) -> dict[str, str]:
    return {key: query[f"car-{key}"] for key in _OF_CAR if f"car-{key}" in query}


def _accepted(headers: list[str]) -> Iterator[tuple[BlockFormat, dict[str, str]]]:
    """Yield the formats that `Accept` names and we have, best first, with their parameters."""
    found: list[tuple[float, BlockFormat, dict[str, str]]] = []
    for text in ",".join(headers).split(","):
        kind, *rest = (part.strip() for part in text.split(";"))
        pairs = (part.partition("=") for part in rest)
        given = {key.strip().lower(): value.strip().strip('"').lower() for key, _, value in pairs}
        format_ = _format(kind.lower().removeprefix("application/vnd.ipld."))
        quality = _quality(given.pop("q", "1"))
        if format_ is not None and kind.lower() == format_.media_type and quality > 0:
            known = {key: value for key, value in given.items() if key in _OF_CAR}
            found.append((quality, format_, known if format_ is BlockFormat.CAR else {}))
    seen: set[BlockFormat] = set()
    for _, format_, given in sorted(found, key=lambda entry: -entry[0]):
        if format_ not in seen and all(value in _OF_CAR[key] for key, value in given.items()):
            seen.add(format_)
            yield format_, given


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def sends_etag(request: Request, etag: str) -> bool:
    """True if `If-None-Match` holds an ETag, compared weakly (RFC 9110 §13.1.2)."""
    conditions = ",".join(request.headers.getlist("if-none-match")).split(",")
    tags = [condition.strip().removeprefix("W/") for condition in conditions]
    return etag in tags or "*" in tags
