"""Events in the order of the chain, newest first: of a name, of an account, and of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, select, tuple_

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
_END: Final = (2**62, 0)  # a block above all, and a log index
_Reading = Callable[[Any], dict[str, Any]]


def read_name_history(
    connection: Connection, name: str, before: tuple[int, int] | None
) -> list[Json]:
    """Return the newest events of a name below a block and log index; at most MAX_EVENTS."""
    subject = PREFIX + name
    releases = {"first": f"{subject}@", "last": f"{subject}{_AFTER_AT}"}
    return _read(connection, _OF_NAME, {"name": name, "subject": subject} | releases, before)


def read_account_history(
    connection: Connection, account: str, before: tuple[int, int] | None
) -> list[Json]:
    """Return the newest releases and changes of names that an account made, or that name it."""
    return _read(connection, _OF_ACCOUNT, {"account": account}, before)


def read_block_history(connection: Connection, number: int, first: int = 0) -> list[Json]:
    """Return the events of a block from a log index on, in their order; at most MAX_EVENTS."""
    return _read(connection, _OF_BLOCK, {"number": number, "from": first})[::-1]


def _read(
    connection: Connection,
    sources: Sequence[tuple[Select[Any], _Reading]],
    values: Mapping[str, object],
    before: tuple[int, int] | None = None,
) -> list[Json]:
    """Return the newest events of all sources, newest first."""
    block, log = before or _END
    chains = dict(connection.execute(_CHAINS).all())
    events: dict[int, Json] = {}
    for newest, read in sources:
        rows = connection.execute(newest, {**values, "block": block, "log": log}).mappings()
        events |= {row["sequence"]: _event(row, chains, read(row)) for row in rows}
    ordered = sorted(events.values(), key=lambda x: (-x["block_number"], -x["log_index"]))
    return ordered[:MAX_EVENTS]


def _event(row: Any, chains: Mapping[int, int], details: dict[str, Any]) -> Json:
    """Return one event: what happened (`kind`) to a name, or to a version of it, and where.

    `by` is the account that caused it, `account` another one that it names; both are EIP-55.
    `note` is a text of that account (a reason, a message), or the reason why the event has no
    effect. `sequence` is its number in its contract, from 1. Hashes are 0x hex.
    """
    account = bytes(row["topics"])[-20:]  # of every event of ours, the last topic
    return {
        "kind": "unreadable" if row["error"] else "other",
        "name": None,
        "semver": None,
        "by": checksum_address(account) if len(account) == 20 else "",
        "account": None,
        "note": row["error"] or "",
        "replaced_by": "",
        **details,
        "chain_id": chains[row["sequence"] // SEQUENCES + 1],
        "sequence": row["sequence"] % SEQUENCES,
        "block_number": row["block_number"],
        "timestamp": row["timestamp"],
        "tx_hash": to_hex(bytes(row["tx_hash"])),
        "log_index": row["log_index"],
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


def _ownership(row: Any) -> dict[str, Any]:
    return {key: row[key] for key in ("kind", "name", "by", "account")}


def _of(table: Table, read: _Reading, which: ColumnElement[bool]) -> tuple[Select[Any], _Reading]:
    """Return the statement of the newest rows of a table with their events, and how one is read."""
    query = select(table, *(x for x in EVENT.c if x.name != "sequence"))
    query = query.join(EVENT, EVENT.c.sequence == table.c.sequence).where(which, _BELOW)
    return query.order_by(table.c.sequence.desc()).limit(MAX_EVENTS), read


def _of_releases(uri: ColumnElement[str]) -> ColumnElement[bool]:
    return (uri >= bindparam("first")) & (uri < bindparam("last"))


# Constants, since SQLAlchemy takes longer to build such a statement than a database to run it.
_CHAINS: Final = select(DEPLOYMENT.c.id, DEPLOYMENT.c.chain_id)
_PLACE: Final = tuple_(EVENT.c.block_number, EVENT.c.log_index)
_BELOW: Final = tuple_(bindparam("block"), bindparam("log")) > _PLACE
_OF_NAME: Final = (
    _of(RELEASE, _release, RELEASE.c.name == bindparam("name")),
    _of(YANK, _yank, _of_releases(YANK.c.cap_uri)),
    _of(DEPRECATION, _deprecation, _of_releases(DEPRECATION.c.subject)),
    _of(DEPRECATION, _deprecation, DEPRECATION.c.subject == bindparam("subject")),
    _of(OWNERSHIP, _ownership, OWNERSHIP.c.name == bindparam("name")),
    _of(VOTE, _vote, VOTE.c.name == bindparam("name")),
)
_OF_ACCOUNT: Final = (
    _of(RELEASE, _release, RELEASE.c.publisher == bindparam("account")),
    _of(OWNERSHIP, _ownership, OWNERSHIP.c.by == bindparam("account")),
    _of(OWNERSHIP, _ownership, OWNERSHIP.c.account == bindparam("account")),
)
_IN_BLOCK: Final = (
    select(EVENT.c.sequence)
    .where(EVENT.c.block_number == bindparam("number"), EVENT.c.log_index >= bindparam("from"))
    .order_by(EVENT.c.log_index)
    .limit(MAX_EVENTS)
    .correlate(None)
)
_OF_BLOCK: Final[Sequence[tuple[Select[Any], _Reading]]] = (
    (select(EVENT).where(EVENT.c.sequence.in_(_IN_BLOCK)), lambda _: {}),
    _of(RELEASE, _release, RELEASE.c.sequence.in_(_IN_BLOCK)),
    _of(YANK, _yank, YANK.c.sequence.in_(_IN_BLOCK)),
    _of(DEPRECATION, _deprecation, DEPRECATION.c.sequence.in_(_IN_BLOCK)),
    _of(OWNERSHIP, _ownership, OWNERSHIP.c.sequence.in_(_IN_BLOCK)),
    _of(VOTE, _vote, VOTE.c.sequence.in_(_IN_BLOCK)),
)
