"""A sponsor over HTTP: `POST /publications` takes a request, `GET /` says who pays for what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from capdex.errors import Code
from capdex_publisher.sponsor.send import PUBLICATIONS
from capdex_publisher.sponsor.sponsor import Sponsor

PLACES: Final = f"POST {PUBLICATIONS} takes a signed publication; GET / says who pays for what"
# Why a publication is refused; no other try of the same request would end otherwise.
ABOUT_PUBLICATIONS: Final = frozenset(
    {
        *(Code.NAME_TAKEN, Code.NAME_RESERVED, Code.NOT_OWNER, Code.VERSION_EXISTS),
        *(Code.WRONG_CHAIN, Code.FEE_OVER_CAP, Code.REVERTED),
    }
)
ANSWER_WAIT_S: Final = 15.0  # below what proxies and `HttpClient` wait for


def routes(sponsor: Sponsor, *, wait_s: float = ANSWER_WAIT_S) -> Sequence[BaseRoute]:
    """Return the routes; a publication that takes longer than `wait_s` is answered 202."""

    async def describe(_: Request) -> Response:
        return _json(sponsor.to_json())

    async def publish(request: Request) -> Response:
        body = await request.body()
        try:
            async with asyncio.timeout(wait_s):
                release = await sponsor.publish(body)
        except TimeoutError:
            return _json({"state": "open"}, 202, {"Retry-After": "1"})
        return _json(release)

    return [Route("/", describe), Route(PUBLICATIONS, publish, methods=["POST"])]


def _json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    more = {"Cache-Control": "no-store", **(headers or {})}
    return Response(orjson.dumps(content), status, more, "application/json")
