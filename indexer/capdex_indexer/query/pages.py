"""Some releases at a time: versions of a name, the newest that are served, those that wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, select

from capdex.problems import Availability, Verdict
from capdex.uri import PREFIX
from capdex_indexer.db.columns import NOT_YANKED, STANDS
from capdex_indexer.db.denylist import Denials, read_allowed
from capdex_indexer.db.models import EVENT, LISTING, RELEASE
from capdex_indexer.query.release import IndexedRelease, read_releases

MAX_WAITING: Final = 50

# Constants, since SQLAlchemy takes longer to build such a statement than a database to run it.
_NAMED: Final = RELEASE.c.name == bindparam("name")
_OF_VERSION: Final = RELEASE.c.cap_uri == bindparam("cap_uri")
_STANDING: Final = select(RELEASE.c.id).where(_OF_VERSION, STANDS).limit(1)
_FIRST: Final = (
    select(RELEASE.c.id).where(_NAMED, _OF_VERSION).order_by(RELEASE.c.sequence).limit(1)
)
_LISTED: Final = (
    select(RELEASE.c.semver)
    .join(LISTING, LISTING.c.release_id == RELEASE.c.id)
    .where(LISTING.c.name == bindparam("name"))
)
_HIGHEST: Final = (
    select(RELEASE.c.semver)
    .where(_NAMED)
    .order_by(RELEASE.c.stable.desc(), RELEASE.c.precedence.desc())
    .limit(1)
)
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
_FIRST_SEEN: Final = select(_OF_NAMES.c.name, _OF_NAMES.c.releases, EVENT.c.timestamp).join(
    EVENT, EVENT.c.sequence == _OF_NAMES.c.first
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
_COUNT: Final = select(func.count()).where(_NAMED)
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
    for query in (_STANDING, _FIRST):
        if (release_id := connection.execute(query, wanted).scalar()) is not None:
            return read_releases(connection, [release_id])[0]
    return None


def read_shown_version(connection: Connection, name: str) -> tuple[str | None, bool]:
    """Return the version that the page of a name shows, and whether search lists it.

    If search lists none, it is the highest.
    """
    listed: str | None = connection.execute(_LISTED, {"name": name}).scalar()
    return listed or connection.execute(_HIGHEST, {"name": name}).scalar(), listed is not None


def read_versions(
    connection: Connection, name: str, limit: int, offset: int
) -> list[IndexedRelease]:
    """Return a page of the releases of a name, highest version first."""
    order = (RELEASE.c.precedence.desc(), RELEASE.c.sequence)
    query = select(RELEASE.c.id).where(RELEASE.c.name == name).order_by(*order)
    ids = connection.execute(query.limit(limit).offset(offset)).scalars()
    return read_releases(connection, ids.all())


def count_versions(connection: Connection, name: str) -> int:
    """Return the number of the releases of a name."""
    return int(connection.execute(_COUNT, {"name": name}).scalar_one())


def read_first_seen(connection: Connection, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return when each name was first published under (epoch seconds), and its releases' number."""
    rows = connection.execute(_FIRST_SEEN, {"names": list(names)})
    return {row.name: (row.timestamp, row.releases) for row in rows}


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
