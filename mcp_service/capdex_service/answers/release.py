"""The JSON of a node's answers (P15).

Names of NIP-7 (`acp_metadata`, `ipfs_cid`, `list_of_results`) are kept. Each answer also has all
that a client needs to check it against the chain.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from capdex.json import Json
from capdex_indexer.query.name_state import NameRecord
from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.query.status import Position


def release(found: IndexedRelease) -> Json:
    """Return the JSON of one release."""
    return {
        "acp_metadata": found.metadata,
        "ipfs_cid": found.cid,
        "cap_uri": found.cap_uri,
        "semver": found.semver,
        "sha256": found.sha256,
        "status": found.status,
        "verification": {
            "verdict": None if found.verdict is None else str(found.verdict),
            "signer": found.signer,
            "checks": list(found.checks),
            "lint": found.lint,
        },
        "chain": found.chain | {"finality": found.finality},
        "first_claimed_by": dict(found.first_claimed_by),
        "warnings": list(found.warnings),
    }


def split(found: IndexedRelease, more: Mapping[str, object]) -> tuple[bytes, bytes]:
    """Return a release with more fields up to its chain, and from there to its finality."""
    fields = {**release(found), **more}
    del fields["chain"]
    chain = orjson.dumps(found.chain)[:-1]
    return orjson.dumps(fields)[:-1], b',"chain":' + chain + b',"finality":'


def file_of(found: IndexedRelease) -> Json:
    """Return the file of a release, and what became of it."""
    verdict = None if found.verdict is None else str(found.verdict)
    said = {"cap_uri": found.cap_uri, "ipfs_cid": found.cid, "sha256": found.sha256}
    return said | {"verdict": verdict}


def name_head(name: str, state: NameRecord) -> Json:
    """Return the state of a name, without its releases."""
    return {
        "name": name,
        "ownership": {
            "owner": state.owner,
            "pending_owner": state.pending_owner,
            "maintainers": sorted(state.maintainers),
            "renounced": state.renounced,
        },
        # decimal text: the contract counts in 256 bits
        "votes": {"up": str(state.upvotes), "down": str(state.downvotes)},
    }


def of_page(found: IndexedRelease) -> Json:
    """Return the fields of a release that only the page of its name has.

    A release that the node's operator denies lacks the texts of its author.
    """
    return {
        "latest": found.latest,
        "availability": None if found.availability is None else str(found.availability),
        "reason": None if found.reason is None else str(found.reason),
        "message": found.message,
        "problems": list(found.problems),
        "denied": None if found.denied is None else found.denied.to_json(),
    }


def as_of(position: Position) -> Json:
    """Return the block that an answer is of, and the chain's head and finalized block."""
    return {
        "block_number": position.block_number,
        "block_hash": position.block_hash,
        "head_number": position.head,
        "finalized_number": position.finalized,
    }
