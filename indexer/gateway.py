"""The trustless gateway: verified packages by their CIDs, raw (P3).

https://specs.ipfs.tech/http-gateways/trustless-gateway/
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from capdex.cid import RAW, Cid
from capdex.errors import InvalidInput
from capdex.net.ipfs import BlockDirectory

RAW_TYPE: Final = "application/vnd.ipld.raw"
# Package bytes are other people's: never rendered, never run (the trustless gateway needs no more).
_INERT: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Content-Disposition": "attachment",
}


def routes(blocks: BlockDirectory) -> Sequence[BaseRoute]:
    """The route `/ipfs/<cid>`."""

    async def endpoint(request: Request) -> Response:
        return await asyncio.to_thread(_block, blocks, request)

    return [Route("/ipfs/{cid}", endpoint, methods=["GET"])]


def _block(blocks: BlockDirectory, request: Request) -> Response:
    """One verified block by its CID, as the trustless gateway specification says (raw only)."""
    if not _wants_raw(request):
        words = f"ask for ?format=raw or Accept: {RAW_TYPE}\n"
        return PlainTextResponse(words, status_code=406)
    try:
        cid = Cid.parse(request.path_params["cid"])
    except InvalidInput as error:
        return PlainTextResponse(f"{error.message}: {error.why}\n", status_code=400)
    block = blocks.read(cid) if cid.codec == RAW else None
    if block is None:
        return PlainTextResponse("this node does not hold that block\n", status_code=404)
    headers = _INERT | {
        "Content-Type": RAW_TYPE,
        "Content-Disposition": f'attachment; filename="{cid}.bin"',
        "Cache-Control": "public, max-age=29030400, immutable",
        "ETag": f'"{cid}.raw"',
        "X-Ipfs-Path": f"/ipfs/{cid}",
        "X-Ipfs-Roots": str(cid),
    }
    if _matches(request.headers.get("if-none-match", ""), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(block, headers=headers)


def _wants_raw(request: Request) -> bool:
    """Raw blocks are all that is served: as a page in a browser they would be a stranger's."""
    asked = request.query_params.get("format")
    if asked is not None:
        return asked == "raw"
    types = request.headers.get("accept", "").split(",")
    return any(x.partition(";")[0].strip().lower() == RAW_TYPE for x in types)


def _matches(condition: str, tag: str) -> bool:
    tags = [x.strip().removeprefix("W/") for x in condition.split(",")]
    return tag in tags or "*" in tags
