"""`capdex list`: the names that an account owns, maintains or is offered."""

from __future__ import annotations

from typing import Any

import click

from capdex.errors import UsageError
from cli.publish.account import account_address, account_options
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.output import Stream
from cli.terminal.text import columns, safe
from cli.views.name import asks_chain, held_by, published_by
from cli.views.progress import open_registry

Json = dict[str, Any]


@command(
    "list",
    examples=[
        "capdex list --mine",
        "capdex list --owner 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --json",
    ],
)
@click.option("--mine", is_flag=True, help="Those of your own account; so it is without --owner.")
@click.option("--owner", metavar="ADDRESS", help="Those of this account.")
@account_options
def list_command(app: App, mine: bool, owner: str | None) -> None:
    """List the names that an account holds.

    It may own them, maintain them, or have them on offer. Read from the chain's own logs, so that
    no node has to be trusted for it; without an endpoint, what the node says it published.
    """
    if mine and owner:
        raise UsageError("--mine and --owner are two accounts", fix="say one of them")
    found, account, block = app.run(_list(app, owner))
    source = "node" if block is None else "chain"
    app.output.results(
        "name",
        found,
        human=lambda: _table(app.output.out, found),
        plain=[x["name"] for x in found],
        account=account,
        source=source,
        block_number=block,
    )
    said = f"{len(found)} name{'' if len(found) == 1 else 's'} of {account}"
    if block is None:
        app.output.warn("no chain endpoint is set: these are the names it published, by the node")
    app.output.say(app.output.err.dim(f"{said} · {source if block is None else f'block {block}'}"))


async def _list(app: App, owner: str | None) -> tuple[list[Json], str, int | None]:
    """The names, the account, and the block of the chain (None: the node was asked)."""
    from capdex.encoding.abi import parse_address

    network = app.settings.need_network()
    account = await account_address(app) if owner is None else parse_address(owner)
    if not asks_chain(app) and network.mcp_url:
        return await published_by(network.mcp_url, account), account, None
    async with open_registry(app) as registry:
        found, block = await held_by(registry, account)
    return found, account, block


def _table(stream: Stream, found: list[Json]) -> list[str]:
    return columns(
        [
            (
                stream.style(safe(x["name"]), bold=True),
                x["role"],
                _count(x["release_count"]),
                safe(x["latest"] or "-"),
                ", ".join(x["flags"]),
            )
            for x in found
        ],
        indent=0,
    )


def _count(releases: int | None) -> str:
    return "" if releases is None else f"{releases} release{'' if releases == 1 else 's'}"
