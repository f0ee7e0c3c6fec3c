"""A release as the index answers with it: every claim beside where it stands on chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row, Select, select, true

from capdex.problems import Availability, Reason, Verdict
from indexer.models import (
    CursorRow,
    DeploymentRow,
    EventRow,
    ListingRow,
    PackageRow,
    ReleaseRow,
    table,
)

RELEASE, EVENT, PACKAGE = table(ReleaseRow), table(EventRow), table(PackageRow)
LISTING, DEPLOYMENT, CURSOR = table(ListingRow), table(DeploymentRow), table(CursorRow)


@dataclass(frozen=True, slots=True)
class Found:
    """One release, as far as it is known.

    `metadata` is the package's metadata section (a claim unless `verdict` is verified), None while
    its bytes are pending; `availability` is None when the event alone refused it and its bytes were
    never asked for. Hashes are 0x hex but `sha256`, which is bare; `latest` says that search lists
    this release of the name.
    """

    name: str | None
    cap_uri: str
    semver: str
    cid: str
    sha256: str
    publisher: str
    metadata: dict[str, Any] | None
    verdict: Verdict | None
    reason: Reason | None
    message: str
    signer: str | None
    checks: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    availability: Availability | None
    yanked: bool
    yank_reason: str
    chain_id: int
    registry: str
    block_number: int
    block_hash: str
    tx_hash: str
    log_index: int
    sequence: int
    timestamp: int
    finality: str
    latest: bool
    warnings: list[str] = field(default_factory=list)

    def warned(self, *warnings: str) -> Found:
        """The same release with more to beware of."""
        return replace(self, warnings=[*self.warnings, *warnings])


_EVERYTHING = (
    select(
        *(column for column in RELEASE.c if column.name not in ("queued_at", "due_at")),
        *(EVENT.c.block_number, EVENT.c.block_hash, EVENT.c.timestamp),
        *(EVENT.c.tx_hash, EVENT.c.log_index),
        *(PACKAGE.c.acp_metadata, PACKAGE.c.signer, PACKAGE.c.checks, PACKAGE.c.problems),
        LISTING.c.release_id.label("listed"),
        *(DEPLOYMENT.c.chain_id, DEPLOYMENT.c.contract, CURSOR.c.finalized),
    )
    .select_from(RELEASE)
    .join(EVENT, EVENT.c.sequence == RELEASE.c.sequence)
    .outerjoin(PACKAGE, PACKAGE.c.release_id == RELEASE.c.id)
    .outerjoin(LISTING, LISTING.c.release_id == RELEASE.c.id)
    .join(DEPLOYMENT, true())
    .join(CURSOR, true())
)


def read_ids(connection: Connection, release_ids: Iterable[int]) -> dict[int, Found]:
    """These releases by id; a caller gives few (a page at most)."""
    return _read(connection, _EVERYTHING.where(RELEASE.c.id.in_(list(release_ids))))


def read_name(connection: Connection, name: str) -> list[Found]:
    """Every release of a name, highest version first, the first announced first among equals."""
    order = (RELEASE.c.precedence.desc(), RELEASE.c.sequence)
    return list(
        _read(connection, _EVERYTHING.where(RELEASE.c.name == name).order_by(*order)).values()
    )


def _read(connection: Connection, query: Select[Any]) -> dict[int, Found]:
    return {row.id: _found(row) for row in connection.execute(query)}


def _found(row: Row[Any]) -> Found:
    return Found(
        name=row.name,
        cap_uri=row.cap_uri,
        semver=row.semver,
        cid=row.cid,
        sha256=bytes(row.sha256).hex(),
        publisher=row.publisher,
        metadata=row.acp_metadata,
        verdict=Verdict(row.verdict) if row.verdict else None,
        reason=Reason(row.reason) if row.reason else None,
        message=row.message,
        signer=row.signer,
        checks=row.checks or [],
        problems=row.problems or [],
        availability=Availability(row.availability) if row.availability else None,
        yanked=row.yanked,
        yank_reason=row.yank_reason,
        chain_id=row.chain_id,
        registry=row.contract,
        block_number=row.block_number,
        block_hash="0x" + bytes(row.block_hash).hex(),
        tx_hash="0x" + bytes(row.tx_hash).hex(),
        log_index=row.log_index,
        sequence=row.sequence,
        timestamp=row.timestamp,
        finality="finalized" if row.block_number <= row.finalized else "head",
        latest=row.listed is not None,
        warnings=[f"this release was yanked: {row.yank_reason}".rstrip(": ")] if row.yanked else [],
    )
