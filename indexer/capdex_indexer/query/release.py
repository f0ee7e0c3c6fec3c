"""One release as the index knows it: its claims, its verdict, and its place on chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, func, select

from capdex.codes import reason_codes
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import quoted
from capdex.manifest.prompt_injection import LABELS, lint_summary
from capdex.problems import Availability, Reason, Verdict
from capdex.uri import PREFIX
from capdex.yaml.characters import visible
from capdex_indexer.db import schema_claims
from capdex_indexer.db.columns import STANDS
from capdex_indexer.db.denylist import Denial, Denials
from capdex_indexer.db.models import (
    CURSOR,
    DEPLOYMENT,
    DEPRECATION,
    EVENT,
    LISTING,
    PACKAGE,
    REGISTRY,
    RELEASE,
)

OF_RELEASE, OF_NAME = DEPRECATION.alias("of_release"), DEPRECATION.alias("of_name")

# The verdicts that an operator may serve. A package with another one is refused anyway.
LINTED: Final = frozenset({Verdict.VERIFIED, Verdict.SIGNED})


@dataclass(frozen=True, slots=True)
class IndexedRelease:
    """One release, as far as it is known; hashes are 0x hex, except `sha256` without 0x.

    `metadata`: the package's metadata section (a claim unless `verdict` is verified); None before
    the bytes are fetched. `availability`: None if the event alone was rejected, so no bytes are
    fetched. `replaced_by`: the name to use instead of a deprecated one, or empty. `lint`: None for
    a package that no node may serve. `first_claimed_by`: see `db.schema_claims`. `latest`:
    True for the release of its name that search lists. `denied`: set if the operator denies it.
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
        """The flags set by its owner and maintainers, in the JSON of every answer (P11, P15)."""
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
        """Its announcement on chain, in the JSON of every answer (P15)."""
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

    def denial(self, denials: Denials) -> Denial | None:
        """Return the denial that covers this release."""
        return denials.of_release(self.name, self.cid, bytes.fromhex(self.sha256))

    def redacted(self, denials: Denials) -> IndexedRelease:
        """Return the release without the texts of its author if it is denied."""
        denied = self.denial(denials)
        if denied is None:
            return self
        empty = replace(self, metadata=None, message="", problems=[], checks=[], lint=None)
        return replace(empty, denied=denied)


# The latest deprecation counts; for a release, only one made after its announcement.
_LATEST: Final = select(func.max(DEPRECATION.c.sequence)).correlate(RELEASE)
LATEST_OF_RELEASE: Final = _LATEST.where(
    DEPRECATION.c.subject == RELEASE.c.cap_uri, DEPRECATION.c.sequence > RELEASE.c.sequence
).scalar_subquery()
LATEST_OF_NAME: Final = _LATEST.where(
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
        *schema_claims.COLUMNS,
        *(DEPLOYMENT.c.chain_id, DEPLOYMENT.c.contract, CURSOR.c.finalized),
    )
    .select_from(RELEASE)
    .join(EVENT, EVENT.c.sequence == RELEASE.c.sequence)
    .outerjoin(PACKAGE, PACKAGE.c.release_id == RELEASE.c.id)
    .outerjoin(LISTING, LISTING.c.release_id == RELEASE.c.id)
    .outerjoin(OF_RELEASE, STANDS & (OF_RELEASE.c.sequence == LATEST_OF_RELEASE))
    .outerjoin(OF_NAME, OF_NAME.c.sequence == LATEST_OF_NAME)
    .outerjoin(schema_claims.OWN, schema_claims.OWN.c.release_id == RELEASE.c.id)
    .outerjoin(schema_claims.SCHEMA_CLAIMANT, schema_claims.OF_SCHEMA)
    .outerjoin(schema_claims.SCOPE_CLAIMANT, schema_claims.OF_SCOPE)
    .join(DEPLOYMENT, DEPLOYMENT.c.id == REGISTRY)
    .join(CURSOR, CURSOR.c.deployment_id == REGISTRY)
)


def whole(ids: Select[tuple[int]]) -> Select[Any]:
    """Return the statement that reads the releases whose ids a query selects, in no order."""
    return _EVERYTHING.where(RELEASE.c.id.in_(ids.correlate(None)))


# Constants, since SQLAlchemy takes longer to recognise such a statement than a database to run it.
_BY_ID: Final[Select[Any]] = _EVERYTHING.where(RELEASE.c.id.in_(bindparam("ids", expanding=True)))
_BY_NAME: Final[Select[Any]] = _EVERYTHING.where(RELEASE.c.name == bindparam("name")).order_by(
    RELEASE.c.precedence.desc(), RELEASE.c.sequence
)
_BY_NAMES: Final[Select[Any]] = _EVERYTHING.where(
    RELEASE.c.name >= bindparam("first"), RELEASE.c.name <= bindparam("last")
).order_by(RELEASE.c.name, RELEASE.c.sequence)

