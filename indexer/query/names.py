"""The listed names in order, page by page, and the versions of one name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, exists, func, select

from capdex.problems import Verdict
from indexer.db.columns import NOT_YANKED, STANDS
from indexer.db.denylist import Denials, read_allowed
from indexer.db.models import FACET, LISTING, PACKAGE, RELEASE


@dataclass(frozen=True, slots=True)
class ListedName:
    """A listed name: the version that search lists, the package's metadata section.

    `placeholders` are those of its prompt, None if it has no prompt.
    """

    name: str
    semver: str
    metadata: dict[str, Any]
    placeholders: list[str] | None = None


_LISTED: Final = (
    select(LISTING.c.name, LISTING.c.release_id, RELEASE.c.semver, PACKAGE.c.acp_metadata)
    .select_from(LISTING)
    .join(RELEASE, RELEASE.c.id == LISTING.c.release_id)
    .join(PACKAGE, PACKAGE.c.release_id == LISTING.c.release_id)
    .order_by(LISTING.c.name)
)
_HAS_PROMPT: Final = exists().where(
    FACET.c.release_id == LISTING.c.release_id,
    FACET.c.key == "section",
    FACET.c.value == "prompt",
)
_AFTER_NAMES: Final = "{"  # the first character after those of names


def read_listed_names(
    connection: Connection, after: str, limit: int, *, with_prompt: bool = False
) -> list[ListedName]:
    """Return the listed names after a name, in order; on request only those with a prompt."""
    query = _LISTED.where(LISTING.c.name > after).limit(limit)
    if not with_prompt:
        return [_listed(row) for row in connection.execute(query)]
    rows = connection.execute(query.where(_HAS_PROMPT)).all()
    found = select(FACET.c.release_id, FACET.c.value).where(
        FACET.c.release_id.in_([row.release_id for row in rows]), FACET.c.key == "placeholder"
    )
    names: dict[int, list[str]] = {row.release_id: [] for row in rows}
    for release_id, name in connection.execute(found.order_by(FACET.c.value)):
        names[release_id].append(name)
    return [_listed(row, names[row.release_id]) for row in rows]


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


def _listed(row: Any, placeholders: list[str] | None = None) -> ListedName:
    return ListedName(row.name, row.semver, row.acp_metadata or {}, placeholders)
