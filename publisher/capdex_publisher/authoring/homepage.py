"""Whether the host of a homepage names a capability and its publisher (P10a, `metadata.proof`).

The result is a label of whoever looked, at that moment. It is never part of a verdict.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import orjson

from capdex.encoding.abi import parse_address
from capdex.errors import CapdexError
from capdex.json import Json, list_of, object_of
from capdex.manifest.manifest import Manifest

MAX_PROOF_BYTES: Final = 64 * 1024  # thousands of names
TIMEOUT_S: Final = 10.0

Fetch = Callable[[str], Awaitable[tuple[int, bytes]]]  # status and body of a URL, bounded


async def check_homepage(
    manifest: Manifest, *, chain_id: int, publisher: str, fetch: Fetch
) -> Json:
    """Look whether the file at `metadata.proof` names this capability and its publisher (0x…).

    Returns the check as JSON, with who made it and when (UTC): `names_publisher` is None if the
    file could not be read, `url` for a package without a proof. `fetch` raises a CapdexError for
    what it does not reach; that is part of the result.
    """
    url = manifest.proof or ""
    host = urlsplit(url).netloc
    names, detail = None, "the package names no proof (metadata.proof)"
    if url:
        try:
            status, body = await fetch(url)
            names, detail = _read(status, body, manifest.uri.name, chain_id, publisher, host)
        except CapdexError as error:
            detail = error.line
    return {
        "url": url or None,
        "host": host or None,
        "names_publisher": names,
        "detail": detail,
        "checked_by": "this command",
        "checked_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _read(
    status: int, body: bytes, name: str, chain_id: int, publisher: str, host: str
) -> tuple[bool | None, str]:
    if status != 200:
        return None, f"{host} answered with status {status}"
    if len(body) > MAX_PROOF_BYTES:
        return None, f"its file has more than {MAX_PROOF_BYTES} bytes"
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, "its file is not JSON"
    listed = object_of(document).get("capabilities")
    if not isinstance(listed, dict):
        return None, 'its file has no member "capabilities"'
    wanted = f"eip155:{chain_id}:{parse_address(publisher)}"
    for account in list_of(listed.get(name)):
        if isinstance(account, str) and account.lower() == wanted.lower():
            return True, f"{host} names {name} and its publisher"
    if name in listed:
        return False, f"{host} names {name}, and not {wanted}"
    return False, f"{host} does not name {name}"
