"""Trustless gateway: verified packages by their CIDs, as raw blocks or CARs (P3).

https://specs.ipfs.tech/http-gateways/trustless-gateway/ , from this node's own blocks. Packages
are files, so there is nothing at a path below a CID.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from capdex.errors import InvalidInput, Unavailable, UsageError
from capdex.ipld.car import write_car
from capdex.ipld.cid import DAG_PB, Cid
from capdex.ipld.unixfs import Assembly, size_of, walk
from capdex.net.ipfs.block_store import BlockDirectory
from indexer.db.denylist import Denial
from indexer.http.gateway_request import BlockFormat, GatewayRequest, read_request, sends_etag
from indexer.query.index import Index

PROBE: Final = "bafkqaaa"  # the identity CID of no bytes: clients request it to detect a gateway
_PROBE_BYTES: Final = bytes.fromhex("01550000")
MAX_FILENAME_CHARS: Final = 255  # no file system takes more
# Package bytes come from third parties: browsers must neither render nor run them.
_INERT: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Accept-Ranges": "none",
}
_UNSAFE: Final = re.compile(r"[^ -~]|[\"\\/]")  # in a quoted header, or in a file's name


def routes(index: Index, blocks: BlockDirectory) -> Sequence[BaseRoute]:
    """The routes `/ipfs/<cid>` and `/ipfs/<cid>/<path>`, for GET and HEAD."""
    gateway = _Gateway(index, blocks)

    async def endpoint(request: Request) -> Response:
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
            return _refusal(400, _one_line(error))
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
        root = self.blocks.read(cid)
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
            return _refusal(400, _one_line(error))
        blocks = [(cid, root)]
        if wanted.scope != "block" and part != range(0):
            try:
                blocks = list(walk(cid, self.blocks.read, part))
            except UsageError:
                raise
            except (InvalidInput, Unavailable) as error:  # a file is kept whole or not at all
                return _not_held(request, f"the whole of {cid}: {error.message}")
        kept = blocks if wanted.dups else dict(blocks).items()
        return _response(request, cid.text, wanted, write_car(cid.to_bytes(), kept))

    def _denial(self, cid: Cid) -> Denial | None:
        """Return the denial of a CID, or of the same file under another CID."""
        denials = self.index.denials()
        found = denials.of_digest(cid.digest)
        if found or not denials.count:
            return found
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
                    block = self.blocks.read(wanted)
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


def _one_line(error: InvalidInput) -> str:
    return f"{error.message}: {error.why}".removesuffix(": ")


def _not_held(request: Request, what: str) -> Response:
    cached = "only-if-cached" in request.headers.get("cache-control", "").lower()
    return _refusal(412 if cached else 404, f"this node does not hold {what}")


def _refusal(status: int, words: str) -> Response:
    # What is refused now may be available a second later.
    return PlainTextResponse(words + "\n", status, {"Cache-Control": "no-store"} | _INERT)
