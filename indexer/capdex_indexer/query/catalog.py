"""The catalog: listed names by keyset, counts by facet, and the releases behind a binding type.

Pages go on after a key (not an offset), so a page costs the same wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, select, text

from capdex.errors import InvalidInput
from capdex.problems import Verdict
from capdex.uri import PREFIX
from capdex_indexer.db.denylist import Denials, read_allowed
from capdex_indexer.db.models import DEPRECATION, EVENT, FACET, LISTING, YANK
from capdex_indexer.projection.package_rows import facet_value
from capdex_indexer.query.release import IndexedRelease, read_releases


@dataclass(frozen=True, slots=True)
class BoundReleases:
    """A question for releases of the names whose latest release has a binding of this type.

    `search` is text in `prefix` + name, in any case; `since` (epoch seconds) leaves out releases
    whose state has not changed from then on. Yanked releases only with `yanked`.
    """

    binding: str
    prefix: str = ""
    search: str = ""
    semver: str | None = None
    latest: bool = False
    yanked: bool = False
    since: int | None = None


_COUNTS: Final = (
    select(FACET.c.value, func.count().label("total"))
    .where(FACET.c.key == bindparam("key"))
    .group_by(FACET.c.value)
)

_BOUND: Final = (
    "SELECT release.id, release.name, release.cid, release.sha256 FROM facet "
    "JOIN listing ON listing.release_id = facet.release_id "
    "JOIN release ON release.name = listing.name "
    "WHERE facet.key = 'binding' AND facet.value = :binding "
    "AND release.stands AND release.verdict IN :serve "
    "AND (release.name > :name OR release.name = :name AND release.cap_uri > :cap_uri)"
)
_LATEST: Final = " AND release.id = listing.release_id"
_NOT_YANKED: Final = " AND NOT release.yanked"
_SEMVER: Final = " AND release.semver = :semver"
_SEARCH: Final = " AND :before || release.name LIKE :pattern ESCAPE '!'"
_SINCE: Final = (
    " AND (EXISTS (SELECT 1 FROM event WHERE event.sequence = release.sequence "
    "AND event.timestamp >= :since)"
    " OR EXISTS (SELECT 1 FROM yank JOIN event ON event.sequence = yank.sequence "
    "WHERE yank.cap_uri = release.cap_uri AND event.timestamp >= :since)"
    " OR EXISTS (SELECT 1 FROM deprecation JOIN event ON event.sequence = deprecation.sequence "
    "WHERE deprecation.subject IN (release.cap_uri, :uri_prefix || release.name) "
    "AND event.timestamp >= :since))"
)
_ORDER: Final = " ORDER BY release.name, release.cap_uri LIMIT :limit OFFSET :offset"


class _Order(NamedTuple):
    """An order: its tables, the key of a name, how it is read, what is beyond :after, the sorting.

    :name is the name that has the key :after.
    """

    tables: str
    key: str
    read: Callable[[str], object] = lambda digits: int(digits) % 2**62  # of what a database holds
    beyond: str = "{key} < :after"
    by: str = "{key} DESC"


_LATEST_OF_NAME: Final = "listing JOIN release ON release.id = listing.release_id WHERE 1 = 1"
_ORDERS: Final = {
    "newest": _Order(
        "release AS first JOIN listing ON listing.name = first.name JOIN release "
        "ON release.id = listing.release_id WHERE NOT EXISTS (SELECT 1 FROM release AS x "
        "WHERE x.name = first.name AND x.sequence < first.sequence)",
        "first.sequence",
    ),
    "changed": _Order(_LATEST_OF_NAME, "release.sequence"),
    "name": _Order(_LATEST_OF_NAME, "listing.name", str, "{key} > :after", "{key}"),
    # the last vote of each account counts
    "votes": _Order(
        "(SELECT name, SUM(vote * CAST(weight AS DOUBLE PRECISION)) AS score "
        "FROM vote WHERE NOT EXISTS (SELECT 1 FROM vote AS x WHERE x.name = vote.name "
        "AND x.voter = vote.voter AND x.sequence > vote.sequence) GROUP BY name) AS voted "
        "JOIN listing ON listing.name = voted.name "
        "JOIN release ON release.id = listing.release_id WHERE voted.score > 0",
        *("voted.score", float, "({key} < :after OR {key} = :after AND listing.name > :name)"),
        "{key} DESC, listing.name",
    ),
}
LISTED_BY: Final = tuple(_ORDERS)
_OF: Final = "(SELECT release_id FROM facet WHERE key = :key AND value = :value"
MANY: Final = 2000  # names with a value: looking at all names in order is quicker than sorting them
Facet = tuple[str, str] | None  # a key and a value


def read_listed_by(
    connection: Connection, order: str, denials: Denials, limit: int, after: str, facet: Facet
) -> list[tuple[str, IndexedRelease]]:
    """Return the first listed releases in one of the orders LISTED_BY, each with its key.

    Names in the order of their first release, of their listed one (`changed`), by name, or by the
    weight of votes; only names with more weight for than against. `after` is the key of the last
    name of the page before, empty for the first page: names that come meanwhile move none from page
    to page. With `facet` only those that have it. Raises InvalidInput for a key of another order.
    """
    tables, key, read, beyond, by = _ORDERS[order]
    words = f"SELECT release.id, release.name, release.cid, release.sha256, {key} AS place"
    words += f" FROM {tables}"
    values: dict[str, Any] = {}
    if after:
        place, _, values["name"] = after.partition(" ")
        try:
            values["after"] = read(place)
        except ValueError:
            raise InvalidInput("after is not the end of a page in this order") from None
        words += f" AND {beyond.format(key=key)}"
    if facet is not None:
        many = count_listed(connection, facet) > MANY
        has = f"EXISTS {_OF} AND release_id = release.id)" if many else f"release.id IN {_OF})"
        words += f" AND {has}"
        values |= {"key": facet[0], "value": facet_value(*facet)}
    query = text(f"{words} ORDER BY {by.format(key=key)} LIMIT :limit OFFSET :offset")
    rows = read_allowed(connection, query, values, denials, limit)
    releases = read_releases(connection, [row.id for row in rows])
    return [(f"{row.place} {row.name}", x) for row, x in zip(rows, releases, strict=True)]


def count_listed(connection: Connection, facet: Facet) -> int:
    """Return how many names are listed; with `facet` those that have it."""
    query = select(func.count()).select_from(LISTING if facet is None else FACET)
    if facet is not None:
        query = query.where(FACET.c.key == facet[0], FACET.c.value == facet_value(*facet))
    return int(connection.execute(query).scalar_one())


def read_names(
    connection: Connection, facet: Facet, after: str, limit: int
) -> list[IndexedRelease]:
    """Return the listed releases of names above `after` that have the facet, by name."""
    query = select(LISTING.c.release_id).where(LISTING.c.name > after)
    if facet is not None:
        key, value = facet
        matches = (FACET.c.release_id == LISTING.c.release_id, FACET.c.key == key)
        query = query.where(exists().where(*matches, FACET.c.value == facet_value(key, value)))
    ids = connection.execute(query.order_by(LISTING.c.name).limit(limit))
    return read_releases(connection, ids.scalars().all())


def read_counts(connection: Connection, key: str) -> dict[str, int]:
    """Return how many listed releases have each value of a facet."""
    return {row.value: row.total for row in connection.execute(_COUNTS, {"key": key})}


def read_bound(
    connection: Connection,
    wanted: BoundReleases,
    serve: frozenset[Verdict],
    denials: Denials,
    after: tuple[str, str],
    limit: int,
) -> list[IndexedRelease]:
    """Return the releases after a (name, version), by name and then by the text of the version.

    None of them is denied.
    """
    name, semver = after
    values: dict[str, Any] = {
        "binding": wanted.binding,
        "serve": sorted(serve),
        "name": name,
        "cap_uri": f"{PREFIX}{name}@{semver}",
    }
    words = _BOUND + _LATEST * wanted.latest + _NOT_YANKED * (not wanted.yanked)
    if wanted.semver is not None:
        words += _SEMVER
        values["semver"] = wanted.semver
    if wanted.search:
        words += _SEARCH
        values |= {"before": wanted.prefix, "pattern": _pattern(wanted.search)}
    if wanted.since is not None:
        words += _SINCE
        values |= {"since": wanted.since, "uri_prefix": PREFIX}
    query = text(words + _ORDER).bindparams(bindparam("serve", expanding=True))
    rows = read_allowed(connection, query, values, denials, limit)
    return read_releases(connection, [row.id for row in rows])


def read_changed_at(connection: Connection, releases: Sequence[IndexedRelease]) -> dict[str, int]:
    """Return when the status of these releases last changed, in epoch seconds, by cap_uri."""
    changed = {x.cap_uri: x.timestamp for x in releases}
    names = {f"{PREFIX}{x.name}" for x in releases}
    times: dict[str, int] = {}
    for table, subject in ((YANK, YANK.c.cap_uri), (DEPRECATION, DEPRECATION.c.subject)):
        newest = (
            select(subject, func.max(EVENT.c.timestamp))
            .join_from(table, EVENT, EVENT.c.sequence == table.c.sequence)
            .where(subject.in_([*changed, *names]))
            .group_by(subject)
        )
        for key, timestamp in connection.execute(newest):
            times[key] = max(timestamp, times.get(key, 0))
    return {
        x.cap_uri: max(x.timestamp, times.get(x.cap_uri, 0), times.get(f"{PREFIX}{x.name}", 0))
        for x in releases
    }


def _pattern(words: str) -> str:
    """Return a LIKE pattern for names (which are in lower case) that contain these words."""
    escaped = "".join(f"!{x}" if x in "!%_" else x for x in words.lower())
    return f"%{escaped}%"
