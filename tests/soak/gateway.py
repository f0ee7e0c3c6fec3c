"""A gateway that serves a directory of blocks, and can be told to keep everybody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from proxy import serving

from capdex.errors import CapdexError
from capdex.ipld.cid import Cid

LOOK_S = 0.005


@dataclass
class Gateway:
    """Fields may be changed while it runs; `waiting` requests are held back now."""

    blocks: Any  # gives a block by its CID
    held: bool = False
    delay_s: float = 0.0
    waiting: int = 0
    url: str = ""

    @classmethod
    @contextmanager
    def open(cls, blocks: Any) -> Iterator[Gateway]:
        """A gateway that serves from a thread of its own until the block ends."""
        self = cls(blocks)
        with serving(self._start) as self.url:
            yield self

    async def _start(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/ipfs/{cid}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        self.waiting += 1
        try:
            await asyncio.sleep(self.delay_s)
            while self.held:  # noqa: ASYNC110 - another thread lets go
                await asyncio.sleep(LOOK_S)
        finally:
            self.waiting -= 1
        try:
            data = await self.blocks.get(Cid.parse(request.match_info["cid"]))
        except (CapdexError, KeyError):
            return web.Response(status=404)
        return web.Response(body=data, content_type="application/vnd.ipld.raw")
