"""Documents of the search engine, made from the rows of listed releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, select

from capdex.manifest.prompt_injection import label
from capdex.manifest.triggers import Trigger
from capdex.search.document import CONTEXT_WINDOW, LIKE, PUBLISHED, SUNK, VOTES, Document, ToolText
from capdex_indexer.db.bulk_insert import chunks
from capdex_indexer.db.models import EVENT, LISTING, PACKAGE, RELEASE, VOTE
from capdex_indexer.query.release import LATEST_OF_NAME, LATEST_OF_RELEASE, OF_NAME, OF_RELEASE

Copies = Mapping[str, str | None]
NO_COPIES: Final[Copies] = MappingProxyType({})
FINGERPRINT: Final = "fingerprint"  # a number that tells two states of a listed name apart

_LISTED: Final[Select[Any]] = (
    select(
        *(LISTING.c.name, RELEASE.c.cap_uri, RELEASE.c.sha256, RELEASE.c.verdict),
        *(EVENT.c.timestamp, PACKAGE.c.document, PACKAGE.c.problems),
        *(OF_RELEASE.c.deprecated, OF_NAME.c.deprecated.label("name_deprecated")),
    )
    .select_from(LISTING)
    .join(RELEASE, RELEASE.c.id == LISTING.c.release_id)
    .join(EVENT, EVENT.c.sequence == RELEASE.c.sequence)
    .join(PACKAGE, PACKAGE.c.release_id == LISTING.c.release_id, isouter=True)
    .outerjoin(OF_RELEASE, OF_RELEASE.c.sequence == LATEST_OF_RELEASE)
    .outerjoin(OF_NAME, OF_NAME.c.sequence == LATEST_OF_NAME)
    .order_by(LISTING.c.name)
)
_IDENTITIES: Final = select(
    LISTING.c.name, RELEASE.c.cap_uri, RELEASE.c.sha256, RELEASE.c.verdict, EVENT.c.timestamp
).select_from(
    LISTING.join(RELEASE, RELEASE.c.id == LISTING.c.release_id).join(
        EVENT, EVENT.c.sequence == RELEASE.c.sequence
    )
)


def read_documents(
    connection: Connection, names: Iterable[str], copies: Copies = NO_COPIES
) -> Iterator[Document]:
    """Return the documents of those of the names that are listed; `copies` as of `read_copies`."""
    for some in chunks(list(names)):
        yield from _read(connection, lambda name: name.in_(some), copies)  # noqa: B023


def read_range(connection: Connection, first: str, last: str, copies: Copies) -> Iterator[Document]:
    """Return the documents of the listed names from the first to the last, in their order."""
    yield from _read(connection, lambda name: and_(name >= first, name <= last), copies)


def read_fingerprint(connection: Connection) -> int:
    """Return the sum of the fingerprints of all listed releases."""
    return sum(map(_fingerprint, connection.execute(_IDENTITIES)))


def _read(
    connection: Connection, of: Callable[[Any], ColumnElement[bool]], copies: Copies
) -> Iterator[Document]:
    last = (
        select(func.max(VOTE.c.sequence)).where(of(VOTE.c.name)).group_by(VOTE.c.name, VOTE.c.voter)
    )
    votes: dict[str, int] = {}
    counted = select(VOTE.c.name, VOTE.c.vote, VOTE.c.weight)
    for name, vote, weight in connection.execute(
        counted.where(of(VOTE.c.name), VOTE.c.sequence.in_(last))
    ):
        votes[name] = votes.get(name, 0) + vote * int(weight)
    for row in connection.execute(_LISTED.where(of(LISTING.c.name))):
        yield _document(row, votes, copies)


def _document(row: Row[Any], votes: dict[str, int], copies: Copies) -> Document:
    texts = row.document or {}
    facets = [(key, value) for key, value in texts.get("facets", [("name", row.name)])]
    verdict = [("verdict", row.verdict)] if row.verdict else []
    numbers = {
        PUBLISHED: float(row.timestamp),
        FINGERPRINT: float(_fingerprint(row)),
        CONTEXT_WINDOW: float(texts.get("context_window", 0)),
    }
    if row.name in votes:
        numbers[VOTES] = float(votes[row.name])
    deprecated = bool(row.deprecated or row.name_deprecated)
    labelled = label(x["code"] for x in row.problems or ()) is not None
    original = copies.get(row.name)
    if sunk := deprecated + labelled + 2 * (original is not None):
        numbers[SUNK] = float(sunk)
    if original is not None:
        facets.append((LIKE, original))
    domain = " ".join(value for key, value in facets if key == "domain")
    return Document(
        row.name,
        texts.get("words", {}) | {"domain": domain},
        tuple(ToolText(*tool) for tool in texts.get("tools", ())),
        (*facets, *verdict),
        numbers,
        tuple(Trigger(*trigger) for trigger in texts.get("triggers", ())),
    )


def _fingerprint(row: Any) -> int:
    """Return a number below 2^52, which a float holds exactly."""
    identity = f"{row.cap_uri}\0{row.verdict}\0{row.timestamp}\0".encode() + bytes(row.sha256)
    return int.from_bytes(sha256(identity).digest()[:7], "big") >> 4
