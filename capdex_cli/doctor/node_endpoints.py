"""A check of the endpoints that a node takes from CAPDEX_RPC_URLS, where there are several."""

from __future__ import annotations

import asyncio
import os
from typing import Final

from capdex.errors import CapdexError
from capdex.net.http import redact
from capdex.net.rpc.client import Rpc
from capdex_cli.doctor.check import CheckRow, DoctorCheck, Subject, fail, none, ok, warn


async def node_rpcs(subject: Subject) -> DoctorCheck:
    """Compare the chain of each endpoint with the network's."""
    urls = os.environ.get("CAPDEX_RPC_URLS", "").split()
    if not urls:
        return none("CAPDEX_RPC_URLS is not set; a node takes rpc-url then")
    wrong = [x for x in await asyncio.gather(*(_wrong(subject, url) for url in urls)) if x]
    if wrong:
        return (warn if len(wrong) < len(urls) else fail)("; ".join(wrong))
    return ok(f"{len(urls)} of {len(urls)} answer")


async def _wrong(subject: Subject, url: str) -> str:
    """Return what is wrong with an endpoint, or an empty text."""
    try:
        async with Rpc([url], max_attempts=1) as client:
            actual = await client.chain_id()
    except CapdexError as error:
        return f"{redact(url)}: {error.why or error.message}"
    wanted = subject.network.chain_id
    return f"{redact(url)} is of chain {actual}" if wanted not in (None, actual) else ""


CHECK: Final = CheckRow(
    "node RPC", node_rpcs, "correct CAPDEX_RPC_URLS: URLs with spaces between them, without quotes"
)
