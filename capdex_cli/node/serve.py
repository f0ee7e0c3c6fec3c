"""One process of a node: its loops, and its HTTP and MCP answers on one port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TextIO, cast

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from capdex import __version__
from capdex.encoding.abi import raw_address
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.proofs import Prover
from capdex.net.tasks import end
from capdex_cli.node.explorer import build_explorer
from capdex_cli.node.options import create_directories
from capdex_cli.node.server import fit_descriptors, listen, serve_app, url_of
from capdex_cli.node.workers import Serving, WorkerOptions, run_workers
from capdex_cli.terminal import logs
from capdex_cli.terminal.output import Output
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.views.backfill_progress import show_backfill
from capdex_explorer.http.routes import Explorer
from capdex_indexer.http import gateway, mirror
from capdex_indexer.http.status import Ask, Surface, build_routes
from capdex_indexer.node.node import Node
from capdex_indexer.node.signals import run_until_stopped
from capdex_indexer.options import NodeOptions, Role
from capdex_service.http.problem import EXCEPTION_HANDLERS
from capdex_service.http.routes import ReaderRoutes, build_reader_routes
from capdex_service.limits.bodies import WholeBody
from capdex_service.limits.client_faults import ClientFaults
from capdex_service.limits.clients import client_check
from capdex_service.limits.hosts import HostCheck
from capdex_service.limits.options import ClientLimits
from capdex_service.queries.reader import Reader

STOP_WITHIN_S: Final = 4.5  # service managers and tests may count on five seconds

log = structlog.get_logger(part="node")


def run_node(
    options: NodeOptions,
    host: str,
    port: int,
    serving: Serving,
    *,
    log_format: str,
    progress: Output | None,
    workers: int = 1,
) -> int:
    """Run a node until SIGINT (exit 130) or SIGTERM (143); raises why it could not start.

    A port of 0 is any free one. With `progress` a backfill is shown on one line of that terminal.
    `workers` processes answer clients; this one is the first.
    """
    line = StatusLine(progress) if progress else None
    logs.set_up(log_format, stream=cast("TextIO | None", line))

    async def run() -> None:
        if options.role.writes:
            create_directories(options.db, options.blocks)
        async with AsyncExitStack() as parts:
            listener = parts.enter_context(listen(host, port))
            node = await parts.enter_async_context(Node.open(options))
            sessions = parts.enter_context(TemporaryDirectory(prefix="capdex-sessions-"))
            shared = msgspec.structs.replace(serving, sessions=sessions)
            each = [
                WorkerOptions(
                    number=number,
                    descriptor=listener.fileno(),
                    log_format=log_format,
                    serving=shared,
                    node=msgspec.structs.replace(options, role=Role.READER),
                )
                for number in range(2, workers + 1)
            ]
            others = await parts.enter_async_context(run_workers(each, node.surface))
            running = await parts.enter_async_context(serve(node, listener, shared))
            parts.callback(others.end)  # before this process waits for its own open requests
            log.info("listening", url=url_of(listener), role=str(options.role), version=__version__)
            if line is not None:
                shown = asyncio.create_task(show_backfill(node.surface.health, line))
                parts.push_async_callback(end, [shown])
            await running

    code = run_until_stopped(run(), on_stop=lambda: log.info("stopping"), within_s=STOP_WITHIN_S)
    log.info("stopped")
    return code


def build_app(
    surface: Surface,
    face: ReaderRoutes | None,
    *,
    allowed: Sequence[str],
    faults: ClientFaults | None = None,
    ask: Ask | None = None,
    limits: ClientLimits = ClientLimits(),  # noqa: B008 - frozen
    explorer: Explorer | None = None,
) -> ASGIApp:
    """Return the ASGI application: all routes behind the checks of client, host and body.

    Without a `face` (MCP) it has the operator's routes alone; `ask` answers those of a worker.
    The pages of the `explorer` come before those of the `face`: at `/c/<name>` both have one.
    """
    served = [*build_routes(surface, ask)]
    if face is not None:
        served += gateway.routes(surface.index, surface.blocks)
        served += mirror.routes(surface.index)
        served += [*(explorer.routes if explorer else ()), *face.routes]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as parts:
            if face is not None:
                await parts.enter_async_context(face.lifespan)
            if explorer is not None:
                await parts.enter_async_context(explorer.run())
            yield

    return Starlette(
        routes=served,
        middleware=[
            client_check(limits),
            Middleware(HostCheck, allowed=allowed),
            Middleware(WholeBody, faults=faults or ClientFaults()),
            *([] if face is None else [face.fast_paths]),
        ],
        exception_handlers=EXCEPTION_HANDLERS if explorer is None else explorer.handlers,
        lifespan=lifespan,
    )


@asynccontextmanager
async def open_prover(
    rpc_urls: Sequence[str], *, chain_id: int, registry: str
) -> AsyncIterator[Prover]:
    """Open a prover of answers over connections of its own.

    Requests of clients cause its calls: an endpoint that limits them must not slow the indexer.
    """
    async with Rpc(rpc_urls, transport=AiohttpTransport()) as rpc:
        contract = raw_address(registry)
        yield Prover(rpc, chain_id=chain_id, contract=contract)


@asynccontextmanager
async def serve(
    node: Node,
    listener: socket.socket,
    serving: Serving,
    ask: Ask | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve a node and run its loops; yields the task of the loops, which ends only by failing."""
    options, surface = node.options, node.surface
    async with AsyncExitStack() as parts:
        face = prover = pages = None
        if options.role.serves:
            if options.rpc_urls:
                # A reader takes them from its database.
                of = (
                    options
                    if options.role.writes
                    else await asyncio.to_thread(surface.index.status)
                )
                proving = open_prover(options.rpc_urls, chain_id=of.chain_id, registry=of.registry)
                prover = await parts.enter_async_context(proving)
            reader = Reader(
                surface.index,
                serve=options.serve,
                blocks=surface.blocks,
                prover=prover,
                warning=surface.health.warning,
            )
            parts.callback(reader.close)
            sessions = Path(serving.sessions) if serving.sessions else None
            face = build_reader_routes(reader, profile=serving.profile, sessions=sessions)
            pages = build_explorer(reader, surface, ask) if serving.explorer else None
        faults = ClientFaults()
        limits = fit_descriptors(serving.limits)
        app = build_app(
            surface,
            face,
            allowed=serving.allowed,
            faults=faults,
            ask=ask,
            limits=limits,
            explorer=pages,
        )
        await parts.enter_async_context(serve_app(app, listener, faults=faults, limits=limits))
        running = asyncio.create_task(node.run())
        try:
            yield running
        finally:
            running.cancel()
            if face is not None:
                await face.end_streams()
            # An exception of the loops reaches the caller by the yielded task, not from here.
            await asyncio.gather(running, return_exceptions=True)
