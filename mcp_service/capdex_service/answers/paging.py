"""Pages of an answer, by count and by size, and the opaque cursors between them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import orjson

from capdex.errors import InvalidInput
from capdex.json_schema.arguments import came

MAX_CURSOR_CHARS: Final = 512
MAX_PAGE_BYTES: Final = 32 * 1024  # of the items: a model reads them


def read_limit(given: object, most: int) -> int:
    """Return a limit that a client sent; raises InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        what, fix = f"limit is not a whole number from 1 to {most}", "give one, or leave it out"
        raise InvalidInput(what, why=came(given), fix=fix)
    return given


def fill(
    items: Iterable[Any], start: int, limit: int, most_bytes: int = MAX_PAGE_BYTES
) -> tuple[list[Any], int | None]:
    """Return the items from `start` on, and the start of the next page (None: there is none).

    A page has at most `limit` items, and ends before the item with which its JSON would be longer
    than `most_bytes`; a single item may be.
    """
    page: list[Any] = []
    size = 0
    for item in islice(items, start, None):
        size += size_of(item)
        if page and (len(page) == limit or size > most_bytes):
            return page, start + len(page)
        page.append(item)
    return page, None


def size_of(item: object) -> int:
    """Return the bytes that an item adds to a list in JSON."""
    return len(orjson.dumps(item)) + 1


def write_cursor(*position: str | int) -> str:
    """Return a cursor that holds this position."""
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode("ascii").rstrip("=")


def read_cursor(cursor: str, *shape: type) -> list[Any]:
    """Return the position in a cursor, of values of these types; raises InvalidInput."""
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        padded = cursor + "=" * (-len(cursor) % 4)
        position = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if [type(x) for x in position] != list(shape):
            raise ValueError("another shape")
        if any("\0" in x if type(x) is str else not 0 <= x < 2**63 for x in position):
            raise ValueError("no name or number of ours")
    except (ValueError, TypeError, binascii.Error):
        raise InvalidInput(
            "the cursor is not one of ours", fix="send next_cursor of the previous page, unchanged"
        ) from None
    return list(position)
