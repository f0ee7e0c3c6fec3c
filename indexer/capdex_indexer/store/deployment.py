"""The contracts that a database belongs to: one registry, and the votes beside it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, UsageError
from capdex.package import RULES_VERSION
from capdex_indexer.db.models import (
    BLOCK,
    CURSOR,
    DECODER_VERSION,
    DEPLOYMENT,
    EVENT,
    REGISTRY,
    base,
)
from capdex_indexer.db.revision import foreign_version


@dataclass(frozen=True, slots=True)
class Deployment:
    """An indexed contract: chain id, EIP-55 address, first block, 32-byte genesis hash.

    The genesis is empty, and the first block 0, while no endpoint has told them yet.
    """

    chain_id: int
    registry: str
    start_block: int
    genesis: bytes


def check(
    connection: Connection, registry: Deployment, listing_rules: str
) -> Mapping[Any, Any] | None:
    """Return the stored row of the registry; for a new database store it and return None.

    A database that has not read its chain yet is as good as new. One without events may still
    begin at an earlier block. Raises UsageError FOREIGN_DATABASE if it belongs to another registry
    or another version of capdex, or begins at another block.
    """
    ours = _columns(registry)
    row: Mapping[Any, Any] | None = _read(connection, REGISTRY)
    if row is None:
        _make(connection, REGISTRY, registry, listing_rules)
        return None
    if not row["genesis"]:
        located = ours | {"revision": DEPLOYMENT.c.revision + 1}
        connection.execute(update(DEPLOYMENT).where(DEPLOYMENT.c.id == REGISTRY).values(located))
        row = {**row, **ours}
    if not registry.genesis:
        del ours["genesis"]
    other = [key for key, value in ours.items() if row[key] != value]
    if other == ["start_block"] and _may_begin_at(connection, row, registry.start_block):
        _delete_cursor(connection, REGISTRY)
        first = {"start_block": registry.start_block, "revision": DEPLOYMENT.c.revision + 1}
        connection.execute(update(DEPLOYMENT).where(DEPLOYMENT.c.id == REGISTRY).values(first))
    elif other:
        raise _foreign(other, row, ours)
    if row["decoder_version"] != DECODER_VERSION:
        why = f"its events were decoded by rules {row['decoder_version']}, not {DECODER_VERSION}"
        raise foreign_version(f"{why}; a new database is built from the chain")
    if row["rules_version"] > RULES_VERSION:
        raise foreign_version(f"its packages are judged by rules {row['rules_version']}")
    return row


def fill_in(connection: Connection, registry: Deployment, keep_start_block: bool) -> Deployment:
    """Return `registry` with the genesis of the database, if its own is empty.

    With `keep_start_block` also with its start block, unless its own is earlier: for one that was
    searched for. The result depends on the state that an endpoint keeps, and is 0 if it keeps none.
    """
    row = _read(connection, REGISTRY)
    if row is None or not row["genesis"]:
        return registry
    if keep_start_block and not 0 < registry.start_block < row["start_block"]:
        registry = replace(registry, start_block=row["start_block"])
    return replace(registry, genesis=registry.genesis or row["genesis"])


def bring_up_to_date(connection: Connection, listing_rules: str) -> None:
    """Record that everything was made by the rules of this version."""
    connection.execute(update(DEPLOYMENT).values(rules_version=RULES_VERSION))
    ours = update(DEPLOYMENT).where(DEPLOYMENT.c.id == REGISTRY)
    connection.execute(ours.values(listing_rules=listing_rules))


def adopt(connection: Connection, deployment_id: int, contract: Deployment) -> None:
    """Use `deployment_id` for this contract; delete what was read of another one under it."""
    row = _read(connection, deployment_id)
    if row is not None and all(row[k] == v for k, v in _columns(contract).items()):
        return
    ours = EVENT.c.sequence.between(base(deployment_id) + 1, base(deployment_id + 1))
    connection.execute(delete(EVENT).where(ours))
    _delete_cursor(connection, deployment_id)
    connection.execute(delete(DEPLOYMENT).where(DEPLOYMENT.c.id == deployment_id))
    _make(connection, deployment_id, contract, "")


def _may_begin_at(connection: Connection, row: Mapping[Any, Any], first: int) -> bool:
    """True if `first` is earlier than the start block and no event was found since that."""
    ours = EVENT.c.sequence <= base(REGISTRY + 1)
    some = select(EVENT.c.sequence).where(ours).limit(1)
    return first < row["start_block"] and connection.execute(some).first() is None


def _delete_cursor(connection: Connection, deployment_id: int) -> None:
    for rows in (CURSOR, BLOCK):
        connection.execute(delete(rows).where(rows.c.deployment_id == deployment_id))


def _read(connection: Connection, deployment_id: int) -> RowMapping | None:
    ours = select(DEPLOYMENT).where(DEPLOYMENT.c.id == deployment_id)
    return connection.execute(ours).mappings().first()


def _make(
    connection: Connection, deployment_id: int, contract: Deployment, listing_rules: str
) -> None:
    versions = {"decoder_version": DECODER_VERSION, "rules_version": RULES_VERSION}
    more = {
        "id": deployment_id,
        "listing_rules": listing_rules,
        "revision": 0,
        "secret": secrets.token_bytes(32),
    }
    connection.execute(insert(DEPLOYMENT), {**_columns(contract), **versions, **more})


def _columns(contract: Deployment) -> dict[str, Any]:
    return {
        "chain_id": contract.chain_id,
        "contract": contract.registry,
        "start_block": contract.start_block,
        "genesis": contract.genesis,
    }


def _foreign(other: list[str], theirs: Any, ours: dict[str, Any]) -> UsageError:
    def show(value: object) -> str:
        return to_hex(value) if isinstance(value, bytes) else str(value)

    words = (f"its {k} is {show(theirs[k])}, not {show(ours[k])}" for k in other)
    what, fix = "belongs to another chain or registry", "name another database"
    if other == ["start_block"]:
        what = "begins at another block"
        fix = "leave out --start-block (`start-block` of the network), or name another database"
    return UsageError(
        f"the database {what}",
        Code.FOREIGN_DATABASE,
        why="; ".join(words).replace("contract", "registry").replace("start_block", "start block"),
        fix=fix,
    )
