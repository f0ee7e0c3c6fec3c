"""A release as the index answers with it: every claim beside where it stands on chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, func, select

from capdex.manifest.prompt_injection import LABELS, lint_summary
from capdex.problems import REASONS, Availability, Reason, Verdict
from capdex.uri import PREFIX
from indexer.db import schema_claims as namespaces
from indexer.db.denylist import Denial, Denials
from indexer.db.models import (
    REGISTRY,
    CursorRow,
    DeploymentRow,
    DeprecationRow,
    EventRow,
    ListingRow,
    PackageRow,
    ReleaseRow,
    table,
)
from indexer.db.predicates import STANDS

RELEASE, EVENT, PACKAGE = table(ReleaseRow), table(EventRow), table(PackageRow)
LISTING, DEPLOYMENT, CURSOR = table(ListingRow), table(DeploymentRow), table(CursorRow)
DEPRECATION = table(DeprecationRow)
OF_RELEASE, OF_NAME = DEPRECATION.alias("of_release"), DEPRECATION.alias("of_name")

# The verdicts that an operator may serve; what is refused says so, whatever its texts.
LINTED: Final = frozenset({Verdict.VERIFIED, Verdict.SIGNED})


@dataclass(frozen=True, slots=True)
class Found:
    """One release, as far as it is known.

    `metadata` is the package's metadata section (a claim unless `verdict` is verified), None while
    its bytes are pending; `availability` is None when the event alone refused it and its bytes were
    never asked for; `replaced_by` is the name to use instead of a deprecated one, or empty. Hashes
    are 0x hex but `sha256`, which is bare; `latest`: this is the one of its name that search lists.
    `lint` is None for what nobody may serve; `first_claimed_by` is as `indexer.db.schema_claims`
    says.
    `denied` is why this node's operator refuses to serve it, if so.
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
    lint: dict[str, Any] | None
    first_claimed_by: dict[str, str | None]
    availability: Availability | None
    yanked: bool
    yank_reason: str
    deprecated: bool
    deprecation_message: str
    name_deprecated: bool
    name_message: str
    replaced_by: str
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
    denied: Denial | None = None

    @property
    def status(self) -> dict[str, Any]:
        """What its owner and maintainers say of it, as every answer has it (P11, P15)."""
        return {
            "yanked": self.yanked,
            "yank_reason": self.yank_reason or None,
            "deprecated": self.deprecated,
            "deprecation_message": self.deprecation_message or None,
            "name_deprecated": self.name_deprecated,
            "name_message": self.name_message or None,
            "replaced_by": self.replaced_by or None,
        }

    @property
    def chain(self) -> dict[str, Any]:
        """Where it was announced, as every answer has it (P15)."""
        return {
            "chain_id": self.chain_id,
            "contract": self.registry,
            "publisher": self.publisher,
            "block_number": self.block_number,
            "block_hash": self.block_hash,
            "tx_hash": self.tx_hash,
            "log_index": self.log_index,
            "sequence": self.sequence,
            "timestamp": self.timestamp,
        }

    def warned(self, *warnings: str) -> Found:
        """The same release with more to beware of."""
        return replace(self, warnings=[*self.warnings, *warnings])

    def under(self, denials: Denials) -> Found:
        """The same release, without what its author wrote where it is denied."""
        denied = denials.of(self.name, self.cid, bytes.fromhex(self.sha256))
        if denied is None:
            return self
        empty = replace(self, metadata=None, message="", problems=[], checks=[], lint=None)
        return replace(empty, denied=denied)


# What was said last counts; of a release, what was said after it was there.
_LATEST: Final = select(func.max(DEPRECATION.c.sequence)).correlate(RELEASE)
_LATEST_OF_RELEASE: Final = _LATEST.where(
    DEPRECATION.c.subject == RELEASE.c.cap_uri, DEPRECATION.c.sequence > RELEASE.c.sequence
).scalar_subquery()
_LATEST_OF_NAME: Final = _LATEST.where(
    DEPRECATION.c.subject == PREFIX + RELEASE.c.name
).scalar_subquery()

