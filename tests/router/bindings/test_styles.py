"""Arguments of `http` bindings in each style, against a second encoder and the protocol's table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.manifest.bindings.http_request import STYLES
from capdex_router.bindings.request import Outgoing, RequestTemplate

PROTOCOL = (Path(__file__).parents[3] / "docs/protocol.md").read_text("utf-8")
EXAMPLE: dict[str, Any] = {"a": "x y", "l": ["a", "b c"], "o": {"k": 1, "m": 2}}


def fill(arguments: dict[str, Any], method: str = "GET", url: str = "/", **fields: Any) -> Outgoing:
    binding = {"type": "http", "method": method, "url": f"https://a.b{url}", **fields}
    return RequestTemplate.of(binding).fill(arguments)


def written(place: str, name: str, value: Any, rule: dict[str, Any]) -> str:
    """What stands in a place for one argument."""
    url = f"/{{{name}}}" if place == "path" else "/"
    out = fill({name: value}, url=url, parameters={name: {"in": place, **rule}})
    if place == "header":
        return out.headers[name]
    return str(out.url).removeprefix("https://a.b/").removeprefix("?")


def table() -> list[tuple[str, dict[str, Any], str, str]]:
    header = "| place | style | explode | `a` | `l` | `o` |"
    rows = PROTOCOL[PROTOCOL.index(header) :].split("\n\n")[0].splitlines()[2:]
    found = []
    for row in rows:
        place, style, explode, *cells = (x.strip() for x in row.strip("|").split("|"))
        rule: dict[str, Any] = {}
        if "usual" not in style:
            rule["style"] = style
        if "usual" not in explode:
            rule["explode"] = explode == "true"
        found += [
            (place, rule, name, cell.strip("`")) for name, cell in zip("alo", cells, strict=True)
        ]
    return found


@pytest.mark.parametrize(("place", "rule", "name", "expected"), table())
def test_the_table_of_the_protocol_is_what_is_sent(
    place: str, rule: dict[str, Any], name: str, expected: str
) -> None:
    assert written(place, name, EXAMPLE[name], rule) == expected


# a second encoder, by the tables of RFC 6570 (2.3 and 3.2) and OpenAPI 3.1 (4.8.12.3) -----------


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def expanded(operator: str, name: str, value: Any, explode: bool) -> str:
    """Expand one variable of a URI template (RFC 6570, 3.2.1)."""
    first, separator, named, if_empty = {
        "": ("", ",", False, ""),
        ".": (".", ".", False, ""),
        ";": (";", ";", True, ""),
        "?": ("", "&", True, "="),
    }[operator]

    def code(x: Any) -> str:
        return quote(text(x), safe="")

    def pair(key: str, x: str) -> str:
        return f"{code(key)}={x}" if x else f"{code(key)}{if_empty}"

    if isinstance(value, dict) and explode:
        if operator in (";", "?"):
            return first + separator.join(f"{code(k)}={code(v)}" for k, v in value.items())
        return first + separator.join(f"{code(k)}={code(v)}" for k, v in value.items())
    if isinstance(value, list) and explode:
        items = [pair(name, code(x)) if named else code(x) for x in value]
        return first + separator.join(items)
    flat = [x for both in value.items() for x in both] if isinstance(value, dict) else value
    joined = ",".join(map(code, flat)) if isinstance(flat, list) else code(flat)
    return first + (pair(name, joined) if named else joined)


def expected_query(name: str, value: Any, style: str, explode: bool) -> str:
    if isinstance(value, dict) and style == "deepObject":
        return "&".join(
            f"{quote(f'{name}[{k}]', safe='')}={quote(text(v), safe='')}" for k, v in value.items()
        )
    if style == "form" or explode or not isinstance(value, list | dict):
        return expanded("?", name, value, explode or style == "deepObject")
    flat = [x for both in value.items() for x in both] if isinstance(value, dict) else value
    mark = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(style, ",")
    return f"{name}=" + mark.join(quote(text(x), safe="") for x in flat)


@pytest.mark.parametrize(
    ("place", "rule"),
    [
        ("query", {"style": style, "explode": explode})
        for style in STYLES["query"]
        for explode in (True, False)
    ]
    + [("path", {"style": style}) for style in STYLES["path"]]
    + [("header", {"explode": explode}) for explode in (True, False)],
)
def test_a_null_member_is_left_out_as_rfc_6570_says(place: str, rule: dict[str, Any]) -> None:
    with_null: list[Any] = [{"k": None, "m": 2, "n": None}, [None, "x", None]]
    for value, defined in zip(with_null, [{"m": 2}, ["x"]], strict=True):
        assert written(place, "p", value, rule) == written(place, "p", defined, rule)
    if place == "query":
        assert written(place, "p", {"k": None}, rule) == written(place, "p", [None], rule) == ""


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=6)
SCALARS = st.one_of(TEXTS, st.integers(-(2**53), 2**53), st.booleans())
KEYS = st.from_regex(r"k[a-z]{0,4}", fullmatch=True)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, min_size=1, max_size=4),
    st.dictionaries(KEYS, SCALARS, min_size=1, max_size=4),
)


@given(VALUES, st.sampled_from(STYLES["query"]), st.booleans())
def test_a_query_is_written_as_a_second_encoder_writes_it(
    value: Any, style: str, explode: bool
) -> None:
    explode = explode or style == "deepObject"
    if isinstance(value, list) and style == "deepObject":
        style = "form"  # which deepObject does not say
    rule = {"style": style, "explode": explode}
    assert written("query", "p", value, rule) == expected_query("p", value, style, explode)


@given(VALUES, st.sampled_from(STYLES["path"]), st.booleans())
def test_a_path_is_written_as_a_second_encoder_writes_it(
    value: Any, style: str, explode: bool
) -> None:
    operator = {"simple": "", "label": ".", "matrix": ";"}[style]
    expected = expanded(operator, "p", value, explode)
    rule = {"style": style, "explode": explode}
    decoded = unquote(unquote(expected)).replace("\\", "/")
    if not expected or any(x.partition(";")[0] in (".", "..") for x in decoded.split("/")):
        with pytest.raises(InvalidInput, match="would change the path"):
            written("path", "p", value, rule)
    else:
        assert written("path", "p", value, rule) == expected


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_form_is_read_as_it_was_written(members: dict[str, Any]) -> None:
    out = fill(
        members,
        "POST",
        body={"content": "application/x-www-form-urlencoded"},
        parameters={x: {"in": "body"} for x in members},
    )
    assert out.body is not None
    expected: list[tuple[str, str]] = []
    for name, value in members.items():
        if isinstance(value, dict):
            expected.append((name, orjson.dumps(value).decode()))
        else:
            expected += [(name, text(x)) for x in (value if isinstance(value, list) else [value])]
    assert parse_qsl(out.body.decode(), keep_blank_values=True) == expected
    assert out.headers["Content-Type"] == "application/x-www-form-urlencoded"


# what an argument may not do ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ({"o": {"key": 1}}, {"o": {"in": "query", "explode": True}}),
        ({"o": {"fixed": 1}}, {"o": {"in": "query", "explode": True}}),
        ({"o": {"KEY": 1}}, {"o": {"in": "query", "explode": True}}),
        (
            {"o": {"n": 1}},
            {"o": {"in": "query", "explode": True}, "p": {"in": "query", "name": "n"}},
        ),
        ({"o": {"n": 1}, "n": 2}, {"o": {"in": "query", "explode": True}}),
        ({"key": "mine"}, {}),
    ],
)
def test_no_key_of_an_argument_replaces_what_is_fixed_or_a_secret(
    arguments: dict[str, Any], rules: dict[str, Any]
) -> None:
    auth = [{"type": "query", "name": "key", "secret": "API_KEY"}]
    with pytest.raises(InvalidInput, match="would replace"):
        fill(arguments, url="/?fixed=1", parameters=rules, auth=auth)


def test_nothing_empty_fills_a_path() -> None:
    nothing: list[Any] = [None, [], {}, [None], {"k": None}]
    for value in nothing:
        with pytest.raises(InvalidInput, match="cannot be sent"):
            written("path", "p", value, {})


# bodies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[1, 2], {"a": {"b": None}}, "text", None, 3])
def test_one_argument_is_the_whole_body(value: Any) -> None:
    body = {"content": "application/merge-patch+json", "parameter": "labels"}
    out = fill({"labels": value}, "PATCH", body=body)
    assert json.loads(out.body or b"") == value
    assert out.headers["Content-Type"] == "application/merge-patch+json"


@pytest.mark.parametrize("value", [5, "a=b", [["a", "b"]], None])
def test_a_whole_form_is_an_object_or_nothing_is_sent(value: Any) -> None:
    body = {"content": "application/x-www-form-urlencoded", "parameter": "fields"}
    assert fill({"fields": {"a": 1}}, "POST", body=body).body == b"a=1"
    with pytest.raises(InvalidInput, match="fields cannot be sent"):
        fill({"fields": value}, "POST", body=body)


@pytest.mark.parametrize(
    ("method", "fields", "arguments", "body"),
    [
        ("POST", {}, {}, None),
        ("PUT", {"body": {"content": "application/json"}}, {}, b"{}"),
        ("DELETE", {}, {"a": 1}, None),
        ("DELETE", {"body": {"parameter": "a"}}, {"a": 1}, b"1"),
        ("PATCH", {}, {"a": None}, b'{"a":null}'),
    ],
)
def test_a_request_has_a_body_if_the_binding_says_so_or_an_argument_goes_there(
    method: str, fields: dict[str, Any], arguments: dict[str, Any], body: bytes | None
) -> None:
    out = fill(arguments, method, **fields)
    assert (out.method, out.body) == (method, body)
    assert ("Content-Type" in out.headers) == (body is not None)


@pytest.mark.parametrize("value", [["a"], "a", None])
def test_what_is_all_of_a_form_is_an_object(value: Any) -> None:
    body = {"content": "application/x-www-form-urlencoded", "parameter": "x"}
    with pytest.raises(InvalidInput, match="x cannot be sent"):
        fill({"x": value}, "POST", body=body)
    assert fill({"x": {"a": 1}}, "POST", body=body).body == b"a=1"
