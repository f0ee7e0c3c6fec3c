"""Names and versions: those that changed last, and those that begin as a client typed."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final

from sqlalchemy import Connection

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.uri import MAX_NAME_CHARS, check_name
from capdex.version import MAX_VERSION_CHARS
from capdex_indexer.query import (
    read_first_seen,
    read_listed,
    read_name_state,
    read_names_like,
    read_neighbours,
    read_newest,
    read_revision,
    read_versions_like,
)
from capdex_service.queries.reader import Reader

PAGE: Final = 50
LIKE_TITLE: Final = 0.8  # of `difflib.SequenceMatcher.ratio`, without case
LATEST: Final = "latest"


async def newest_changes(reader: Reader) -> Json:
    """Return the names that changed last, the newest first, and the revision they are of.

    A name of which nothing is served any more is `deleted`.
    """

    def read(connection: Connection) -> Json:
        revision, _ = read_revision(connection)
        changes = [
            {"name": x.name, "revision": x.revision, "deleted": x.release_id is None}
            for x in read_newest(connection, reader.serve, PAGE)
        ]
        return {"changes": changes, "revision": revision}

    return await reader.read(read)


async def names_like(
    reader: Reader, prefix: str, limit: int, *, with_prompt: bool = False
) -> list[str]:
    """Return at most `limit` listed names that begin with a prefix, in any case."""
    prefix = prefix.strip().lower()
    if len(prefix) > MAX_NAME_CHARS or not prefix.isascii() or "\0" in prefix:
        return []
    return await reader.read(
        lambda connection: read_names_like(connection, prefix, limit, with_prompt=with_prompt)
    )


async def copied_name(reader: Reader, name: str) -> str | None:
    """Return the older name of another owner that a name may be taken for; None for none.

    It is one typing mistake away, and has a like title.
    """

    def read(connection: Connection) -> str | None:
        near = read_neighbours(connection, name)
        listed = read_listed(connection, [name, *near]) if near else {}
        own, since = listed.get(name), read_first_seen(connection, name)
        if own is None or since is None:
            return None
        owner = read_name_state(connection, name).owner
        for other in near:
            first, found = read_first_seen(connection, other), listed.get(other)
            if first is None or first > since or found is None:
                continue
            titles = [str((x.metadata or {}).get("name", "")).lower() for x in (own, found)]
            like = SequenceMatcher(None, titles[0], titles[1]).ratio() >= LIKE_TITLE
            if like and read_name_state(connection, other).owner != owner:
                return other
        return None

    return await reader.read(read)


async def versions_like(reader: Reader, name: str, prefix: str, limit: int) -> list[str]:
    """Return `latest` and the served versions of a name, highest first, that begin as `prefix`."""
    try:
        name, prefix = check_name(name), prefix.strip()
    except InvalidInput:
        return []
    if len(prefix) > MAX_VERSION_CHARS or not prefix.isascii() or "\0" in prefix:
        return []

    def read(connection: Connection) -> list[str]:
        denials = reader.index.denial_cache.read(connection)

        def begin(prefix: str) -> list[str]:
            return read_versions_like(
                connection, name, prefix, limit, serve=reader.serve, denials=denials
            )

        latest = [LATEST] if LATEST.startswith(prefix) and begin("") else []
        return [*latest, *begin(prefix)]

    return await reader.read(read)
