"""`capdex publish`: a visible list of steps that may be interrupted and run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import CapdexError
from cli.app import App
from cli.consent import confirm
from cli.errors import exit_code, show, worst
from cli.files import expand, read, write_atomically
from cli.house import command
from cli.output import Format
from cli.progress import Progress, open_registry, show_cost, until_served
from cli.text import safe, short
from cli.wallet import (
    AUTHOR_KEY,
    account_address,
    account_options,
    fee_cap_wei,
    open_author,
    open_signer,
)

if TYPE_CHECKING:
    from cli.judging import Judged
    from publisher.publish import Plan
    from publisher.registry import Registry


@command(
    "publish",
    examples=[
        "capdex publish weather.acp.yaml",
        "capdex publish weather.acp.yaml --dry-run",
        "CID=$(capdex publish weather.acp.yaml --yes --plain)",
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Check everything, show the transaction, send none.")
@click.option("--ipfs", metavar="SPEC", help="dir:PATH or a Kubo RPC.  [env var: CAPDEX_IPFS]")
@AUTHOR_KEY
@account_options
def publish_command(
    app: App,
    files: tuple[str, ...],
    dry_run: bool,
    ipfs: str | None,
) -> int:
    """Publish packages: check, sign, upload, announce, wait until served.

    A release can be yanked but never replaced or deleted. Safe to stop and to run again: what is
    done already is not done twice. A file that is not signed yet is signed in place.
    """
    codes, values = [0], []
    together = app.output.format is Format.JSON  # one document for all
    for name in expand(files):
        try:
            value = app.run(_publish(app, name, ipfs, dry_run))
        except CapdexError as error:
            codes.append(exit_code(error))
            show(error, app.output)
            continue
        values.append(value)
        if not together:
            _result(app, value)
    if together and len(values) == 1:
        _result(app, values[0])
    elif values and together:
        app.output.results("publication", values, human=list)
    return worst(codes)


async def _publish(app: App, name: str, ipfs: str | None, dry_run: bool) -> dict[str, Any]:
    from cli.judging import judge_file
    from publisher.publish import plan as make_plan

    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    address = await account_address(app)
    judged = judge_file(name, read(name))
    uri = judged.manifest.uri if judged.manifest else safe(name)
    title = app.output.err.style(f"{uri}", bold=True)
    chain = f"{safe(network.name)} ({network.chain})"
    app.output.say(f"  {title}   on {chain} as {short(address)}")
    data = await _ready(app, judged, address, write=not dry_run)
    async with open_registry(app) as registry:
        plan = await make_plan(
            data, registry=registry, publisher=address, fee_cap_wei=fee_cap_wei(app)
        )
        app.output.step("ok", "signed", safe(plan.package.signer.partition("#")[0]))
        if plan.transaction is not None:
            claims = ", claims the name for you" if plan.claims_name else ""
            show_cost(app, plan.transaction, f"   permanent: yes{claims}")
        value = _value(app, name, plan, dry_run)
        if dry_run:
            would = "publish nothing: it is on chain" if plan.already else "publish"
            app.output.step("plan", "dry run", f"would {would}; nothing was sent")
            return value
        return value | await _carry_out(app, plan, registry, ipfs or network.ipfs)


async def _carry_out(app: App, plan: Plan, registry: Registry, ipfs: str) -> dict[str, Any]:
    """The part that changes something, once a person agreed."""
    from capdex.net.ipfs import open_storage
    from publisher.publish import carry_out

    if not ipfs:
        app.settings.need_network("ipfs")
    storage = open_storage(ipfs)
    try:
        if plan.transaction is not None:
            confirm(app, "  Publish? A version can be yanked but never replaced or deleted.")
        signer = await open_signer(app)
        progress = Progress(app, "mined")
        async with progress.interruptible():
            outcome = await carry_out(
                plan,
                registry=registry,
                signer=signer,
                storage=storage,
                served=until_served(app, plan.announcement.sha256.hex()),
                on_step=progress,
            )
    finally:
        await storage.close()
    if outcome.already:
        where = f"in tx {outcome.tx_hash}" if outcome.tx_hash else "before"
        app.output.step("ok", "unchanged", f"already published {where}")
    return outcome.to_json()


async def _ready(app: App, judged: Judged, address: str, *, write: bool) -> bytes:
    """The signed bytes: signed now if they are not, or no longer, and the author is ours."""
    from capdex.problems import Reason
    from cli.findings import counted
    from publisher.sign import sign
    from publisher.source import read_manifest

    manifest = judged.manifest or read_manifest(judged.data)
    tools, triggers = len(manifest.tools), len(manifest.triggers)
    codes = {problem.code for problem in judged.problems}
    others = [x for x in judged.problems if x.code is not Reason.UNSIGNED]
    words = f"{_many(tools, 'tool')}, {_many(triggers, 'trigger')}, {counted(others)}"
    app.output.step("ok", "validated", words)
    unsigned = Reason.UNSIGNED in codes
    if not unsigned and Reason.BAD_SIGNATURE not in codes:
        return judged.data
    author = await open_author(app)
    chain_id = app.settings.need_network("chain_id").chain
    signed = await sign(judged.data, author, chain_id=chain_id, publisher=address)
    if not unsigned and read_manifest(signed).author != manifest.author:
        return judged.data  # somebody else's signature is theirs to mend; the plan says why
    if write and judged.name != "-":
        write_atomically(Path(judged.name), signed)
    return signed


def _value(app: App, name: str, plan: Plan, dry_run: bool) -> dict[str, Any]:
    network = app.settings.need_network()
    page = f"{network.node_url}/c/{plan.name}.json" if network.node_url else None
    return {
        "file": name,
        "dry_run": dry_run,
        "chain_id": network.chain_id,
        "registry": network.registry,
        "cap_uri": plan.announcement.cap_uri,
        "cid": plan.announcement.cid,
        "sha256": plan.announcement.sha256.hex(),
        "already": plan.already,
        "claims_name": plan.claims_name,
        "transaction": plan.transaction.to_json() if plan.transaction and dry_run else None,
        "page": page,
    }


def _result(app: App, value: dict[str, Any]) -> None:
    lines = [value["cap_uri"], *([value["page"]] if value["page"] else [])]
    app.output.result("publication", value, human=lambda: map(safe, lines), plain=[value["cid"]])


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
