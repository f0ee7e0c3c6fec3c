"""The listing: of each name the one release that search answers with, kept as releases change.

Listed is the latest release (P2) that is served, not yanked and not denied by the operator.
Whatever can change that calls `refresh` for the names concerned, inside its own transaction.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select

from capdex.manifest import Manifest
from capdex.problems import Verdict
from capdex.triggers import Trigger
from indexer import denial, fulltext
from indexer.denial import Denials
from indexer.models import NOT_YANKED, STANDS, FacetRow, ListingRow, PackageRow, ReleaseRow, table
from indexer.text import TEXT_VERSION, fold

MAX_FACET_CHARS: Final = 256  # an index row of PostgreSQL holds no more than 2.7 KB
# Facets that people write in any case; names, tools, permissions and DIDs are exact.
FOLDED: Final = frozenset({"tag", "domain", "language", "license", "publisher"})

Document = dict[str, Any]

_ESCAPE = re.compile(r"\\.")  # of a regex: what follows the backslash is no word

RELEASE, PACKAGE = table(ReleaseRow), table(PackageRow)
LISTING, FACET = table(ListingRow), table(FacetRow)


def listing_rules(serve: Collection[Verdict]) -> str:
    """What a listing depends on beside the releases: another value means to build it again."""
    return f"{TEXT_VERSION}:{','.join(sorted(serve))}"


def served(rules: str) -> frozenset[Verdict]:
    """The verdicts that a listing made by these rules holds."""
    return frozenset(map(Verdict, filter(None, rules.partition(":")[2].split(","))))


def document(manifest: Manifest, publisher: str, chain_id: int) -> Document:
    """What search needs of a package: its words by field, and the values its filters answer to."""
    parameters = (f"{x.name} {x.description} {_words(x.parameters)}" for x in manifest.tools)
    words = {
        "name": manifest.uri.name,
        "title": manifest.title,
        "description": manifest.description,
        "summary": manifest.summary,
        "tags": "\n".join(manifest.tags),
        "triggers": "\n".join(map(_trigger_words, manifest.triggers)),
        "tools": "\n".join(parameters),
    }
    facets = sorted(set(_facets(manifest, publisher, chain_id)))
    return {"words": {k: v or "" for k, v in words.items()}, "facets": facets}


def facet_value(key: str, value: str) -> str:
    """A filter's value as it is stored and compared."""
    value = (fold(value) if key in FOLDED else value).replace("\0", "\N{SYMBOL FOR NULL}")
    return value.encode("utf-8", "replace").decode("utf-8")[:MAX_FACET_CHARS]


def refresh(
    connection: Connection,
    names: Iterable[str],
    serve: Collection[Verdict],
    denials: Denials | None = None,
) -> None:
    """List the right release of each name, or none; `denials` where the caller holds them."""
    concerned = sorted(set(names))
    if concerned and denials is None:
        denial.hold(connection)
        denials = denial.read(connection)
    for name in concerned:
        right = _latest(connection, name, serve, denials or Denials())
        listed = connection.execute(
            select(LISTING.c.release_id).where(LISTING.c.name == name)
        ).scalar()
        if listed == right:
            continue
        if listed is not None:
            unlist(connection, listed)
        if right is not None:
            _list(connection, name, right)


def unlist(connection: Connection, release_id: int) -> None:
    """Take one release out of the listing, its facets and its document."""
    fulltext.remove(connection, release_id)
    connection.execute(delete(FACET).where(FACET.c.release_id == release_id))
    connection.execute(delete(LISTING).where(LISTING.c.release_id == release_id))


def rebuild(connection: Connection, serve: Collection[Verdict]) -> None:
    """List everything again: the verdicts served, or the making of words, have changed."""
    for release_id in connection.execute(select(LISTING.c.release_id)).scalars().all():
        unlist(connection, release_id)
    names = select(RELEASE.c.name).where(RELEASE.c.name.is_not(None)).distinct()
    refresh(connection, connection.execute(names).scalars().all(), serve)


def _latest(
    connection: Connection, name: str, serve: Collection[Verdict], denials: Denials
) -> int | None:
    best_first = (
        select(RELEASE.c.id, RELEASE.c.cid, RELEASE.c.sha256)
        .where(
            RELEASE.c.name == name,
            STANDS,
            NOT_YANKED,
            RELEASE.c.verdict.is_not(None),
            RELEASE.c.verdict.in_(sorted(serve)),
        )
        .order_by(RELEASE.c.stable.desc(), RELEASE.c.precedence.desc())
    )
    if not denials.by_digest:
        best_first = best_first.limit(1)
    for row in connection.execute(best_first):
        if denials.of(name, row.cid, bytes(row.sha256)) is None:
            return int(row.id)
    return None


def _list(connection: Connection, name: str, release_id: int) -> None:
    found: Document | None = connection.execute(
        select(PACKAGE.c.document).where(PACKAGE.c.release_id == release_id)
    ).scalar()
    found = found or {"words": {"name": name}, "facets": [["name", name]]}
    connection.execute(insert(LISTING), {"name": name, "release_id": release_id})
    facets = [{"release_id": release_id, "key": k, "value": v} for k, v in found["facets"]]
    connection.execute(insert(FACET), facets)
    fulltext.put(connection, release_id, found["words"])


def _facets(manifest: Manifest, publisher: str, chain_id: int) -> Iterator[tuple[str, str]]:
    values: list[tuple[str, Iterable[str | None]]] = [
        ("name", [manifest.uri.name]),
        ("tag", manifest.tags),
        ("domain", [manifest.domain]),
        ("language", manifest.languages),
        ("license", [manifest.license]),
        ("publisher", [publisher, f"eip155:{chain_id}:{publisher}"]),
        ("permission", manifest.permissions),
        ("tool", [tool.name for tool in manifest.tools]),
        ("binding", [str(x.get("type", "")) for x in manifest.bindings.values()]),
    ]
    if manifest.author:  # the DID URL as it stands, and the DID alone
        values.append(("author", [manifest.author, manifest.author.partition("#")[0]]))
    for key, some in values:
        yield from ((key, facet_value(key, value)) for value in some if value)


def _trigger_words(trigger: Trigger) -> str:
    if trigger.model is not None:
        return ""  # sign bits, not words
    return _ESCAPE.sub(" ", trigger.value) if trigger.type == "regex" else trigger.value


def _words(schema: Any) -> str:
    """The words of a tool's parameters: their names and what is said of them."""
    found: list[str] = []
    open_ = [schema]
    while open_:
        part = open_.pop()
        if isinstance(part, list):
            open_ += part
        elif isinstance(part, dict):
            found += part["properties"] if isinstance(part.get("properties"), dict) else ()
            found.append(part["description"] if isinstance(part.get("description"), str) else "")
            open_ += part.values()
    return " ".join(map(str, found))
