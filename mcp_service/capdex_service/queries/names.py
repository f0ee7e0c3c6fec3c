"""Names and versions: those that changed last, and those that begin as a client typed."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy import Connection

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.uri import MAX_NAME_CHARS, check_name
from capdex.version import MAX_VERSION_CHARS
from capdex_indexer.query.changes import read_newest
from capdex_indexer.query.names import read_names_like, read_versions_like
from capdex_indexer.query.status import read_revision
from capdex_service.queries.reader import Reader

PAGE: Final = 50
LATEST: Final = "latest"


def newest_changes(connection: Connection, reader: Reader) -> Json:
    """Return the names that changed last, the newest first, and the revision they are of.

    A name without a latest release is `deleted`.
    """
    revision, _ = read_revision(connection)
    changes = [
        {"name": change.name, "revision": change.revision, "deleted": change.release_id is None}
        for change in read_newest(connection, reader.serve, PAGE)
    ]
    return {"changes": changes, "revision": revision}


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


async def versions_like(reader: Reader, name: str, prefix: str, limit: int) -> list[str]:
    """Return `latest` and the served versions of a name, highest first, that begin as `prefix`."""
    try:
        name, prefix = check_name(name), prefix.strip()
    except InvalidInput:
        return []
    if len(prefix) > MAX_VERSION_CHARS or not prefix.isascii() or "\0" in prefix:
        return []

    def read(connection: Connection) -> list[str]:
        serve, denials = reader.serve, reader.index.denial_cache.read(connection)
        of_name = partial(read_versions_like, connection, name)
        begin = partial(of_name, limit=limit, serve=serve, denials=denials)
        latest = [LATEST] if LATEST.startswith(prefix) and begin("") else []
        return [*latest, *begin(prefix)]

    return await reader.read(read)
