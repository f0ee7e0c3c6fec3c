"""What the files of a mirror hold: of each release all that a router needs, named as in P15."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import orjson
from sqlalchemy import Connection, func, select

from indexer.db.denylist import Denials
from indexer.db.models import ReleaseRow, table
from indexer.query import release as releases
from indexer.query.digest import Digest
from indexer.query.release import LINTED, Found

FORMAT: Final = "capdex.mirror/1"
PAGE: Final = 200  # names read at once: some megabytes

RELEASE = table(ReleaseRow)
Json = dict[str, Any]


def config(digest: Digest | None, denials: Denials, gateway: str | None) -> bytes:
    """The file that says which index this is; `gateway` is a URL with `{cid}` in it.

    `denied` counts what the operator has taken out: a digest is of the index with it.
    """
    about: Json = {
        "format": FORMAT,
        "chain_id": digest and digest.chain_id,
        "contract": digest and digest.contract,
        "block_number": digest and digest.block_number,
        "block_hash": digest and _hex(digest.block_hash),
        "log": digest and {"count": digest.log.count, "head": _hex(digest.log.head)},
        "index_digest": digest and _hex(digest.index),
        "content_digest": digest and _hex(digest.content),
        "decoder_version": digest and digest.decoder_version,
        "rules_version": digest and digest.rules_version,
        "gateway": gateway,
        "denied": denials.count,
    }
    return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_files(connection: Connection, denials: Denials) -> Iterator[tuple[str, bytes, int]]:
    """Each name in order, with its file and how many releases that holds."""
    after = ""
    while True:
        known = RELEASE.c.name > after
        page = select(RELEASE.c.name).where(known).distinct().order_by(RELEASE.c.name).limit(PAGE)
        names = list(connection.execute(page).scalars())
        if not names:
            return
        found = releases.read_span(connection, names[0], names[-1])
        for name, some in groupby(found, key=lambda x: x.name):
            shown = list(_shown(some, denials))
            if name is not None and shown:
                yield name, file_of(shown), len(shown)
        after = names[-1]


def read_file(connection: Connection, denials: Denials, name: str) -> bytes | None:
    """The file of one name; None where there is none."""
    shown = list(_shown(releases.read_span(connection, name, name), denials))
    return file_of(shown) if shown else None


def count_names(connection: Connection) -> int:
    """How many names there are, denied ones included."""
    names = select(func.count(RELEASE.c.name.distinct()))
    return int(connection.execute(names).scalar_one())


def file_of(found: Iterable[Found]) -> bytes:
    """The file of a name from its releases, in the order in which they were announced."""
    lines = (line(release) for release in sorted(found, key=lambda x: x.sequence))
    return b"".join(orjson.dumps(x, option=orjson.OPT_APPEND_NEWLINE) for x in lines)


def line(found: Found) -> Json:
    """One release, as far as every node with the same index says the same of it.

    So it does not say how a node gets on with fetching, nor what becomes final with time alone.
    """
    reliable = found.verdict in LINTED
    return {
        "cap_uri": found.cap_uri,
        "semver": found.semver,
        "ipfs_cid": found.cid,
        "sha256": found.sha256,
        "status": found.status,
        "verification": {
            "verdict": found.verdict and str(found.verdict),
            "reason": found.verdict and found.reason and str(found.reason),
            "signer": found.signer,
            "lint": found.lint,
        },
        "chain": found.chain,
        "first_claimed_by": dict(found.first_claimed_by),
        "acp_metadata": found.metadata if reliable else None,
    }


def _shown(found: Iterable[Found], denials: Denials) -> Iterator[Found]:
    for release in found:
        if denials.of(release.name, release.cid, bytes.fromhex(release.sha256)) is None:
            yield release


def _hex(data: bytes | None) -> str | None:
    return None if data is None else f"0x{data.hex()}"
