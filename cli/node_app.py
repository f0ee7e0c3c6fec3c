"""`capdex node`, run: open it, serve it, stop it in order."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import structlog

from capdex import __version__
from capdex.problems import Verdict
from cli import logs
from cli.serving import listen, open_prover, serve
from cli.settings import NodeSettings
from cli.stopping import run_until_stopped
from indexer.node import Node, NodeOptions
from mcp_service.hosts import known_hosts

log = structlog.get_logger(part="node")


def run_node(settings: NodeSettings) -> int:
    """Run a node until SIGINT (exit 130) or SIGTERM (143); raises why it could not start."""
    logs.set_up(settings.log_format)
    code = run_until_stopped(_run(settings))
    log.info("stopped")
    return code


def verdicts(serve_signed: bool) -> frozenset[Verdict]:
    """What a node serves: verified packages, and signed ones if its operator says so."""
    return frozenset({Verdict.VERIFIED, Verdict.SIGNED} if serve_signed else {Verdict.VERIFIED})


async def _run(settings: NodeSettings) -> None:
    allowed = known_hosts(settings.host, settings.allowed_hosts)
    served = verdicts(settings.serve_signed)
    make_room(settings.db, settings.blocks)
    listener = listen(settings.host, settings.port)
    options = NodeOptions(
        rpc_urls=settings.rpc_urls,
        chain_id=settings.chain_id,
        registry=settings.registry,
        db=settings.db,
        blocks=settings.blocks,
        ipfs=settings.ipfs,
        serve=served,
        start_block=settings.start_block or None,
        finality_depth=settings.finality_depth,
        poll_interval_s=settings.poll_interval_s,
    )
    with listener:
        async with (
            Node.open(options) as node,
            open_prover(
                settings.rpc_urls, chain_id=settings.chain_id, registry=settings.registry
            ) as prover,
            serve(node, listener, verdicts=served, allowed=allowed, prover=prover) as running,
        ):
            host, port = listener.getsockname()[:2]
            log.info("listening", url=f"http://{host}:{port}", version=__version__)
            await running


def make_room(db: str, blocks: Path) -> None:
    """Create the directories that a SQLite file and the blocks go to."""
    with suppress(OSError):  # what cannot be made is reported by whoever opens it
        blocks.mkdir(parents=True, exist_ok=True)
        if db.startswith("sqlite:///"):
            Path(db.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
