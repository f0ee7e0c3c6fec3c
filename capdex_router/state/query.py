"""Queries of `state.query` (ASM-QL, NIP-8): filter, order, selection, and pages by key. Pure.

A cursor holds the sort key and the id of the last object of a page, so that no page needs the ones
before it, and objects that come and go between two pages move no other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
import orjson
from msgspec import Meta

from capdex.errors import Code, InvalidInput, untrusted_text
from capdex.json import Json, object_of
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


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    field: str
    direction: Annotated[str, Meta(pattern=r"^(asc|desc)\Z")] = "asc"


class _Query(msgspec.Struct, forbid_unknown_fields=True):
    """A query as it is given."""

    select: Annotated[tuple[str, ...], Meta(max_length=MAX_SELECTED)] | None = None
    of: Any = msgspec.field(name="from", default=None)
    where: Any = msgspec.UNSET
    filter: Any = msgspec.UNSET
    order: Annotated[tuple[str | _Order, ...], Meta(max_length=MAX_ORDERS)] | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] | None = None
    cursor: Annotated[str, Meta(max_length=MAX_CURSOR_CHARS)] | None = None


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
    try:
        asked = msgspec.convert(query, _Query)
    except msgspec.ValidationError as error:
        raise _wrong(untrusted_text(str(error))) from None
    given = [x for x in (asked.where, asked.filter) if x is not msgspec.UNSET]
    if len(given) > 1:
        raise _wrong("it has where and filter, which are the same")
    if parts := [name for name in asked.select or () if "." in name]:
        raise _wrong(f"select takes whole fields of an object, not a part as {parts[0][:64]!r}")
    where = given[0] if given else {}
    text = canonical([where, object_of(query).get("order")])
    if len(text) > MAX_QUERY_BYTES:
        raise InvalidInput(
            f"the query has more than {MAX_QUERY_BYTES} bytes",
            Code.TOO_LARGE,
            fix="ask for less at once",
        )
    order = tuple(map(_order, asked.order or ()))
    bound = hashlib.sha256(text).hexdigest()[:16]
    return ObjectQuery(
        compiled(where),
        order,
        asked.select and tuple(dict.fromkeys(asked.select)),
        asked.limit or DEFAULT_LIMIT,
        _after(asked.cursor, bound, order),
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


def _order(asked: str | _Order) -> tuple[tuple[str, ...], bool]:
    field = _Order(asked) if isinstance(asked, str) else asked
    return tuple(path(field.field)), field.direction == "desc"


def _after(cursor: str | None, bound: str, order: tuple[Any, ...]) -> Key | None:
    if cursor is None:
        return None
    try:
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
        fix='write it as in {"filter": {"field": 1}, "limit": 10}; select, from, order and cursor '
        "are its other parts",
    )
