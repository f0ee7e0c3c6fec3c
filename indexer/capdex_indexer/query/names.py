"""The listed names and the versions of one name that begin alike, in order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, bindparam, exists, func, select

from capdex.problems import Verdict
from capdex_indexer.db.columns import NOT_YANKED, STANDS
from capdex_indexer.db.denylist import Denials, read_allowed
from capdex_indexer.db.models import FACET, LISTING, RELEASE

_HAS_PROMPT: Final = exists().where(
    FACET.c.release_id == LISTING.c.release_id,
    FACET.c.key == "section",
    FACET.c.value == "prompt",
)
_AFTER_NAMES: Final = "{"  # the first character after those of names


def read_names_like(
    connection: Connection, prefix: str, limit: int, *, with_prompt: bool = False
) -> list[str]:
    """Return the listed names that begin with a prefix, in order."""
    query = select(LISTING.c.name).order_by(LISTING.c.name).limit(limit)
    query = query.where(LISTING.c.name >= prefix, LISTING.c.name < prefix + _AFTER_NAMES)
    if with_prompt:
        query = query.where(_HAS_PROMPT)
    return list(connection.execute(query).scalars())


def read_versions_like(
    connection: Connection,
    name: str,
    prefix: str,
    limit: int,
    *,
    serve: Collection[Verdict],
    denials: Denials,
) -> list[str]:
    """Return the served versions of a name that begin with a prefix and stand, highest first."""
    if name in denials.by_name:
        return []
    query = (
        select(RELEASE.c.name, RELEASE.c.semver, RELEASE.c.cid, RELEASE.c.sha256)
        .where(RELEASE.c.name == name, STANDS, NOT_YANKED, RELEASE.c.verdict.in_(sorted(serve)))
        .where(func.substr(RELEASE.c.semver, 1, len(prefix)) == prefix)
        .order_by(RELEASE.c.precedence.desc())
        .limit(bindparam("limit"))
        .offset(bindparam("offset"))
    )
    return [x.semver for x in read_allowed(connection, query, {}, denials, limit)]
