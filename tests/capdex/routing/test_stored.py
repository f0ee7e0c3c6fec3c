"""Segments of triggers as bytes (capdex/routing/stored.py)."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.manifest.triggers import Trigger
from capdex.routing.segment import Segment, merge
from capdex.routing.stored import from_bytes, to_bytes
from capdex.routing.triggers import TriggerSet

SEGMENT = Segment.build(
    [
        ("a", [Trigger("keyword", "/weather"), Trigger("regex", r"\b(rain|snow) in (the )?\w+")]),
        ("b", [Trigger("regex", ".*"), Trigger("regex", r"\d+ (km|miles)\b")]),
        ("c", [Trigger("keyword", "天气预报"), Trigger("keyword", "/weather")]),
        ("d", []),
    ]
)
STORED = to_bytes(SEGMENT)
MESSAGES = ["/weather: will there be rain in the north?", "60 miles", "天气预报", ""]


def answers(segment: Segment) -> list[object]:
    triggers = TriggerSet([(segment, None)])
    return [triggers.match(message, 10) for message in MESSAGES]


def test_what_is_read_is_what_was_written() -> None:
    read = from_bytes(STORED)
    assert to_bytes(read) == STORED
    assert answers(read) == answers(SEGMENT)
    assert to_bytes(merge([(read, None)])) == to_bytes(merge([(SEGMENT, None)]))
    assert to_bytes(from_bytes(to_bytes(Segment.build([])))) == to_bytes(Segment.build([]))


def test_the_version_is_raised_when_the_same_triggers_give_other_bytes() -> None:
    # another digest: raise TRAITS_VERSION, or _FORMAT, so that what is saved is built again
    assert sha256(STORED).hexdigest()[:16] == "6089b4179d1ad8b8"


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
    cut = bytes(body[:end])
    try:
        segment = from_bytes(cut + sha256(cut).digest())
    except InvalidInput:
        return
    assert to_bytes(from_bytes(to_bytes(segment))) == to_bytes(segment)
    answers(segment)
