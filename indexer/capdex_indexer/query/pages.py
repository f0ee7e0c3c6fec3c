"""Some releases at a time: versions of a name, the newest that are served, those that wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, func, select

from capdex.problems import Availability, Verdict
from capdex.uri import PREFIX
from capdex_indexer.db.columns import NOT_YANKED, STANDS
from capdex_indexer.db.denylist import Denials, read_allowed
from capdex_indexer.db.models import EVENT, LISTING, RELEASE
from capdex_indexer.query.release import IndexedRelease, read_releases, read_whole, whole

MAX_WAITING: Final = 50

# Constants, since SQLAlchemy takes longer to build such a statement than a database to run it.
_NAMED: Final = RELEASE.c.name == bindparam("name")
_OF_NAME: Final = select(RELEASE.c.id).where(_NAMED)
_OF_VERSION: Final = RELEASE.c.cap_uri == bindparam("cap_uri")
_STANDING: Final = whole(select(RELEASE.c.id).where(_OF_VERSION, STANDS))
_FIRST: Final = whole(_OF_NAME.where(_OF_VERSION).order_by(RELEASE.c.sequence).limit(1))
_LISTED: Final = whole(select(LISTING.c.release_id).where(LISTING.c.name == bindparam("name")))
_HIGHEST: Final = whole(
    _OF_NAME.order_by(RELEASE.c.stable.desc(), RELEASE.c.precedence.desc()).limit(1)
)
_DOWNWARDS: Final = (RELEASE.c.precedence.desc(), RELEASE.c.sequence)
_VERSIONS: Final = whole(
    _OF_NAME.order_by(*_DOWNWARDS).limit(bindparam("limit")).offset(bindparam("offset"))
).order_by(*_DOWNWARDS)
_OF_NAMES: Final = (
    select(
        RELEASE.c.name,
        func.min(RELEASE.c.sequence).label("first"),
        func.count().label("releases"),
    )
    .where(RELEASE.c.name.in_(bindparam("names", expanding=True)))
    .group_by(RELEASE.c.name)
    .subquery()
)
_FIRST_SEEN: Final[Select[Any]] = (
    select(_OF_NAMES.c.name, _OF_NAMES.c.releases, EVENT.c.timestamp, LISTING.c.release_id)
    .join(EVENT, EVENT.c.sequence == _OF_NAMES.c.first)
    .outerjoin(LISTING, LISTING.c.name == _OF_NAMES.c.name)
)
_THIS: Final = RELEASE.alias()
_BEFORE: Final = (
    select(RELEASE.c.semver, RELEASE.c.sha256)
    .join(_THIS, _THIS.c.name == RELEASE.c.name)
    .where(_NAMED, _THIS.c.semver == bindparam("semver"), STANDS)
    .where(RELEASE.c.precedence < _THIS.c.precedence, RELEASE.c.stable >= _THIS.c.stable)
    .where(RELEASE.c.verdict.in_(bindparam("serve", expanding=True)))
    .order_by(RELEASE.c.precedence.desc())
    .limit(1)
)
NO_END: Final = 2**62  # above every sequence
_NEWEST: Final = (
    select(RELEASE.c.id, RELEASE.c.name, RELEASE.c.cid, RELEASE.c.sha256)
    .where(STANDS, NOT_YANKED, RELEASE.c.verdict.in_(bindparam("serve", expanding=True)))
    .where(RELEASE.c.sequence < bindparam("before"))
    .order_by(RELEASE.c.sequence.desc())
    .limit(bindparam("limit"))
    .offset(bindparam("offset"))
)
_NEWEST_OF: Final = {
    None: _NEWEST,
    "name": _NEWEST.where(_NAMED),
    "publisher": _NEWEST.where(RELEASE.c.publisher == bindparam("publisher")),
}


def read_version(connection: Connection, name: str, semver: str) -> IndexedRelease | None:
    """Return the release of an exact version: the one that stands, else the first announced."""
    wanted = {"name": name, "cap_uri": f"{PREFIX}{name}@{semver}"}
    found = read_whole(connection, _STANDING, wanted) or read_whole(connection, _FIRST, wanted)
    return found[0] if found else None


def read_shown_version(connection: Connection, name: str) -> IndexedRelease | None:
    """Return the release that the page of a name shows: the one search lists, else the highest."""
    wanted = {"name": name}
    found = read_whole(connection, _LISTED, wanted) or read_whole(connection, _HIGHEST, wanted)
    return found[0] if found else None


def read_versions(
    connection: Connection, name: str, limit: int, offset: int
) -> list[IndexedRelease]:
    """Return a page of the releases of a name, highest version first."""
    wanted = {"name": name, "limit": limit, "offset": offset}
    return read_whole(connection, _VERSIONS, wanted)


def read_first_seen(connection: Connection, names: Iterable[str]) -> dict[str, Row[Any]]:
    """Return what is known of each name that anything was announced under.

    A row has the `timestamp` of its first release (epoch seconds), the number of its `releases`,
    and the `release_id` of the one that search lists, None for none.
    """
    rows = connection.execute(_FIRST_SEEN, {"names": list(names)})
    return {row.name: row for row in rows}


def read_version_before(
    connection: Connection, name: str, semver: str, serve: Collection[Verdict]
) -> tuple[str, str] | None:
    """Return the highest served version below one, with the sha256 of its file; None for none.

    Before a stable version comes a stable one, and one that is not yanked if there is any, so that
    none which a range does not find hides a change.
    """
    values = {"name": name, "semver": semver, "serve": sorted(serve)}
    row = connection.execute(_BEFORE.where(NOT_YANKED), values).first()
    row = row or connection.execute(_BEFORE, values).first()
    return None if row is None else (row.semver, bytes(row.sha256).hex())


def read_newest_releases(
    connection: Connection,
    serve: Collection[Verdict],
    denials: Denials,
    limit: int,
    of: tuple[str, str] | None = None,
    before: int | None = None,
) -> list[IndexedRelease]:
    """Return the served releases that were announced last, the newest first; no yanked ones.

    With `of`, ("name" or "publisher", which), only those of a name or an account (EIP-55);
    with `before` those below a sequence.
    """
    values: dict[str, Any] = {"serve": sorted(serve), "before": before or NO_END}
    values |= dict([of] if of else [])
    rows = read_allowed(connection, _NEWEST_OF[of and of[0]], values, denials, limit)
    return read_releases(connection, [row.id for row in rows])


def read_waiting(connection: Connection) -> list[Row[Any]]:
    """Return the releases that wait for their bytes longest, at most MAX_WAITING of a state.

    A row has `name`, `semver`, `cid`, `state`, `attempts` and `queued_at` (epoch seconds).
    """
    query = select(
        *(RELEASE.c.name, RELEASE.c.semver, RELEASE.c.cid, RELEASE.c.availability.label("state")),
        *(RELEASE.c.attempts, RELEASE.c.queued_at),
    ).order_by(RELEASE.c.queued_at)
    rows: list[Row[Any]] = []
    for state in (Availability.PENDING, Availability.PARKED):
        some = query.where(RELEASE.c.availability == state).limit(MAX_WAITING)
        rows += connection.execute(some)
    return rows
