"""Cursors of pages (indexer/capdex_indexer/query/search/cursor.py)."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.search.ranked import After
from capdex_indexer.query.search.cursor import read_cursor, write_cursor
from capdex_indexer.query.search.filters import SearchFilters

KEY = b"k" * 32
PLACES = st.builds(After, st.integers(0, 2), st.floats(width=32, allow_nan=False), st.text())


@given(st.text(), PLACES)
def test_a_cursor_is_read_again(query: str, after: After) -> None:
    cursor = write_cursor(KEY, query, SearchFilters(), after)
    if len(cursor) <= 512:
        assert read_cursor(KEY, cursor, query, SearchFilters()) == after


@pytest.mark.parametrize(
    ("key", "query", "filters"),
    [
        (b"x" * 32, "note", {}),
        (KEY, "notes", {}),
        (KEY, "note", {"tag": "a"}),
        (KEY, "note", {"not": {"tag": "a"}}),
        (KEY, "note", {"context_window": 5}),
    ],
)
def test_a_cursor_belongs_to_its_search_and_its_index(
    key: bytes, query: str, filters: dict[str, object]
) -> None:
    cursor = write_cursor(KEY, "note", SearchFilters(), After(0, 1.5, "note-taker"))
    with pytest.raises(InvalidInput):
        read_cursor(key, cursor, query, SearchFilters.parse(filters))


@given(
    st.text(max_size=300)
    | st.binary(max_size=60).map(lambda x: base64.urlsafe_b64encode(x).decode("ascii"))
)
def test_a_garbled_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_cursor(KEY, text, "", SearchFilters())
