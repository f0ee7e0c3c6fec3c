"""`capdex node`, run: open it, serve it, stop it in order."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import structlog

from capdex import __version__
from capdex.errors import CapdexError
from capdex.problems import Verdict
from cli import logs
from cli.serving import hosts, listen, serve
from cli.settings import NodeSettings
from indexer.node import Node, NodeOptions

log = structlog.get_logger(part="node")


def run_node(settings: NodeSettings) -> int:
    """Run a node until SIGINT (exit 130) or SIGTERM (143); raises why it could not start."""
    logs.set_up(settings.log_format)
    return asyncio.run(_run(settings))


def verdicts(serve_signed: bool) -> frozenset[Verdict]:
    """What a node serves: verified packages, and signed ones if its operator says so."""
    return frozenset({Verdict.VERIFIED, Verdict.SIGNED} if serve_signed else {Verdict.VERIFIED})


async def _run(settings: NodeSettings) -> int:
    stopped, code = asyncio.Event(), 0

    def stop(number: int) -> None:
        nonlocal code
        code = 128 + number
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    allowed = hosts(settings.host, settings.allowed_hosts)
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
            serve(node, listener, verdicts=served, allowed=allowed) as running,
        ):
            host, port = listener.getsockname()[:2]
            log.info("listening", url=f"http://{host}:{port}", version=__version__)
            waiting = asyncio.create_task(stopped.wait())
            await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if running.done() and not running.cancelled():
                raise _cause(running.exception())
    log.info("stopped")
    return code


def make_room(db: str, blocks: Path) -> None:
    """Create the directories that a SQLite file and the blocks go to."""
    with suppress(OSError):  # what cannot be made is reported by whoever opens it
        blocks.mkdir(parents=True, exist_ok=True)
        if db.startswith("sqlite:///"):
            Path(db.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)


def _cause(error: BaseException | None) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, CapdexError):
        return error
    return RuntimeError("the node's loops ended") if error is None else error
