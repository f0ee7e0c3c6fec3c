"""Windows of texts as numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from capdex.routing.patterns import MAX_GRAM
from capdex.routing.segment import gram, grams, may_have, table

TEXTS = st.text(max_size=40) | st.text(st.characters(), max_size=40)


@given(TEXTS)
def test_the_windows_of_a_text_are_those_of_its_parts(text: str) -> None:
    parts = {
        text[at : at + length]
        for length in range(1, MAX_GRAM + 1)
        for at in range(len(text) - length + 1)
    }
    assert set(grams(text).tolist()) == {gram(part) for part in parts}
    assert len({gram(part) for part in parts}) == len(parts)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(0, 2**64 - 1))
def test_a_table_has_every_number_that_it_was_made_of(numbers: list[int], other: int) -> None:
    bits = table(np.array(numbers, np.uint64))
    assert may_have(bits, np.array(numbers, np.uint64)).all()
    assert may_have(bits, np.array([other], np.uint64)).shape == (1,)


def test_a_table_rules_most_others_out() -> None:
    random = np.random.default_rng(1)
    numbers = random.integers(0, 2**63, 1_000, np.uint64) * np.uint64(2)
    assert may_have(table(numbers), numbers + np.uint64(1) ^ np.uint64(1 << 50)).mean() < 0.2
