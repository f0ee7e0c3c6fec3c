"""Names that are near one that an address wanted."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest

from capdex_explorer.pages.discovery import MAX_COMPARED, nearest


def test_of_many_alike_names_few_are_compared_place_by_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    whole = SequenceMatcher.ratio

    def ratio(matcher: SequenceMatcher[str]) -> float:
        nonlocal compared
        compared += 1
        return whole(matcher)

    monkeypatch.setattr(SequenceMatcher, "ratio", ratio)
    alike = [f"{'ab' * 25}{number:04d}" for number in range(1000)]
    assert len(nearest(alike[7][::-1], alike, 0.6)) == 5
    assert 0 < compared <= 2 * MAX_COMPARED  # the nearest are asked twice
    assert nearest("wether", [*alike, "weather", "leather"], 0.6) == ["weather", "leather"]
