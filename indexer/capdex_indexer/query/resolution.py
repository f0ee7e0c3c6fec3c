"""Resolve a capability URI to a release (P2), or to the error that explains the refusal (P16)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, select

from capdex.codes import reason_codes
from capdex.errors import (
    CapdexError,
    Code,
    InvalidInput,
    Unavailable,
    VerificationFailure,
)
from capdex.problems import Availability, Verdict
from capdex.uri import PREFIX, CapabilityURI
from capdex.version import Version
from capdex_indexer.db.denylist import Denial, Denials
from capdex_indexer.db.models import LISTING, RELEASE
from capdex_indexer.projection.event_rows import precedence
from capdex_indexer.query.release import IndexedRelease, read_releases, with_reason

NEAR_NAMES: Final = 50  # candidates that a mistyped name is compared with
KNOWN_VERSIONS: Final = 10  # versions named in the error for a version that does not exist


_CANDIDATES: Final = select(
    *(RELEASE.c.id, RELEASE.c.cap_uri, RELEASE.c.stands, RELEASE.c.yanked, RELEASE.c.yank_reason),
    *(RELEASE.c.verdict, RELEASE.c.reason, RELEASE.c.message, RELEASE.c.availability),
    *(RELEASE.c.name, RELEASE.c.cid, RELEASE.c.sha256),
).where(RELEASE.c.name == bindparam("name"))
_HIGHEST: Final = (RELEASE.c.precedence.desc(), RELEASE.c.stands.desc(), RELEASE.c.sequence)
# Constants, since SQLAlchemy takes longer to build such a statement than a database to run it.
_EXACT: Final = _CANDIDATES.where(RELEASE.c.precedence == bindparam("version")).order_by(*_HIGHEST)
_LATEST: Final = _CANDIDATES.order_by(RELEASE.c.stable.desc(), *_HIGHEST)
_ALL: Final = _CANDIDATES.order_by(*_HIGHEST)


def resolve(
    connection: Connection, uri: CapabilityURI, serve: frozenset[Verdict], denials: Denials
) -> IndexedRelease:
    """Return the best release that is served, not denied and, unless exact, not yanked."""
    if whole := denials.by_name.get(uri.name):
        raise whole.refusal(PREFIX + uri.name)
    exact = isinstance(uri.selector, Version)
    refused: list[Row[Any]] = []  # matching but not served; highest first
    hidden: list[tuple[Row[Any], Denial]] = []
    for row in _matching(connection, uri):
        denial = denials.of_release(row.name, row.cid, bytes(row.sha256))
        if denial is not None:
            hidden.append((row, denial))
        elif row.stands and row.verdict in serve and (exact or not row.yanked):
            release = read_releases(connection, [row.id])[0]
            denied = _newer((row for row, _ in hidden), lambda _: "this node's operator refuses it")
            warnings = [*release.warnings, *_newer(refused, _why_refused), *denied]
            return replace(release, warnings=warnings)
        else:
            refused.append(row)
    for row, denial in hidden:
        raise denial.refusal(row.cap_uri)
    raise _failure(connection, uri, refused, denials)


def _matching(connection: Connection, uri: CapabilityURI) -> Iterator[Any]:
    """Iterate over the releases that match a URI's name and selector, best first."""
    selector, given = uri.selector, {"name": uri.name}
    if isinstance(selector, Version):
        yield from connection.execute(_EXACT, given | {"version": precedence(selector)})
    elif selector is None:
        yield from connection.execute(_LATEST, given)
    else:
        for row in connection.execute(_ALL, given):
            if CapabilityURI.exact(row.cap_uri).version in selector:
                yield row


def _newer(rows: Iterable[Row[Any]], why: Callable[[Row[Any]], str]) -> Iterator[str]:
    """Yield a warning if one of these releases would be the answer if it were served."""
    for row in rows:
        if row.stands and not row.yanked:
            yield f"{row.cap_uri} is newer but {why(row)}"
            return


