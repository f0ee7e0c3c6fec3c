"""Segments as bytes (capdex/search/segments/stored.py)."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.search.document import Document, ToolText
from capdex.search.segments.segment import WordSegment
from capdex.search.segments.stored import from_bytes, to_bytes

SEGMENT = WordSegment.build(
    [
        Document(
            "a", {"title": "Weather"}, (ToolText("x", "One"), ToolText("y", "Two")), (("tag", "b"),)
        ),
        Document("b", {"title": "Tides"}, numbers={"published": 3.0}),
    ]
)
STORED = to_bytes(SEGMENT)


def sealed(body: bytes) -> bytes:
    return body + sha256(body).digest()


def test_what_is_read_is_what_was_written() -> None:
    assert to_bytes(from_bytes(STORED)) == STORED
    assert to_bytes(from_bytes(to_bytes(WordSegment.build([])))) == to_bytes(WordSegment.build([]))


@given(st.integers(0, len(STORED) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused(at: int, change: int) -> None:
    damaged = bytearray(STORED)
    damaged[at] ^= change
    with pytest.raises(InvalidInput, match="stored segment"):
        from_bytes(bytes(damaged))


@given(st.integers(0, len(STORED) - 1))
def test_cut_bytes_are_refused(end: int) -> None:
    with pytest.raises(InvalidInput):
        from_bytes(STORED[:end])


@given(st.data())
def test_bytes_with_a_digest_that_holds_are_a_segment_or_refused(data: st.DataObject) -> None:
    body = bytearray(STORED[:-32])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(32, len(body) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.sampled_from([len(body), len(body) - 8, len(body) - 64]))
    try:
        segment = from_bytes(sealed(bytes(body[:end])))
    except InvalidInput:
        return
    assert to_bytes(from_bytes(to_bytes(segment))) == to_bytes(segment)
