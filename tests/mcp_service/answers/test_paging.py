"""Pages are bounded by count and by size, and their cursors are checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_service.answers.paging import fill, read_cursor, write_cursor


@given(st.lists(st.text(max_size=40)), st.integers(1, 5), st.integers(1, 100))
def test_the_pages_together_are_all_items_in_order(
    items: list[str], limit: int, most_bytes: int
) -> None:
    seen: list[str] = []
    start: int | None = 0
    while start is not None:
        page, start = fill(iter(items), start, limit, most_bytes)
        assert len(page) <= limit
        assert page or not items
        seen += page
    assert seen == items


def test_a_page_ends_before_it_grows_too_large() -> None:
    assert fill(["x" * 60] * 3, 0, 10, 100) == (["x" * 60], 1)
    assert fill(["x" * 200], 0, 10, 100) == (["x" * 200], None)


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=64),
    st.integers(0, 2**63 - 1),
)
def test_a_cursor_gives_back_its_position(name: str, number: int) -> None:
    assert read_cursor(write_cursor(name, number), str, int) == [name, number]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "é",
        "AAAA",
        write_cursor(1, "a"),
        write_cursor("a"),
        "W" * 600,
        write_cursor("a", -1),
        write_cursor("a\0", 1),  # which PostgreSQL does not take
    ],
)
def test_a_cursor_of_another_kind_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="not one of ours"):
        read_cursor(cursor, str, int)
