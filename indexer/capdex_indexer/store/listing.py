"""The listing: the one release of each name that search answers with, updated with the releases.

It is the latest release (P2) that is served, not yanked and not denied by the operator. Every
change of these calls `refresh` for the names concerned, inside its own transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnClause,
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    cast,
    column,
    delete,
    func,
    literal,
    select,
)

from capdex.problems import Verdict
from capdex_indexer.db import denylist
from capdex_indexer.db.bulk_insert import chunks, insert_rows
from capdex_indexer.db.columns import NOT_YANKED, PLAIN, STANDS
from capdex_indexer.db.denylist import Denials
from capdex_indexer.db.models import FACET, LISTING, PACKAGE, RELEASE


def listing_rules(serve: Collection[Verdict]) -> str:
    """Return a key of what the listing depends on beside releases; a new key means a rebuild."""
    return ",".join(sorted(serve))


def served(rules: str) -> frozenset[Verdict]:
    """Return the verdicts that a listing made by these rules contains."""
    return frozenset(map(Verdict, filter(None, rules.split(","))))


def refresh(
    connection: Connection,
    names: Iterable[str],
    serve: Collection[Verdict],
    denials: Denials | None = None,
) -> None:
    """List the latest release of each name, or none; `denials` if the caller has read them."""
    concerned = sorted(set(names))
    if concerned and denials is None:
        denylist.lock(connection)
        denials = denylist.read_denials(connection)
    for some in chunks(concerned):
        right = _latest(connection, some, serve, denials or Denials())
        listed = select(LISTING.c.name, LISTING.c.release_id).where(LISTING.c.name.in_(some))
        before = {row.name: row.release_id for row in connection.execute(listed).all()}
        unlist(connection, [x for name, x in before.items() if right.get(name) != x])
        _list(connection, {name: x for name, x in right.items() if before.get(name) != x})


def unlist(connection: Connection, release_ids: Sequence[int]) -> None:
    """Take releases out of the listing, with their facets."""
    for some in chunks(release_ids):
        connection.execute(delete(FACET).where(FACET.c.release_id.in_(some)))
        connection.execute(delete(LISTING).where(LISTING.c.release_id.in_(some)))


def rebuild(connection: Connection, serve: Collection[Verdict]) -> None:
    """List everything again, after the served verdicts have changed."""
    unlist(connection, connection.execute(select(LISTING.c.release_id)).scalars().all())
    names = select(RELEASE.c.name).where(RELEASE.c.name.is_not(None)).distinct()
    refresh(connection, connection.execute(names).scalars().all(), serve)


@lru_cache(maxsize=8)  # half a millisecond to put together, for every block
def best(serve: frozenset[Verdict], dialect: str) -> Select[Any]:
    """Select name, id, CID and sha256 of the latest release of each of `names`; one seek each.

    `names` is bound to a JSON array on SQLite, to a list on PostgreSQL.
    """
    value: ColumnClause[str] = column("value", PLAIN)
    if dialect == "sqlite":
        concerned = func.json_each(bindparam("names", type_=Text)).table_valued(value)
    else:
        names = cast(bindparam("names"), ARRAY(Text))
        concerned = func.unnest(names).table_valued(value).render_derived()
    first = _best_first(concerned.c.value, serve).limit(1).correlate(concerned).scalar_subquery()
    release = RELEASE.alias("best")
    query = select(concerned.c.value, release.c.id, release.c.cid, release.c.sha256)
    return query.select_from(concerned.join(release, release.c.id == first))


def _latest(
    connection: Connection, names: Sequence[str], serve: Collection[Verdict], denials: Denials
) -> dict[str, int]:
    """Return the release to list of each name that has one."""
    dialect = connection.dialect.name
    bound = json.dumps(names) if dialect == "sqlite" else list(names)
    rows = connection.execute(best(frozenset(serve), dialect), {"names": bound}).all()
    latest: dict[str, int] = {}
    for name, release_id, cid, sha256 in rows:
        if denials.of_release(name, cid, bytes(sha256)) is None:
            latest[name] = release_id
        elif (other := _best_allowed(connection, name, serve, denials)) is not None:
            latest[name] = other
    return latest


def _best_allowed(
    connection: Connection, name: str, serve: Collection[Verdict], denials: Denials
) -> int | None:
    best_first = _best_first(literal(name), serve).add_columns(RELEASE.c.cid, RELEASE.c.sha256)
    for row in connection.execute(best_first):
        if denials.of_release(name, row.cid, bytes(row.sha256)) is None:
            return int(row.id)
    return None


def _best_first(name: ColumnElement[str], serve: Collection[Verdict]) -> Select[Any]:
    return (
        select(RELEASE.c.id)
        .where(
            RELEASE.c.name == name,
            STANDS,
            NOT_YANKED,
            RELEASE.c.verdict.is_not(None),
            RELEASE.c.verdict.in_(sorted(serve)),
        )
        .order_by(RELEASE.c.stable.desc(), RELEASE.c.precedence.desc())
    )


def _list(connection: Connection, right: Mapping[str, int]) -> None:
    """List these releases by name; their names must not be listed yet."""
    query = select(PACKAGE.c.release_id, PACKAGE.c.document)
    rows = connection.execute(query.where(PACKAGE.c.release_id.in_(list(right.values())))).all()
    known = {row.release_id: row.document for row in rows}
    insert_rows(connection, LISTING, list(right.items()))
    facets = [
        (release_id, key, value)
        for name, release_id in right.items()
        for key, value in (known.get(release_id) or {"facets": [["name", name]]})["facets"]
    ]
    insert_rows(connection, FACET, facets)
