"""The cursor of a search's pages: the place of the last hit, signed, bound to the search."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import struct
from dataclasses import astuple
from typing import Final

from capdex.errors import InvalidInput
from capdex.search.ranked import After
from capdex_indexer.query.search.filters import SearchFilters

MAX_CURSOR_CHARS: Final = 512
_TAG_BYTES: Final = 12
_PLACE: Final = struct.Struct(">Bf")  # lead and score; the name follows


def write_cursor(key: bytes, query: str, filters: SearchFilters, after: After) -> str:
    """Return the cursor of the page that begins after a place."""
    place = _PLACE.pack(after.lead, after.score) + after.name.encode("utf-8")
    tag = _tag(key, query, filters, place)
    return base64.urlsafe_b64encode(tag + place).decode("ascii").rstrip("=")


def read_cursor(key: bytes, cursor: str, query: str, filters: SearchFilters) -> After:
    """Return the place in a cursor; raises InvalidInput unless this search has made it."""
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        tag, place = data[:_TAG_BYTES], data[_TAG_BYTES:]
        if not hmac.compare_digest(tag, _tag(key, query, filters, place)):
            raise ValueError("another tag")
        lead, score = _PLACE.unpack_from(place)
        return After(lead, score, place[_PLACE.size :].decode("utf-8"))
    except (ValueError, struct.error, binascii.Error):
        raise InvalidInput(
            "the cursor is none of this search",
            fix="send next_cursor of the previous page, with the same query and filters",
        ) from None


def _tag(key: bytes, query: str, filters: SearchFilters, place: bytes) -> bytes:
    search = json.dumps([query, *astuple(filters)]).encode("ascii")
    return hmac.digest(key, search + b"\0" + place, "sha256")[:_TAG_BYTES]
