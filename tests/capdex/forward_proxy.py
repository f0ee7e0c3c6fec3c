"""A forward proxy of tests: tunnels by CONNECT, and requests with a whole URL (RFC 9110, 9.3.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field


@dataclass
class ForwardProxy:
    """Takes every host for a port of this machine, and notes the heads that it reads."""

    port: int
    status: int = 200
    address: str = ""
    heads: list[str] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        if task := asyncio.current_task():
            self.tasks.append(task)
        ends = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        with closing(writer), suppress(*ends):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode())
            if self.status != 200:
                words = f"HTTP/1.1 {self.status} No\r\nContent-Length: 4\r\n\r\nwhy?"
                writer.write(words.encode())
                await reader.read()
            else:
                back, there = await asyncio.open_connection("127.0.0.1", self.port)
                if head.startswith(b"CONNECT "):
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    there.write(head)
                await asyncio.gather(_pass(reader, there), _pass(back, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer), suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def forwarding(port: int = 0, *, status: int = 200) -> AsyncIterator[ForwardProxy]:
    """Run a proxy to a port, or one that refuses by a status."""
    proxy = ForwardProxy(port, status)
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as server:
        proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            for task in proxy.tasks:
                task.cancel()
            await asyncio.gather(*proxy.tasks, return_exceptions=True)
