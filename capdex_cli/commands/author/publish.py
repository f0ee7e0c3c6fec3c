"""`capdex publish` and `claim`: visible steps that may be interrupted and run again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from capdex.errors import CapdexError
from capdex.uri import PREFIX
from capdex_cli.publish.account import (
    author_options,
    fee_cap_wei,
    open_author,
    open_signer,
    spending_options,
)
from capdex_cli.publish.allowances import Allowed, allow_options, files_option
from capdex_cli.publish.change import NAME, ChangeProgress, sending_options
from capdex_cli.publish.publish import PublishProgress
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE_NAME, NUMBER, command
from capdex_cli.terminal.errors import OK, show, worst
from capdex_cli.terminal.file_arguments import expand, package_file
from capdex_cli.terminal.output import Format
from capdex_cli.terminal.text import safe, short, without_secrets
from capdex_cli.views.progress import not_served, open_registry, until_served

if TYPE_CHECKING:
    from capdex_publisher.publish.publish import Publication

SENT = ("tx_hash", "block_number", "gas_used", "fee_wei", "batch", "served_after_s")  # no dry run


@command(
    "publish",
    examples=[
        "capdex publish weather.acp.yaml",
        "capdex publish weather.acp.yaml --dry-run",
        "capdex publish *.acp.yaml --yes",
        "CID=$(capdex publish weather.acp.yaml --yes --plain)",
    ],
)
@click.argument("packages", nargs=-1, required=True, type=FILE_NAME, metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Check everything, show the transactions, send none.")
@allow_options
@files_option
@click.option("--ipfs", metavar="SPEC", help="dir:PATH or a Kubo RPC.  [env var: CAPDEX_IPFS]")
@click.option(
    "--wait", type=NUMBER(0, 86400), default=30.0, metavar="SECONDS",
    help="Longest wait for the node at node-url to serve them; 0: none.",
)  # fmt: skip
@author_options
@spending_options
async def publish_command(
    app: App,
    packages: tuple[str, ...],
    files: Path | None,
    dry_run: bool,
    ipfs: str | None,
    wait: float,
    **allowed: Unpack[Allowed],
) -> int:
    """Publish packages: check, sign, upload, announce, wait until served.

    The files that a package names are uploaded and read back before it; one that changed since
    the package was signed is refused by name.
    Several files are uploaded side by side and announced together. A release can be yanked but
    never replaced or deleted. Safe to stop and to run again: what is done already is not done
    twice. A package that is not signed yet, or that changed since the same key signed it, is
    signed in place. A new name is reserved first where the registry asks for that. If the node
    does not serve them in time, the exit code is 6.
    """
    from capdex_publisher.publish.publish import publish
    from capdex_publisher.publish.upload import Uploader

    names = expand(packages)
    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    ipfs = ipfs or app.settings.need_network("ipfs").ipfs
    signer = await open_signer(app)
    where = f"on {safe(network.name)} ({network.chain}) as {short(signer.address)}"
    progress = PublishProgress(app, where, many=len(names) > 1, dry_run=dry_run)
    if len(names) > 1:
        progress.show_title(f"{len(names)} packages")
    readable = []
    for name in names:
        try:
            readable.append(package_file(name, files))
        except CapdexError as error:
            progress.reject(name, error)
    if not readable:
        return worst(progress.codes)
    async with (
        Uploader.open(ipfs, gateway_url=network.gateway_url, node_url=network.node_url) as uploader,
        progress.interruptible(),
    ):
        results = await publish(
            readable,
            registry=open_registry(app),
            chain_id=network.chain,
            signer=signer,
            uploader=uploader,
            author=partial(open_author, app),
            **allowed,
            fee_cap_wei=fee_cap_wei(app),
            dry_run=dry_run,
            confirm=progress.confirm,
            is_served=until_served(app) if wait else None,
            on_step=progress,
            served_timeout_s=wait,
        )
    published = [x for x in results if x.error is None]
    if not dry_run:
        progress.show_results(published)
        if published and not network.node_url:
            app.output.step("plan", "not awaited", "no node-url is set: no node was asked for it")
    _result(app, published, dry_run=dry_run, many=len(names) > 1)
    if late := [x for x in published if x.not_served]:
        told = not_served(app, [x.cap_uri for x in late], late[0].not_served)
        progress.codes.append(show(told, app.output))
    return worst([OK, *progress.codes])


def _result(app: App, published: Sequence[Publication], *, dry_run: bool, many: bool) -> None:
    network = app.settings.need_network()
    values = []
    for publication in published:
        name = publication.cap_uri.removeprefix(PREFIX).partition("@")[0]
        node_url = without_secrets(network.node_url)
        page = f"{node_url}/c/{name}.json" if node_url and not dry_run else None
        where = {"chain_id": network.chain_id, "registry": network.registry, "page": page}
        value = publication.to_json() | where | {"dry_run": dry_run}
        values.append({k: x for k, x in value.items() if not (dry_run and k in SENT)})
    lines = (line for row in values for line in (row["cap_uri"], row["page"]) if line)
    human = [safe(line.removesuffix(".json")) for line in lines]  # for people, the page itself
    if dry_run:  # nothing is at these addresses
        told = {False: "would publish", True: "on chain already:"}
        human = [f"{told[x.already]} {safe(x.cap_uri)}" for x in published]
    cids = [x.cid for x in published]
    if len(values) == 1 and not (many and app.output.format is Format.JSON):
        app.output.result("publication", values[0], human=human, plain=cids)
    elif values or many:
        app.output.results("publication", values, human=human, plain=cids)


@command("claim", examples=["capdex claim weather", "capdex claim weather --dry-run --json"])
@NAME
@sending_options
async def claim_command(app: App, name: str, dry_run: bool) -> None:
    """Claim a name before anything is published under it.

    Publishing claims a new name by itself; this is for one whose package is not ready. Where
    the registry asks for it, the name is reserved first and claimed a minute later, so that
    the claim cannot be copied. Safe to stop and to run again: nothing is paid twice.
    """
    from capdex_publisher.publish.claim import claim

    progress = ChangeProgress(app, "claimed", dry_run=dry_run)
    async with open_registry(app) as registry, progress.interruptible():
        done = await claim(
            name,
            registry=registry,
            signer=await open_signer(app),
            fee_cap_wei=fee_cap_wei(app),
            dry_run=dry_run,
            confirm=progress.confirm,
            on_step=progress,
        )
    plan = progress.plan
    commit = plan.commit.to_json() if dry_run and plan.commit is not None else None
    value = {"name": name, "account": plan.sender, "commitment": commit, **progress.value(done)}
    app.output.result("claim", value, human=[name], plain=[name])
