"""SQLite looks up by their partial indexes what must not become slower as an index grows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.dialects import sqlite

from capdex.problems import Verdict
from capdex_indexer.db.columns import STANDS
from capdex_indexer.db.models import ReleaseRow, table
from capdex_indexer.query import release as found
from capdex_indexer.store import Store, listing

RELEASE = table(ReleaseRow)
STANDING = select(RELEASE.c.id).where(STANDS, RELEASE.c.cap_uri == "x")
LATEST = listing.best(frozenset({Verdict.VERIFIED}), "sqlite").params(names='["x", "y"]')


@pytest.mark.parametrize(
    ("query", "indexes"),
    [
        pytest.param(STANDING, ["uq_release_standing (cap_uri=?)"], id="standing"),
        pytest.param(LATEST, ["ix_release_latest (name=?)"], id="latest"),
        pytest.param(
            found._BY_ID.params(ids=[1]),
            [
                "ix_schema_claim_schema_uri (schema_uri=? AND sequence<?)",
                "ix_schema_claim_memory_scope (memory_scope=? AND sequence<?)",
            ],
            id="first claimants",
        ),
    ],
)
def test_a_partial_index_is_used(
    making: Any, tmp_path: Path, query: Any, indexes: list[str]
) -> None:
    path = tmp_path / "index.db"
    Store.open(f"sqlite:///{path}", making.DEPLOYMENT).close()
    words = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    with closing(sqlite3.connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {words}")]
    for index in indexes:
        assert any(f"INDEX {index}" in step for step in plan), plan
    assert not any("USE TEMP B-TREE" in step for step in plan), plan
