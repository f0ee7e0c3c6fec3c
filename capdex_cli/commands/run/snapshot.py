"""`capdex snapshot`: an index in one file, so that a new node need not read the whole chain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import CapdexError
from capdex.json import Json
from capdex_cli.node.options import (
    blocks_option,
    create_directories,
    database_option,
    database_url,
    default_blocks,
)
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE, HASH, Group, command
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import columns, number_of, size

if TYPE_CHECKING:
    from capdex.proof.document import LogProof
    from capdex_indexer.snapshot.archive import SnapshotManifest
    from capdex_indexer.snapshot.export import ExportPlan


@command(
    "export",
    examples=[
        "capdex snapshot export",
        "capdex snapshot export --db sqlite:///index.db --blocks blocks --out index.car",
    ],
)
@click.option(
    "--out", type=FILE, metavar="FILE",
    help="The snapshot.  [default: capdex-CHAIN-BLOCK.car]",
)  # fmt: skip
@click.option(
    "--block", type=click.IntRange(0), metavar="N",
    help="An indexed block.  [default: the newest final one]",
)  # fmt: skip
@click.option("--without-packages", is_flag=True, help="Write events and digests alone.")
@database_option
@blocks_option
def export_command(
    app: App,
    out: Path | None,
    block: int | None,
    without_packages: bool,
    db: str | None,
    blocks: Path | None,
) -> None:
    """Write an index into a file: events, digests, and packages.

    The node may run meanwhile. Files that packages name are not in it. With an endpoint
    (--rpc-url, or that of the network) the file contains a proof of the log heads, so that an
    import needs only the hash of its block.
    """
    from capdex.net.ipfs.block_store import BlockDirectory
    from capdex_indexer.snapshot.export import export_snapshot, plan_export

    url = database_url(app, db)
    planned = plan_export(url, block)
    if not planned.final:
        app.output.say(
            f"  block {planned.block_number} is not final: the snapshot is useless if the chain "
            "replaces it"
        )
    proofs = app.run(_prove(app, planned))
    target = out or Path(f"capdex-{planned.chain_id}-{planned.block_number}.car")
    directory = blocks or default_blocks(url, planned.chain_id)
    with StatusLine(app.output) as status:
        manifest = export_snapshot(
            url,
            BlockDirectory(directory),
            target,
            planned.block_number,
            proofs=proofs,
            progress=status.count,
            with_packages=not without_packages,
            on_missing=lambda count: app.output.warn(
                f"{number_of(count, 'package')} left out: {directory} does not have them all"
            ),
        )
    value = {
        "file": str(target),
        "size_bytes": target.stat().st_size,
        **_describe(manifest),
        "proven": len(proofs) == len(planned.contracts),
    }
    _show(app, "snapshot.export", value)


@command(
    "import",
    examples=[
        "capdex snapshot import capdex-1-21000000.car --network ethereum",
        "capdex snapshot import index.car --db sqlite:///index.db --blocks blocks",
    ],
)
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--trust-block", type=HASH, help="Trusted hash of the snapshot's block.")
@click.option("--trust-digest", type=HASH, help="Trusted index digest of the snapshot.")
@database_option
@blocks_option
async def import_command(
    app: App,
    file: Path,
    trust_block: bytes | None,
    trust_digest: bytes | None,
    db: str | None,
    blocks: Path | None,
) -> None:
    """Verify a snapshot, then write it into an empty database.

    Storage proofs show that its log heads belong to the hash of its block, which the endpoint of
    the network gives (or --trust-block). Every event is compared with the endpoint's logs. A node
    then continues from the snapshot's block, and judges the packages itself.
    """
    from contextlib import nullcontext

    from capdex.net.ipfs.block_store import BlockDirectory
    from capdex.net.rpc.client import Rpc
    from capdex_indexer.snapshot.restore import restore
    from capdex_indexer.snapshot.verify import ExpectedIndex, TrustAnchor, verify_snapshot

    network = app.settings.need_network("chain_id", "registry")
    url = database_url(app, db)
    directory = blocks or default_blocks(url, network.chain)
    votes = network.address("votes") if network.votes else None
    start_block = network.start_block or None
    expected = ExpectedIndex(network.chain, network.address("registry"), votes, start_block)
    with StatusLine(app.output) as status:
        async with Rpc([network.rpc_url]) if network.rpc_url else nullcontext() as rpc:
            trust = TrustAnchor(rpc, trust_block, trust_digest)
            checked = await verify_snapshot(file, expected, trust, progress=status.count)
        status.clear()
        app.output.step("ok", "proven", f"all events up to block {checked.manifest.block.number}")
        create_directories(url, directory)
        kept = await restore(file, checked, url, BlockDirectory(directory), progress=status.count)
    if not checked.placed and trust_digest is None:
        app.output.warn(
            "no endpoint was used: the events are proven to be complete, but their blocks and "
            "transactions are not checked"
        )
    if len(checked.parts) < len(checked.manifest.parts):
        app.output.warn(
            "the votes are left out: they are of another contract than the network's votes"
        )
    value = {
        "file": str(file),
        **_describe(checked.manifest),
        "events": sum(part.log.count for part in checked.parts.values()),
        "kept": kept,
        "placed": checked.placed,
    }
    _show(app, "snapshot.import", value)


async def _prove(app: App, plan: ExportPlan) -> dict[int, LogProof]:
    """Return the proofs of the log heads by deployment; none without an endpoint that has them."""
    from capdex.net.rpc.client import Rpc
    from capdex.net.rpc.proofs import prove_log

    network = app.settings.network
    if network is None or not network.rpc_url:
        return {}
    number, chain_id = plan.block_number, plan.chain_id
    try:
        async with Rpc([network.rpc_url]) as rpc:
            return {
                deployment: await prove_log(rpc, chain_id=chain_id, contract=contract, block=number)
                for deployment, contract in plan.contracts.items()
            }
    except CapdexError as error:
        app.output.warn(
            f"the snapshot has no proof of its log heads ({error.message}): an import of it needs "
            f"an endpoint that keeps the state of block {number}"
        )
        return {}


def _describe(manifest: SnapshotManifest) -> Json:
    registry = manifest.registry.to_json()
    return {
        "chain_id": manifest.chain_id,
        "contract": registry["contract"],
        "block_number": manifest.block.number,
        "block_hash": to_hex(manifest.block.hash),
        "events": sum(part.log.count for part in manifest.parts.values()),
        "packages": manifest.packages,
        "index_digest": registry["index_digest"],
        "content_digest": registry["content_digest"],
    }


def _show(app: App, what: str, value: Json) -> None:
    packages = str(value["packages"])
    if value.get("kept", value["packages"]) != value["packages"]:
        packages = f"{value['kept']} of {packages}: the others do not verify"
    file_size = f", {size(value['size_bytes'])}" if "size_bytes" in value else ""
    rows = [
        ("file", value["file"] + file_size),
        ("block", f"{value['block_number']}  {value['block_hash']}"),
        ("events", str(value["events"])),
        ("packages", packages),
        ("index digest", value["index_digest"]),
    ]
    app.output.result(what, value, human=columns(rows), plain=[value["index_digest"]])


snapshot_command = Group(
    "snapshot",
    commands=[export_command, import_command],
    help="Move an index to another machine in one file.",
    examples=[
        "capdex snapshot export --out index.car",
        "capdex snapshot import index.car --db sqlite:///index.db",
    ],
)
