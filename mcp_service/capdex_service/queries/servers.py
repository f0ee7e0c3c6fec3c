"""Releases with a binding to an MCP service, as a registry of MCP servers lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from capdex.errors import CapdexError, Code, Unavailable
from capdex.json import Json
from capdex_indexer.query.catalog import BoundReleases, read_bound, read_changed_at
from capdex_indexer.query.release import IndexedRelease
from capdex_service.answers import server_json
from capdex_service.answers.paging import read_cursor, read_limit, write_cursor
from capdex_service.answers.rendered import Answer
from capdex_service.queries.reader import Reader

MAX_PAGE: Final = 100
DEFAULT_PAGE: Final = 30
MAX_VERSIONS: Final = 200
MAX_READ_BYTES: Final = 1 << 20  # of packages parsed for an answer; the next one goes on
MAX_CACHED: Final = 10_000  # entries, of about a kilobyte

_Key = tuple[str, str]


class Servers:
    """The list of servers over a reader; entries are kept, because a release never changes.

    All methods block.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._entries: dict[_Key, tuple[Json | None]] = {}

    def list_page(self, wanted: BoundReleases, limit: int, cursor: str | None) -> Answer:
        """Return a page, in order of names and then of versions as text.

        A name is in the list if its latest release has such a binding. Releases that this node does
        not hold are left out. Raises InvalidInput for another limit or a foreign cursor.
        """
        read_limit(limit, MAX_PAGE)
        name, semver = ("", "") if cursor is None else read_cursor(cursor, str, str)
        with self._reader.index.read() as connection:
            denials = self._reader.index.denial_cache.read(connection)
            serve = self._reader.serve
            releases = read_bound(connection, wanted, serve, denials, (name, semver), limit + 1)
            changed = read_changed_at(connection, releases)
        responses = self._responses(releases[:limit], changed)
        cursor = None
        if responses and len(responses) < len(releases):
            last = releases[len(responses) - 1]
            cursor = write_cursor(str(last.name), last.semver)
        return _listing([x for x in responses if x is not None], cursor)

    def versions(self, server: str, *, deleted: bool) -> Answer:
        """Return all versions of a server, newest first; raises InvalidInput NOT_FOUND."""
        name = server_json.capability_uri(server, "latest").name
        served = (x for x in self._reader.index.releases(name) if x.verdict in self._reader.serve)
        releases = [x for x in served if x.denied is None and (deleted or not x.yanked)]
        highest = releases[:MAX_VERSIONS]
        newest_first = sorted(highest, key=lambda x: (x.timestamp, x.sequence), reverse=True)
        page = self._all_responses(newest_first)
        if not page:
            raise server_json.not_found(server)
        return _listing(page, None)

    def version(self, server: str, version: str, *, deleted: bool) -> Answer:
        """Return one version of a server, or the `latest`.

        Raises InvalidInput NOT_FOUND, also for a yanked release unless `deleted`.
        """
        uri = server_json.capability_uri(server, version)
        try:
            release = self._reader.index.resolve(uri, serve=self._reader.serve)
        except CapdexError as error:
            if error.code in (Code.NOT_FOUND, Code.YANKED, Code.UNVERIFIED, Code.PENDING):
                raise server_json.not_found(server, error.message) from None
            raise
        listed = self._all_responses([release]) if deleted or not release.yanked else []
        if not listed:
            raise server_json.not_found(server)
        return Answer(orjson.dumps(listed[0]), b'""')

    def _all_responses(self, releases: list[IndexedRelease]) -> list[Json]:
        with self._reader.index.read() as connection:
            changed = read_changed_at(connection, releases)
        responses = self._responses(releases, changed)
        if len(responses) < len(releases):  # what is parsed by now is kept
            raise Unavailable("the packages are large", Code.TIMEOUT, fix="try again")
        return [x for x in responses if x is not None]

    def _responses(
        self, releases: Sequence[IndexedRelease], changed: Mapping[str, int]
    ) -> list[Json | None]:
        """Return the entry of each release, or None; less of them where packages are large."""
        responses: list[Json | None] = []
        read = 0
        for release in releases:
            if read > MAX_READ_BYTES:
                break
            entry, length = self._entry(release)
            read += length
            made = entry and server_json.response(entry, release, changed[release.cap_uri])
            responses.append(made)
        return responses

    def _entry(self, release: IndexedRelease) -> tuple[Json | None, int]:
        """Return the server.json of a release, if it has one, and the bytes parsed for it."""
        key = (release.cap_uri, release.sha256)
        if (kept := self._entries.get(key)) is not None:
            return kept[0], 0
        try:
            package = self._reader.package_of(release)
        except Unavailable:  # its bytes may come later
            return None, 0
        entry = server_json.server(release, package.document)
        if len(self._entries) >= MAX_CACHED:
            self._entries.clear()  # in one step, as all here: several threads share it
        self._entries[key] = (entry,)
        return entry, len(package.data)


def _listing(page: list[Json], cursor: str | None) -> Answer:
    metadata: Json = {"count": len(page)}
    if cursor is not None:
        metadata["nextCursor"] = cursor
    return Answer(orjson.dumps({"servers": page, "metadata": metadata}), b'""')
