"""HTTP routes about the node itself: health, readiness, status and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from capdex import __version__
from capdex.errors import CapdexError, InvalidInput
from capdex.net.ipfs.block_store import BlockDirectory
from capdex_indexer.monitoring import metrics
from capdex_indexer.monitoring.health import Health
from capdex_indexer.monitoring.metrics import Counters
from capdex_indexer.options import Role
from capdex_indexer.query.index import Index, in_time

MAX_LAG_DIGITS: Final = 12  # thirty thousand years; Python refuses to read thousands of digits


@dataclass(frozen=True, slots=True)
class Surface:
    """Parts that HTTP routes read: the index, the blocks, and the node's health and counters."""

    index: Index
    blocks: BlockDirectory
    health: Health
    role: Role = Role.BOTH
    counters: Callable[[], Counters] = Counters


# Answers a path of PAGES, with the query's `max_lag` if it has one.
Ask = Callable[[str, str | None], Awaitable[Response]]


def build_routes(surface: Surface, ask: Ask | None = None) -> Sequence[BaseRoute]:
    """Return the routes of PAGES; with `ask` another process of this node answers them."""
    answer = ask or partial(answer_page, surface)

    async def endpoint(request: Request) -> Response:
        return await answer(request.url.path, request.query_params.get("max_lag"))

    return [Route(path, endpoint, methods=["GET"]) for path in PAGES]


async def answer_page(surface: Surface, path: str, max_lag: str | None = None) -> Response:
    """Return the answer of a path of PAGES, made in a thread if it reads the database."""
    if path in ("/health", "/ready"):  # threads may all wait for a database that hangs
        return PAGES[path](surface, max_lag)
    async with in_time():
        return await asyncio.to_thread(PAGES[path], surface, max_lag)


def _health(surface: Surface, _: str | None) -> Response:
    """Answer that the process is alive; `because` lists why it is not ready."""
    health = surface.health
    body = {"because": health.faults(), "warnings": health.warnings()}
    return _json({"status": "ok", "version": __version__, **body})


def _ready(surface: Surface, _: str | None) -> Response:
    """Answer 200 if the node follows the chain and is not stalled, else 503."""
    faults = surface.health.faults()
    if not faults:
        return _json({"status": "ready"})
    response = _json({"status": "not ready", "because": faults}, status=503)
    response.headers["Retry-After"] = "1"
    return response


def _status(surface: Surface, limit: str | None) -> Response:
    """Answer with the state of the node; `?max_lag=SECONDS` gives 503 if it lags more."""
    if limit is not None and not (
        limit.isascii() and limit.isdigit() and len(limit) <= MAX_LAG_DIGITS
    ):
        raise InvalidInput("max_lag is not a whole number of seconds", fix="give one, such as 60")
    state, health = surface.index.status(), surface.health
    lag_s = health.lag_s()
    body = {
        "chain": {
            "chain_id": state.chain_id,
            "registry": state.registry,
            "block_number": state.block_number,
            "block_hash": state.block_hash,
            "head_number": state.head,
            "finalized_number": state.finalized,
        },
        "log": {"count": state.log_count, "head": state.log_head},
        "index_digest": state.index_digest,
        "content_digest": state.content_digest,
        "decoder_version": state.decoder_version,
        "rules_version": state.rules_version,
        "releases": {
            "by_verdict": dict(state.by_verdict),
            "by_availability": dict(state.by_availability),
            "rejected_by_reason": dict(state.rejected_by_reason),
            "total": state.releases,
            "listed": state.listed,
            "oldest_pending_seconds": state.oldest_pending_s,
        },
        "undecodable_logs": state.undecodable,
        "rejections": list(state.rejections),
        "status": "ready" if not health.faults() else "not ready",
        "because": health.faults(),
        "warnings": health.warnings(),
        "role": str(surface.role),
        "writer": health.writes,
        "lag_seconds": None if lag_s is None else round(lag_s, 3),
        "reorgs": dict(health.reorgs),
        "version": __version__,
        **surface.counters().to_json(),
    }
    behind = limit is not None and (lag_s is None or lag_s > int(limit))
    return _json(body, status=503 if behind else 200)


def _metrics(surface: Surface, _: str | None) -> Response:
    try:
        state = surface.index.status()
    except CapdexError:  # metrics must report most of all that the node is not ready
        state = None
    body = metrics.render(state, surface.health, surface.counters())
    return Response(body, headers={"Content-Type": metrics.MEDIA_TYPE})


def _json(body: object, *, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


PAGES: Final[dict[str, Callable[[Surface, str | None], Response]]] = {
    "/health": _health,
    "/ready": _ready,
    "/status": _status,
    "/metrics": _metrics,
}