_DOCUMENTS: Final = (
    select(RELEASE.c.sequence, PACKAGE.c.document)
    .join(PACKAGE)
    .where(RELEASE.c.sequence.in_(bindparam("sequences", expanding=True)))
)

# Columns that a release has under the same name.
_COPIED: Final = (
    *("name", "cap_uri", "semver", "cid", "publisher", "signer", "yanked"),
    *("yank_reason", "chain_id", "block_number", "log_index", "sequence", "timestamp"),
)


def read_releases(connection: Connection, ids: Sequence[int]) -> list[IndexedRelease]:
    """Return the releases of these ids (at most a page of them) in this order."""
    if not ids:
        return []
    releases = {row.id: _release(row) for row in connection.execute(_BY_ID, {"ids": ids})}
    return [releases[release_id] for release_id in ids]


def read_tools(connection: Connection, sequences: Iterable[int]) -> dict[int, list[str]]:
    """Return the tool names of the packages of these releases, by the sequences of their events."""
    rows = connection.execute(_DOCUMENTS, {"sequences": list(sequences)})
    return {
        sequence: [value for key, value in (document or {}).get("facets", ()) if key == "tool"]
        for sequence, document in rows
    }


def read_whole(
    connection: Connection, statement: Select[Any], values: Mapping[str, Any]
) -> list[IndexedRelease]:
    """Return the releases that a statement of `whole` reads."""
    return [_release(row) for row in connection.execute(statement, values)]


def read_name(connection: Connection, name: str) -> list[IndexedRelease]:
    """Return all releases of a name, highest version first, equal ones in order of announcement."""
    return read_whole(connection, _BY_NAME, {"name": name})


def read_names(connection: Connection, first: str, last: str) -> Iterator[IndexedRelease]:
    """Iterate over the releases of the names from `first` to `last`, by name and announcement."""
    for row in connection.execute(_BY_NAMES, {"first": first, "last": last}):
        yield _release(row)


def _release(row: Row[Any]) -> IndexedRelease:
    lint = _lint(row)
    return IndexedRelease(
        **{column: getattr(row, column) for column in _COPIED},
        sha256=bytes(row.sha256).hex(),
        metadata=row.acp_metadata,
        verdict=Verdict(row.verdict) if row.verdict else None,
        # Before the verdict it is the last failure of a source, which is the operator's business.
        message=row.message if row.verdict else "",
        reason=Reason(row.reason) if row.reason else None,
        checks=row.checks or [],
        problems=row.problems or [],
        lint=lint,
        first_claimed_by=schema_claims.first_claimed_by(row),
        availability=Availability(row.availability) if row.availability else None,
        deprecated=bool(row.deprecated),
        deprecation_message=row.deprecation_message if row.deprecated else "",
        name_deprecated=bool(row.name_deprecated),
        name_message=row.name_message if row.name_deprecated else "",
        replaced_by=row.replaced_by if row.name_deprecated else "",
        registry=row.contract,
        block_hash=to_hex(bytes(row.block_hash)),
        tx_hash=to_hex(bytes(row.tx_hash)),
        finality="finalized" if row.block_number <= row.finalized else "head",
        latest=row.listed is not None,
        warnings=[*_warnings(row), *_lint_warnings(lint), *schema_claims.warnings(row)],
    )


def _warnings(row: Row[Any]) -> Iterator[str]:
    """Yield a warning for each flag that its owner or a maintainer has set."""
    if row.yanked:
        yield with_reason("this release was yanked", row.yank_reason)
    if row.deprecated:
        yield with_reason("this release is deprecated", row.deprecation_message)
    if row.name_deprecated:
        instead = f", who names {PREFIX}{row.replaced_by} in its place" if row.replaced_by else ""
        yield with_reason(f"{row.name} is deprecated by its owner{instead}", row.name_message)


def with_reason(what: str, reason: str) -> str:
    """Return a message with the words of an owner, quoted; what nobody sees in them is escaped."""
    return f"{what}: {visible(quoted(reason))}" if reason else what


def _lint(row: Row[Any]) -> dict[str, Any] | None:
    """Return the lint's summary of a package that may be served; None for any other."""
    if row.verdict not in LINTED or row.problems is None or row.schema_uri is None:
        return None
    return lint_summary(problem["code"] for problem in row.problems)


def _lint_warnings(lint: dict[str, Any] | None) -> Iterator[str]:
    """Yield one warning for all findings: the gravest in words, the others by their codes."""
    if lint is None or lint["label"] is None:
        return
    label, codes = lint["label"], [Reason(code) for code in lint["codes"]]
    gravest = next(code for code in codes if LABELS[code] == label)
    others = "".join(f", {code}" for code in codes if code is not gravest)
    words = f"{reason_codes()[gravest].meaning} ({gravest}{others})"
    yield f"labelled {label}: {words}; capdex never calls a package safe"
