"""Claims of packages on Schema URIs and memory scopes, and which name claimed each first.

A Schema URI (without its version) and a memory scope are chosen freely by authors. The first
claimant of one is the name whose verified release with the lowest event sequence uses it. This is
computed from rows that come with a verdict and go with their release, so neither the order of
judging nor an undone block can change it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, select, text

from capdex.problems import Verdict
from capdex.uri import PREFIX
from capdex_indexer.db.bulk_insert import insert_rows
from capdex_indexer.db.models import RELEASE, SCHEMA_CLAIM
from capdex_indexer.projection.package_rows import Judgement

OWN: Final = SCHEMA_CLAIM.alias("own")
_EARLIER: Final = SCHEMA_CLAIM.alias("earlier")
_CLAIMS: Final = text("earlier.claims")


def _first(kind: str) -> Select[Any]:
    """The sequence of the first claim of the same value as `OWN` has, if earlier than `OWN`."""
    return (
        select(func.min(_EARLIER.c.sequence))
        .where(_CLAIMS, _EARLIER.c[kind] == OWN.c[kind], _EARLIER.c.sequence < OWN.c.sequence)
        .correlate(OWN)
    )


SCHEMA_CLAIMANT: Final = RELEASE.alias("schema_claimant")
SCOPE_CLAIMANT: Final = RELEASE.alias("scope_claimant")
OF_SCHEMA: Final = SCHEMA_CLAIMANT.c.sequence == _first("schema_uri").scalar_subquery()
OF_SCOPE: Final = SCOPE_CLAIMANT.c.sequence == _first("memory_scope").scalar_subquery()
COLUMNS: Final = (
    OWN.c.schema_uri,
    OWN.c.memory_scope,
    SCHEMA_CLAIMANT.c.name.label("schema_claimant"),
    SCHEMA_CLAIMANT.c.semver.label("schema_claimant_semver"),
    SCOPE_CLAIMANT.c.name.label("scope_claimant"),
    SCOPE_CLAIMANT.c.semver.label("scope_claimant_semver"),
)


def write(
    connection: Connection, sequences: Mapping[int, int], judgements: Mapping[int, Judgement]
) -> None:
    """Replace the claims of a few releases; `sequences` are of their events, by release id."""
    connection.execute(delete(SCHEMA_CLAIM).where(SCHEMA_CLAIM.c.release_id.in_(list(judgements))))
    rows = [
        (k, sequences[k], v.verdict is Verdict.VERIFIED, v.schema_uri, v.memory_scope)
        for k, v in judgements.items()
        if v.schema_uri is not None
    ]
    insert_rows(connection, SCHEMA_CLAIM, rows)


def first_claimed_by(row: Any) -> dict[str, str | None]:
    """Return the other name that claimed each first; None if this one did, or has none."""
    schema, scope = row.schema_claimant, row.scope_claimant
    return {
        "schema_uri": None if schema == row.name else schema,
        "memory_scope": None if scope == row.name else scope,
    }


def warnings(row: Any) -> Iterator[str]:
    """Yield a warning for each earlier claim of another name."""
    first = first_claimed_by(row)
    if first["schema_uri"]:
        who = f"{PREFIX}{row.schema_claimant} (release {row.schema_claimant_semver})"
        yield f"schema {row.schema_uri} was first used by {who}"
    if first["memory_scope"]:
        who = f"{PREFIX}{row.scope_claimant} (release {row.scope_claimant_semver})"
        yield f'memory_scope "{row.memory_scope}" was first used by {who}'
