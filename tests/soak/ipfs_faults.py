"""A gateway that answers three CIDs in ten as its base URL says: `http://HOST:PORT/<kind>`.

It runs in a process of its own, so that what it does costs the node under test nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from aiohttp import web

from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory

SHARE: Final = 0.3
HEALTHY, MIXED = "healthy", "mixed"
RAW: Final = "application/vnd.ipld.raw"
PAGE: Final = b"<!doctype html><title>504</title><p>Not pinned here. Try again later."
STATUSES: Final = {"404": 404, "410": 410, "429": 429, "500": 500, "503": 503}

Answer = Callable[[web.Request, bytes], Awaitable[web.StreamResponse]]


def afflicted(cid: Cid) -> bool:
    """Whether a CID is among those that are not answered as they should be."""
    return _number(cid, "afflicted") < SHARE * 2**32


def _number(cid: Cid, salt: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{salt} {cid}".encode()).digest()[:4], "big")


async def _start(request: web.Request, **headers: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": RAW, **headers})
    await response.prepare(request)
    return response


async def _garbage(_: web.Request, data: bytes) -> web.Response:
    return web.Response(body=data[:-1] + bytes([data[-1] ^ 1]), content_type=RAW)


async def _page(_: web.Request, data: bytes) -> web.Response:
    return web.Response(body=PAGE, content_type="text/html")


async def _gzip(_: web.Request, data: bytes) -> web.Response:
    response = web.Response(body=data, content_type=RAW)
    response.enable_compression(web.ContentCoding.gzip, strategy=0)
    return response


async def _endless(request: web.Request, data: bytes) -> web.StreamResponse:
    response = await _start(request)
    while True:
        await response.write(bytes(65536))


async def _drip(request: web.Request, data: bytes) -> web.StreamResponse:
    response = await _start(request)
    for byte in data:
        await response.write(bytes([byte]))
        await asyncio.sleep(1)
    return response


async def _silent(_: web.Request, data: bytes) -> web.Response:
    await asyncio.sleep(600)
    return web.Response(body=data)


async def _reset(request: web.Request, data: bytes) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _truncated(request: web.Request, data: bytes) -> web.StreamResponse:
    response = await _start(request, **{"Content-Length": str(len(data))})
    await response.write(data[: len(data) // 2])
    assert request.transport is not None
    request.transport.close()
    return response


def _status(status: int) -> Answer:
    async def answer(_: web.Request, data: bytes) -> web.Response:
        patience = {"Retry-After": "30"} if status in (429, 503) else {}
        return web.Response(status=status, headers=patience, body=data)

    return answer


class Faults:
    """What the gateway does for each kind; `trap` is a host that nobody may be sent to."""

    def __init__(self, blocks: Path, trap: str) -> None:
        self._blocks, self._trap = BlockDirectory(blocks), trap
        self.answers: dict[str, Answer] = {
            "garbage": _garbage,
            "other": self._other,
            "page": _page,
            "redirect": self._redirect,
            "gzip": _gzip,
            "endless": _endless,
            "drip": _drip,
            "silent": _silent,
            "reset": _reset,
            "truncated": _truncated,
            **{name: _status(status) for name, status in STATUSES.items()},
        }

    async def _other(self, _: web.Request, data: bytes) -> web.Response:
        """Another package, sound in itself."""
        return web.Response(body=next(x for x in self._two if x != data), content_type=RAW)

    @cached_property
    def _two(self) -> list[bytes]:
        """Two of the packages; looked for once, since that takes a gateway with many a while."""
        files = sorted(path for path in self._blocks.path.glob("*/b*") if path.stat().st_size)
        return [path.read_bytes() for path in files[:2]]

    async def _redirect(self, request: web.Request, data: bytes) -> web.Response:
        odd = int(hashlib.sha256(data).hexdigest()[0], 16) % 2
        path = "/api/v0/shutdown" if odd else request.path_qs
        return web.Response(
            status=(301, 302, 303, 307, 308)[len(data) % 5],
            headers={"Location": f"{self._trap}{path}"},
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request, by the kind in its path."""
        kind, cid = request.match_info["kind"], Cid.parse(request.match_info["cid"])
        data = self._blocks.read(cid)
        if data is None:
            return web.Response(status=404)
        if kind == HEALTHY or not afflicted(cid):
            return web.Response(body=data, content_type=RAW)
        if kind == MIXED:
            kind = sorted(self.answers)[_number(cid, "kind") % len(self.answers)]
        with suppress(ConnectionError):
            return await self.answers[kind](request, data)
        return web.Response()


KINDS: Final = tuple(Faults(Path(), "").answers)


def _serve(blocks: Path, trap: str, ready: Connection) -> None:
    async def run() -> None:
        app = web.Application()
        app.router.add_get("/{kind}/ipfs/{cid}", Faults(blocks, trap).answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def serving(blocks: Path, trap: str) -> Iterator[str]:
    """The address of such a gateway over a directory of blocks."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(blocks, trap, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()
