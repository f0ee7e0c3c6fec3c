"""MCP over standard input and output, for hosts that start their servers themselves."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from capdex.problems import Verdict
from indexer.query.index import Index
from mcp_service.proofs import Prover
from mcp_service.server import build_server


async def run(index: Index, *, serve: frozenset[Verdict], prover: Prover | None = None) -> None:
    """Serve MCP on stdin and stdout until stdin closes; nothing else may print on stdout."""
    server = build_server(index, serve=serve, prover=prover)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
