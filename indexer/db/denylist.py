"""What the operator of this node refuses to serve (P11): local policy, in no digest.

A denial is of a name, with all its releases, or of a CID, whoever announced it and in whichever
spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Connection, select, text

from capdex.errors import Code, InvalidInput
from capdex.ipld.cid import DAG_PB, Cid
from capdex.problems import Verdict
from indexer.db.models import REGISTRY, DenialRow, DeploymentRow, ReleaseRow, table

DENIAL, RELEASE = table(DenialRow), table(ReleaseRow)
DEPLOYMENT = table(DeploymentRow)

_REVISION: Final = select(DEPLOYMENT.c.revision).where(DEPLOYMENT.c.id == REGISTRY)
# What a node may have kept of denied names.
_FILES: Final = select(RELEASE.c.name, RELEASE.c.cid, RELEASE.c.sha256).where(
    RELEASE.c.name.in_(select(DENIAL.c.subject)),
    RELEASE.c.verdict.in_((Verdict.VERIFIED.value, Verdict.SIGNED.value)),
)


@dataclass(frozen=True, slots=True)
class Denial:
    """A CID or name that this node refuses to serve, and why; `at` is in epoch seconds."""

    subject: str
    reason: str
    at: float

    def to_json(self) -> dict[str, Any]:
        """As answers show it beside what it is about."""
        return {"reason": self.reason or None, "at": int(self.at)}

    def refusal(self, what: str) -> InvalidInput:
        """Why `what` is not to be had here: as far as this node goes, it does not exist."""
        return InvalidInput(
            f"this node's operator refuses it: {what}",
            Code.NOT_FOUND,
            why=self.reason,
            fix="ask another node",
            details={"denied": self.to_json()},
        )


@dataclass(frozen=True, slots=True)
class Denials:
    """Every denial in force: by name, and by the digest in a denied CID; which are `dag_pb`.

    `of_names` are the digests of what was verified under denied names, where they were read.
    """

    by_name: Mapping[str, Denial] = field(default_factory=dict)
    by_digest: Mapping[bytes, Denial] = field(default_factory=dict)
    dag_pb: tuple[Cid, ...] = ()
    of_names: Mapping[bytes, Denial] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many there are."""
        return len({x.subject for x in (*self.by_name.values(), *self.by_digest.values())})

    def of_digest(self, digest: bytes) -> Denial | None:
        """The denial of the block or file with this digest, by its CID or by its name."""
        return self.by_digest.get(digest) or self.of_names.get(digest)

    def of(self, name: str | None, cid: str, sha256: bytes) -> Denial | None:
        """The denial that a release falls under, by its name, its CID or its bytes."""
        found = self.by_name.get(name or "") or self.by_digest.get(sha256)
        return found or (self.by_digest.get(digest_of(cid)) if self.by_digest else None)


def digest_of(cid: str) -> bytes:
    """The sha256 in a CID; nothing for what is none (an announcement may say anything)."""
    try:
        return Cid.parse(cid).digest
    except InvalidInput:
        return b""


def read(connection: Connection) -> Denials:
    """The denials, as this transaction sees them."""
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


def hold(connection: Connection, *, change: bool = False) -> None:
    """Let nobody else change the denials until this transaction ends, if only to `change` them.

    So a listing made by the denials is never one denial behind. On SQLite it is so anyway.
    """
    if connection.dialect.name != "sqlite":
        mode = "SHARE ROW EXCLUSIVE" if change else "SHARE"
        connection.execute(text(f"LOCK TABLE denial IN {mode} MODE"))


def names_of(connection: Connection, subject: str) -> list[str]:
    """The names whose listing a denial can change."""
    digest = digest_of(subject)
    if not digest:
        return [subject]
    where = (RELEASE.c.sha256 == digest) | RELEASE.c.cid.in_(spellings(digest))
    names = select(RELEASE.c.name).where(RELEASE.c.name.is_not(None), where).distinct()
    return list(connection.execute(names).scalars())


def spellings(digest: bytes) -> list[str]:
    """The CIDs that hold a digest."""
    prefixes = (b"\x01\x55\x12\x20", b"\x01\x70\x12\x20", b"\x12\x20")
    return [Cid.from_bytes(prefix + digest).text for prefix in prefixes]


class Policy:
    """The denials in force, read again only when the index has changed."""

    def __init__(self) -> None:
        self._held: tuple[int, Denials] | None = None

    def read(self, connection: Connection) -> Denials:
        """All denials, with the files of denied names."""
        revision: int = connection.execute(_REVISION).scalar() or 0
        held = self._held
        if held is None or held[0] != revision:
            held = self._held = (revision, with_files(connection, read(connection)))
        return held[1]


def with_files(connection: Connection, denials: Denials) -> Denials:
    """The same, with the digests of what was verified under denied names.

    Verified alone: whoever announces bytes of another name must not get those denied.
    """
    if not denials.by_name:
        return denials
    of_names: dict[bytes, Denial] = {}
    for row in connection.execute(_FILES):
        if denial := denials.by_name.get(row.name):
            of_names |= dict.fromkeys((digest_of(row.cid), bytes(row.sha256)), denial)
    return replace(denials, of_names=of_names)
