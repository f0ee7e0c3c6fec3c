"""Fetch the files that a package names (P10c): each within its size, and checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from capdex.errors import CapdexError
from capdex.manifest.resources import Resource, check_resource
from capdex.net.ipfs.multi_source import MultiSource
from capdex.net.tasks import together

MAX_CONCURRENT: Final = 8  # files at once: 32 MiB in flight at most


async def fetch_resources(resources: Iterable[Resource], source: MultiSource) -> dict[str, bytes]:
    """Return the bytes of each file by its path.

    The first file that fails ends the others. Raises Unavailable if no source gives it,
    InvalidInput if its CID names no file of this size, and VerificationFailure if it is another
    file; each error names the path.
    """
    slots = asyncio.Semaphore(MAX_CONCURRENT)

    async def one(resource: Resource) -> tuple[str, bytes]:
        async with slots:
            try:
                data = (await source.file(resource.cid, resource.size)).data
            except CapdexError as error:
                raise replace(error, message=f"{resource.path}: {error.message}") from None
        check_resource(resource, data)
        return resource.path, data

    return dict(await together([one(x) for x in resources]))
