"""`capdex node accept`: the operator's decision where the chain contradicts a final block."""

from __future__ import annotations

import click

from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import command


@command(
    "accept",
    examples=[
        "capdex node accept 0x5ab2a1de1f0ee7ef1e1e8a6f1e4a7a3ea8d1ab3f4a2f5d4d2ae9b1c0a7f5d301",
    ],
)
@click.argument("block_hash", metavar="BLOCK_HASH")
@database_option
def accept_command(app: App, block_hash: str, db: str | None) -> None:
    """Follow the chain through a block that contradicts a final one.

    A node that is STALLED names the block in /ready. Compare it with another endpoint first: all
    that this node holds above the fork is undone. A running node continues within seconds.
    """
    from indexer.store import Operator

    with Operator(database_url(app, db)) as operator:
        operator.accept(block_hash)
    app.output.say("  a running node continues from there within seconds")
    app.output.result(
        "node.accept",
        {"block_hash": block_hash.lower()},
        human=lambda: [block_hash.lower()],
        plain=[block_hash.lower()],
    )
