"""The page of the node: its place on the chain, its digest, its queue, refusals and charts."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from capdex.codes import all_codes
from capdex.errors import CapdexError, InvalidInput
from capdex.json import Json
from capdex.uri import CapabilityURI
from capdex_explorer.site import PageRequest, Site, View, address_of, not_found
from capdex_indexer.query.pages import read_waiting

MAX_PASTED_CHARS: Final = 20_000
_DIGEST: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")


async def node(site: Site, request: PageRequest) -> View:
    """Show the state of the node, and compare its index with another node's on request."""
    status = await site.status()
    site.samples.note(status)
    pasted = request.text("other")
    for rejection in status["rejections"]:
        rejection["address"] = _address_of(rejection["cap_uri"])
    data = {
        "status": status,
        "waiting": [x._asdict() for x in await site.reader.read(read_waiting)],
        "hour": [list(x) for x in site.samples.hour],
        "day": [list(x) for x in site.samples.day],
        "digests": [[block, digest] for block, digest in site.samples.digests.items()][-20:],
        "other": pasted[:MAX_PASTED_CHARS],
        "block": request.text("block"),
        "comparison": None,
    }
    if pasted:
        data["comparison"] = _compare(site, status, pasted, request)
    return View("node.html", "Node", data, live=True)


async def explanation(site: Site, request: PageRequest) -> View:
    """Show what a code of an error or reason means, and what to do."""
    code = request.parts["code"].upper()
    entry = all_codes().get(code)
    if entry is None:
        raise not_found(f"there is no code {code[:40]}", "see /help for all of them")
    data = {"code": code, "explanation": entry._asdict()}
    return View("explanation.html", code, data, description=entry.cause)


async def explanations(site: Site, request: PageRequest) -> View:
    """Show all codes of errors and reasons."""
    codes = {code: entry._asdict() for code, entry in sorted(all_codes().items())}
    return View("explanations.html", "Codes", {"codes": codes})


def _address_of(cap_uri: str | None) -> str | None:
    """Return the page of a refused release; None where its event names none."""
    try:
        return address_of(CapabilityURI.exact(cap_uri or ""))
    except InvalidInput:
        return None


def _compare(site: Site, status: Json, pasted: str, request: PageRequest) -> Json:
    """Compare the index digest of this node with a digest, or the /status, of another.

    Only digests that this node has shown are compared: making one for any older block would let
    every visitor have all events hashed again.
    """
    try:
        digest, block = _read_other(pasted, request)
    except CapdexError as error:
        return {"error": error.message, "fix": error.fix}
    at = status["chain"]["block_number"] if block is None else block
    own = site.samples.digests.get(at)
    return {
        "error": None,
        "known": own is not None,
        "same": own == digest,
        "block_number": at,
        "own": own,
        "other": digest,
    }


def _read_other(pasted: str, request: PageRequest) -> tuple[str, int | None]:
    """Return a digest (0x hex) and the block it is of, None if nothing says so."""
    block = request.number("block", 0) or None
    if match := _DIGEST.fullmatch(pasted):
        return "0x" + match[1].lower(), block
    try:
        status: Any = json.loads(pasted[:MAX_PASTED_CHARS])
        digest, number = status["index_digest"], status["chain"]["block_number"]
        match = _DIGEST.fullmatch(digest)
        if match is None or isinstance(number, bool) or not isinstance(number, int):
            raise ValueError("no digest")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidInput(
            "this is neither an index digest nor the JSON of another node's /status",
            fix="paste what `curl https://OTHER-NODE/status` prints",
        ) from None
    return "0x" + match[1].lower(), number
