"""Releases one by one and in pages, whatever became of them: as people look at them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.json import Json
from capdex.uri import check_name
from capdex.version import Version
from capdex_indexer.query.catalog import count_listed, read_listed_by
from capdex_indexer.query.name_state import read_name_state
from capdex_indexer.query.pages import (
    count_versions,
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

PAGE: Final = 100
_SHORTEST_CID: Final = 46  # of version 0
_SHA256: Final = re.compile(r"(?:0x)?([0-9a-f]{64})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownRelease:
    """A release of any verdict as JSON, and its file, None unless this node serves it.

    The JSON has the release with the fields of its page, the state of its name, and the number of
    the name's `versions`.
    """

    json: Json
    data: bytes | None


async def find_release(reader: Reader, name: str, version: str | None = None) -> ShownRelease:
    """Return an exact version of a name, or the one that search lists, else the highest.

    Raises InvalidInput NOT_FOUND, also for what can be no name or version.
    """

    def read(connection: Connection) -> ShownRelease:
        first, listed = read_shown_version(connection, name)
        wanted = version or first
        chosen = wanted and read_version(connection, name, wanted)
        if not chosen:
            what = f"no release of {name} is {version}" if version else f"{name} has no release"
            fix = "search for it, or see all versions" if first else "search for it"
            raise InvalidInput(what, Code.NOT_FOUND, fix=fix)
        chosen = chosen.redacted(reader.index.denial_cache.read(connection))
        state, (_, position) = read_name_state(connection, name), read_revision(connection)
        body = name_head(name, state) | {
            "release": shown(chosen),
            "versions": count_versions(connection, name),
            "has_latest": listed,
            "as_of": as_of(position),
        }
        return ShownRelease(body, _file(reader, chosen))

    _check(name, version)
    return await reader.read(read)


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


async def list_versions(reader: Reader, name: str, page: int) -> Json:
    """Return a page (from 1) of the releases of a name, highest version first, and one more.

    Raises InvalidInput NOT_FOUND.
    """

    def read(connection: Connection) -> Json:
        denials = reader.index.denial_cache.read(connection)
        releases = read_versions(connection, name, PAGE + 1, (page - 1) * PAGE)
        total = count_versions(connection, name)
        if not total:
            raise InvalidInput(f"{name} has no release", Code.NOT_FOUND, fix="search for it")
        return {
            "releases": [shown(x.redacted(denials)) for x in releases],
            "total": total,
            "page": page,
            "pages": -(-total // PAGE),
        }

    _check(name, None)
    return await reader.read(read)


async def newest_releases(
    reader: Reader, limit: int, of: tuple[str, str] | None = None, before: int | None = None
) -> list[Json]:
    """Return the served releases that were announced last, the newest first.

    `of` and `before` as in `read_newest_releases`.
    """

    def read(connection: Connection) -> list[Json]:
        denials = reader.index.denial_cache.read(connection)
        releases = read_newest_releases(connection, reader.serve, denials, limit, of, before)
        return [shown(x) for x in releases]

    return await reader.read(read)


async def listed_by(
    reader: Reader, order: str, limit: int, after: str = "", facet: tuple[str, str] | None = None
) -> Json:
    """Return a page of the listed releases in one of the orders LISTED_BY, one of each name.

    `after` and `facet` as in `read_listed_by`. `following` is the key after which the next page
    goes on, None for none; `total` counts all names, those without votes as well.
    """

    def read(connection: Connection) -> Json:
        denials = reader.index.denial_cache.read(connection)
        listed = read_listed_by(connection, order, denials, limit + 1, after, facet)
        return {
            "releases": [shown(x) for _, x in listed[:limit]],
            "following": listed[limit - 1][0] if len(listed) > limit else None,
            "total": count_listed(connection, facet),
        }

    return await reader.read(read)


Lineage = tuple[int | None, tuple[str, str] | None]


async def lineages(reader: Reader, wanted: Sequence[tuple[str, str]]) -> list[Lineage]:
    """Return what came before each of these names with a version.

    That is when the name was first published under (epoch seconds), and the version and sha256 of
    `read_version_before`.
    """

    def read(connection: Connection) -> list[Lineage]:
        seen = read_first_seen(connection, {name for name, _ in wanted})
        traced: list[Lineage] = []
        for name, semver in wanted:
            first_seen, releases = seen.get(name, (None, 0))
            before = None
            if releases > 1:
                before = read_version_before(connection, name, semver, reader.serve)
            traced.append((first_seen, before))
        return traced

    return await reader.read(read)


def shown(indexed: IndexedRelease) -> Json:
    """Return a release with the fields that only pages of its name have."""
    return release(indexed) | of_page(indexed) | {"name": indexed.name}


def _file(reader: Reader, indexed: IndexedRelease) -> bytes | None:
    if indexed.verdict not in reader.serve or indexed.denied is not None:
        return None
    try:
        return reader.file_of(indexed)
    except Unavailable:  # the page says so
        return None


def _check(name: str, version: str | None) -> None:
    try:
        check_name(name)
        if version is not None:
            Version.parse(version)
    except InvalidInput as error:
        raise replace(error, code=Code.NOT_FOUND) from None
