"""What an index holds, read from beside its writer: all of its rows, or how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from capdex_indexer.db.engine import open_reader
from capdex_indexer.query.digest import Digest, read_digest

# Everything an index says, by table: releases by their sequence, since ids are local. What the
# operator of one node said (denials, instructions), and when something was tried, is left out.
CONTENTS = {
    "deployment": "SELECT id, chain_id, contract, start_block, genesis FROM deployment ORDER BY id",
    "cursor": "SELECT deployment_id, number, hash, log_head, log_count FROM cursor "
    "ORDER BY deployment_id",
    "event": "SELECT * FROM event ORDER BY sequence",
    "yank": "SELECT * FROM yank ORDER BY sequence",
    "deprecation": "SELECT * FROM deprecation ORDER BY sequence",
    "ownership": "SELECT * FROM ownership ORDER BY sequence",
    "vote": "SELECT * FROM vote ORDER BY sequence",
    "release": "SELECT sequence, name, stands, cap_uri, semver, stable, precedence, cid, sha256, "
    "publisher, yanked, yank_reason, availability, verdict, reason, message FROM release "
    "ORDER BY sequence",
    "package": "SELECT sequence, acp_metadata, signer, checks, problems, document, rules_version "
    "FROM package JOIN release ON release.id = release_id ORDER BY sequence",
    "schema_claim": "SELECT release.sequence, schema_claim.sequence, claims, schema_uri, "
    "memory_scope FROM schema_claim JOIN release ON release.id = release_id ORDER BY 1",
    "listing": "SELECT listing.name, sequence FROM listing JOIN release ON release.id = release_id "
    "ORDER BY sequence",
    "facet": "SELECT sequence, key, value FROM facet JOIN release ON release.id = release_id "
    "ORDER BY sequence, key, value",
}
# Whether a writer has connected: on SQLite its file is there.
OPENED = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
PROGRESS = (
    "SELECT (SELECT count(*) FROM event), "
    "(SELECT count(*) FROM release WHERE verdict IS NOT NULL), "
    "(SELECT count(*) FROM release WHERE verdict IS NULL), "
    "(SELECT hash FROM cursor WHERE deployment_id = 1)"
)

WAITING = (
    "SELECT id, sequence, cap_uri, availability, attempts, queued_at, due_at FROM release "
    "WHERE verdict IS NULL LIMIT 20"
)
JUDGED = (
    "SELECT sequence, verdict, reason, message, signer, checks, problems, document FROM release "
    "JOIN package ON release_id = release.id WHERE verdict IS NOT NULL ORDER BY sequence"
)
CURSOR = "SELECT number, log_count FROM cursor WHERE deployment_id = 1"

Contents = dict[str, list[tuple[Any, ...]]]


def contents(db: str) -> Contents:
    """What the index at `db` holds."""
    engine = open_reader(db)
    key = "d.rowid" if engine.dialect.name == "sqlite" else "d.release_id"
    try:
        with engine.begin() as connection:
            return {
                name: rows(connection, query.replace("d.rowid", key))
                for name, query in CONTENTS.items()
            }
    finally:
        engine.dispose()


def differences(ours: Contents, theirs: Contents) -> list[str]:
    """One line for each table that is not the same, with the first row that differs."""
    found = []
    for table, mine in ours.items():
        other = theirs[table]
        if mine != other:
            at = next((i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), -1)
            pair = (mine[at], other[at]) if at >= 0 else "one is longer"
            found.append(f"{table}: {len(mine)} rows, not {len(other)}; row {at}: {pair!s:.600}")
    return found


def digest(db: str, block: int | None = None) -> Digest:
    """The digest of the index at `db`, at its cursor if no block is named."""
    engine = open_reader(db)
    try:
        with engine.begin() as connection:
            return read_digest(connection, block)
    finally:
        engine.dispose()


def faults(db: str, reference: str) -> list[str]:
    """What is wrong with an unfinished index, by a whole one of the same chain.

    Up to its cursor it must have every event once, as the other has it, the same digest, and no
    verdict that the other has not. Before there is a cursor nothing can be wrong.
    """
    if not Watch(db).block():
        return []
    engine, whole = open_reader(db), open_reader(reference)
    try:
        with engine.begin() as ours, whole.begin() as theirs:
            ((number, count),) = rows(ours, CURSOR)
            mine, other = read_digest(ours), read_digest(theirs, number)
            pairs: dict[str, list[Any]] = {
                "events": [
                    rows(ours, CONTENTS["event"]),
                    rows(theirs, CONTENTS["event"])[:count],
                ],
                "index digests": [mine.index.hex(), other.index.hex()],
                "log slots": [mine.log, other.log],
            }
            if mine.content is not None:
                pairs["content digests"] = [mine.content, other.content]
            wrong = [
                f"at block {number} the {what} differ" for what, (a, b) in pairs.items() if a != b
            ]
            if strange := set(rows(ours, JUDGED)) - set(rows(theirs, JUDGED)):
                wrong.append(f"at block {number} there are other verdicts: {strange!s:.600}")
            return wrong
    finally:
        engine.dispose()
        whole.dispose()


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [
        tuple(bytes(x) if isinstance(x, memoryview) else x for x in row)
        for row in connection.execute(text(query))
    ]


class Watch:
    """How far an index is, read from beside its writer; zeros before there is a table."""

    def __init__(self, db: str) -> None:
        self.db = db

    def opened(self) -> bool:
        """Whether a node has begun to make the tables, or is past that."""
        if self.db.startswith("sqlite"):
            return Path(self.db.removeprefix("sqlite:///")).exists()
        return self._ask(OPENED) != [(0,)]

    def __call__(self) -> tuple[int, int]:
        """Events stored, and releases judged."""
        ((events, judged, _, _),) = self._ask(PROGRESS) or [(0, 0, 0, None)]
        return events, judged

    def block(self) -> bytes:
        """The hash of the block at the cursor; empty before there is one."""
        ((_, _, _, block),) = self._ask(PROGRESS) or [(0, 0, 0, None)]
        return bytes(block or b"")

    def judged_at(self) -> bytes:
        """The hash of the block at the cursor; empty while a release waits to be judged."""
        ((_, _, waiting, block),) = self._ask(PROGRESS) or [(0, 0, 0, None)]
        return b"" if waiting else bytes(block or b"")

    def waiting(self) -> str:
        """What keeps `judged_at` empty, for whoever looks into a soak that is stuck."""
        return f"at block {self.block().hex()}, waiting: {self._ask(WAITING)}"

    def _ask(self, query: str) -> Sequence[tuple[Any, ...]]:
        if self.db.startswith("sqlite") and not self.opened():
            return []
        engine = open_reader(self.db)
        try:
            with engine.begin() as connection:
                return rows(connection, query)
        except DBAPIError:
            return []
        finally:
            engine.dispose()
