"""Names that may be taken for older ones of other owners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, func, select

from capdex.search.engine import Engine
from capdex.search.segments.segment import Mask
from capdex.text.neighbours import (
    FACTORS,
    Neighbours,
    is_mistake,
    mistakes_of,
    sums_of,
    without_lookalikes,
)
from capdex_indexer.db.bulk_insert import chunks
from capdex_indexer.db.models import LISTING, OWNERSHIP, PACKAGE, RELEASE

LIKE_TITLE: Final = 0.8  # of `difflib.SequenceMatcher.ratio`, without case
FEW: Final = 1024  # names whose neighbours are looked up; of more, all names are compared
MAX_OLDER: Final = 8  # names that one is compared with, the oldest first

_FIRST: Final = (
    select(func.min(RELEASE.c.sequence))
    .where(RELEASE.c.name.in_(bindparam("names", expanding=True)))
    .group_by(RELEASE.c.name)
)
_CLAIMS: Final = select(RELEASE.c.name, RELEASE.c.sequence, RELEASE.c.publisher).where(
    RELEASE.c.sequence.in_(_FIRST)
)
_OWNERS: Final = (
    select(OWNERSHIP.c.name, OWNERSHIP.c.kind, OWNERSHIP.c.by)
    .where(OWNERSHIP.c.name.in_(bindparam("names", expanding=True)))
    .where(OWNERSHIP.c.kind.in_(("claimed", "transferred", "renounced")))
    .order_by(OWNERSHIP.c.sequence)
)
_TITLE: Final = (
    select(PACKAGE.c.acp_metadata)
    .join(LISTING, LISTING.c.release_id == PACKAGE.c.release_id)
    .where(LISTING.c.name == bindparam("name"))
)
_TITLE_BEFORE: Final = (
    select(PACKAGE.c.acp_metadata)
    .join(RELEASE, RELEASE.c.id == PACKAGE.c.release_id)
    .where(RELEASE.c.name == bindparam("name"), RELEASE.c.sequence < bindparam("before"))
    .order_by(RELEASE.c.sequence.desc())
    .limit(1)
)


Near = Callable[[str], Collection[str]]  # the listed names one typing mistake away from a name


class _Claim(NamedTuple):
    since: int  # the sequence of its first release
    owner: str | None


class NearNames:
    """Finds the listed names near others; keeps what it made of the segments of an engine."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Sequence[str], Neighbours]] = {}  # by id of the names

    def read(self, connection: Connection, engine: Engine, changed: Collection[str] = ()) -> Near:
        """Return what finds those of the state that a transaction sees.

        The engine may lack the names in `changed`.
        """
        changed = set(changed)
        query = select(LISTING.c.name)
        own = (query.where(LISTING.c.name.in_(some)) for some in chunks(sorted(changed)))
        listed = [name for some in own for name in connection.execute(some).scalars()]
        parts: list[tuple[Neighbours, Mask | None]] = [(Neighbours(listed), None)]
        before, self._kept = self._kept, {}
        for part in engine.parts:
            names = part.segment.names
            kept = before.get(id(names)) or (names, Neighbours(names))
            self._kept[id(names)] = kept
            parts.append((kept[1], part.live))
        gone = changed - set(listed)

        def near(name: str) -> set[str]:
            mistaken = mistakes_of(name)
            others = (part.near(name, mistaken, live) for part, live in parts)
            return set[str]().union(*others) - gone

        return near


def read_copies(
    connection: Connection, names: Collection[str], near: Near | None = None
) -> dict[str, str | None]:
    """Return the older name of another owner that each name may be taken for; None for none.

    That is a listed name one typing mistake away, whose title was like this one's before this name
    was there. Besides `names` those are answered for whose answer may depend on them. Without
    `near`, and for more than FEW names, all listed names are compared with each other.
    """
    if near is None or len(names) > FEW:
        older = _compared(connection, names)
    else:
        older = _looked_up(connection, names, near)
    originals: dict[str, str | None] = {}
    for name, (since, others) in older.items():
        title = _title(connection.execute(_TITLE, {"name": name}).scalar()) if others else ""
        before = ((x, _TITLE_BEFORE, {"name": x, "before": since}) for x in others)
        originals[name] = next(
            (x for x, query, of in before if _like(title, connection.execute(query, of).scalar())),
            None,
        )
    return originals


_Compared = tuple[int, list[str]]  # since when a name is there, and the older names near it


