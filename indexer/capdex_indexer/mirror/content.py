"""The files of a mirror: their paths, and per release all that a router needs, named as in P15.

Layout: https://doc.rust-lang.org/cargo/reference/registry-index.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import orjson
from sqlalchemy import Connection, func, select

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.uri import check_name
from capdex_indexer.db.denylist import Denials
from capdex_indexer.db.models import RELEASE
from capdex_indexer.query.digest import Digest
from capdex_indexer.query.index import Index
from capdex_indexer.query.release import LINTED, IndexedRelease, read_names

CONFIG: Final = "config.json"
FORMAT: Final = "capdex.mirror/1"
PAGE: Final = 200  # names read at once: some megabytes


def path_of(name: str) -> str:
    """Return the path of a name's file; raises InvalidInput for an invalid name (P1)."""
    check_name(name)
    if len(name) < 4:
        return "/".join([str(len(name)), *([name[0]] if len(name) == 3 else []), name])
    return f"{name[:2]}/{name[2:4]}/{name}"


def name_at(path: str) -> str | None:
    """Return the name whose file has this path; None for any other path."""
    name = path.rpartition("/")[2]
    try:
        return name if path_of(name) == path else None
    except InvalidInput:
        return None


def serve_config(index: Index, gateway: str) -> bytes:
    """Return the `config.json` of a mirror of this index as it is now."""
    with index.read() as connection:
        digest = index.digest_cache.read(connection)
        return config(digest, index.denial_cache.read(connection), gateway)


def serve_file(index: Index, name: str) -> bytes | None:
    """Return the file of a name in a mirror of this index; None for a name without releases."""
    with index.read() as connection:
        releases = read_names(connection, name, name)
        shown = _without_denied(releases, index.denial_cache.read(connection))
    return file_of(shown) if shown else None


def config(digest: Digest | None, denials: Denials, gateway: str | None) -> bytes:
    """Return the file that identifies the index; `gateway` is a URL with `{cid}` in it.

    `denied` counts what the operator left out: the digests are those of the whole index.
    """
    about: Json = {
        "format": FORMAT,
        "chain_id": digest and digest.chain_id,
        "contract": digest and digest.contract,
        "block_number": digest and digest.block_number,
        "block_hash": digest and digest.block_hash and to_hex(digest.block_hash),
        "log": digest and {"count": digest.log.count, "head": to_hex(digest.log.head)},
        "index_digest": digest and to_hex(digest.index),
        "content_digest": digest and digest.content and to_hex(digest.content),
        "decoder_version": digest and digest.decoder_version,
        "rules_version": digest and digest.rules_version,
        "gateway": gateway,
        "denied": denials.count,
    }
    return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_files(connection: Connection, denials: Denials) -> Iterator[tuple[str, bytes, int]]:
    """Iterate over the names in order, each with its file and the number of releases in it."""
    after = ""
    while True:
        known = RELEASE.c.name > after
        page = select(RELEASE.c.name).where(known).distinct().order_by(RELEASE.c.name).limit(PAGE)
        names = list(connection.execute(page).scalars())
        if not names:
            return
        in_order = read_names(connection, names[0], names[-1])
        for name, releases in groupby(in_order, key=lambda x: x.name):
            shown = _without_denied(releases, denials)
            if name is not None and shown:
                yield name, file_of(shown), len(shown)
        after = names[-1]


def count_names(connection: Connection) -> int:
    """Count the names, denied ones included."""
    names = select(func.count(RELEASE.c.name.distinct()))
    return int(connection.execute(names).scalar_one())


def file_of(releases: Iterable[IndexedRelease]) -> bytes:
    """Return the file of a name: its releases in the order in which they were announced."""
    lines = map(line, sorted(releases, key=lambda x: x.sequence))
    return b"".join(orjson.dumps(x, option=orjson.OPT_APPEND_NEWLINE) for x in lines)


def line(release: IndexedRelease) -> Json:
    """Return the facts about a release on which all nodes with the same index agree.

    So the state of fetching, and finality (which changes with time alone), are left out.
    """
    reliable = release.verdict in LINTED
    return {
        "cap_uri": release.cap_uri,
        "semver": release.semver,
        "ipfs_cid": release.cid,
        "sha256": release.sha256,
        "status": release.status,
        "verification": {
            "verdict": release.verdict and str(release.verdict),
            "reason": release.verdict and release.reason and str(release.reason),
            "signer": release.signer,
            "lint": release.lint,
        },
        "chain": release.chain,
        "first_claimed_by": dict(release.first_claimed_by),
        "acp_metadata": release.metadata if reliable else None,
    }


def _without_denied(releases: Iterable[IndexedRelease], denials: Denials) -> list[IndexedRelease]:
    return [x for x in releases if x.denial(denials) is None]
