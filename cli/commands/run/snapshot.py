"""`capdex snapshot`: an index in one file, for whoever does not want to read the whole chain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from capdex.errors import CapdexError, UsageError
from capdex.net.verified_resolve import address_bytes, registry_bytes
from cli.node.options import (
    blocks_option,
    create_directories,
    database_option,
    database_url,
    default_blocks,
)
from cli.terminal.app import App
from cli.terminal.click_commands import Group, command
from cli.terminal.text import columns, size

if TYPE_CHECKING:
    from capdex.proof.log_head import LogProof
    from cli.config.settings import Network
    from cli.terminal.status_line import StatusLine
    from indexer.snapshot.export import ExportPlan
    from indexer.snapshot.manifest import SnapshotManifest
    from indexer.snapshot.verify import VerifiedSnapshot

_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")

Json = dict[str, Any]


@command(
    "export",
    examples=[
        "capdex snapshot export",
        "capdex snapshot export --db sqlite:///index.db --blocks blocks --out index.car",
    ],
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="The snapshot.  [default: capdex-CHAIN-BLOCK.car]",
)  # fmt: skip
@click.option(
    "--block", type=click.IntRange(0), metavar="N",
    help="At this indexed block.  [default: the newest one that is final]",
)  # fmt: skip
@database_option
@blocks_option
def export_command(
    app: App, out: Path | None, block: int | None, db: str | None, blocks: Path | None
) -> None:
    """Write an index into a file: events, digests, and packages.

    The node may run on. With an endpoint (--rpc-url, or that of the network) the file holds a proof
    of the log heads, so that whoever imports it needs only the hash of its block.
    """
    from capdex.net.ipfs.block_store import BlockDirectory
    from cli.terminal.status_line import StatusLine
    from indexer.snapshot import export as exporting

    url = database_url(app, db)
    plan = exporting.plan_export(url, block)
    if not plan.final:
        app.output.say(
            f"  block {plan.block_number} is not final: if the chain takes it back, the snapshot "
            "is worth nothing"
        )
    proofs = app.run(_prove(app, plan))
    target = out or Path(f"capdex-{plan.chain_id}-{plan.block_number}.car")
    status = StatusLine(app.output)
    manifest = exporting.export_snapshot(
        url,
        BlockDirectory(blocks or default_blocks(plan.chain_id)),
        target,
        plan.block_number,
        proofs=proofs,
        progress=lambda what, done, total: status.show(f"{done} of {total} {what}"),
    )
    status.clear()
    value = {
        "file": str(target),
        "size_bytes": target.stat().st_size,
        **_told(manifest),
        "proven": len(proofs) == len(plan.contracts),
    }
    _show(app, "snapshot.export", value)


@command(
    "import",
    examples=[
        "capdex snapshot import capdex-1-21000000.car --network mainnet",
        "capdex snapshot import index.car --db sqlite:///index.db --blocks blocks",
    ],
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--trust-block", metavar="HASH", help="The hash of its block, from whom you trust.")
@click.option("--trust-digest", metavar="HASH", help="Its index digest, from whom you trust.")
@database_option
@blocks_option
def import_command(
    app: App,
    file: Path,
    trust_block: str | None,
    trust_digest: str | None,
    db: str | None,
    blocks: Path | None,
) -> None:
    """Prove a snapshot, then take it into an empty database.

    Its log heads are proven by storage proof from the hash of its block, which the network's
    endpoint gives (or --trust-block); every event is compared with that endpoint's logs. A node
    then goes on from there, and judges the packages itself.
    """
    from cli.terminal.status_line import StatusLine

    network = app.settings.need_network("chain_id", "registry")
    url, where = database_url(app, db), blocks or default_blocks(network.chain)
    trusted = _hash(trust_block, "--trust-block"), _hash(trust_digest, "--trust-digest")
    status = StatusLine(app.output)
    try:
        checked, kept = app.run(_import(app, network, file, trusted, url, where, status))
    finally:
        status.clear()
    if not checked.placed and trusted[1] is None:
        app.output.warn(
            "no endpoint was asked: that these are all events is proven, in which blocks and "
            "transactions they stood is the snapshot's word"
        )
    if len(checked.parts) < len(checked.manifest.parts):
        app.output.warn(
            "the votes are left out: they are of another contract than the network's votes"
        )
    value = {
        "file": str(file),
        **_told(checked.manifest),
        "events": sum(part.log.count for part in checked.parts.values()),
        "kept": kept,
        "placed": checked.placed,
    }
    _show(app, "snapshot.import", value)


async def _import(
    app: App,
    network: Network,
    file: Path,
    trusted: tuple[bytes | None, bytes | None],
    db: str,
    blocks: Path,
    status: StatusLine,
) -> tuple[VerifiedSnapshot, int]:
    """Check the snapshot, then take it in; what was checked, and how many packages are kept."""
    import asyncio
    import threading
    from contextlib import AsyncExitStack

    from capdex.net.ipfs.block_store import BlockDirectory
    from capdex.net.rpc.client import Rpc
    from indexer.snapshot.restore import restore_events, restore_packages
    from indexer.snapshot.verify import ExpectedIndex, TrustAnchor, verify_snapshot

    stopped = threading.Event()

    def say(what: str, done: int, total: int) -> None:
        if stopped.is_set():
            raise InterruptedError  # out of the transaction, in its thread
        status.show(f"{done} of {total} {what}")

    async with AsyncExitStack() as stack:
        url = network.rpc_url
        rpc = await stack.enter_async_context(Rpc([url])) if url else None
        checked = await verify_snapshot(
            file,
            ExpectedIndex(
                network.chain,
                registry_bytes(network),
                address_bytes(network.votes, "votes") if network.votes else None,
                network.start_block or None,
            ),
            TrustAnchor(rpc, *trusted),
            progress=say,
        )
    status.clear()
    app.output.step("ok", "proven", f"all events up to block {checked.manifest.block.number}")
    create_directories(db, blocks)
    try:
        await asyncio.to_thread(restore_events, file, checked, db, progress=say)
    except asyncio.CancelledError:
        stopped.set()
        raise
    return checked, await restore_packages(file, checked, db, BlockDirectory(blocks), progress=say)


async def _prove(app: App, plan: ExportPlan) -> dict[int, LogProof]:
    """The proofs of the log slots, as far as an endpoint gives them."""
    from capdex.net.rpc.client import Rpc
    from capdex.net.rpc.proofs import prove_log

    network = app.settings.network
    if network is None or not network.rpc_url:
        return {}
    number, found = plan.block_number, {}
    try:
        async with Rpc([network.rpc_url]) as rpc:
            for deployment, contract in plan.contracts.items():
                found[deployment] = await prove_log(
                    rpc, chain_id=plan.chain_id, contract=contract, block=number
                )
    except CapdexError as error:
        app.output.warn(
            f"the snapshot has no proof of its log ({error.message}): whoever imports it needs an "
            f"endpoint that keeps the state of block {number}"
        )
        return {}
    return found


def _told(manifest: SnapshotManifest) -> Json:
    from capdex.encoding.abi import checksum_address

    parts = manifest.parts.values()
    content = manifest.registry.content_digest
    return {
        "chain_id": manifest.chain_id,
        "contract": checksum_address(manifest.registry.contract),
        "block_number": manifest.block.number,
        "block_hash": f"0x{manifest.block.hash.hex()}",
        "events": sum(part.log.count for part in parts),
        "packages": manifest.packages,
        "index_digest": f"0x{manifest.registry.index_digest.hex()}",
        "content_digest": None if content is None else f"0x{content.hex()}",
    }


def _show(app: App, what: str, value: Json) -> None:
    packages = str(value["packages"])
    if value.get("kept", value["packages"]) != value["packages"]:
        packages = f"{value['kept']} of {packages}: the others do not verify"
    rows = [
        (
            "file",
            value["file"] + (f", {size(value['size_bytes'])}" if "size_bytes" in value else ""),
        ),
        ("block", f"{value['block_number']}  {value['block_hash']}"),
        ("events", str(value["events"])),
        ("packages", packages),
        ("index digest", value["index_digest"]),
    ]
    app.output.result(what, value, human=lambda: columns(rows), plain=[value["index_digest"]])


def _hash(text: str | None, option: str) -> bytes | None:
    if text is None:
        return None
    if not _HASH.fullmatch(text):
        raise UsageError(
            f"{option} {text[:80]!r} is not a hash", fix="write 0x and 64 hexadecimal digits"
        )
    return bytes.fromhex(text[2:])


snapshot_command = Group(
    "snapshot",
    commands=[export_command, import_command],
    help="Take an index to another machine in one file.",
    examples=[
        "capdex snapshot export --out index.car",
        "capdex snapshot import index.car --db sqlite:///index.db",
    ],
)
