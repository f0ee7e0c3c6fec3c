"""Events in the order of the chain, newest first: of a name, of an account, and of a block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, select, tuple_

from capdex.encoding.abi import checksum_address
from capdex.encoding.hexadecimal import to_hex
from capdex.json import Json
from capdex.uri import PREFIX, CapabilityURI
from capdex_indexer.db.models import (
    DEPLOYMENT,
    DEPRECATION,
    EVENT,
    OWNERSHIP,
    RELEASE,
    SEQUENCES,
    VOTE,
    YANK,
)

MAX_EVENTS: Final = 100
_AFTER_AT: Final = "A"  # the character after the @ between a name and a version


def read_name_history(
    connection: Connection, name: str, before: tuple[int, int] | None
) -> list[Json]:
    """Return the newest events of a name below a block and log index; at most MAX_EVENTS."""
    first, last = f"{PREFIX}{name}@", f"{PREFIX}{name}{_AFTER_AT}"
    subject = DEPRECATION.c.subject
    return _read(
        connection,
        [
            (RELEASE, RELEASE.c.name == name),
            (YANK, (YANK.c.cap_uri >= first) & (YANK.c.cap_uri < last)),
            (DEPRECATION, (subject >= first) & (subject < last)),
            (DEPRECATION, subject == PREFIX + name),
            (OWNERSHIP, OWNERSHIP.c.name == name),
            (VOTE, VOTE.c.name == name),
        ],
        before,
    )


def read_account_history(
    connection: Connection, account: str, before: tuple[int, int] | None
) -> list[Json]:
    """Return the newest releases and changes of names that an account made, or that name it."""
    return _read(
        connection,
        [
            (RELEASE, RELEASE.c.publisher == account),
            (OWNERSHIP, OWNERSHIP.c.by == account),
            (OWNERSHIP, OWNERSHIP.c.account == account),
        ],
        before,
    )


def read_block_history(connection: Connection, number: int, first: int = 0) -> list[Json]:
    """Return the events of a block from a log index on, in their order; at most MAX_EVENTS."""
    query = select(EVENT.c.sequence).where(EVENT.c.block_number == number)
    query = query.where(EVENT.c.log_index >= first).order_by(EVENT.c.log_index).limit(MAX_EVENTS)
    sequences = connection.execute(query).scalars().all()
    return _describe(connection, dict.fromkeys(_DETAILS, sequences))[::-1]


def _read(
    connection: Connection,
    sources: Sequence[tuple[Table, ColumnElement[bool]]],
    before: tuple[int, int] | None,
) -> list[Json]:
    """Return the newest events of all sources, newest first."""
    by_table: dict[Table, set[int]] = {}
    for table, condition in sources:
        sequence: Column[Any] = table.c.sequence
        query = select(sequence).where(condition)
        if before is not None:
            query = query.join(EVENT, EVENT.c.sequence == sequence)
            query = query.where(tuple_(EVENT.c.block_number, EVENT.c.log_index) < tuple_(*before))
        newest = query.order_by(sequence.desc()).limit(MAX_EVENTS)
        if sequences := set(connection.execute(newest).scalars()):
            by_table[table] = by_table.get(table, set()) | sequences
    return _describe(connection, by_table)[:MAX_EVENTS]


def _describe(connection: Connection, by_table: Mapping[Table, Collection[int]]) -> list[Json]:
    """Return the events of these sequences, which are looked for in their tables, newest first."""
    details: dict[int, dict[str, Any]] = {}
    for table, sequences in by_table.items():
        read = _DETAILS[table]
        rows = connection.execute(select(table).where(table.c.sequence.in_(sequences))).mappings()
        details |= {row["sequence"]: read(row) for row in rows}
    wanted = set().union(*by_table.values())
    events = connection.execute(select(EVENT).where(EVENT.c.sequence.in_(wanted)))
    ordered = sorted(events, key=lambda row: (-row.block_number, -row.log_index))
    chains = dict(connection.execute(select(DEPLOYMENT.c.id, DEPLOYMENT.c.chain_id)).all())
    return [_event(row, chains, details.get(row.sequence, {})) for row in ordered]


def _event(row: Any, chains: Mapping[int, int], details: dict[str, Any]) -> Json:
    """Return one event: what happened (`kind`) to a name, or to a version of it, and where.

    `by` is the account that caused it, `account` another one that it names; both are EIP-55.
    `note` is a text of that account (a reason, a message), or the reason why the event has no
    effect. `sequence` is its number in its contract, from 1. Hashes are 0x hex.
    """
    account = bytes(row.topics)[-20:]  # of every event of ours, the last topic
    return {
        "kind": "unreadable" if row.error else "other",
        "name": None,
        "semver": None,
        "by": checksum_address(account) if len(account) == 20 else "",
        "account": None,
        "note": row.error or "",
        "replaced_by": "",
        **details,
        "chain_id": chains[row.sequence // SEQUENCES + 1],
        "sequence": row.sequence % SEQUENCES,
        "block_number": row.block_number,
        "timestamp": row.timestamp,
        "tx_hash": to_hex(bytes(row.tx_hash)),
        "log_index": row.log_index,
    }


def _release(row: Any) -> dict[str, Any]:
    return {
        "kind": "published",
        "name": row["name"],
        "semver": row["semver"],
        "by": row["publisher"],
        "note": ""
        if row["verdict"] in (None, "verified")
        else f"{row['verdict']}: {row['reason']}",
    }


def _yank(row: Any) -> dict[str, Any]:
    kind = "yanked" if row["yanked"] else "unyanked"
    return {"kind": kind, "note": row["reason"], **_subject(row["cap_uri"])}


def _deprecation(row: Any) -> dict[str, Any]:
    kind = "deprecated" if row["deprecated"] else "undeprecated"
    more = {"note": row["message"], "replaced_by": row["replaced_by"]}
    return {"kind": kind, **more, **_subject(row["subject"])}


def _vote(row: Any) -> dict[str, Any]:
    kind = {1: "voted for", -1: "voted against"}.get(row["vote"], "withdrew a vote")
    return {
        "kind": kind,
        "name": row["name"],
        "by": row["voter"],
        "note": f"weight {row['weight']}",
    }


def _subject(text: str) -> dict[str, Any]:
    uri = CapabilityURI.parse(text)
    return {"name": uri.name, "semver": None if uri.selector is None else str(uri.selector)}


_DETAILS: Final[Mapping[Table, Callable[[Any], dict[str, Any]]]] = {
    RELEASE: _release,
    YANK: _yank,
    DEPRECATION: _deprecation,
    OWNERSHIP: lambda row: {key: row[key] for key in ("kind", "name", "by", "account")},
    VOTE: _vote,
}
