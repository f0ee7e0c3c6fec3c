"""JSON of other programs: what is parsed, and what is refused before it costs anything."""

from __future__ import annotations

import pytest

from capdex.net.json_reply import MAX_DEPTH, parse

LIMITS = {"long_bytes": 1000, "min_value_bytes": 8}


@pytest.mark.parametrize("text", [b"1", b"[]", b'{"a":[1,{"b":null}]}', b'"[[[["'])
def test_usual_json_is_parsed(text: bytes) -> None:
    assert parse(text, **LIMITS) is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":123456789012345678901}', {"a": "123456789012345678901"}),
        (b"[-99999999999999999999,1]", ["-99999999999999999999", 1]),
        (b" 18446744073709551616", "18446744073709551616"),
        (b"[9223372036854775807,1e30]", [2**63 - 1, 1e30]),
        (b"12345678901234567890123.5", 12345678901234567890123.5),
        (b"[0.12345678901234567890123]", [0.12345678901234567890123]),
        (
            rb'{"a":"\":12345678901234567890,","b":"\\"}',
            {"a": '":12345678901234567890,', "b": "\\"},
        ),
    ],
)
def test_a_whole_number_that_would_lose_digits_is_a_text(text: bytes, value: object) -> None:
    assert parse(text, **LIMITS) == value


@pytest.mark.parametrize("text", [b'"\\', b'12345678901234567890"', b"012345678901234567890"])
def test_long_digits_make_no_json_of_what_is_none(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not JSON$"):
        parse(text, **LIMITS)


def test_the_deepest_value_allowed_is_parsed_and_one_level_more_is_not() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, **LIMITS) is not None
    with pytest.raises(ValueError, match=r"^nested too deep$"):
        parse(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), **LIMITS)


@pytest.mark.parametrize("text", [b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_what_the_parser_itself_gives_up_on_has_the_same_words(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^nested too deep$"):
        parse(text, long_bytes=1 << 20, min_value_bytes=8)


def test_a_long_text_of_tiny_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ValueError, match=r"^megabytes of next to nothing$"):
        parse(b"[" + b"[]," * 400, **LIMITS)  # it would not parse at all
    assert len(parse(b"[" + b"[]," * 300 + b"[]]", **LIMITS)) == 301


@pytest.mark.parametrize("text", [b"", b"[", b"<html>", b"NaN", b"\xff", b"1 2", b"\xef\xbb\xbf1"])
def test_what_is_no_json_is_said_to_be_none(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not JSON$"):
        parse(text, **LIMITS)
