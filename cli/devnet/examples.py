"""Publish a directory of packages into the local network, and wait until its node has them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from capdex.diff.diff import Allowance
from capdex.errors import UsageError
from capdex.manifest.manifest import read
from capdex.net.ipfs.open import Storage
from capdex.uri import PREFIX, CapabilityURI
from capdex.version import Version
from cli.terminal.output import Output
from indexer.query.index import Index
from publisher.authoring.validate import PackageFile
from publisher.keys.keystore import DidKey
from publisher.keys.signer import Signer
from publisher.publish.publish import publish
from publisher.publish.upload import Uploader
from publisher.registry.change import make_change
from publisher.registry.lifecycle import change_release
from publisher.registry.registry import Registry

PLAY_WEI = 10**18  # worthless: money of the local chain
YANKED = "yanked.json"  # {"name@version": "reason"}: releases to yank after publishing


@dataclass(frozen=True, slots=True)
class Local:
    """The parts of the local network that publishing needs; signed copies go to `packages`."""

    registry: Registry
    signer: Signer
    author: DidKey
    storage: Storage
    index: Index
    packages: Path


async def publish_examples(local: Local, folder: Path, output: Output) -> None:
    """Publish every package of `folder` that is not on chain yet, all at once."""
    results = await publish(
        _files(folder, local.packages),
        registry=local.registry,
        chain_id=local.registry.chain_id,
        signer=local.signer,
        uploader=Uploader(local.storage),
        author=local.author,
        allow=frozenset(Allowance),
        fee_cap_wei=PLAY_WEI,
    )
    for one in results:
        if one.error is not None:
            output.step("warn", "example", f"{one.file}: {one.error.message}")
    yanked = [await _yank(local, key, reason) for key, reason in _yanks(folder).items()]
    done = [one for one in results if one.error is None]
    for one in done:
        await _served(local.index, one.cap_uri)
    words = f"{len(results)} packages, {sum(not x.already for x in done)} published now"
    if any(yanked):
        words += f", {sum(yanked)} yanked"
    output.step("ok", "examples", words)


async def _yank(local: Local, key: str, reason: str) -> bool:
    """Yank one release; return False if it was yanked before."""
    uri = CapabilityURI.exact(PREFIX + key)
    wanted = change_release(local.registry, "yank", uri.name, str(uri.version), reason)
    return not (await make_change(wanted, signer=local.signer)).already


async def _served(index: Index, cap_uri: str, *, tries: int = 300) -> None:
    """Wait until the index answers for a release, whatever its verdict."""
    uri = CapabilityURI.parse(cap_uri)
    for _ in range(tries):
        found = await asyncio.to_thread(index.releases, uri.name)
        if any(x.cap_uri == cap_uri and x.verdict is not None for x in found):
            return
        await asyncio.sleep(0.05)


def _files(folder: Path, signed: Path) -> list[PackageFile]:
    """Return the packages of a directory by name and version; signed copies go to `signed`."""

    def key(file: PackageFile) -> tuple[str, Version]:
        uri = read(file.data).require().uri
        return uri.name, uri.version

    found = folder.glob("*.acp.yaml")
    return sorted((PackageFile(x.name, x.read_bytes(), signed / x.name) for x in found), key=key)


def _yanks(folder: Path) -> dict[str, str]:
    path = folder / YANKED
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", why=str(error)) from None
    return {str(key): str(reason) for key, reason in found.items()}
