"""Releases one by one and in pages, whatever became of them: as people look at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.json import Json
from capdex.manifest.manifest import Manifest, read
from capdex.uri import check_name
from capdex.version import Version
from capdex_indexer.query.catalog import count_listed, read_listed_by
from capdex_indexer.query.name_state import read_name_state
from capdex_indexer.query.pages import (
    read_first_seen,
    read_newest_releases,
    read_shown_version,
    read_version,
    read_version_before,
    read_versions,
)
from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.query.status import read_revision
from capdex_service.answers.release import as_of, name_head, of_page, release
from capdex_service.queries.reader import Reader

MAX_MANIFESTS: Final = 128  # kept: parsing one takes longer than all else on a page
_SHORTEST_CID: Final = 46  # of version 0
_SHA256: Final = re.compile(r"(?:0x)?([0-9a-f]{64})", re.ASCII | re.IGNORECASE)

Read = Callable[[Connection], Any]


@dataclass(frozen=True, slots=True)
class ShownRelease:
    """A release as `find_release` returns it, and its file and manifest, None unless served.

    `more` is what else was read with it.
    """

    json: Json
    data: bytes | None
    manifest: Manifest | None
    more: Any


def open_release(
    connection: Connection,
    reader: Reader,
    name: str,
    version: str | None,
    more: Read = lambda _: None,
) -> ShownRelease:
    """Return a release with its file and with what `more` reads; raises as `find_release`."""
    found, body = _find(connection, reader, name, version)
    data = _file(reader, found)
    manifest = None if data is None else read_manifest(data)
    return ShownRelease(body, data, manifest, more(connection))


def find_release(
    connection: Connection, reader: Reader, name: str, version: str | None = None
) -> Json:
    """Return an exact version of a name, or the one that search lists, else the highest.

    The JSON has the release of any verdict as a page shows it, the state of its name, and the
    number of the name's `versions`. Raises InvalidInput NOT_FOUND, also for what can be no name or
    version.
    """
    return _find(connection, reader, name, version)[1]


def _find(
    connection: Connection, reader: Reader, name: str, version: str | None
) -> tuple[IndexedRelease, Json]:
    try:
        check_name(name)
        exact = version and Version.parse(version)
    except InvalidInput as error:
        raise replace(error, code=Code.NOT_FOUND) from None
    if exact:
        found = read_version(connection, name, str(exact))
    else:
        found = read_shown_version(connection, name)
    seen = read_first_seen(connection, [name]).get(name)
    if found is None or seen is None:
        what = f"no release of {name} is {version}" if version else f"{name} has no release"
        fix = "search for it, or see all versions" if seen else "search for it"
        raise InvalidInput(what, Code.NOT_FOUND, fix=fix)
    found = found.redacted(reader.index.denial_cache.read(connection))
    state, (_, position) = read_name_state(connection, name), read_revision(connection)
    return found, name_head(name, state) | {
        "release": _shown(connection, reader, found, seen),
        "versions": seen.releases,
        "has_latest": seen.release_id is not None,
        "as_of": as_of(position),
    }


def find_manifests(
    connection: Connection, reader: Reader, name: str, versions: Sequence[str]
) -> list[Manifest]:
    """Return the manifests of those of these versions of a name that this node serves."""
    denials = reader.index.denial_cache.read(connection)
    found = [read_version(connection, name, version) for version in versions]
    files = [_file(reader, x.redacted(denials)) for x in found if x is not None]
    return [read_manifest(data) for data in files if data is not None]


async def find_by_hash(reader: Reader, text: str) -> IndexedRelease | None:
    """Return the release whose package has this CID or sha256, if this node holds the package."""
    if len(text) < _SHORTEST_CID:  # as most questions: to try each takes 2 % of a search
        return None
    hex_ = _SHA256.fullmatch(text)
    try:
        cid = Cid.raw(bytes.fromhex(hex_[1])) if hex_ else Cid.parse(text)
    except InvalidInput:
        return None

    def read(connection: Connection) -> IndexedRelease | None:
        uri = reader.uri_of(cid)
        found = uri and read_version(connection, uri.name, str(uri.version))
        return found if found and Cid.parse(found.cid).digest == cid.digest else None

    return await reader.read(read)


def list_versions(
    connection: Connection, reader: Reader, name: str, limit: int, page: int = 1
) -> list[Json]:
    """Return a page (from 1) of the releases of a name, highest first, and one more."""
    releases = read_versions(connection, name, limit + 1, (page - 1) * limit)
    denials = reader.index.denial_cache.read(connection)
    return _all_shown(connection, reader, [x.redacted(denials) for x in releases])


def newest_releases(
    connection: Connection,
    reader: Reader,
    limit: int,
    of: tuple[str, str] | None = None,
    before: int | None = None,
) -> list[Json]:
    """Return the served releases that were announced last, the newest first.

    `of` and `before` as in `read_newest_releases`.
    """
    denials = reader.index.denial_cache.read(connection)
    releases = read_newest_releases(connection, reader.serve, denials, limit, of, before)
    return _all_shown(connection, reader, releases)


def listed_by(
    connection: Connection,
    reader: Reader,
    order: str,
    limit: int,
    after: str = "",
    facet: tuple[str, str] | None = None,
) -> Json:
    """Return a page of the listed releases in one of the orders LISTED_BY, one of each name.

    `after` and `facet` as in `read_listed_by`. `following` is the key after which the next page
    goes on, None for none; `total` counts all names, those without votes as well.
    """
    denials = reader.index.denial_cache.read(connection)
    listed = read_listed_by(connection, order, denials, limit + 1, after, facet)
    return {
        "releases": _all_shown(connection, reader, [x for _, x in listed[:limit]]),
        "following": listed[limit - 1][0] if len(listed) > limit else None,
        "total": count_listed(connection, facet),
    }


def lineages(
    connection: Connection, reader: Reader, wanted: Sequence[tuple[str, str]]
) -> list[Json]:
    """Return what came before each of these names with a version.

    That is when the name was `first_seen` (epoch seconds), and as `before` the version and sha256
    of `read_version_before`.
    """
    seen = read_first_seen(connection, {name for name, _ in wanted})
    return [_lineage(connection, reader, *one, seen.get(one[0])) for one in wanted]


def _lineage(
    connection: Connection, reader: Reader, name: str, semver: str, seen: Row[Any] | None
) -> Json:
    before = None
    if seen is not None and seen.releases > 1:
        before = read_version_before(connection, name, semver, reader.serve)
    return {"first_seen": seen and seen.timestamp, "before": before}


def _all_shown(
    connection: Connection, reader: Reader, found: Sequence[IndexedRelease]
) -> list[Json]:
    seen = read_first_seen(connection, {x.name for x in found if x.name})
    return [_shown(connection, reader, x, seen.get(x.name or "")) for x in found]


def _shown(
    connection: Connection, reader: Reader, found: IndexedRelease, seen: Row[Any] | None
) -> Json:
    """Return a release with the fields that only pages have."""
    before = _lineage(connection, reader, found.name or "", found.semver, seen)
    return release(found) | of_page(found) | {"name": found.name} | before


@lru_cache(MAX_MANIFESTS)
def read_manifest(data: bytes) -> Manifest:
    """Return the manifest of a package that this node serves."""
    return read(data, lint=False).require()


def _file(reader: Reader, indexed: IndexedRelease) -> bytes | None:
    if indexed.verdict not in reader.serve or indexed.denied is not None:
        return None
    try:
        return reader.file_of(indexed)
    except Unavailable:  # the page says so
        return None
