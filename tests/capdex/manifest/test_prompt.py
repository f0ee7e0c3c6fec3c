"""Placeholders of prompts."""

from __future__ import annotations

import pytest

from capdex.errors import Code, InvalidInput
from capdex.manifest.prompt import MAX_FILLED_CHARS, MAX_PLACEHOLDERS, fill, placeholders


def test_placeholders_are_names_in_double_braces_each_once() -> None:
    prompt = "{{place}} and {{ when }}, {{place}}; not {this}, {{ }}, {{1a}}, {{a-b}} or {{a b}}"
    assert placeholders(prompt) == ["place", "when"]


def test_a_prompt_has_a_bounded_number_of_placeholders() -> None:
    names = [f"n{i}" for i in range(MAX_PLACEHOLDERS + 1)]
    prompt = " ".join(f"{{{{{x}}}}}" for x in names)
    assert placeholders(prompt) == names[:-1]
    assert fill(prompt, dict.fromkeys(names, "v")).split()[-2:] == ["v", "{{n16}}"]


def test_values_replace_placeholders_and_are_not_searched_again() -> None:
    assert fill("{{a}}, {{ b }}, {{c}}", {"a": "{{b}}", "b": "2"}) == "{{b}}, 2, {{c}}"


def test_a_prompt_cannot_grow_without_bound() -> None:
    with pytest.raises(InvalidInput) as refused:
        fill("{{a}}" * 1000, {"a": "x" * 1000})
    assert refused.value.code is Code.TOO_LARGE
    longest = "x" * (MAX_FILLED_CHARS + 1)
    assert fill(longest, {}) == longest
