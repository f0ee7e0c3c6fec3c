"""Query strings are read strictly, and every fault in one is said."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_indexer.query.search.filters import MAX_VALUES
from capdex_service.http.parameters import choice, number, read_parameters, required, words
from capdex_service.http.v1 import read_resolve, read_search

KNOWN = ("uri", "include")


def test_parameters_are_decoded_and_lists_may_be_written_both_ways() -> None:
    given = read_parameters(
        b"uri=did%3Anuwa%3Acap%3Anote%40%5E1&include=a,b&include=c", KNOWN, ("include",)
    )
    assert given["uri"] == "did:nuwa:cap:note@^1"
    assert words(given, "include") == ["a", "b", "c"]
    assert words({}, "include") == []
    assert read_parameters(b"uri=%E8%AE%B0+x", KNOWN) == {"uri": "记 x"}


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        (b"url=x", "there is no parameter 'url'"),
        (b"uri=x&uri=y", "uri is given twice"),
        (b"uri=%00", "NUL"),
        (b"uri=%ff", "cannot be read"),
        (b"uri=\xff", "cannot be read"),
        (b"&".join([b"uri=x"] * 81), "cannot be read"),
    ],
)
def test_a_fault_is_said(query: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        read_parameters(query, KNOWN)


def test_a_search_has_words_beside_as_many_values_as_filters_take() -> None:
    read_search(b"q=x&limit=5&" + b"&".join(b"tag=t%d" % i for i in range(MAX_VALUES)))


def test_values_are_checked() -> None:
    assert number({}, "limit", 7) == 7
    assert number({"limit": "12"}, "limit", 7) == 12
    for wrong in ("", "-1", "1.0", "1e3", "٣", "9" * 16, "01", "8k", "null"):
        for name in ("limit", "context_window"):
            with pytest.raises(InvalidInput, match=f"{name} is not a whole number"):
                read_search(f"{name}={quote(wrong)}".encode())
    with pytest.raises(InvalidInput, match="not a whole number from 1 to 50"):
        read_search(b"limit=51")
    assert choice({}, "level", ("a", "b"), "a") == "a"
    with pytest.raises(InvalidInput, match="one of a, b"):
        choice({"level": "c"}, "level", ("a", "b"), "a")
    for missing in ({}, {"uri": ""}):
        with pytest.raises(InvalidInput, match="uri is missing"):
            required(missing, "uri")


@given(st.binary(max_size=80))
def test_any_query_string_is_read_or_refused(query: bytes) -> None:
    for read in (read_resolve, read_search):
        with suppress(InvalidInput):
            read(query)
