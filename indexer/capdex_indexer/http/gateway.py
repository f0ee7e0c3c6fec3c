"""Trustless gateway: verified packages and kept files by their CIDs, as raw blocks or CARs (P3).

https://specs.ipfs.tech/http-gateways/trustless-gateway/ , from this node's own blocks. Packages
are files, so there is nothing at a path below a CID. `format` in the URL overrides `Accept`, and
`car-…` parameters in the URL override those of the media type.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from capdex.errors import InvalidInput, Unavailable, UsageError
from capdex.ipld.car import write_car
from capdex.ipld.cid import DAG_PB, Cid
from capdex.ipld.unixfs import Assembly, size_of, walk
from capdex.net.ipfs.block_store import BlockDirectory, files_of
from capdex_indexer.db.denylist import Denial
from capdex_indexer.query.index import Index, in_time


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
        match = _BYTE_RANGE.fullmatch(text)
        if match is None:
            raise InvalidInput("entity-bytes is not from:to, two numbers or a number and *")
        first, last = match.groups()
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
    in_media_type = accepted.get(format_, {})
    in_url = {key: query[f"car-{key}"] for key in _OF_CAR if f"car-{key}" in query}
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
    part = None if byte_range is None else ByteRange.parse(byte_range)
    return GatewayRequest(format_, full_query, filename, chosen.get("dups") == "y", scope, part)


def _format(text: str) -> BlockFormat | None:
    return BlockFormat(text) if text in set(BlockFormat) else None


def _accepted(headers: list[str]) -> Iterator[tuple[BlockFormat, dict[str, str]]]:
    """Yield the formats that `Accept` names and we have, best first, with their parameters."""
    accepted: list[tuple[float, BlockFormat, dict[str, str]]] = []
    for text in ",".join(headers).split(","):
        kind, *rest = (part.strip() for part in text.split(";"))
        pairs = (part.partition("=") for part in rest)
        given = {key.strip().lower(): value.strip().strip('"').lower() for key, _, value in pairs}
        format_ = _format(kind.lower().removeprefix("application/vnd.ipld."))
        quality = _quality(given.pop("q", "1"))
        if format_ is not None and kind.lower() == format_.media_type and quality > 0:
            known = {key: value for key, value in given.items() if key in _OF_CAR}
            accepted.append((quality, format_, known if format_ is BlockFormat.CAR else {}))
    seen: set[BlockFormat] = set()
    for _, format_, given in sorted(accepted, key=lambda entry: -entry[0]):
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


PROBE: Final = "bafkqaaa"  # the identity CID of no bytes: clients request it to detect a gateway
_PROBE_BYTES: Final = bytes.fromhex("01550000")
MAX_FILENAME_CHARS: Final = 255  # no file system takes more
# Package bytes come from third parties: browsers must neither render nor run them. (The server adds
# `X-Content-Type-Options: nosniff` to every answer.)
_INERT: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Accept-Ranges": "none",
}
_UNSAFE: Final = re.compile(r"[^ -~]|[\"\\/]")  # in a quoted header, or in a file's name


def routes(index: Index, blocks: BlockDirectory) -> Sequence[BaseRoute]:
    """The routes `/ipfs/<cid>` and `/ipfs/<cid>/<path>`, for GET and HEAD."""
    gateway = _Gateway(index, blocks)

    async def endpoint(request: Request) -> Response:
        async with in_time():
            return await asyncio.to_thread(gateway.answer, request)

    return [Route("/ipfs/{cid}", endpoint), Route("/ipfs/{cid}/{path:path}", endpoint)]


@dataclass(frozen=True, slots=True)
class _Gateway:
    index: Index
    blocks: BlockDirectory
    _files: dict[Cid, bytes] = field(default_factory=dict)  # sha256 of dag-pb files that were read

    def answer(self, request: Request) -> Response:
        """Return the block or CAR, or the error.

        Raises Unavailable or UsageError if the index or the blocks cannot be read, since the CID
        may be denied.
        """
        text, path = request.path_params["cid"], request.path_params.get("path", "")
        if request.headers.get("service-worker") == "script":
            return _refusal(400, "packages are no service workers")
        try:
            wanted = read_request(request.query_params, request.headers)
            cid = None if text == PROBE else Cid.parse(text)
        except InvalidInput as error:
            return _refusal(400, error.line)
        if wanted is None:
            return _refusal(
                406, f"this node gives {' and '.join(x.media_type for x in BlockFormat)}"
            )
        if path and wanted.format_ is BlockFormat.RAW:
            return _refusal(400, "a raw block is requested by its CID alone")
        if path:
            return _not_held(request, f"anything below {text}")
        if cid is None:
            body = b"" if wanted.format_ is BlockFormat.RAW else write_car(_PROBE_BYTES, ())
            return _response(request, PROBE, wanted, body)
        if denial := self._denial(cid):
            return _refusal(410, f"this node's operator refuses {cid}: {denial.reason}")
        root = self._read(cid)
        if root is None:
            return _not_held(request, f"the block {cid}")
        if wanted.format_ is BlockFormat.RAW:
            return _response(request, cid.text, wanted, root)
        return self._car(request, cid, root, wanted)

    def _car(self, request: Request, cid: Cid, root: bytes, wanted: GatewayRequest) -> Response:
        """Return the CAR of a file, or of the requested part of it."""
        try:
            part = (
                None if wanted.byte_range is None else wanted.byte_range.within(size_of(cid, root))
            )
        except InvalidInput as error:
            return _refusal(400, error.line)
        blocks = [(cid, root)]
        if wanted.scope != "block" and part != range(0):
            try:
                blocks = list(walk(cid, self._read, part))
            except UsageError:
                raise
            except (InvalidInput, Unavailable) as error:  # a file is kept whole or not at all
                return _not_held(request, f"the whole of {cid}: {error.message}")
        kept = blocks if wanted.dups else dict(blocks).items()
        return _response(request, cid.text, wanted, write_car(cid.to_bytes(), kept))

    def _read(self, cid: Cid) -> bytes | None:
        """Return a block of a package, or of a file that a package names."""
        block = self.blocks.read(cid)
        return files_of(self.blocks).read(cid) if block is None else block

    def _denial(self, cid: Cid) -> Denial | None:
        """Return the denial of a CID, or of the same file under another CID."""
        denials = self.index.denials()
        denial = denials.of_digest(cid.digest)
        if denial or not denials.count:
            return denial
        if cid.codec == DAG_PB:
            return denials.of_digest(self._sha256(cid))
        same = (x for x in denials.dag_pb if self._sha256(x) == cid.digest)
        return next((denials.of_digest(x.digest) for x in same), None)

    def _sha256(self, cid: Cid) -> bytes:
        """Return the digest of the file behind a dag-pb CID, or no bytes if a block is missing."""
        if cid not in self._files:
            assembly = Assembly(cid)
            try:
                while (wanted := assembly.wanted) is not None:
                    block = self._read(wanted)
                    if block is None:
                        return b""
                    assembly.give(block)
            except UsageError:
                raise
            except InvalidInput:
                return b""
            self._files[cid] = hashlib.sha256(assembly.data).digest()
        return self._files[cid]


def _response(request: Request, cid: str, wanted: GatewayRequest, body: bytes) -> Response:
    headers = _INERT | {
        "Content-Type": wanted.content_type,
        "Content-Disposition": _disposition(wanted, cid),
        "Cache-Control": "public, max-age=29030400, immutable",
        "ETag": wanted.etag(cid),
        "X-Ipfs-Path": f"/ipfs/{cid}",
        "X-Ipfs-Roots": cid,
    }
    if wanted.full_query is not None:
        headers["Content-Location"] = f"/ipfs/{cid}?{wanted.full_query}"
        headers["Vary"] = "Accept"  # a cache must not answer a request for the block with a CAR
    if sends_etag(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers)


def _disposition(wanted: GatewayRequest, cid: str) -> str:
    """Always a download; a name that is not ASCII is header in both ways (RFC 8187)."""
    suffix = "bin" if wanted.format_ is BlockFormat.RAW else "car"
    name = (wanted.filename or f"{cid}.{suffix}")[:MAX_FILENAME_CHARS]
    plain = _UNSAFE.sub("_", name)
    header = f'attachment; filename="{plain}"'
    if name.isascii():
        return header
    return f"{header}; filename*=UTF-8''{quote(name.replace('/', '_'), safe='')}"


def _not_held(request: Request, what: str) -> Response:
    cached = "only-if-cached" in request.headers.get("cache-control", "").lower()
    return _refusal(412 if cached else 404, f"this node does not hold {what}")


def _refusal(status: int, words: str) -> Response:
    # What is refused now may be available a second later.
    return PlainTextResponse(words + "\n", status, {"Cache-Control": "no-store"} | _INERT)
