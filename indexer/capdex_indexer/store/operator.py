"""Orders of an operator to a node, by its database: deny, queue again, accept a block.

Each is one short transaction beside the running writer, without the writer lease: SQLite makes one
wait for the other, PostgreSQL only for the same rows. None changes rows that come from the chain.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.uri import PREFIX, check_name
from capdex_indexer.db import denylist
from capdex_indexer.db.denylist import Denial
from capdex_indexer.db.engine import open_operator, transaction
from capdex_indexer.db.models import DENIAL, DEPLOYMENT, INSTRUCTION, REGISTRY, RELEASE
from capdex_indexer.projection.event_rows import MAX_REASON_CHARS, storable
from capdex_indexer.store import changes, fetch_queue, listing

ACCEPT: Final = "accept"  # kind of the instruction that names an accepted block
_BLOCK_HASH = re.compile(r"0x[0-9a-f]{64}")


class Operator:
    """The operator's access to the database at `url`; each method is one transaction.

    All raise Unavailable if the database is unreachable, busy for longer than its time-out, or
    holds no index yet.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        self._engine, self._clock = open_operator(url), clock

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def deny(self, subject: str, reason: str = "") -> Denial:
        """Refuse to serve a CID or a name from now on; raise InvalidInput for anything else."""
        said = Denial(read_subject(subject), storable(reason, MAX_REASON_CHARS), self._clock())
        with self._denying(said.subject) as connection:
            connection.execute(delete(DENIAL).where(DENIAL.c.subject == said.subject))
            connection.execute(insert(DENIAL), asdict(said))
        return said

    def concerns(self, subject: str) -> bool:
        """Return True if a release of the index has this CID or name."""
        with transaction(self._engine) as connection:
            names = denylist.affected_names(connection, subject)
            query = select(RELEASE.c.name).where(RELEASE.c.name.in_(names)).limit(1)
            return connection.execute(query).first() is not None

    def undeny(self, subject: str) -> bool:
        """Take a denial back; return False if there was none."""
        known = read_subject(subject)
        with self._denying(known) as connection:
            gone = delete(DENIAL).where(DENIAL.c.subject == known)
            return bool(connection.execute(gone).rowcount)

    def denials(self) -> list[Denial]:
        """Return the denials, the oldest first."""
        with transaction(self._engine) as connection:
            rows = connection.execute(select(DENIAL).order_by(DENIAL.c.at, DENIAL.c.subject))
            return [Denial(row.subject, row.reason, row.at) for row in rows]

    def rearm(self, name: str | None = None) -> int:
        """Queue parked releases (of one name, or all) from their first try; return how many."""
        with self._write() as connection:
            rearmed = fetch_queue.rearm(connection, None if name is None else check_name(name))
            if name is None:
                changes.mark_all(connection)
            else:
                changes.mark(connection, [name])
            return rearmed

    def accept(self, block_hash: str) -> None:
        """Let the node follow the chain with this block, even if another one was final."""
        value = block_hash.lower()
        if not _BLOCK_HASH.fullmatch(value):
            raise InvalidInput(
                f"{block_hash[:80]!r} is not the hash of a block",
                fix="write it as 0x and 64 hex digits, as the node's log names it",
            )
        with self._write() as connection:
            row = {"kind": ACCEPT, "value": value, "at": self._clock()}
            connection.execute(insert(INSTRUCTION), row)

    @contextmanager
    def _denying(self, subject: str) -> Iterator[Connection]:
        """A transaction that changes a denial, and with it what search lists."""
        with self._write() as connection:
            denylist.lock(connection, change=True)
            yield connection
            rules = select(DEPLOYMENT.c.listing_rules).where(DEPLOYMENT.c.id == REGISTRY)
            serve = listing.served(connection.execute(rules).scalar_one())
            names = denylist.affected_names(connection, subject)
            listing.refresh(connection, names, serve, denylist.read_denials(connection))
            changes.mark(connection, names)

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with transaction(self._engine) as connection:
            yield connection
            connection.execute(update(DEPLOYMENT).values(revision=DEPLOYMENT.c.revision + 1))


def read_subject(text: str) -> str:
    """Return the CID or name of a denial in its canonical spelling; raise InvalidInput.

    A CID is tried first: one in base32 is a valid name, too, but no likely one.
    """
    text = text.strip()
    try:
        return Cid.parse(text).text
    except InvalidInput:
        pass
    try:
        return check_name(text.removeprefix(PREFIX))
    except InvalidInput as error:
        raise InvalidInput(
            f"{text[:80]!r} is neither a CID nor a capability's name",
            why=error.why,
            fix="write a CID, or a name as in did:nuwa:cap:<name>",
        ) from None


def read_accepted(connection: Connection) -> bytes | None:
    """Return the block hash of the newest `accept`; None if there is none."""
    newest = (
        select(INSTRUCTION.c.value)
        .where(INSTRUCTION.c.kind == ACCEPT)
        .order_by(INSTRUCTION.c.id.desc())
        .limit(1)
    )
    block_hash = connection.execute(newest).scalar()
    return None if block_hash is None else bytes.fromhex(str(block_hash).removeprefix("0x"))
