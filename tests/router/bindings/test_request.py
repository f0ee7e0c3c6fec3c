"""Arguments become the request that the binding says, and change nothing else of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_router.bindings.request import Outgoing, RequestTemplate, check_header


def fill(url: str, arguments: dict[str, Any], type_: str = "http_get", **fields: Any) -> Outgoing:
    return RequestTemplate.of({"type": type_, "url": url, **fields}).fill(arguments)


@pytest.mark.parametrize(
    ("url", "arguments", "expected"),
    [
        ("https://a.b/v1", {"q": "Oslo"}, "https://a.b/v1?q=Oslo"),
        ("https://a.b", {}, "https://a.b/"),
        ("https://a.b/v1?k=1", {"q": "a b&c=d"}, "https://a.b/v1?k=1&q=a%20b%26c%3Dd"),
        ("https://a.b/{x}", {"x": "a/b", "y": 1}, "https://a.b/a%2Fb?y=1"),
        ("https://a.b/{x}/{x}", {"x": "é"}, "https://a.b/%C3%A9/%C3%A9"),
        ("https://a.b/?q={x}", {"x": "a&b=c#d"}, "https://a.b/?q=a%26b%3Dc%23d"),
        ("https://a.b/u/{x}", {"x": "me@c.d"}, "https://a.b/u/me%40c.d"),
        (
            "https://a.b/größe%20天/?ü={x}",
            {"x": "é"},
            "https://a.b/gr%C3%B6%C3%9Fe%20%E5%A4%A9/?%C3%BC=%C3%A9",
        ),
        ("https://a.b/#f", {"q": True}, "https://a.b/?q=true"),
        ("HTTPS://a.b/v1", {}, "https://a.b/v1"),
        ("https://a.b/", {"q": ["a", 1, None]}, "https://a.b/?q=a&q=1"),
        ("https://a.b/", {"q": {"a": 1}}, "https://a.b/?q=%7B%22a%22%3A1%7D"),
        ("https://a.b/", {"q": None, "r": 1.5}, "https://a.b/?r=1.5"),
    ],
)
def test_arguments_fill_placeholders_and_the_query(
    url: str, arguments: dict[str, Any], expected: str
) -> None:
    assert str(fill(url, arguments).url) == expected


def test_a_post_sends_what_is_left_as_json() -> None:
    out = fill("https://a.b/{x}", {"x": "1", "y": [1, None]}, "http_post")
    assert (str(out.url), out.body) == ("https://a.b/1", b'{"y":[1,null]}')
    assert out.headers["Content-Type"] == "application/json"


def test_parameters_go_where_the_binding_says() -> None:
    out = fill(
        "https://a.b/{town}",
        {"place": "Oslo", "unit": "c", "key": "k", "note": "n", "rest": 1},
        "http_post",
        parameters={
            "place": {"in": "path", "name": "town"},
            "unit": {"in": "query", "name": "units"},
            "key": {"in": "header", "name": "X-Key"},
            "note": {"in": "body", "name": "text"},
        },
        headers={"X-Fixed": "yes"},
    )
    assert str(out.url) == "https://a.b/Oslo?units=c"
    assert out.body == b'{"text":"n","rest":1}'
    assert (out.headers["X-Key"], out.headers["X-Fixed"]) == ("k", "yes")


def test_a_header_of_the_package_replaces_the_routers_own_in_any_case() -> None:
    headers = {"accept": "text/csv", "content-type": "application/vnd.api+json"}
    out = fill("https://a.b/", {}, "http_post", headers=headers)
    assert out.headers == headers


def test_what_is_absent_or_blank_counts_as_not_written() -> None:
    out = fill("https://a.b/", {"q": 1}, parameters=None, headers=None)
    assert str(out.url) == "https://a.b/?q=1"
    out = fill("https://a.b/", {"q": 1}, parameters={"q": {"in": "query", "name": " "}})
    assert str(out.url) == "https://a.b/?q=1"


@pytest.mark.parametrize(
    "value",
    ["..", ".", "../x", "a/../b", "..\\x", "%2e%2e", "%2E%2e/x", "..;a", "../../etc"],
)
def test_an_argument_does_not_change_the_path(value: str) -> None:
    with pytest.raises(InvalidInput, match="path"):
        fill("https://a.b/files/{x}", {"x": value})


def test_two_arguments_do_not_make_dots_together() -> None:
    with pytest.raises(InvalidInput, match="path"):
        fill("https://a.b/files/{x}{y}/c", {"x": ".", "y": "."})


@pytest.mark.parametrize("url", ["https://a.b/files/{x}", "https://a.b/files/{x}/lines"])
def test_an_empty_argument_does_not_lead_to_the_list_of_all(url: str) -> None:
    with pytest.raises(InvalidInput, match="would change the path"):
        fill(url, {"x": ""})
    assert str(fill("https://a.b/files/a{x}/", {"x": ""}).url) == "https://a.b/files/a/"


@pytest.mark.parametrize("value", ["a\r\nHost: c", "\n", "\x00", "\x7f", "\ud800"])
def test_control_characters_reach_neither_a_path_nor_a_header(value: str) -> None:
    with pytest.raises(InvalidInput):
        fill("https://a.b/{x}", {"x": value})
    with pytest.raises(InvalidInput):
        fill("https://a.b/", {"x": value}, parameters={"x": {"in": "header", "name": "X-A"}})


@pytest.mark.parametrize("value", [None, [], {}, "missing"])
def test_a_placeholder_needs_a_scalar(value: Any) -> None:
    arguments = {} if value == "missing" else {"x": value}
    with pytest.raises(InvalidInput, match="x"):
        fill("https://a.b/{x}", arguments)


@pytest.mark.parametrize(
    "url",
    [
        *("https://{x}/", "https://a.{x}/", "https://a.b:{x}/", "ftp://a.b/", "//a.b/", ""),
        *("https://u@a.b/", "https:///x", "https://a.b\\@c.d/"),
    ],
)
def test_a_placeholder_or_a_fault_in_the_host_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        fill(url, {"x": "evil.example"})


@pytest.mark.parametrize("path", ["a/../b", "a/%2e%2E/b", "./{x}", "a/.;v=1/b"])
def test_dots_of_the_author_are_no_fault_of_an_argument(path: str) -> None:
    with pytest.raises(InvalidInput, match="the binding of this tool cannot be used") as refused:
        fill(f"https://a.b/{path}", {"x": "1"})
    assert refused.value.why == "a segment of its path is `.` or `..`"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Host",
            "Authorization",
            "content-length",
            "Transfer-Encoding",
            "Connection",
            "Cookie",
            "Proxy-Connection",
        ),
        *("Sec-Fetch-Mode", "a b", "a:b", "", "é", "a\r\nb"),
    ],
)
def test_a_header_that_frames_the_message_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_header(name, "x")


def test_arguments_that_make_a_long_url_are_refused() -> None:
    with pytest.raises(InvalidInput, match="long"):
        fill("https://a.b/", {"x": "y" * 9000})


@pytest.mark.parametrize("type_", ["http_get", "http_post"])
@pytest.mark.parametrize(
    "name",
    [
        *("action", "Action", "ACTION", "%61ction", "%2561ction", " action", "action[]"),
        *("action[0]", "[action]", "scope.of", "scope_of", "scope of", "own", "own[A]", "own[a][]"),
        *("action\0", "action%00x"),
    ],
)
def test_no_argument_repeats_a_key_that_the_author_wrote(type_: str, name: str) -> None:
    url = "https://a.b/?%61ction=read&scope.of=me;own[a]=1&last={x}"
    with pytest.raises(InvalidInput, match="would replace"):
        fill(url, {"x": "1", name: "delete"}, type_)
    with pytest.raises(InvalidInput, match="would replace"):
        fill(url, {"x": "1", "y": 1}, type_, parameters={"y": {"in": "query", "name": name}})


def test_an_argument_beside_the_keys_of_the_author_is_sent() -> None:
    out = fill("https://a.b/?page[size]=9&&q={x}", {"x": "1", "page[number]": 2, "actions": "a"})
    assert parse_qsl(out.url.raw_query_string) == [
        *(("page[size]", "9"), ("q", "1"), ("page[number]", "2"), ("actions", "a")),
    ]


def test_a_key_that_an_argument_makes_is_none_of_the_author() -> None:
    url = "https://a.b/?{field}={value}&filter[{field}]=1&action=read&filter[own]=me"
    assert fill(url, {"field": "name", "value": 1}).url.query["name"] == "1"
    for field in ("action", "ACTION[]", "own"):
        with pytest.raises(InvalidInput, match="would replace"):
            fill(url, {"field": field, "value": "delete"})


@pytest.mark.parametrize(
    "more",
    [
        {"parameters": {"more": {"in": "body", "style": "form", "explode": True}}},
        {"body": {"content": "application/x-www-form-urlencoded", "parameter": "more"}},
    ],
)
def test_no_field_of_a_form_replaces_what_the_author_wrote(more: dict[str, Any]) -> None:
    """Servers of PHP and Java read a field of a form as one of the query."""
    fields = {"method": "POST", "body": {"content": "application/x-www-form-urlencoded"}, **more}
    url = "https://a.b/?mode=draft"
    assert fill(url, {"more": {"to": "x"}}, "http", **fields).body == b"to=x"
    for name in ("mode", "MODE[]"):
        with pytest.raises(InvalidInput, match="would replace"):
            fill(url, {"more": {"to": "x", name: "send"}}, "http", **fields)


FORM_BODY = {"content": "application/x-www-form-urlencoded"}


def test_a_form_of_very_many_arguments_is_made_at_once() -> None:
    """A comparison of each name with all others would take minutes."""
    given = {f"k{number}": "x" for number in range(20_000)}
    made = fill("https://a.b/", given, "http", method="POST", body=FORM_BODY)
    assert dict(parse_qsl((made.body or b"").decode(), max_num_fields=20_000)) == given


def test_no_argument_replaces_a_header_that_the_author_wrote() -> None:
    for name in ("X-Mode", "x-mode"):
        parameters = {"mode": {"in": "header", "name": name}}
        with pytest.raises(InvalidInput, match="would replace"):
            fill("https://a.b/", {"mode": "w"}, parameters=parameters, headers={"X-mode": "r"})


INTEGERS = st.integers(-(2**63), 2**64 - 1)  # as the pipeline lets them through
SCALARS = st.text() | INTEGERS | st.floats(allow_nan=False) | st.booleans()


@given(SCALARS, SCALARS)
def test_no_argument_leaves_its_place(x: Any, q: Any) -> None:
    """Either the arguments are refused, or both are read back from where they belong."""
    try:
        url = str(fill("https://a.b/v1/{x}/end", {"x": x, "q": q}).url)
    except InvalidInput:
        return
    parts = urlsplit(url)
    first, version, segment, end = parts.path.split("/")
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "a.b", "")
    assert (first, version, end) == ("", "v1", "end")
    assert [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)] == ["q"]
    if isinstance(x, str):
        assert unquote(segment) == x
    if isinstance(q, str):
        assert dict(parse_qsl(parts.query, keep_blank_values=True))["q"] == q
