"""Publish a directory of packages into the local network, and wait until its node has them."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Final

from capdex.diff.diff import Allowance
from capdex.errors import UsageError
from capdex.manifest.manifest import read
from capdex.net.ipfs.open import Storage
from capdex.uri import PREFIX, CapabilityURI
from capdex.version import Version
from capdex_cli.terminal.output import Output
from capdex_cli.terminal.text import number_of
from capdex_indexer.query.index import Index
from capdex_publisher.authoring.validate import PackageFile
from capdex_publisher.keys.keystore import DidKey
from capdex_publisher.keys.signer import Signer
from capdex_publisher.publish.publish import publish
from capdex_publisher.publish.upload import Uploader
from capdex_publisher.registry.change import make_change
from capdex_publisher.registry.lifecycle import change_release
from capdex_publisher.registry.registry import Registry

PLAY_WEI: Final = 10**18  # worthless: money of the local chain
YANKED: Final = "yanked.json"  # {"name@version": "reason"}: releases to yank after publishing
SERVED_S: Final = 60.0  # how long the node may take to judge them all; usually a second
POLL_S: Final = 0.05


async def publish_examples(
    folder: Path,
    output: Output,
    *,
    registry: Registry,
    signer: Signer,
    author: DidKey,
    storage: Storage,
    index: Index,
    signed: Path,
) -> None:
    """Publish every package of `folder` that is not on chain yet; signed copies go to `signed`."""
    results = await publish(
        _files(folder, signed),
        registry=registry,
        chain_id=registry.chain_id,
        signer=signer,
        uploader=Uploader(storage),
        author=author,
        allow=frozenset(Allowance),
        fee_cap_wei=PLAY_WEI,
    )
    for publication in results:
        if publication.error is not None:
            output.step("warn", "example", f"{publication.file}: {publication.error.message}")
    yanked = 0
    for key, reason in _yanks(folder).items():
        uri = CapabilityURI.exact(PREFIX + key)
        change = change_release(registry, "yank", uri.name, str(uri.version), reason)
        yanked += not (await make_change(change, signer=signer)).already
    done = [x for x in results if x.error is None]
    deadline = time.monotonic() + SERVED_S
    late = [x for x in done if not await _served(index, x.cap_uri, deadline)]
    if late:
        waiting = f"the node has not judged {number_of(len(late), 'package')} yet"
        output.step("warn", "examples", waiting)
    words = (
        f"{number_of(len(results), 'package')}, {sum(not x.already for x in done)} published now"
    )
    output.step("ok", "examples", f"{words}, {yanked} yanked" if yanked else words)


async def _served(index: Index, cap_uri: str, deadline: float) -> bool:
    """Wait until the index has a verdict on a release; False if `deadline` (monotonic) passes."""
    name = CapabilityURI.parse(cap_uri).name
    while True:
        releases = await asyncio.to_thread(index.releases, name)
        if any(x.cap_uri == cap_uri and x.verdict is not None for x in releases):
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(POLL_S)


def _files(folder: Path, signed: Path) -> list[PackageFile]:
    """Return the packages of a directory by name and version; signed copies go to `signed`."""

    def key(file: PackageFile) -> tuple[str, Version]:
        uri = read(file.data).require().uri
        return uri.name, uri.version

    paths = folder.glob("*.acp.yaml")
    return sorted((PackageFile(x.name, x.read_bytes(), signed / x.name) for x in paths), key=key)


def _yanks(folder: Path) -> dict[str, str]:
    path = folder / YANKED
    if not path.exists():
        return {}
    try:
        reasons = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", why=str(error)) from None
    return {str(key): str(reason) for key, reason in reasons.items()}
