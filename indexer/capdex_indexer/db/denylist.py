"""Denials: the names and CIDs that this node's operator refuses to serve (P11).

Local policy, in no digest. Denying a name covers all its releases; denying a CID covers every
release that announces the same digest, under any name and in any spelling of the CID.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Executable, Row, select, text

from capdex.errors import Code, InvalidInput
from capdex.ipld.cid import DAG_PB, Cid
from capdex.problems import Verdict
from capdex_indexer.db.models import DENIAL, RELEASE, REVISION

# Packages of denied names whose bytes a node may have kept.
_PACKAGES: Final = select(RELEASE.c.name, RELEASE.c.cid, RELEASE.c.sha256).where(
    RELEASE.c.name.in_(select(DENIAL.c.subject)),
    RELEASE.c.verdict.in_((Verdict.VERIFIED.value, Verdict.SIGNED.value)),
)


@dataclass(frozen=True, slots=True)
class Denial:
    """A CID or name that this node refuses to serve, and the reason; `at` is in epoch seconds."""

    subject: str
    reason: str
    at: float

    def to_json(self) -> dict[str, Any]:
        """Return the part that answers show beside the denied release."""
        return {"reason": self.reason or None, "at": int(self.at)}

    def refusal(self, what: str) -> InvalidInput:
        """Return the NOT_FOUND error for a request for `what`."""
        return InvalidInput(
            f"this node's operator refuses it: {what}",
            Code.NOT_FOUND,
            why=self.reason,
            fix="ask another node",
            details={"denied": self.to_json()},
        )


@dataclass(frozen=True, slots=True)
class Denials:
    """All denials in force: by name, and by the digest in a denied CID; `dag_pb` lists such CIDs.

    `by_package` has the digests of packages under denied names, if read by `read_with_digests`.
    """

    by_name: Mapping[str, Denial] = field(default_factory=dict)
    by_digest: Mapping[bytes, Denial] = field(default_factory=dict)
    dag_pb: tuple[Cid, ...] = ()
    by_package: Mapping[bytes, Denial] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of denied subjects."""
        return len({x.subject for x in (*self.by_name.values(), *self.by_digest.values())})

    def of_digest(self, digest: bytes) -> Denial | None:
        """Return the denial that covers the block or file with this digest."""
        return self.by_digest.get(digest) or self.by_package.get(digest)

    def of_release(self, name: str | None, cid: str, sha256: bytes) -> Denial | None:
        """Return the denial that covers a release, by its name, its CID or its bytes."""
        denial = self.by_name.get(name or "") or self.by_digest.get(sha256)
        return denial or (self.by_digest.get(_digest_of(cid)) if self.by_digest else None)


def read_denials(connection: Connection) -> Denials:
    """Read the denials that this transaction sees."""
    by_name: dict[str, Denial] = {}
    by_cid: dict[Cid, Denial] = {}
    for row in connection.execute(select(DENIAL)):
        denial = Denial(row.subject, row.reason, row.at)
        try:
            by_cid[Cid.parse(row.subject)] = denial
        except InvalidInput:
            by_name[row.subject] = denial
    by_digest = {cid.digest: denial for cid, denial in by_cid.items()}
    return Denials(by_name, by_digest, tuple(cid for cid in by_cid if cid.codec == DAG_PB))


def read_with_digests(connection: Connection) -> Denials:
    """Read the denials and the digests of verified or signed packages under denied names.

    Other releases do not count: anybody can announce the bytes of another name under a denied one.
    """
    denials = read_denials(connection)
    if not denials.by_name:
        return denials
    by_package: dict[bytes, Denial] = {}
    for row in connection.execute(_PACKAGES):
        if denial := denials.by_name.get(row.name):
            by_package |= dict.fromkeys((_digest_of(row.cid), bytes(row.sha256)), denial)
    return Denials(denials.by_name, denials.by_digest, denials.dag_pb, by_package)


def read_allowed(
    connection: Connection,
    query: Executable,
    values: Mapping[str, Any],
    denials: Denials,
    limit: int,
) -> Sequence[Row[Any]]:
    """Return the first rows of a query for releases that are not denied, at most `limit`.

    The query takes `limit` and `offset`, and its rows have a name, CID and sha256. Which CIDs mean
    a denied digest is not said in SQL, so it is asked again, for twice as many, until there are
    enough: denied releases never make a list shorter than it could be.
    """
    allowed: list[Row[Any]] = []
    offset, step = 0, limit
    while len(allowed) < limit:
        rows = connection.execute(query, {**values, "limit": step, "offset": offset}).all()
        allowed += (x for x in rows if denials.of_release(x.name, x.cid, bytes(x.sha256)) is None)
        if len(rows) < step:
            break
        offset, step = offset + step, 2 * step
    return allowed[:limit]


class DenialCache:
    """The denials with package digests, read again only when the index has changed."""

    def __init__(self) -> None:
        self._cached: tuple[int, Denials] | None = None

    def read(self, connection: Connection) -> Denials:
        """Return the denials of the index revision that this transaction sees."""
        revision: int = connection.execute(REVISION).scalar() or 0
        cached = self._cached
        if cached is None or cached[0] != revision:
            cached = self._cached = (revision, read_with_digests(connection))
        return cached[1]


def lock(connection: Connection, *, change: bool = False) -> None:
    """Lock the denials until this transaction ends, exclusively if it will `change` them.

    So a listing never misses a denial made meanwhile. On SQLite every writing transaction is
    exclusive.
    """
    if connection.dialect.name != "sqlite":
        mode = "SHARE ROW EXCLUSIVE" if change else "SHARE"
        connection.execute(text(f"LOCK TABLE denial IN {mode} MODE"))


def affected_names(connection: Connection, subject: str) -> list[str]:
    """Return the names whose listing the denial of a subject can change."""
    digest = _digest_of(subject)
    if not digest:
        return [subject]
    where = (RELEASE.c.sha256 == digest) | RELEASE.c.cid.in_(_spellings(digest))
    names = select(RELEASE.c.name).where(RELEASE.c.name.is_not(None), where).distinct()
    return list(connection.execute(names).scalars())


def _digest_of(cid: str) -> bytes:
    """Return the sha256 in a CID; empty if the text is none, as announcements may contain."""
    try:
        return Cid.parse(cid).digest
    except InvalidInput:
        return b""


def _spellings(digest: bytes) -> list[str]:
    """Return the CIDs that contain a digest: v1 raw, v1 dag-pb, v0."""
    prefixes = (b"\x01\x55\x12\x20", b"\x01\x70\x12\x20", b"\x12\x20")
    return [Cid.from_bytes(prefix + digest).text for prefix in prefixes]
