"""Front matter of a SKILL.md: what readers of skills take, and what they do not."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.yaml.front_matter import read_front_matter


@given(st.binary(max_size=500))
def test_any_bytes_are_judged(data: bytes) -> None:
    for text in (data, b"---\n" + data + b"\n---\nDo it."):
        with suppress(ValueError):
            assert isinstance(read_front_matter(text)[0].value, dict)


@pytest.mark.parametrize(
    ("front", "value"),
    [
        (b"a: use it: now", {"a": "use it: now"}),
        (b"a: 'use it'\nb: @x", {"a": "use it", "b": "@x"}),
        (b"a: [x]", {"a": ["x"]}),
        ("a: \u3000\nb: @x".encode(), {"a": "", "b": "@x"}),
    ],
)
def test_a_text_without_quotation_marks_is_read_as_one(front: bytes, value: object) -> None:
    reading, text = read_front_matter(b"---\n" + front + b"\n---\nDo it.\r\nNow.\n")
    assert (reading.value, text) == (value, "Do it.\nNow.\n")


@pytest.mark.parametrize(
    ("front", "value"),
    [
        (rb'a: "C:\Users\me"', {"a": r"C:\Users\me"}),
        (rb'a: "\d+ days"', {"a": r"\d+ days"}),
        (rb'a: "\d" or "\w"', {"a": r'"\d" or "\w"'}),
        (b'a: "caf\\xe9"\nb: @x', {"a": "caf\u00e9", "b": "@x"}),
        (b"a: 'it''s'\nb: @x", {"a": "it's", "b": "@x"}),
    ],
)
def test_a_backslash_that_yaml_has_no_meaning_for_is_one_of_the_text(
    front: bytes, value: object
) -> None:
    """Paths of Windows and regular expressions stand in quotation marks, as YAML advises."""
    assert read_front_matter(b"---\n" + front + b"\n---\nDo it.\n")[0].value == value


def test_the_first_error_says_why_front_matter_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="cannot be read: line 3: the alias"):
        read_front_matter(b"---\n- 010\n- *x\n---\nDo it.\n")
