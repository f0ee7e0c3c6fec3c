"""`capdex mcp`: MCP over stdin and stdout, for hosts that start their servers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from cli.node.options import (
    blocks_beside,
    blocks_option,
    default_blocks,
    environment_option,
    profile_option,
    semantic_option,
    semantic_wanted,
    serve_signed_option,
    served_verdicts,
)
from cli.terminal.app import App
from cli.terminal.click_commands import command

if TYPE_CHECKING:
    from capdex.problems import Verdict
    from indexer.query.index import Index


@command("mcp", examples=["capdex mcp --db sqlite:///index.db"])
@environment_option("--db", required=True, metavar="URL", help="Database of a node.")
@environment_option(
    "--rpc-url", multiple=True, metavar="URL",
    help="Chain endpoint that answers are proven by; without one they are not proven.",
)  # fmt: skip
@serve_signed_option
@semantic_option
@blocks_option
@profile_option
def mcp_command(
    app: App,
    db: str,
    rpc_url: tuple[str, ...],
    serve_signed: bool,
    blocks: Path | None,
    profile: str,
    semantic: bool | None,
) -> None:
    """Answer MCP over stdin and stdout.

    Reads the database of a node that runs, or has run, on this machine.
    """
    from cli.terminal import logs
    from indexer.query.index import Index

    logs.set_up("logfmt")  # to stderr: stdout is the MCP transport
    index = Index(db)
    try:
        app.run(
            _serve(index, db, served_verdicts(serve_signed), rpc_url, blocks, profile, semantic)
        )
    finally:
        index.close()


async def _serve(
    index: Index,
    db: str,
    serve: frozenset[Verdict],
    rpc_urls: Sequence[str],
    blocks: Path | None,
    profile: str,
    semantic: bool | None,
) -> None:
    from capdex.net.ipfs.block_store import BlockDirectory
    from capdex.search.encoder import SentenceEncoder
    from cli.node.serve import open_prover
    from indexer.query.search import directory_of
    from mcp_service.mcp.server import serve_stdio
    from mcp_service.mcp.tools import PROFILES
    from mcp_service.queries.reader import Reader

    state = index.status()  # refuse a wrong database now, not at each call of the host
    proving = open_prover(rpc_urls, chain_id=state.chain_id, registry=state.registry)
    async with proving if rpc_urls else nullcontext() as prover:
        kept = blocks or blocks_beside(db) or default_blocks(state.chain_id)
        encoder = SentenceEncoder() if semantic_wanted(semantic) else None
        index.follow(directory_of(db, kept), encoder)
        with closing(
            Reader(index, serve=serve, blocks=BlockDirectory(kept), prover=prover)
        ) as reader:
            await serve_stdio(reader, PROFILES[profile])
