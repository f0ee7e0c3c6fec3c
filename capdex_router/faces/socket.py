"""CAP and CMP as JSON-RPC 2.0 on a Unix socket that is for its user alone: one message a line.

A request may carry `timeout_s`, its deadline. Nobody can be asked by this face: what needs a person
is granted before, with `capdex grant`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import orjson
import structlog

from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, UsageError
from capdex.json import Json, exact, object_of
from capdex_router.commands.cmp import INVALID_REQUEST, NO_METHOD
from capdex_router.commands.cmp import METHODS as CMP_METHODS
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import BUG, InvokeResult

MAX_LINE_BYTES: Final = 2 * 1024 * 1024
MAX_CONNECTIONS: Final = 64
PARSE_ERROR: Final = -32700
# The table of errors of CMP 0.1.0, by the codes of capdex and of CAP.
_CODES: Final = {
    Code.AMBIGUOUS: -32004,
    "NOT_FOUND": -32001,
    "INVALID_INPUT": -32602,
    "PERMISSION_DENIED": -32002,
    "EXECUTION_FAILED": -32003,
    "TIMEOUT": -32003,
}

Method = Callable[[Json, Caller], Awaitable[Json]]

log = structlog.get_logger(part="router")


@asynccontextmanager
async def serving(
    path: Path, methods: Mapping[str, Method], cmp: Method | None = None
) -> AsyncIterator[None]:
    """Serve methods on a socket at `path`, which only this user may open; it is removed at the end.

    `cmp` answers the requests of CMP, of both shapes, as a whole.
    Raises UsageError UNREADABLE if another process serves there, or the path cannot be used.
    """
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(connections) >= MAX_CONNECTIONS:
            told = f"{MAX_CONNECTIONS} connections are open already: end one, then connect again"
            writer.write(orjson.dumps(_error(None, _CODES["EXECUTION_FAILED"], told)) + b"\n")
            writer.close()
            return
        connections.add(task)
        try:
            # Python 3.11 logs a task that ends by its cancellation; a client may be gone.
            with suppress(asyncio.CancelledError, ConnectionError):
                await _talk(reader, writer, methods, cmp)
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(connected, sock=_bound(path), limit=MAX_LINE_BYTES)
    try:
        yield
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - a local file, at the end


def _bound(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.lexists(path):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise OSError("another file is there")
            with suppress(ConnectionRefusedError):
                listener.connect(os.fspath(path))
                raise OSError("another router serves there")
            path.unlink()
        # The socket is made without rights for others, so that there is no moment with them.
        before = os.umask(0o177)
        try:
            listener.bind(os.fspath(path))
        finally:
            os.umask(before)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"the socket {path} cannot be used",
            Code.UNREADABLE,
            why=error.strerror or str(error),
            fix="end the router that serves there, or name another path with --socket: one of at "
            "most 107 bytes, in a directory that is there",
        ) from None
    return listener


async def _talk(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    methods: Mapping[str, Method],
    cmp: Method | None,
) -> None:
    """Answer the requests of a connection one after another, until it ends."""
    too_long = False
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            await reader.readexactly(error.consumed)  # a client that still writes reads no answer
            too_long = True
            continue
        except asyncio.IncompleteReadError as error:  # the last line may lack its end
            line = error.partial
        if not line and not too_long:
            return
        told = _error(None, INVALID_REQUEST, "the request is too long") if too_long else None
        answer = told or await _answer(line, methods, cmp)
        too_long = False
        if answer is not None:
            writer.write(orjson.dumps(answer) + b"\n")
            await writer.drain()


async def _answer(line: bytes, methods: Mapping[str, Method], cmp: Method | None) -> Json | None:
    """Return the response to a request; None to a notification, which runs nothing."""
    try:
        request = object_of(exact(line))
    except ValueError:
        return _error(None, PARSE_ERROR, "the request is not JSON")
    id_, name, params = request.get("id"), request.get("method"), request.get("params", {})
    rpc, text = "jsonrpc" in request, name if isinstance(name, str) else ""
    of_cmp = cmp if (text[:4] == "cmp." if rpc else text in CMP_METHODS) else None
    if of_cmp is None and request.get("jsonrpc") != "2.0":
        return _error(None, INVALID_REQUEST, "this is not a request of JSON-RPC 2.0")
    whole = type(id_) is int and -(2**63) <= id_ < 2**64  # an answer can carry it
    if not whole and id_ is not None and type(id_) not in (str, float):
        return _error(None, INVALID_REQUEST, "id is not an id")
    if of_cmp is None and not (isinstance(name, str) and isinstance(params, dict)):
        return _error(id_, INVALID_REQUEST, "method is not text, or params no object")
    if rpc and "id" not in request:
        return None
    method = of_cmp or methods.get(text)
    if method is None:
        return _error(id_, NO_METHOD, f"there is no method {text[:64]!r}")
    try:
        result = await method(request if of_cmp else params, _caller(params))
        return result if of_cmp else {"jsonrpc": "2.0", "id": id_, "result": result}
    except CapdexError as error:
        failure = error
    except Exception:  # a bug of ours: its details only in the log
        log.exception("call failed", method=text[:64])
        failure = ExecutionFailed("a fault of the router", Code.INTERNAL, fix=BUG)
    code = _CODES.get(failure.code) or _CODES[failure.kind.cap]
    return _error(id_, code, failure.line, InvokeResult.of_error(failure, 0).error)


def _caller(params: object) -> Caller:
    """Return the caller of a request, whose deadline is among its parameters; it asks nobody."""
    limit = object_of(params).get("timeout_s")
    if limit is None:
        return Caller()
    if not isinstance(limit, int | float) or isinstance(limit, bool) or limit <= 0:
        raise InvalidInput("timeout_s is no number of seconds", fix="give one over 0, such as 10")
    return Caller(timeout_s=float(limit))


def _error(id_: object, code: int, message: str, data: object = None) -> Json:
    error: Json = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": error}
