"""The filters of a search, and the opaque cursor of its pages."""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import InvalidInput
from indexer.projection.package_rows import MAX_FACET_CHARS, facet_value

FILTER_NAMES: Final = (
    *("name", "tag", "domain", "language", "author", "publisher", "license"),
    *("permission", "binding", "tool"),
)
MAX_CURSOR_CHARS: Final = 256
MAX_OFFSET: Final = 10_000  # enough for people; a crawler filters by name or reads the chain

_HAS: Final = (
    "EXISTS (SELECT 1 FROM facet WHERE facet.release_id = listing.release_id "
    "AND facet.key = :key{0} AND facet.value = :value{0})"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Exact values that a release must all have; made by `parse`."""

    values: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Filters:
        """Read `{filter: value}`; raises InvalidInput for an unknown filter or an invalid value."""
        values: list[tuple[str, str]] = []
        for key, value in sorted(given.items(), key=lambda item: str(item[0])):
            if key not in FILTER_NAMES:
                near = difflib.get_close_matches(str(key)[:64], FILTER_NAMES, n=1)
                fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(FILTER_NAMES)}"
                raise InvalidInput(f"there is no filter {str(key)[:64]!r}", fix=fix)
            if not isinstance(value, str) or not 0 < len(value) <= MAX_FACET_CHARS:
                raise InvalidInput(
                    f"the filter {key} is not a text of 1 to {MAX_FACET_CHARS} characters"
                )
            values.append((key, facet_value(key, value)))
        return cls(tuple(values))

    def condition(self) -> tuple[str, dict[str, str]]:
        """Return a SQL condition on `listing` and the values of its parameters."""
        parts = ["1 = 1"]
        parameters: dict[str, str] = {}
        for i, (key, value) in enumerate(self.values):
            parts.append(_HAS.format(i))
            parameters |= {f"key{i}": key, f"value{i}": value}
        return " AND ".join(parts), parameters


def write_cursor(query: str, filters: Filters, offset: int) -> str | None:
    """Return the cursor of the page that begins at `offset`; None beyond `MAX_OFFSET`."""
    if offset > MAX_OFFSET:
        return None
    text = json.dumps([offset, _fingerprint(query, filters)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def read_cursor(cursor: str | None, query: str, filters: Filters) -> int:
    """Return the offset in a cursor; raises InvalidInput if it is invalid or of another search."""
    if cursor is None:
        return 0
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        offset, fingerprint = json.loads(text)
        known = fingerprint == _fingerprint(query, filters)
        if type(offset) is not int or not 0 <= offset <= MAX_OFFSET:
            raise ValueError("no offset")
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise InvalidInput(
            "the cursor is not one of ours", fix="send next_cursor of the previous page, unchanged"
        ) from None
    if not known:
        raise InvalidInput(
            "the cursor belongs to another search",
            fix="send it with the query and the filters it came from",
        )
    return offset


def _fingerprint(query: str, filters: Filters) -> str:
    text = json.dumps([query, filters.values])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
