"""Run `capdex node`: open it, serve it, stop it in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, TextIO, cast

import structlog

from capdex import __version__
from capdex.net.rpc.proofs import Prover
from capdex.net.tasks import end
from cli.node.options import create_directories
from cli.node.serve import listen, open_prover, serve, url_of
from cli.terminal import logs
from cli.terminal.output import Output
from cli.terminal.status_line import StatusLine
from cli.views.backfill_progress import show_backfill
from indexer.node.node import Node
from indexer.node.signals import run_until_stopped
from indexer.options import NodeOptions
from mcp_service.hosts import known_hosts

log = structlog.get_logger(part="node")

STOP_WITHIN_S: Final = 4.5  # service managers and tests may count on five seconds


@dataclass(frozen=True, slots=True)
class Listening:
    """The address of a node, and the Host headers it answers besides loopback."""

    host: str
    port: int  # 0: any free one
    allowed_hosts: Sequence[str] = ()


def run_node(
    options: NodeOptions, listening: Listening, *, log_format: str, progress: Output | None
) -> int:
    """Run a node until SIGINT (exit 130) or SIGTERM (143); raises why it could not start.

    With `progress` a backfill is shown on one line of that terminal.
    """
    line = StatusLine(progress) if progress else None
    logs.set_up(log_format, stream=cast("TextIO | None", line))
    code = run_until_stopped(
        _run(options, listening, line), on_stop=lambda: log.info("stopping"), within_s=STOP_WITHIN_S
    )
    log.info("stopped")
    return code


async def _run(options: NodeOptions, listening: Listening, line: StatusLine | None) -> None:
    allowed = known_hosts(listening.host, listening.allowed_hosts)
    if options.role.writes:
        create_directories(options.db, options.blocks)
    async with AsyncExitStack() as parts:
        listener = parts.enter_context(listen(listening.host, listening.port))
        node = await parts.enter_async_context(Node.open(options))
        prover = await _prover(node, parts)
        running = await parts.enter_async_context(
            serve(node, listener, allowed=allowed, prover=prover)
        )
        log.info("listening", url=url_of(listener), role=str(options.role), version=__version__)
        if line is not None:
            shown = asyncio.create_task(show_backfill(node.surface.health, line))
            parts.push_async_callback(end, [shown])
        await running


async def _prover(node: Node, parts: AsyncExitStack) -> Prover | None:
    """Open the prover of a node that answers routers and has an endpoint to prove by."""
    options = node.options
    if not (options.role.serves and options.rpc_urls):
        return None
    chain_id, registry = options.chain_id, options.registry
    if not options.role.writes:  # a reader takes them from its database
        state = await asyncio.to_thread(node.surface.index.status)
        chain_id, registry = state.chain_id, state.registry
    return await parts.enter_async_context(
        open_prover(options.rpc_urls, chain_id=chain_id, registry=registry)
    )
