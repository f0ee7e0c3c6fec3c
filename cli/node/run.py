"""`capdex node`, run: open it, serve it, stop it in order."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, TextIO, cast

import structlog

from capdex import __version__
from capdex.net.rpc.proofs import Prover
from capdex.net.tasks import end
from capdex.problems import Verdict
from cli.config.settings import NodeSettings
from cli.node.serve import listen, open_prover, serve, url_of
from cli.terminal import logs
from cli.terminal.output import Stream
from cli.terminal.signals import run_until_stopped
from cli.views.backfill_progress import Line, show_backfill
from indexer.node.node import Node, NodeOptions, Role
from mcp_service.hosts import known_hosts

log = structlog.get_logger(part="node")

STOP_WITHIN_S: Final = 4.5  # whoever stops a node may count on five seconds


def run_node(settings: NodeSettings) -> int:
    """Run a node until SIGINT (exit 130) or SIGTERM (143); raises why it could not start."""
    line = Line(Stream.of(sys.stderr, "auto", os.environ)) if settings.progress else None
    logs.set_up(settings.log_format, stream=cast("TextIO | None", line))
    code = run_until_stopped(
        _run(settings, line), on_stop=lambda: log.info("stopping"), within_s=STOP_WITHIN_S
    )
    log.info("stopped")
    return code


def verdicts(serve_signed: bool) -> frozenset[Verdict]:
    """What a node serves: verified packages, and signed ones if its operator says so."""
    return frozenset({Verdict.VERIFIED, Verdict.SIGNED} if serve_signed else {Verdict.VERIFIED})


async def _run(settings: NodeSettings, line: Line | None) -> None:
    allowed = known_hosts(settings.host, settings.allowed_hosts)
    served, role = verdicts(settings.serve_signed), Role(settings.role)
    if role.writes:
        make_room(settings.db, settings.blocks)
    options = NodeOptions(
        rpc_urls=settings.rpc_urls,
        chain_id=settings.chain_id,
        registry=settings.registry,
        db=settings.db,
        blocks=settings.blocks,
        ipfs=settings.ipfs,
        serve=served,
        start_block=settings.start_block,
        finality_depth=settings.finality_depth,
        poll_interval_s=settings.poll_interval_s,
        votes=settings.votes or None,
        role=role,
        standby=settings.standby,
    )
    async with AsyncExitStack() as parts:
        listener = parts.enter_context(listen(settings.host, settings.port))
        node = await parts.enter_async_context(Node.open(options))
        prover = await _prover(settings.rpc_urls, node, parts) if role.serves else None
        running = await parts.enter_async_context(
            serve(node, listener, verdicts=served, allowed=allowed, prover=prover, role=role)
        )
        log.info("listening", url=url_of(listener), role=str(role), version=__version__)
        if line is not None:
            shown = asyncio.create_task(show_backfill(node.surface.health, line))
            parts.push_async_callback(end, [shown])
        await running


async def _prover(urls: tuple[str, ...], node: Node, parts: AsyncExitStack) -> Prover | None:
    """Whoever proves this node's answers, where it has an endpoint to prove them by."""
    if not urls:
        return None
    if node.options.role.writes:
        chain_id, registry = node.options.chain_id, node.options.registry
    else:
        state = await asyncio.to_thread(node.surface.index.state)
        chain_id, registry = state.chain_id, state.registry
    return await parts.enter_async_context(open_prover(urls, chain_id=chain_id, registry=registry))


def make_room(db: str, blocks: Path) -> None:
    """Create the directories that a SQLite file and the blocks go to."""
    with suppress(OSError):  # what cannot be made is reported by whoever opens it
        blocks.mkdir(parents=True, exist_ok=True)
        if db.startswith("sqlite:///"):
            Path(db.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
