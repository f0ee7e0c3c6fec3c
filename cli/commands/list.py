"""`capdex list`: the names that an account owns, maintains or is offered."""

from __future__ import annotations

from typing import Any

import click

from capdex.errors import UsageError
from cli.app import App
from cli.house import command
from cli.output import Stream
from cli.progress import open_registry
from cli.standing import held_by
from cli.text import columns, safe
from cli.wallet import account_address, account_options

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
    no node has to be trusted for it.
    """
    if mine and owner:
        raise UsageError("--mine and --owner are two accounts", fix="say one of them")
    found, account, block = app.run(_list(app, owner))
    app.output.results(
        "name",
        found,
        human=lambda: _table(app.output.out, found),
        plain=[x["name"] for x in found],
        account=account,
        source="chain",
        block_number=block,
    )
    said = f"{len(found)} names" if len(found) != 1 else "1 name"
    app.output.say(app.output.err.dim(f"{said} of {account} · chain: block {block}"))


async def _list(app: App, owner: str | None) -> tuple[list[Json], str, int]:
    from publisher.contract import parse_address

    app.settings.need_network("rpc_url", "chain_id", "registry")
    account = await account_address(app) if owner is None else parse_address(owner)
    async with open_registry(app) as registry:
        found, block = await held_by(registry, account)
    return found, account, block


def _table(stream: Stream, found: list[Json]) -> list[str]:
    return columns(
        [
            (
                stream.style(safe(x["name"]), bold=True),
                x["role"],
                f"{x['release_count']} release{'' if x['release_count'] == 1 else 's'}",
                safe(x["latest"] or "-"),
                ", ".join(x["flags"]),
            )
            for x in found
        ],
        indent=0,
    )
