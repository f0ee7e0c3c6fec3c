"""MCP over stdin and stdout: an `Introduction` answers at once, the SDK's server all else.

A thread reads stdin and gives the constant answers, so hosts have them while the program imports
and opens what a call needs. The SDK comes with the first message for it; it then gets the
`initialize` that was answered, and stays the authority on sessions, questions and progress.
"""

from __future__ import annotations

import os
import queue
import threading
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from capdex.errors import CapdexError
from capdex.net.envelope import INVALID_REQUEST, Fault, JsonRpcMessage, read
from capdex.net.introduction import Introduction, is_modern

if TYPE_CHECKING:
    import asyncio

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
MAX_WAITING: Final = 64  # messages; then stdin is not read
LAST_ANSWERS_S: Final = 10.0  # a subscription has no last answer
GIVEN_UP_S: Final = 1.0  # for the answers that a client had asked for in the other revision
INITIALIZED: Final = "notifications/initialized"
CANCELLED: Final = "notifications/cancelled"
REPLAYED: Final = "capdex/initialize"  # the id of an `initialize` that was answered here


class Stdio:
    """The transport of this process; what else is printed on stdout goes to stderr."""

    def __init__(self, said: Introduction) -> None:
        self._said = said
        self._in = open(os.dup(0), "rb")  # noqa: SIM115, PTH123 - until the process ends
        self._out = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._waiting: queue.Queue[JsonRpcMessage | None] = queue.Queue(MAX_WAITING)
        self._first: list[JsonRpcMessage] = []  # taken off the queue before the SDK was there
        # An `initialize` and what follows it, until the SDK is used.
        self._held: list[JsonRpcMessage] = []
        self._greeted = self._live = False
        self._notice: Callable[[], object] = lambda: None
        threading.Thread(target=self._read, daemon=True).start()

    def run(self, serve: Callable[[], object], show: Callable[[CapdexError], int]) -> int:
        """Call `serve` when a message needs the server, which it opens; return the exit code.

        An error of opening is shown, and answered to that message; the next one is a new try.
        """
        code = 0
        while (message := self._waiting.get()) is not None:
            self._first.append(message)
            if not message.is_request or _is_answered(self._said, message):
                continue
            try:
                serve()
            except CapdexError as error:
                if message not in self._first:  # it was open, and failed later
                    raise
                code = show(error)
                self._write(self._said.refusal(message, error))
                self._first.pop()
            else:
                return 0
        return code

    async def serve(self, build: Callable[[], Server[Any]]) -> None:
        """Serve by the SDK until stdin closes; `build` makes a server of its own for each era."""
        import asyncio

        import anyio

        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._notice = lambda: loop.call_soon_threadsafe(arrived.set)
        session = _Session(self._said, self._write)
        while True:
            into, read_stream = anyio.create_memory_object_stream[Any](0)
            write_stream, out = anyio.create_memory_object_stream[Any](0)
            server = build()
            async with anyio.create_task_group() as group:
                group.start_soon(session.feed, into, lambda: self._next(arrived))
                group.start_soon(session.drain, out)
                options = server.create_initialization_options()
                await server.run(read_stream, write_stream, options)
            if session.again is None:
                return
            self._first = [session.again]

    async def _next(self, arrived: asyncio.Event) -> JsonRpcMessage | None:
        while not self._first:
            arrived.clear()
            try:
                return self._waiting.get_nowait()
            except queue.Empty:
                await arrived.wait()
        return self._first.pop(0)

    def _read(self) -> None:
        try:
            for line in self._lines():
                message = read(line)
                if isinstance(message, Fault):
                    self._write(message.answer())
                    message = JsonRpcMessage(b"", message.id, None, b"")  # an answer to us, perhaps
                self._take(message)
        finally:
            self._put(None)

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that are not blank; U+FFFD takes the place of what is no UTF-8.

        Windows PowerShell writes a byte order mark first.
        """
        while line := self._in.readline(MAX_LINE_BYTES):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                fault = Fault(INVALID_REQUEST, f"a message is over {MAX_LINE_BYTES} bytes long")
                self._write(fault.answer())
                while line and not line.endswith(b"\n"):
                    line = self._in.readline(MAX_LINE_BYTES)
            elif line.strip():
                yield line.removeprefix(BOM_UTF8).decode("utf-8", "replace").encode()

    def _take(self, message: JsonRpcMessage) -> None:
        """Answer a message, or let it wait for the SDK."""
        answer = self._said.answer(message, self._greeted) if message.is_request else None
        if answer is not None:
            self._write(answer)
            if message.method != "initialize":
                return
            self._greeted, self._held = True, []
        self._live = self._live or (message.is_request and answer is None)
        if self._live:
            for waiting in (*self._held, message):
                self._put(waiting)
            self._held = []
        elif answer is not None or (message.method == INITIALIZED and len(self._held) == 1):
            self._held.append(message)

    def _put(self, message: JsonRpcMessage | None) -> None:
        self._waiting.put(message)
        self._notice()

    def _write(self, message: bytes) -> None:
        with self._writing, suppress(BrokenPipeError):  # the host is gone, and closes stdin, too
            rest = memoryview(message + b"\n")
            while rest:
                rest = rest[os.write(self._out, rest) :]


def _is_answered(said: Introduction, message: JsonRpcMessage) -> bool:
    """Return True for an `initialize` that was answered, of which the SDK is yet to know."""
    return message.method == "initialize" and said.answer(message, greeted=False) is not None


class _Session:
    """One side of the SDK's streams: what goes in and comes out, and what has no answer yet."""

    def __init__(self, said: Introduction, write: Callable[[bytes], None]) -> None:
        import anyio

        self.again: JsonRpcMessage | None = None  # an `initialize` that ended the other revision
        self._said, self._write = said, write
        self._open: set[str | int] = set()  # requests of the client without an answer
        self._asked: set[str | int] = set()  # questions to the client without an answer
        self._written = anyio.Event()

    async def feed(
        self,
        into: MemoryObjectSendStream[SessionMessage],
        take: Callable[[], Awaitable[JsonRpcMessage | None]],
    ) -> None:
        """Pass on messages until stdin ends, or until a client of 2026-07-28 sends a hello.

        The SDK cancels what is still running when its stream ends. A shell closes stdin at once
        behind the last line of a pipe, so the end is passed on when every request has its answer,
        or at once if one waits for an answer of the client, which can no longer come.
        """
        import anyio

        self.again = None
        modern: bool | None = None  # the first request tells
        async with into:
            while (message := await take()) is not None:
                if message.method == "initialize" and modern:
                    self.again = message
                    break
                if modern is None and message.is_request:
                    modern = is_modern(message)
                await self._pass(into, message)
            with anyio.move_on_after(LAST_ANSWERS_S if self.again is None else GIVEN_UP_S):
                while self._open and not self._asked:
                    await self._written.wait()
            self._open.clear()
            self._asked.clear()

    async def drain(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write what the SDK answers, asks and reports."""
        import anyio

        async for item in out:
            message = item.message
            id_ = getattr(message, "id", None)
            if id_ == REPLAYED:
                continue
            text = message.model_dump_json(by_alias=True, exclude_unset=True)
            await anyio.to_thread.run_sync(self._write, text.encode())
            if id_ is not None:
                if hasattr(message, "method"):
                    self._asked.add(id_)
                else:
                    self._open.discard(id_)
                self._written.set()
                self._written = anyio.Event()

    async def _pass(
        self, into: MemoryObjectSendStream[SessionMessage], message: JsonRpcMessage
    ) -> None:
        import mcp_types as types
        from mcp.shared.message import SessionMessage
        from pydantic import ValidationError

        wrong = Fault(INVALID_REQUEST, "the message is none of MCP", message.id).answer()
        try:
            parsed = types.jsonrpc_message_adapter.validate_json(message.text, by_name=False)
        except ValidationError:
            if message.is_request:
                self._write(wrong)
            if message.method is not None or message.id is None:
                return
            # An answer to a question of ours: who waits for it is told.
            parsed = types.jsonrpc_message_adapter.validate_json(wrong)
        if isinstance(parsed, types.JSONRPCRequest):
            if _is_answered(self._said, message):
                parsed.id = REPLAYED
            else:
                self._open.add(parsed.id)
        elif message.method == CANCELLED and isinstance(parsed, types.JSONRPCNotification):
            id_ = (parsed.params or {}).get("requestId")
            self._open = {x for x in self._open if x != id_}  # it gets no answer
        elif message.id is not None:
            self._asked.discard(message.id)
        await into.send(SessionMessage(parsed))