def _why_refused(row: Row[Any]) -> str:
    if row.verdict is None and row.availability == Availability.PARKED:
        return f"its package cannot be judged ({row.reason})"
    if row.verdict is None:
        return "its package has not been fetched yet"
    return f"is {row.verdict}" + (f" ({row.reason})" if row.reason else "")


def _failure(
    connection: Connection, uri: CapabilityURI, refused: list[Row[Any]], denials: Denials
) -> CapdexError:
    live = [x for x in refused if isinstance(uri.selector, Version) or not x.yanked]
    for row in live:
        if row.verdict is None:
            return _pending(row)
    if live:
        return _unverified(min(live, key=lambda x: not x.stands))
    if refused:
        highest = refused[0]
        return InvalidInput(
            f"every release that matches {uri} is yanked",
            Code.YANKED,
            why=highest.yank_reason and with_reason("the reason given", highest.yank_reason),
            fix=f"ask for {highest.cap_uri} exactly if you must have it",
            details={"cap_uri": highest.cap_uri},
        )
    return _not_found(connection, uri, denials)


def _pending(row: Row[Any]) -> Unavailable:
    parked = row.availability == Availability.PARKED
    reason = row.reason if parked else None
    details = {"cap_uri": row.cap_uri, "availability": row.availability, "reason": reason}
    if parked:
        what = f"{row.cap_uri} is announced, but its package is parked"
        said = reason_codes()[row.reason]
        return Unavailable(what, Code.PENDING, said.meaning, said.hint, details)
    what = f"{row.cap_uri} is announced, but its package has not been fetched yet"
    # Not the row's message: it names the sources that failed, and what they answered.
    why = "no source has given its bytes so far, or this node cannot keep or judge them"
    return Unavailable(what, Code.PENDING, why, "try again later", details)


def _unverified(row: Row[Any]) -> VerificationFailure:
    hint = reason_codes()[row.reason].hint if row.reason else ""
    return VerificationFailure(
        f"{row.cap_uri} is not served: it is {row.verdict}",
        why=row.message,
        fix=hint,
        details={"cap_uri": row.cap_uri, "verdict": row.verdict, "reason": row.reason},
    )


def _not_found(connection: Connection, uri: CapabilityURI, denials: Denials) -> InvalidInput:
    known = connection.execute(
        select(RELEASE.c.semver, RELEASE.c.cid, RELEASE.c.sha256)
        .where(RELEASE.c.name == uri.name, RELEASE.c.stands, RELEASE.c.verdict.is_not(None))
        .order_by(RELEASE.c.yanked, RELEASE.c.stable.desc(), RELEASE.c.precedence.desc())
        .limit(KNOWN_VERSIONS)
    )
    shown = (x for x in known if denials.of_release(uri.name, x.cid, bytes(x.sha256)) is None)
    versions = [x.semver for x in shown]
    if versions:
        return InvalidInput(
            f"no release of {uri.name} matches {uri.selector or 'latest'}",
            Code.NOT_FOUND,
            fix=f"choose one, the best first: {', '.join(versions)}",
            details={"versions": versions},
        )
    near = [PREFIX + name for name in _similar_names(connection, uri.name)]
    return InvalidInput(
        f"there is no capability {uri.name}",
        Code.NOT_FOUND,
        fix=f"did you mean {near[0]}?" if near else "search for it by what it does",
        details={"did_you_mean": near},
    )


def _similar_names(connection: Connection, name: str) -> list[str]:
    """Return listed names similar to this one, among its neighbours in alphabetical order."""
    column = LISTING.c.name
    after = select(column).where(column > name).order_by(column).limit(NEAR_NAMES)
    before = select(column).where(column < name).order_by(column.desc()).limit(NEAR_NAMES)
    above, below = (list(connection.execute(query).scalars()) for query in (after, before))
    half = NEAR_NAMES // 2
    spare = max(half, NEAR_NAMES - len(below))
    candidates = above[:spare] + below[: NEAR_NAMES - len(above[:spare])]
    return difflib.get_close_matches(name, candidates, n=3)
