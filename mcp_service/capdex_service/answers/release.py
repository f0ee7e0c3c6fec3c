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


def release(indexed: IndexedRelease) -> Json:
    """Return the JSON of one release."""
    return {
        "acp_metadata": indexed.metadata,
        "ipfs_cid": indexed.cid,
        "cap_uri": indexed.cap_uri,
        "semver": indexed.semver,
        "sha256": indexed.sha256,
        "status": indexed.status,
        "verification": {
            "verdict": None if indexed.verdict is None else str(indexed.verdict),
            "signer": indexed.signer,
            "checks": list(indexed.checks),
            "lint": indexed.lint,
        },
        "chain": indexed.chain | {"finality": indexed.finality},
        "first_claimed_by": dict(indexed.first_claimed_by),
        "warnings": list(indexed.warnings),
    }


def split(indexed: IndexedRelease, more: Mapping[str, object]) -> tuple[bytes, bytes]:
    """Return a release with more fields up to its chain, and from there to its finality."""
    fields = {**release(indexed), **more}
    del fields["chain"]
    chain = orjson.dumps(indexed.chain)[:-1]
    return orjson.dumps(fields)[:-1], b',"chain":' + chain + b',"finality":'


def file_of(indexed: IndexedRelease) -> Json:
    """Return the file of a release, and what became of it."""
    verdict = None if indexed.verdict is None else str(indexed.verdict)
    said = {"cap_uri": indexed.cap_uri, "ipfs_cid": indexed.cid, "sha256": indexed.sha256}
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


def of_page(indexed: IndexedRelease) -> Json:
    """Return the fields of a release that only the page of its name has.

    A release that the node's operator denies lacks the texts of its author.
    """
    return {
        "latest": indexed.latest,
        "availability": None if indexed.availability is None else str(indexed.availability),
        "reason": None if indexed.reason is None else str(indexed.reason),
        "message": indexed.message,
        "problems": list(indexed.problems),
        "denied": None if indexed.denied is None else indexed.denied.to_json(),
    }


def as_of(position: Position) -> Json:
    """Return the block that an answer is of, and the chain's head and finalized block."""
    return {
        "block_number": position.block_number,
        "block_hash": position.block_hash,
        "head_number": position.head,
        "finalized_number": position.finalized,
    }
