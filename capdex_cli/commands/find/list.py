"""`capdex list`: the names that an account owns, maintains or is offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from capdex.errors import UsageError
from capdex.json import Json, objects_in
from capdex.version import Version, latest
from capdex_cli.publish.account import account_address, account_options
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import safe
from capdex_cli.views.progress import open_registry
from capdex_cli.views.release import flags, name_of

if TYPE_CHECKING:
    from capdex.registry.state import NameState
    from capdex_publisher.registry.registry import Registry

NODE_PAGE: Final = 50
MAX_NODE_PAGES: Final = 20  # a thousand names of one account; the chain has them all


@command(
    "list",
    examples=[
        "capdex list --mine",
        "capdex list --owner 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --json",
    ],
)
@click.option("--mine", is_flag=True, help="Names of your own account; the default.")
@click.option("--owner", metavar="ADDRESS", help="Names of this account.")
@account_options
async def list_command(app: App, mine: bool, owner: str | None) -> None:
    """List the names that an account holds.

    It may own them, maintain them, or have them on offer. Read from the chain's own logs, so that
    no node has to be trusted for it; without an endpoint, what the node says it published.
    """
    if mine and owner:
        raise UsageError("--mine and --owner are two accounts", fix="say one of them")
    from capdex.encoding.abi import parse_address

    network = app.settings.need_network()
    account = await account_address(app) if owner is None else parse_address(owner)
    block: int | None = None
    if not network.has_chain and network.mcp_url:
        rows = await _published_by(network.mcp_url, account)
    else:
        async with open_registry(app) as registry:
            rows, block = await _held_by(registry, account)
    source = "node" if block is None else "chain"
    human = [_row(app.output.out, x) for x in rows]
    plain = [x["name"] for x in rows]
    about = {"account": account, "source": source, "block_number": block}
    app.output.results("name", rows, human=human, plain=plain, **about)
    said = f"{len(rows)} name{'' if len(rows) == 1 else 's'} of {account}"
    if block is None:
        app.output.warn("no chain endpoint is set: these are the names it published, by the node")
    said += " · node" if block is None else f" · blocks {network.start_block} to {block}"
    app.output.say(app.output.err.dim(said))


async def _published_by(mcp_url: str, account: str) -> list[Json]:
    """The names whose listed release an account published, as the node answers a search."""
    from capdex.net.node_client import call_tool

    rows: list[Json] = []
    asked: Json = {"query_string": "", "filters": {"publisher": account}, "limit": NODE_PAGE}
    for _ in range(MAX_NODE_PAGES):
        answer = await call_tool(mcp_url, "search_capabilities", asked)
        for hit in objects_in(answer.get("list_of_results")):
            row = {"role": "publisher", "release_count": None, "latest": hit.get("semver")}
            rows.append({"name": name_of(hit), **row, "flags": flags(hit)})
        if not answer.get("next_cursor"):
            break
        asked["cursor"] = answer["next_cursor"]
    return rows


async def _held_by(registry: Registry, account: str) -> tuple[list[Json], int]:
    """The names that an account owns, maintains or is offered, and the block they were read at."""
    from capdex_publisher.registry.audit import describe
    from capdex_publisher.registry.name_history import names_held

    held, block = await names_held(registry, account)
    rows = []
    for holding in held:
        releases = holding.state.releases
        highest = latest(Version.parse(x.semver) for x in releases if not x.yanked)
        row = {
            "role": holding.role,
            "release_count": len(releases),
            "latest": None if highest is None else str(highest),
            "flags": _flags(holding.state),
        }
        rows.append(describe(holding.name, holding.state) | row)
    return rows, block


def _flags(state: NameState) -> list[str]:
    yanked = sum(x.yanked for x in state.releases)
    deprecated = sum(x.deprecated for x in state.releases)
    flags = ["deprecated"] if state.deprecated else []
    flags += [f"on offer to {state.pending_owner}"] if state.pending_owner else []
    flags += [f"{yanked} yanked"] if yanked else []
    return flags + ([f"{deprecated} deprecated"] if deprecated else [])


def _row(stream: Stream, held: Json) -> tuple[str, ...]:
    count = held["release_count"]
    return (
        stream.style(safe(held["name"]), bold=True),
        held["role"],
        "" if count is None else f"{count} release{'' if count == 1 else 's'}",
        safe(held["latest"] or "-"),
        ", ".join(held["flags"]),
    )
