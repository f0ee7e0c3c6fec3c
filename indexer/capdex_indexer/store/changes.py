"""The feed of changed names: readers drop what they keep of them, and followers read them again.

Each name has one row with the revision that last changed an answer about it, so the feed never
grows beyond the number of names.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final

from sqlalchemy import Connection, select, text

from capdex_indexer.db.bulk_insert import chunks
from capdex_indexer.db.models import RELEASE, REVISION, SCHEMA_CLAIM

_INTO: Final = (
    "INSERT INTO name_change (name, revision) SELECT name, :revision FROM ({}) AS changed "
    "WHERE name IS NOT NULL ON CONFLICT (name) DO UPDATE SET revision = excluded.revision"
)
_GIVEN: Final = {
    "sqlite": text(_INTO.format("SELECT value AS name FROM json_each(:names)")),
    "postgresql": text(_INTO.format("SELECT unnest(CAST(:names AS text[])) AS name")),
}
_ALL: Final = text(_INTO.format("SELECT DISTINCT name FROM release"))
OWN, LATER = SCHEMA_CLAIM.alias("own"), SCHEMA_CLAIM.alias("later")


def mark(connection: Connection, names: Iterable[str]) -> None:
    """Record that this transaction changes answers about these names."""
    concerned = sorted(set(names))
    if concerned:
        dialect = connection.dialect.name
        bound = json.dumps(concerned) if dialect == "sqlite" else concerned
        connection.execute(_GIVEN[dialect], {"names": bound, "revision": _revision(connection)})


def mark_all(connection: Connection) -> None:
    """Record that this transaction changes answers about every name."""
    connection.execute(_ALL, {"revision": _revision(connection)})


def later_claimants(connection: Connection, release_ids: Collection[int]) -> set[str]:
    """Return the names whose answers may name the claims of these releases as earlier ones."""
    names: set[str] = set()
    for some in chunks(list(release_ids)):
        for kind in ("schema_uri", "memory_scope"):
            query = (
                select(RELEASE.c.name)
                .select_from(OWN.join(LATER, LATER.c[kind] == OWN.c[kind]))
                .join(RELEASE, RELEASE.c.id == LATER.c.release_id)
                .where(OWN.c.release_id.in_(some), LATER.c.sequence > OWN.c.sequence)
            )
            names.update(connection.execute(query.distinct()).scalars())
    return names


def _revision(connection: Connection) -> int:
    """Return the revision that this transaction will have (`Store._write` adds 1 at its end).

    Locked on PostgreSQL, where an operator could else commit a transaction of the same revision.
    """
    return int(connection.execute(REVISION.with_for_update()).scalar_one()) + 1
