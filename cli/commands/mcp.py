"""`capdex mcp`: MCP for hosts that start their servers themselves."""

from __future__ import annotations

import click

from cli.app import App
from cli.house import command


@command("mcp", examples=["capdex mcp --db sqlite:///index.db"])
@click.option(
    "--db",
    required=True,
    metavar="URL",
    envvar="CAPDEX_DB",
    show_envvar=True,
    help="The database of a node.",
)
@click.option("--serve-signed", is_flag=True, help="Serve verdict signed too, not verified alone.")
def mcp_command(app: App, db: str, serve_signed: bool) -> None:
    """Answer MCP over stdin and stdout.

    Reads the database of a node that runs, or ran, on this machine.
    """
    from capdex.problems import Verdict
    from indexer.search import Index
    from mcp_service.stdio import run

    serve = {Verdict.VERIFIED, Verdict.SIGNED} if serve_signed else {Verdict.VERIFIED}
    index = Index(db)
    try:
        index.state()  # a wrong database is told now, not by every call of the host
        app.run(run(index, serve=frozenset(serve)))
    finally:
        index.close()
