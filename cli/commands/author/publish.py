"""`capdex publish`: a visible list of steps that may be interrupted and run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from cli.publish.account import AUTHOR_KEY, account_address, spending_options
from cli.publish.prepare import Packing
from cli.publish.publish import Publishing, say_dry_run
from cli.publish.storage import open_delivery
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.errors import worst
from cli.terminal.file_arguments import expand
from cli.terminal.output import Format
from cli.terminal.text import safe, short
from cli.views.progress import open_registry

ALLOW = ("smaller-step", "widened-permission")  # the values of capdex.diff.diff.Allowance


@command(
    "publish",
    examples=[
        "capdex publish weather.acp.yaml",
        "capdex publish weather.acp.yaml --dry-run",
        "capdex publish *.acp.yaml --yes",
        "CID=$(capdex publish weather.acp.yaml --yes --plain)",
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Check everything, show the transactions, send none.")
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(ALLOW),
    help="Publish although the version moves less than its changes owe.",
)
@click.option("--ipfs", metavar="SPEC", help="dir:PATH or a Kubo RPC.  [env var: CAPDEX_IPFS]")
@AUTHOR_KEY
@spending_options
def publish_command(
    app: App, files: tuple[str, ...], dry_run: bool, allow: tuple[str, ...], ipfs: str | None
) -> int:
    """Publish packages: check, sign, upload, announce, wait until served.

    Several files are uploaded side by side and announced together. A release can be yanked but
    never replaced or deleted. Safe to stop and to run again: what is done already is not done
    twice. A file that is not signed yet is signed in place. A new name is reserved first where
    the registry asks for that.
    """
    return app.run(_publish(app, expand(files), dry_run, frozenset(allow), ipfs))


async def _publish(
    app: App, names: Sequence[str], dry_run: bool, allow: frozenset[str], ipfs: str | None
) -> int:
    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    address = await account_address(app)
    where = f"on {safe(network.name)} ({network.chain}) as {short(address)}"
    packing = Packing(app, address, where, write=not dry_run)
    packed = await packing.pack(names)
    if not packed:
        return worst(packing.codes)
    async with open_registry(app) as registry, open_delivery(app, ipfs) as delivery:
        publishing = Publishing(app, registry, delivery, packing)
        candidates = await publishing.examine(packed, address, allow)
        plan = await publishing.plan(candidates, address)
        ends = {} if dry_run else await publishing.carry_out(plan)
        if dry_run and plan.candidates:
            say_dry_run(app, plan)
    values = [
        publishing.value(one, plan, dry_run) | ends.get(one.announcement.cap_uri, {})
        for one in plan.candidates
        if dry_run or one.announcement.cap_uri in ends
    ]
    _result(app, values, many=len(names) > 1)
    return worst([0, *packing.codes])


def _result(app: App, values: Sequence[dict[str, Any]], *, many: bool) -> None:
    def human() -> list[str]:
        lines = (line for one in values for line in (one["cap_uri"], one["page"]))
        return [safe(line) for line in lines if line]

    cids = [one["cid"] for one in values]
    if len(values) == 1 and not (many and app.output.format is Format.JSON):
        app.output.result("publication", values[0], human=human, plain=cids)
    elif values or many:
        app.output.results("publication", values, human=human, plain=cids)
