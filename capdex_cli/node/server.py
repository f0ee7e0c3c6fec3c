"""An HTTP server of one ASGI application with the limits on clients: of a node, of a sponsor."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, cast

import msgspec
import uvicorn
from starlette.types import ASGIApp

from capdex.errors import Code, UsageError
from capdex.net.tasks import end
from capdex_service.limits.client_faults import ClientFaults
from capdex_service.limits.connections import build_table
from capdex_service.limits.options import ClientLimits
from capdex_service.limits.protocol import BoundedProtocol

BACKLOG: Final = 1024  # connections that come in a moment; the kernel may have a lower limit
STOP_S: Final = 3  # open requests have this long to end
MAX_DESCRIPTORS: Final = 65_536  # more are of no use, and closing all of them takes time
# 128 fetches at once, the chain endpoints, some ten of the databases, files, proofs, workers.
RESERVED_DESCRIPTORS: Final = 256


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; raises UsageError if the address is taken or not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because event loops set TCP_NODELAY only on sockets that name TCP.
    # Without TCP_NODELAY each answer waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}:{port}",
            Code.CONFIG,
            why=error.strerror or str(error),
            fix="choose another port with --port, or 0 for any free one"
            if error.errno == errno.EADDRINUSE
            else "listen on an address of this machine (--host), and a port that you may use",
        ) from None
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def serve_app(
    app: ASGIApp, listener: socket.socket, *, faults: ClientFaults, limits: ClientLimits
) -> AsyncIterator[None]:
    """Serve an application on a listening socket; at the end, open requests have `STOP_S`."""
    async with AsyncExitStack() as parts:
        table = build_table(limits, faults.note)
        sweeping = asyncio.create_task(table.sweep_always())
        parts.push_async_callback(end, [sweeping])
        protocol = partial(BoundedProtocol, table=table)
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", protocol),
            ws="none",
            backlog=BACKLOG,
            headers=[("X-Content-Type-Options", "nosniff")],
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=STOP_S,
        )
        server_log = logging.getLogger("uvicorn.error")
        server_log.addFilter(faults)
        parts.callback(server_log.removeFilter, faults)
        # Not uvicorn's own `serve`: it would replace the signal handlers of `run_until_stopped`,
        # and wake ten times a second.
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        server.server_state.default_headers = list(config.encoded_headers)
        await server.startup(sockets=[listener])
        try:
            yield
        finally:
            server.should_exit = True
            await asyncio.gather(server.shutdown(sockets=[listener]), return_exceptions=True)


def fit_descriptors(limits: ClientLimits) -> ClientLimits:
    """Raise the soft limit of descriptors to the hard one; return `limits` that fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft == resource.RLIM_INFINITY:
        return limits
    free = max(soft - RESERVED_DESCRIPTORS, soft // 4)
    return msgspec.structs.replace(limits, max_connections=min(limits.max_connections, free))
