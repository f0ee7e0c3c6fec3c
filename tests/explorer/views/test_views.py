"""Values as pages show them: safe whatever they are."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from html import unescape
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from capdex.problems import Verdict
from capdex.yaml.characters import forbidden
from capdex_explorer.views import text
from capdex_explorer.views.environment import build_environment
from capdex_explorer.views.images import badge_svg, identicon, line_chart
from capdex_explorer.views.schema_rows import MAX_ROWS, schema_rows
from capdex_explorer.views.verdicts import BADGES, CHECKS, badge_of

ANYTHING = st.text(max_size=200)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "items", "type", "required", "enum", "a", "$ref", "anyOf"]
            )
            | st.text(max_size=8),
            inner,
            max_size=6,
        )
    ),
    max_leaves=40,
)


@given(ANYTHING)
def test_a_shown_text_has_no_character_that_cannot_be_seen(given: str) -> None:
    assert list(forbidden(text.visible(given).replace("\r", ""))) == []


@given(st.text("abc \n\u00e9\u4e2d\u05d0\U0001f600", max_size=100))
def test_an_ordinary_text_is_shown_as_it_is(given: str) -> None:
    assert text.visible(given) == given


def test_hidden_and_reordering_characters_are_shown_as_codes() -> None:
    assert text.visible("a\u202eb\u200bc\x00") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0000⟩"
    for mark in ("\u0301", "\u0e47", "\u064b", "\u05b0", "\u0941"):  # of five scripts
        assert text.visible("x" + mark * 50) == "x" + mark * 3 + "…"


@given(ANYTHING, st.lists(st.tuples(st.integers(-3, 220), st.integers(-3, 220)), max_size=5))
def test_a_highlighted_text_is_the_text_escaped(given: str, spans: list[tuple[int, int]]) -> None:
    found = text.highlighted({"text": given, "highlights": sorted(spans)})
    bare = str(found).replace("<mark>", "").replace("</mark>", "")
    assert "<" not in bare
    if not list(forbidden(given)) and "\r" not in given and text.visible(given) == given:
        assert unescape(bare) == given


@pytest.mark.parametrize(
    ("shown", "of", "spans", "found"),
    [
        ("A wind, a window", "wind", [(0, 4)], "A <mark>wind</mark>, a window"),
        ("今天天气好", "看天气", [(1, 3)], "今天<mark>天气</mark>好"),
        ("a <b> c", "<b>", [(0, 3)], "a &lt;b&gt; c"),
        ("(a+)+ b", "b", [(0, 1)], "(a+)+ <mark>b</mark>"),
        ("text", "", [], "text"),
        ("text", "ab", [(1, 1)], "text"),
    ],
)
def test_words_that_a_snippet_highlights_are_marked_in_another_text(
    shown: str, of: str, spans: list[tuple[int, int]], found: str
) -> None:
    assert text.marked(shown, {"text": of, "highlights": spans}) == found
    assert text.marked(shown, None) == escape(shown)


def test_words_of_numbers_times_and_sizes() -> None:
    assert text.number(1234567) == "1\u202f234\u202f567"
    assert text.number(0.25) == "0.2"
    assert (text.count(1, "name"), text.count(2, "name")) == ("1 name", "2 names")
    assert (text.count(0, "capability", "capabilities")) == "0 capabilities"
    assert [text.duration(x) for x in (None, 0, 0.3, 61, 90_000)] == [
        *("unknown", "0 s", "0.3 s", "1 min 1 s", "1 d 1 h"),
    ]
    assert (text.size(1200), text.size(150_000)) == ("1\u202f200 bytes", "150.0 kB")
    assert text.short_account("did:key:z6MkhaXgBZDvotDkL5257") == "did:key:z6Mkha…5257"
    assert text.short_hash("0x1234") == "0x1234"
    assert str(text.date(0)).startswith('<time datetime="1970-01-01T00:00:00Z"')


@given(JSON)
def test_any_schema_becomes_rows_within_the_bound(schema: Any) -> None:
    rows = schema_rows(schema)
    assert len(rows) <= MAX_ROWS
    for row in rows:
        assert isinstance(row["type"], str)
        assert all(isinstance(limit, str) for limit in row["limits"])


def test_nested_properties_and_items_are_rows_by_their_paths() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": ["string", "null"]}}},
            "c": {"type": "array", "items": {"type": "object", "properties": {"d": True}}},
            "e": {"enum": [1, "x"], "default": 1, "minimum": 0},
            "f": {"anyOf": [{"type": "string"}, {"$ref": "#/schema"}]},
        },
    }
    rows = {row["path"]: row for row in schema_rows(schema)}
    assert list(rows) == ["a", "a.b", "c", "c[].d", "e", "f"]
    assert (rows["a"]["required"], rows["a.b"]["required"]) == (True, False)
    assert rows["a.b"]["type"] == "string or null"
    assert rows["c"]["type"] == "array of object"
    assert (rows["e"]["limits"], rows["e"]["default"]) == (['one of 1, "x"', "minimum 0"], "1")
    assert rows["f"]["type"] == "string or #/schema"


def test_what_a_list_may_hold_is_a_row_of_its_own() -> None:
    days = {"type": "array", "items": {"enum": ["mon", "tue"]}}
    names = {"type": "array", "items": {"type": "string", "description": "Of a city."}}
    plain = {"type": "array", "items": {"type": "string"}}
    rows = schema_rows({"properties": {"days": days, "names": names, "plain": plain}})
    assert [row["path"] for row in rows] == ["days", "days[]", "names", "names[]", "plain"]
    assert rows[1]["limits"] == ['one of "mon", "tue"']
    assert rows[3]["description"] == "Of a city."


def test_a_deep_parameter_is_a_row_as_every_other() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for name in reversed("abcdefgh"):
        schema = {"type": "object", "properties": {name: schema}}
    assert [row["path"] for row in schema_rows(schema)][-1] == "a.b.c.d.e.f.g.h"


def test_a_name_of_a_parameter_imitates_no_path() -> None:
    schema = {
        "properties": {x: {"type": "string"} for x in ("a", "a.b", "a[]", "", "城市", "$x-1")}
    }
    paths = [row["path"] for row in schema_rows(schema)]
    assert paths == ["a", '"a.b"', '"a[]"', '""', "城市", "$x-1"]


def test_a_choice_of_many_short_values_is_not_shown_as_one_of_fewer() -> None:
    (limit,) = schema_rows({"properties": {"n": {"enum": list(range(60))}}})[0]["limits"]
    assert limit.endswith("…")


def test_every_verdict_has_a_badge_with_its_meaning() -> None:
    assert set(BADGES) == set(Verdict)
    assert len({badge.word for badge in BADGES.values()}) == len(BADGES)
    assert badge_of({"verification": {"verdict": None}}).word == "not judged"
    assert list(CHECKS) == ["event", "cid", "sha256", "manifest", "id", "signature", "binding"]


def test_a_badge_escapes_its_texts() -> None:
    svg = badge_svg("<a>", BADGES[Verdict.VERIFIED], "1.0.0&")
    assert "<a>" not in svg
    assert "&lt;a&gt;: ✓ authentic 1.0.0&amp;" in svg


@given(
    st.lists(
        st.tuples(st.floats(0, 1e9), st.none() | st.floats(0, 1e12, allow_subnormal=False)),
        max_size=30,
    )
)
@example([(0.0, None), (0.0, 2.2250738585072014e-308)])  # the smallest figure that is not zero
def test_a_chart_says_its_figures_in_words(points: list[tuple[float, float | None]]) -> None:
    points.sort(key=lambda point: point[0])
    chart = line_chart(points, title="Lag", unit=" s", window_s=3600)
    assert isinstance(chart, Markup)
    known = [value for _, value in points if value is not None]
    if len(points) < 2 or not known:
        assert "not enough samples yet" in chart
    else:
        assert "<title>Lag</title><desc>last " in chart
        for piece in str(chart).split('points="')[1:]:
            for point in piece.partition('"')[0].split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= 300
                assert 0 <= y <= 64


def test_linked_data_cannot_end_its_script() -> None:
    from capdex_explorer.views.environment import build_environment

    assets = {name: name for name in ("icon.svg", "app.css", "app.js", "htmx-4.0.1.min.js")}
    environment = build_environment(assets, {})
    made = environment.from_string("{{ value | tojson }}").render(value="</script><b>")
    assert "<" not in made
    assert json.loads(made) == "</script><b>"


def test_a_chain_is_linked_to_its_block_explorer_and_others_to_none() -> None:
    made = build_environment(defaultdict(str), {1: "https://scan.example"})
    source = '{% import "parts.html" as parts %}{{ parts.chain_link(chain, "tx", "0xab") }}'
    page = made.from_string(source)
    link = '<a href="https://scan.example/tx/0xab" rel="nofollow noopener ugc">'
    assert link in page.render(chain=1)
    assert page.render(chain=31337).strip() == ""
    told = defaultdict(str, chain_id=1, tx_hash="0xab", kind="published", block_number=7)
    told |= {"sequence": 1, "timestamp": 0, "replaced_by": ""}
    events = '{% import "parts.html" as parts %}{{ parts.events([event], "Events") }}'
    assert link in made.from_string(events).render(event=told)


@pytest.mark.parametrize(
    ("link", "host"),
    [
        ("https://example.org/a", "example.org"),
        ("http://example.org:8080/", "example.org:8080"),
        ("javascript:alert(1)", ""),
        ("https://good.example@evil.example/", ""),
        ("https://[", ""),
        ("data:text/html,x", ""),
    ],
)
def test_only_web_addresses_are_links_out(link: str, host: str) -> None:
    assert text.host_of(link) == host


def test_an_account_has_one_picture_in_any_case() -> None:
    assert identicon("0xAB") == identicon("0xab")
    assert identicon("0xab") != identicon("0xac")


def test_ages_are_in_their_largest_unit() -> None:
    midnight = time.time() // 86_400 * 86_400
    days = {0: "today", 1: "1 day ago", 45: "1 month ago", 800: "2 years ago"}
    assert {x: text.age(midnight - x * 86_400) for x in days} == days
    assert text.age(midnight - 60) == "1 day ago"
