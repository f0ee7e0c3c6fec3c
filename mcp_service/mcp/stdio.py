"""MCP over stdin and stdout: lines with a bad envelope are answered here, in front of the SDK.

The SDK cancels what is still running when stdin ends. A shell closes stdin at once behind the last
line of a pipe, so the end is passed on when every request has its answer.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import orjson
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from typing_extensions import override

from mcp_service.mcp.envelope import fault

LAST_ANSWERS_S: Final = 10.0  # a subscription has no last answer, and a cancelled request none


async def serve_lines(server: Server[Any]) -> None:
    """Serve MCP until stdin closes; what else is printed on stdout goes to stderr."""
    stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115, ASYNC230
    stdout = open(os.dup(1), "w", encoding="utf-8")  # noqa: SIM115, ASYNC230, PTH123
    os.dup2(2, 1)
    answers = _Answers(stdout)
    lines = _CheckedLines(stdin)
    lines.answers = answers
    async with stdio_server(stdin=lines, stdout=answers) as (read, write):
        lines.reply = write.send
        await server.run(read, write, server.create_initialization_options())


class _Answers(anyio.AsyncFile[str]):
    """Lines of stdout; `open` has the ids of requests that have no answer yet."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.open: set[str | int] = set()
        self.written = anyio.Event()

    @override
    async def flush(self) -> None:
        await super().flush()
        self.written.set()
        self.written = anyio.Event()

    @override
    async def write(self, line: str) -> int:
        count = await super().write(line)
        said = orjson.loads(line)
        if "method" not in said:
            self.open.discard(said.get("id"))
        return count


class _CheckedLines(anyio.AsyncFile[str]):
    """Lines of stdin; one with a bad envelope is answered by `reply` and left out."""

    reply: Callable[[SessionMessage], Awaitable[Any]]
    answers: _Answers

    @override
    async def readline(self) -> str:
        """Return the next line that is a message; empty at the end."""
        while line := await super().readline():
            found = fault(line.encode("utf-8")) if line.strip() else None
            if found is not None:
                await self.reply(SessionMessage(found.error()))
            elif line.strip():
                said = orjson.loads(line)
                if "method" in said and "id" in said:
                    self.answers.open.add(said["id"])
                return line
        with anyio.move_on_after(LAST_ANSWERS_S):
            while self.answers.open:
                await self.answers.written.wait()
        return line
