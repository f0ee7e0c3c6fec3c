"""Queries of `state.query` (ASM-QL, NIP-8): filter, order, selection, and pages by key. Pure.

A cursor holds the sort key and the id of the last object of a page, so that no page needs the ones
before it, and objects that come and go between two pages move no other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any, Final

import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex_router.state.filter import Holds, compiled, path, reached
from capdex_router.state.values import canonical

MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 20
MAX_ORDERS: Final = 4
MAX_SELECTED: Final = 64
MAX_QUERY_BYTES: Final = 64 * 1024
MAX_CURSOR_CHARS: Final = 16 * 1024
MAX_KEY_CHARS: Final = 256  # of a text that objects are ordered by; the rest does not count

Key = tuple[Any, ...]  # a rank and a value for each field of the order, then the id
_CLAUSES: Final = ("select", "from", "where", "filter", "order", "limit", "cursor")


@dataclass(frozen=True, slots=True)
class _Descending:
    """A value that is less than what is less than it."""

    value: Any

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """A query that is ready to run. `order` has each field's path, and True if it descends."""

    holds: Holds
    order: tuple[tuple[tuple[str, ...], bool], ...] = ()
    selected: tuple[str, ...] | None = None
    limit: int = DEFAULT_LIMIT
    after: Key | None = None
    bound: str = ""
    text: bytes = b""  # a part that the JSON of every hit has; empty if none is known

    def key(self, value: Json, id_: str) -> Key:
        """Return what objects are sorted by: missing, null, booleans, numbers, texts, the rest."""
        return (*(_sort_key(value, steps, down) for steps, down in self.order), id_)

    def cursor(self, key: Key) -> str:
        """Return the cursor behind an object with a key."""
        plain = [part.value if isinstance(part, _Descending) else part for part in key]
        return base64.urlsafe_b64encode(orjson.dumps([self.bound, plain])).decode("ascii")

    def shown(self, value: Json) -> Json:
        """Return the selected fields of an object."""
        if self.selected is None:
            return value
        return {name: value[name] for name in self.selected if name in value}


def read(query: object) -> ObjectQuery:
    """Return the query of an ASM-QL object; `filter` is another word for `where`.

    `from` is not looked at here. Raises InvalidInput for anything that a query does not have, and
    for a cursor of another query.
    """
    if not isinstance(query, dict):
        raise _wrong("it is not an object")
    for clause in query:
        if clause not in _CLAUSES:
            raise _wrong(f"{clause[:32]!r} is not a part of a query: {', '.join(_CLAUSES)}")
    if "where" in query and "filter" in query:
        raise _wrong("it has where and filter, which are the same")
    where = query.get("where", query.get("filter", {}))
    text = canonical([where, query.get("order")])
    if len(text) > MAX_QUERY_BYTES:
        raise InvalidInput(
            f"the query has more than {MAX_QUERY_BYTES} bytes",
            Code.TOO_LARGE,
            fix="ask for less at once",
        )
    order = _order(query.get("order"))
    bound = hashlib.sha256(text).hexdigest()[:16]
    return ObjectQuery(
        compiled(where),
        order,
        _selected(query.get("select")),
        _limit(query.get("limit")),
        _after(query.get("cursor"), bound, order),
        bound,
        _text(where),
    )


def _sort_key(value: Json, steps: tuple[str, ...], down: bool) -> Any:
    first = next(reached(value, steps), ...)
    match first:
        case bool():
            key: tuple[int, Any] = 2, first
        case int() | float():
            key = 3, first
        case str():
            key = 4, first[:MAX_KEY_CHARS]
        case None:
            key = 1, 0
        case _:
            key = (0, 0) if first is ... else (5, 0)
    return _Descending(key) if down else key


def _order(value: object) -> tuple[tuple[tuple[str, ...], bool], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_ORDERS:
        raise _wrong(f"order is a list of at most {MAX_ORDERS} fields")
    fields = []
    for item in value:
        match item:
            case {"field": field, **rest} if rest.keys() <= {"direction"}:
                direction = rest.get("direction", "asc")
            case str():
                field, direction = item, "asc"
            case _:
                raise _wrong("an order is {field, direction}")
        if direction not in ("asc", "desc"):
            raise _wrong("a direction is asc or desc")
        fields.append((tuple(path(field)), direction == "desc"))
    return tuple(fields)


def _selected(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or len(value) > MAX_SELECTED
        or not all(isinstance(name, str) for name in value)
    ):
        raise _wrong(f"select is a list of at most {MAX_SELECTED} fields")
    for name in value:
        if "." in name:
            raise _wrong(f"select takes whole fields of an object, not a part as {name[:64]!r}")
    return tuple(dict.fromkeys(value))


def _limit(value: object) -> int:
    if value is None:
        return DEFAULT_LIMIT
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise _wrong(f"limit is a number from 1 to {MAX_LIMIT}")
    return value


def _after(cursor: object, bound: str, order: tuple[Any, ...]) -> Key | None:
    if cursor is None:
        return None
    try:
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("no cursor")
        content = orjson.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        made_for, (*parts, id_) = content
        if made_for != bound or len(parts) != len(order) or not isinstance(id_, str):
            raise ValueError("another query")
        keys = []
        for part, (_, down) in zip(parts, order, strict=True):
            key = _key_of(part)
            keys.append(_Descending(key) if down else key)
    except (ValueError, TypeError, binascii.Error):
        raise _wrong("its cursor is none of this query: begin without one") from None
    return (*keys, id_)


def _key_of(part: object) -> tuple[int, Any]:
    match part:
        case [2, bool() as value]:
            return 2, value
        case [3, int() | float() as value] if not isinstance(value, bool):
            return 3, value
        case [4, str() as value]:
            return 4, value
        case [0 | 1 | 5 as rank, 0]:
            return rank, 0
        case _:
            raise ValueError("no key")


def _text(where: Any) -> bytes:
    """Return what the JSON of an object has if a field of it, or an item there, is a certain text.

    A store passes over objects without it before it parses them.
    """
    for key, value in where.items():
        if not key.startswith("$"):
            wanted = value.get("$eq") if isinstance(value, dict) else value
            if isinstance(wanted, str):
                return orjson.dumps(wanted)
    return b""


def _wrong(why: str) -> InvalidInput:
    return InvalidInput(
        "the query cannot be used",
        why=why,
        fix='write it as in {"filter": {"field": 1}, "limit": 10}',
    )
