"""The JSON of a node's answers (P15).

Names of NIP-7 (`acp_metadata`, `ipfs_cid`, `list_of_results`) are kept. Each answer also has all
that a client needs to check it against the chain.
"""

from __future__ import annotations

from typing import Any

from indexer.query import IndexedRelease, NameState, Page, Position

Json = dict[str, Any]


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


def resolution(found: IndexedRelease, position: Position) -> Json:
    """Return the answer of `resolve_capability`."""
    return release(found) | {"as_of": as_of(position)}


def results(page: Page, position: Position) -> Json:
    """Return the answer of `search_capabilities`, best hit first."""
    return {
        "list_of_results": [
            release(hit.release) | {"score": round(hit.score, 6), "matched": list(hit.matched)}
            for hit in page.hits
        ],
        "total": page.total,
        "next_cursor": page.next_cursor,
        "as_of": as_of(position),
    }


def releases(name: str, found: list[IndexedRelease], state: NameState, position: Position) -> Json:
    """Return the page of a name: its state and all its releases, rejected ones included.

    Releases that the node's operator denies lack the texts of their author.
    """
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
        "releases": [
            release(x)
            | {
                "latest": x.latest,
                "availability": None if x.availability is None else str(x.availability),
                "reason": None if x.reason is None else str(x.reason),
                "message": x.message,
                "problems": list(x.problems),
                "denied": None if x.denied is None else x.denied.to_json(),
            }
            for x in found
        ],
        "as_of": as_of(position),
    }


def as_of(position: Position) -> Json:
    """Return the block that an answer is of, and the chain's head and finalized block."""
    return {
        "block_number": position.block_number,
        "block_hash": position.block_hash,
        "head_number": position.head,
        "finalized_number": position.finalized,
    }


def with_warning(answer: Json, warning: str | None) -> Json:
    """Return the answer with the reason why the node may not be up to date, if it has one."""
    if warning is not None and "as_of" in answer:
        return answer | {"as_of": answer["as_of"] | {"warning": warning}}
    return answer
