"""Publishing a directory of packages into the local network: signed, announced, awaited."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from capdex.errors import CapdexError, UsageError
from capdex.net.ipfs.open import Storage
from capdex.semver import Version
from capdex.uri import PREFIX, CapabilityURI
from cli.terminal.output import Output
from indexer.query.index import Index
from publisher.authoring.sign import sign
from publisher.authoring.source import read_manifest
from publisher.files import write_atomically
from publisher.keys.keystore import DidKey
from publisher.keys.signer import Signer
from publisher.progress import Outcome
from publisher.publish.plan import make_plan
from publisher.publish.preflight import Candidate, examine_all
from publisher.publish.publish import carry_out
from publisher.publish.upload import Delivery
from publisher.registry.change import carry_out_change, plan_change
from publisher.registry.lifecycle import yank
from publisher.registry.registry import Registry

PLAY_WEI = 10**18  # of the play money of the local chain
YANKED = "yanked.json"  # {"name@version": "reason"}: what is yanked once it is published


@dataclass(frozen=True, slots=True)
class Local:
    """The local network, as its publisher sees it; signed copies go to `packages`."""

    registry: Registry
    signer: Signer
    author: DidKey
    storage: Storage
    index: Index
    packages: Path


async def publish_examples(local: Local, folder: Path, output: Output) -> None:
    """Publish every package of `folder` that is not on chain yet, all at once."""
    sources = _sources(folder)
    files = [await _sign(local, name, data) for name, data in sources.items()]
    candidates = []
    for name, found in zip(sources, await _examine(local, files), strict=True):
        if isinstance(found, Candidate):
            candidates.append(found)
        else:
            output.step("warn", "example", f"{name}: {found.message}")
    plan = await make_plan(
        candidates, registry=local.registry, publisher=local.signer.address, fee_cap_wei=PLAY_WEI
    )
    ends = await carry_out(
        plan, registry=local.registry, signer=local.signer, delivery=Delivery(local.storage)
    )
    done = [end for end in ends if isinstance(end, Outcome)]
    for end in (*plan.refused.values(), *ends):
        if not isinstance(end, Outcome):
            output.step("warn", "example", end.message)
    yanked = [await _yank(local, key, reason) for key, reason in _yanks(folder).items()]
    for outcome in done:
        await _served(local.index, outcome.cap_uri)
    words = f"{len(sources)} packages, {sum(not x.already for x in done)} published now"
    if any(yanked):
        words += f", {sum(yanked)} yanked"
    output.step("ok", "examples", words)


async def _sign(local: Local, name: str, data: bytes) -> bytes:
    """The package signed by the local author; kept for people to read."""
    signed = await sign(
        data,
        local.author,
        chain_id=local.registry.chain_id,
        publisher=local.signer.address,
    )
    write_atomically(local.packages / name, signed)
    return signed


async def _examine(local: Local, files: list[bytes]) -> list[Candidate | CapdexError]:
    return await examine_all(files, registry=local.registry, publisher=local.signer.address)


async def _yank(local: Local, key: str, reason: str) -> bool:
    """Yank one release; False when that had happened before."""
    uri = CapabilityURI.exact(PREFIX + key)
    wanted = yank(local.registry, uri.name, str(uri.version), reason)
    plan = await plan_change(wanted, sender=local.signer.address)
    outcome = await carry_out_change(plan, signer=local.signer)
    return not outcome.already


async def _served(index: Index, cap_uri: str, *, tries: int = 300) -> None:
    """Wait until the index answers for a release, whatever its verdict."""
    uri = CapabilityURI.parse(cap_uri)
    for _ in range(tries):
        found = await asyncio.to_thread(index.releases, uri.name)
        if any(x.cap_uri == cap_uri and x.verdict is not None for x in found):
            return
        await asyncio.sleep(0.05)


def _sources(folder: Path) -> dict[str, bytes]:
    """The packages of a directory by file name, in the order of their names and versions."""

    def key(item: tuple[str, bytes]) -> tuple[str, Version]:
        uri = read_manifest(item[1]).uri
        return uri.name, uri.version

    found = {path.name: path.read_bytes() for path in folder.glob("*.acp.yaml")}
    return dict(sorted(found.items(), key=key))


def _yanks(folder: Path) -> dict[str, str]:
    path = folder / YANKED
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", why=str(error)) from None
    return {str(key): str(reason) for key, reason in found.items()}