_EVERYTHING: Final = (
    select(
        *(column for column in RELEASE.c if column.name not in ("queued_at", "due_at")),
        *(EVENT.c.block_number, EVENT.c.block_hash, EVENT.c.timestamp),
        *(EVENT.c.tx_hash, EVENT.c.log_index),
        *(PACKAGE.c.acp_metadata, PACKAGE.c.signer, PACKAGE.c.checks, PACKAGE.c.problems),
        LISTING.c.release_id.label("listed"),
        *(OF_RELEASE.c.deprecated, OF_RELEASE.c.message.label("deprecation_message")),
        *(OF_NAME.c.deprecated.label("name_deprecated"), OF_NAME.c.message.label("name_message")),
        OF_NAME.c.replaced_by,
        *namespaces.COLUMNS,
        *(DEPLOYMENT.c.chain_id, DEPLOYMENT.c.contract, CURSOR.c.finalized),
    )
    .select_from(RELEASE)
    .join(EVENT, EVENT.c.sequence == RELEASE.c.sequence)
    .outerjoin(PACKAGE, PACKAGE.c.release_id == RELEASE.c.id)
    .outerjoin(LISTING, LISTING.c.release_id == RELEASE.c.id)
    .outerjoin(OF_RELEASE, STANDS & (OF_RELEASE.c.sequence == _LATEST_OF_RELEASE))
    .outerjoin(OF_NAME, OF_NAME.c.sequence == _LATEST_OF_NAME)
    .outerjoin(namespaces.OWN, namespaces.OWN.c.release_id == RELEASE.c.id)
    .outerjoin(namespaces.SCHEMA_CLAIMANT, namespaces.OF_SCHEMA)
    .outerjoin(namespaces.SCOPE_CLAIMANT, namespaces.OF_SCOPE)
    .join(DEPLOYMENT, DEPLOYMENT.c.id == REGISTRY)
    .join(CURSOR, CURSOR.c.deployment_id == REGISTRY)
)


# Constants, since SQLAlchemy takes longer to recognise such a statement than a database to run it.
_BY_ID: Final[Select[Any]] = _EVERYTHING.where(RELEASE.c.id.in_(bindparam("ids", expanding=True)))
_BY_NAME: Final[Select[Any]] = _EVERYTHING.where(RELEASE.c.name == bindparam("name")).order_by(
    RELEASE.c.precedence.desc(), RELEASE.c.sequence
)


_SPAN: Final[Select[Any]] = _EVERYTHING.where(
    RELEASE.c.name >= bindparam("first"), RELEASE.c.name <= bindparam("last")
).order_by(RELEASE.c.name, RELEASE.c.sequence)


def read_ids(connection: Connection, release_ids: Iterable[int]) -> dict[int, Found]:
    """These releases by id; a caller gives few (a page at most)."""
    rows = connection.execute(_BY_ID, {"ids": list(release_ids)})
    return {row.id: _found(row) for row in rows}


def read_name(connection: Connection, name: str) -> list[Found]:
    """Every release of a name, highest version first, the first announced first among equals."""
    return [_found(row) for row in connection.execute(_BY_NAME, {"name": name})]


def read_span(connection: Connection, first: str, last: str) -> Iterator[Found]:
    """Every release of the names from `first` to `last`, each name's in order of announcement."""
    for row in connection.execute(_SPAN, {"first": first, "last": last}):
        yield _found(row)


def _found(row: Row[Any]) -> Found:
    lint = _lint(row)
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
        lint=lint,
        first_claimed_by=namespaces.first_claimed_by(row),
        availability=Availability(row.availability) if row.availability else None,
        yanked=row.yanked,
        yank_reason=row.yank_reason,
        deprecated=bool(row.deprecated),
        deprecation_message=row.deprecation_message if row.deprecated else "",
        name_deprecated=bool(row.name_deprecated),
        name_message=row.name_message if row.name_deprecated else "",
        replaced_by=row.replaced_by if row.name_deprecated else "",
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
        warnings=[*_warnings(row), *_labelled(lint), *namespaces.warnings(row)],
    )


def _warnings(row: Row[Any]) -> Iterator[str]:
    """What its owner, or a maintainer, has said against using it."""
    if row.yanked:
        yield _said("this release was yanked", row.yank_reason)
    if row.deprecated:
        yield _said("this release is deprecated", row.deprecation_message)
    if row.name_deprecated:
        instead = f"; use {PREFIX}{row.replaced_by} instead" if row.replaced_by else ""
        yield _said(f"{row.name} is deprecated by its owner", row.name_message) + instead


def _said(what: str, words: str) -> str:
    return f"{what}: {words}" if words else what


def _lint(row: Row[Any]) -> dict[str, Any] | None:
    """What the lint found in a package that may be served; of others nothing is promised."""
    if row.verdict not in LINTED or row.problems is None or row.schema_uri is None:
        return None  # also what an older capdex has judged: it is judged again
    return lint_summary(problem["code"] for problem in row.problems)


def _labelled(lint: dict[str, Any] | None) -> Iterator[str]:
    """All findings of the lint as one warning: the gravest in words, the others by their codes."""
    if lint is None or lint["label"] is None:
        return
    label, codes = lint["label"], [Reason(code) for code in lint["codes"]]
    gravest = next(code for code in codes if LABELS[code] == label)
    others = "".join(f", {code}" for code in codes if code is not gravest)
    words = f"{REASONS[gravest].meaning} ({gravest}{others})"
    yield f"labelled {label}: {words}; capdex never calls a package safe"
