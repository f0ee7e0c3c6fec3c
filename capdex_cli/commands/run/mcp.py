"""`capdex mcp`: MCP over stdin and stdout, for hosts that start their servers."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

from capdex_cli.node.options import (
    blocks_option,
    default_blocks,
    environment_option,
    profile_option,
    semantic_option,
    semantic_wanted,
    serve_signed_option,
    served_verdicts,
)
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command


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
) -> int:
    """Answer MCP over stdin and stdout.

    Reads the database of a node that runs, or has run.
    """
    from capdex.net.stdio import Stdio
    from capdex_cli.terminal.errors import show
    from capdex_service.mcp.tools import PROFILES

    tools = PROFILES[profile]
    verdicts = served_verdicts(serve_signed)
    if not (Path(db.removeprefix("sqlite:///")).is_file() or db.startswith("postgres")):
        from capdex_indexer.query.index import Index

        with closing(Index(db)) as index:
            index.status()  # it says what is wrong with the URL
    stdio = Stdio(tools.introduction)

    async def serve() -> None:
        from capdex.net.ipfs.block_store import BlockDirectory
        from capdex_cli.node.serve import open_prover
        from capdex_cli.terminal import logs
        from capdex_indexer.query.index import Index
        from capdex_indexer.query.search.mapped_encoder import MappedEncoder
        from capdex_indexer.query.search.snapshots import directory_of
        from capdex_service.mcp.server import build_server
        from capdex_service.queries.reader import Reader

        logs.set_up("logfmt")  # to stderr: stdout is the MCP transport
        with closing(Index(db)) as index:
            state = index.status()
            proving = open_prover(rpc_url, chain_id=state.chain_id, registry=state.registry)
            async with proving if rpc_url else nullcontext() as prover:
                kept = blocks or default_blocks(db, state.chain_id)
                directory = directory_of(db, kept)
                index.follow(
                    directory, MappedEncoder(directory) if semantic_wanted(semantic) else None
                )
                with closing(
                    Reader(index, serve=verdicts, blocks=BlockDirectory(kept), prover=prover)
                ) as reader:
                    await stdio.serve(lambda: build_server(reader, tools))

    return stdio.run(lambda: app.run(serve()), lambda error: show(error, app.output))
