"""Publishing a directory of packages into the local network: signed, announced, awaited."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from capdex.errors import CapdexError, UsageError
from capdex.net.ipfs import Storage
from capdex.uri import PREFIX, CapabilityURI
from capdex.version import Version
from cli.output import Output
from indexer.search import Index
from publisher.change import carry_out_change, plan_change
from publisher.files import write_atomically
from publisher.keys import DidKey
from publisher.lifecycle import yank
from publisher.publish import carry_out
from publisher.publish import plan as plan_publication
from publisher.registry import Registry
from publisher.sign import sign
from publisher.signers import Signer
from publisher.source import read_manifest

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
    """Publish every package of `folder` that is not on chain yet, lowest versions first."""
    sources = _sources(folder)
    new, last = 0, None
    for path in sources:
        signed = await sign(
            path.read_bytes(),
            local.author,
            chain_id=local.registry.chain_id,
            publisher=local.signer.address,
        )
        write_atomically(local.packages / path.name, signed)
        try:
            plan = await plan_publication(
                signed, registry=local.registry, publisher=local.signer.address
            )
            outcome = await carry_out(
                plan, registry=local.registry, signer=local.signer, storage=local.storage
            )
        except CapdexError as error:
            output.step("warn", "example", f"{path.name}: {error.message}")
            continue
        new += not outcome.already
        last = outcome.cap_uri
    yanked = [await _yank(local, key, reason) for key, reason in _yanks(folder).items()]
    if last is not None:
        await _served(local.index, last)
    words = f"{len(sources)} packages, {new} published now"
    if any(yanked):
        words += f", {sum(yanked)} yanked"
    output.step("ok", "examples", words)


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


def _sources(folder: Path) -> list[Path]:
    """The packages of a directory by name, then by version."""

    def key(path: Path) -> tuple[str, Version]:
        uri = read_manifest(path.read_bytes()).uri
        return uri.name, uri.version

    return sorted(folder.glob("*.acp.yaml"), key=key)


def _yanks(folder: Path) -> dict[str, str]:
    path = folder / YANKED
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", why=str(error)) from None
    return {str(key): str(reason) for key, reason in found.items()}