def _looked_up(connection: Connection, names: Collection[str], near: Near) -> dict[str, _Compared]:
    others = {name: near(name) for name in names}
    claims = _claims(connection, set(others).union(*others.values()))
    for name in names:
        for other in others[name]:
            if other not in others and _is_older(claims, name, other):
                others[other] = near(other)
    missing = set[str]().union(*others.values()) - claims.keys()
    claims |= _claims(connection, missing)
    return {name: _oldest(claims, name, some) for name, some in others.items()}


def _compared(connection: Connection, names: Collection[str]) -> dict[str, _Compared]:
    listed = set(connection.execute(select(LISTING.c.name)).scalars())
    given = set(names)  # one that is not listed any more may have been an original
    claims = _claims(connection, listed | given)
    near: dict[str, set[str]] = {name: set() for name in names}
    for group in _groups(claims):
        ordered = sorted(group, key=lambda x: claims[x].since)
        for at, name in enumerate(ordered):
            older = (x for x in ordered[:at] if _is_older(claims, x, name))
            others = (x for x in older if is_mistake(x, name))
            near.setdefault(name, set()).update(islice(others, MAX_OLDER))
    return {
        name: _oldest(claims, name, some & listed)
        for name, some in near.items()
        if name in given or some & given
    }


def _groups(claims: Mapping[str, _Claim]) -> Iterator[set[str]]:
    """Yield names of several owners that become equal without one letter, or look alike.

    Any two names of `is_mistake` are in one of these sets; others may be. Equal texts have
    equal sums of their letters times a number of the place, and hardly any others have.
    """
    names = sorted(claims, key=len)
    accounts = {x.owner for x in claims.values()}
    numbers = dict(zip(accounts, range(len(accounts)), strict=True))
    lengths = np.array([len(x) for x in names], np.int64)
    keys, places = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for length in sorted({len(x) for x in names}):
        own = np.flatnonzero(lengths == length)
        letters = np.frombuffer("".join(names[own[0] : own[-1] + 1]).encode("ascii"), np.uint8)
        letters = letters.reshape(-1, length).astype(np.uint64)
        zero = np.zeros((len(own), 1), np.uint64)
        before = np.cumsum(np.hstack([zero, letters * FACTORS[1 : length + 1]]), axis=1)
        moved = np.cumsum(np.hstack([zero, letters * FACTORS[:length]]), axis=1)
        without = before[:, :-1] + moved[:, -1:] - moved[:, 1:]
        keys.append(np.hstack([without, before[:, -1:]]).ravel())
        places.append(np.repeat(own, length + 1))
    keys.append(sums_of([without_lookalikes(x) for x in names]))
    places.append(np.arange(len(names)))
    key, place = np.concatenate(keys), np.concatenate(places)
    order = np.argsort(key)
    key, place = key[order], place[order]
    begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else place
    owner = np.array([numbers[claims[x].owner] for x in names], np.int64)[place]
    several = np.minimum.reduceat(owner, begins) != np.maximum.reduceat(owner, begins)
    ends = np.concatenate([begins[1:], [len(key)]])
    for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True):
        yield {names[at] for at in place[begin:end].tolist()}


def _oldest(claims: Mapping[str, _Claim], name: str, others: Iterable[str]) -> _Compared:
    some = sorted((claims[x].since, x) for x in others if _is_older(claims, x, name))
    return claims[name].since if some else 0, [x for _, x in some[:MAX_OLDER]]


def _is_older(claims: Mapping[str, _Claim], one: str, other: str) -> bool:
    """True if one name is older than another of another owner."""
    a, b = claims.get(one), claims.get(other)
    return a is not None and b is not None and a.since < b.since and a.owner != b.owner


def _claims(connection: Connection, names: Collection[str]) -> dict[str, _Claim]:
    claims: dict[str, _Claim] = {}
    for some in chunks(sorted(names)):
        for name, since, publisher in connection.execute(_CLAIMS, {"names": some}):
            claims[name] = _Claim(since, publisher)
        for name, kind, by in connection.execute(_OWNERS, {"names": some}):
            if name in claims:
                owner = None if kind == "renounced" else by
                claims[name] = claims[name]._replace(owner=owner)
    return claims


def _title(metadata: Any) -> str:
    return str((metadata or {}).get("name", "")).lower()


def _like(title: str, metadata: object) -> bool:
    return SequenceMatcher(None, title, _title(metadata)).ratio() >= LIKE_TITLE
