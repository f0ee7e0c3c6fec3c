"""Mapped parameters, fixed headers and named secrets of HTTP bindings (P10)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.diagnostics import Findings
from capdex.manifest.bindings.binding import read_bindings
from capdex.manifest.bindings.http_header import header_fault
from capdex.manifest.bindings.http_request import MAX_HEADERS, MAX_MAPPED
from capdex.manifest.fields import Fields
from capdex.manifest.tools import read_tools
from capdex.problems import Problem, Reason, Severity

URL = "https://api.example.com/v1"


def bind(
    names: tuple[str, ...] = ("city", "days"), type_: str = "http_get", **fields: Any
) -> list[Problem]:
    """The problems of a binding of a tool whose parameters have these names."""
    schema = {"type": "object", "properties": {name: {} for name in names}}
    function = {"name": "look", "description": "Looks.", "parameters": schema}
    binding = {"type": type_, "url": URL, **fields}
    findings = Findings()
    document = {
        "tools": [{"type": "function", "function": function}],
        "tool_bindings": {"look": binding},
    }
    top = Fields(document, (), findings)
    assert read_bindings(top, read_tools(top, {}), {}) == {"look": binding}
    return list(findings.problems())


def errors(problems: list[Problem]) -> list[tuple[Reason, str]]:
    paths = [
        (x.code, x.path.removeprefix("tool_bindings.look."))
        for x in problems
        if x.severity is Severity.ERROR
    ]
    assert all(code in Reason for code, _ in paths)
    return paths


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"city": {"in": "query", "name": "q"}}},
        {"parameters": {"city": {"in": "query"}, "days": {"in": "query", "name": "forecast"}}},
        {"parameters": {"city": {"in": "path", "name": "place"}}, "url": f"{URL}/{{place}}"},
        {"parameters": {"city": {"in": "path"}}, "url": f"{URL}/{{city}}"},
        {"parameters": {"city": {"in": "header", "name": "X-City"}}},
        {"parameters": {"city": {"in": "body", "name": "place"}}, "type_": "http_post"},
        {"parameters": {"city": {"in": "query"}}, "url": f"{URL}/{{city}}"},
        {"parameters": {}, "headers": {}},
        {"parameters": None, "headers": None, "auth": None},
        {"headers": {"Accept": "text/csv", "User-Agent": "weather (https://example.com/)"}},
        {"auth": {"type": "bearer", "secret": "WEATHER_API_KEY"}},
        {"auth": {"type": "basic", "secret": "K"}},
        {"auth": {"type": "header", "secret": "KEY2", "name": "X-API-Key"}},
        {"auth": {"type": "header", "secret": "KEY", "name": "Authorization"}},
    ],
)
def test_what_a_binding_may_send_is_read_without_a_problem(fields: dict[str, Any]) -> None:
    assert bind(**fields) == []


@pytest.mark.parametrize(
    ("mapping", "reason", "path"),
    [
        (5, Reason.WRONG_TYPE, "parameters"),
        ({"city": "query"}, Reason.WRONG_TYPE, "parameters.city"),
        ({"city": None}, Reason.WRONG_TYPE, "parameters.city"),
        ({"city": {}}, Reason.MISSING_FIELD, "parameters.city.in"),
        ({"city": {"in": "cookie"}}, Reason.BAD_BINDING, "parameters.city.in"),
        ({"city": {"in": "query", "name": 5}}, Reason.WRONG_TYPE, "parameters.city.name"),
        ({"city": {"in": "query", "name": "x" * 129}}, Reason.TOO_LARGE, "parameters.city.name"),
        ({"city": {"in": "query", "name": "a\nb"}}, Reason.BAD_BINDING, "parameters.city.name"),
        ({"town": {"in": "query"}}, Reason.BAD_BINDING, "parameters.town"),
        ({"city": {"in": "body"}}, Reason.BAD_BINDING, "parameters.city.in"),
        ({"city": {"in": "path"}}, Reason.BAD_BINDING, "parameters.city.in"),
        ({"city": {"in": "query", "name": "days"}}, Reason.BAD_BINDING, "parameters"),
        ({"city": {"in": "header", "name": "Host"}}, Reason.BAD_BINDING, "parameters.city.name"),
        ({"city": {"in": "header", "name": "a\r\nb"}}, Reason.BAD_BINDING, "parameters.city.name"),
        (
            {"city": {"in": "header", "name": "X-A"}, "days": {"in": "header", "name": "x-a"}},
            Reason.BAD_BINDING,
            "parameters",
        ),
    ],
)
def test_a_place_that_no_argument_can_go_to_is_refused(
    mapping: Any, reason: Reason, path: str
) -> None:
    assert (reason, path) in errors(bind(parameters=mapping))


def test_a_path_place_needs_its_placeholder_in_the_path_and_not_in_the_query() -> None:
    mapping = {"city": {"in": "path", "name": "place"}}
    found = errors(bind(url=f"{URL}?q={{place}}", parameters=mapping))
    assert (Reason.BAD_BINDING, "parameters.city.in") in found


def test_a_placeholder_is_not_filled_by_two_parameters() -> None:
    mapping = {"place": {"in": "path", "name": "city"}}
    problems = bind(("city", "place"), url=f"{URL}/{{city}}", parameters=mapping)
    assert errors(problems) == [(Reason.BAD_BINDING, "parameters")]


def test_there_are_bounds_on_mapped_parameters_and_headers() -> None:
    names = tuple(f"p{i}" for i in range(MAX_MAPPED + 1))
    problems = bind(names, parameters={name: {"in": "query"} for name in names})
    assert errors(problems) == [(Reason.TOO_MANY, "parameters")]
    headers = {f"X-{i}": "x" for i in range(MAX_HEADERS + 1)}
    assert errors(bind(headers=headers)) == [(Reason.TOO_MANY, "headers")]


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "COOKIE", "Proxy-Authorization", "Host", "content-length", "TE"),
        *("Transfer-Encoding", "Connection", "Upgrade", "Sec-Fetch-Mode", "Proxy-Connection"),
        *("X-HTTP-Method-Override", "", "a b", "a:b", "é", "a\r\nb", "x" * 65),
    ],
)
def test_a_package_sets_no_header_that_is_for_credentials_or_for_the_runtime(name: str) -> None:
    assert [code for code, _ in errors(bind(headers={name: "x"}))] == [Reason.BAD_BINDING]
    assert header_fault(name)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (5, Reason.WRONG_TYPE),
        (None, Reason.WRONG_TYPE),
        (["x"], Reason.WRONG_TYPE),
        ("a\nb", Reason.BAD_BINDING),
        ("é", Reason.BAD_BINDING),
        ("x" * 1025, Reason.BAD_BINDING),
        ("{city}", Reason.BAD_BINDING),
        ("}", Reason.BAD_BINDING),
    ],
)
def test_a_fixed_header_is_one_line_of_text_without_placeholders(
    value: Any, reason: Reason
) -> None:
    assert errors(bind(headers={"X-A": value})) == [(reason, "headers.X-A")]


def test_a_header_has_one_source() -> None:
    assert errors(bind(headers={"X-A": "1", "x-a": "2"})) == [(Reason.BAD_BINDING, "headers.x-a")]
    mapping = {"city": {"in": "header", "name": "x-a"}}
    assert errors(bind(headers={"X-A": "1"}, parameters=mapping)) == [
        (Reason.BAD_BINDING, "headers")
    ]
    auth = {"type": "header", "secret": "KEY", "name": "X-A"}
    assert errors(bind(headers={"X-A": "1"}, auth=auth)) == [(Reason.BAD_BINDING, "headers")]
    assert errors(bind(auth=auth, parameters=mapping)) == [(Reason.BAD_BINDING, "auth")]


@pytest.mark.parametrize(
    ("auth", "reason", "path"),
    [
        ("KEY", Reason.WRONG_TYPE, "auth"),
        ({"secret": "KEY"}, Reason.MISSING_FIELD, "auth.type"),
        ({"type": "digest", "secret": "KEY"}, Reason.BAD_BINDING, "auth.type"),
        ({"type": "bearer"}, Reason.MISSING_FIELD, "auth.secret"),
        ({"type": "bearer", "secret": 5}, Reason.WRONG_TYPE, "auth.secret"),
        ({"type": "header", "secret": "KEY"}, Reason.MISSING_FIELD, "auth.name"),
        ({"type": "header", "secret": "KEY", "name": "Host"}, Reason.BAD_BINDING, "auth.name"),
        ({"type": "header", "secret": "KEY", "name": "Cookie"}, Reason.BAD_BINDING, "auth.name"),
        ({"type": "bearer", "secret": "KEY", "name": "X"}, Reason.BAD_BINDING, "auth.name"),
        ({"type": "bearer", "secret": "KEY", "value": "x"}, Reason.BAD_BINDING, "auth.value"),
        ({"type": "bearer", "secret": "KEY", "token": "x"}, Reason.BAD_BINDING, "auth.token"),
    ],
)
def test_auth_names_a_secret_and_nothing_else(auth: Any, reason: Reason, path: str) -> None:
    assert (reason, path) in errors(bind(auth=auth))


VALUES = [
    "sk-proj-4f9bQ0aZ1xW7",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "hunter2",
    "4F9B0A1C7D2E4F9B0A1C7D2E4F9B0A1C",
    "MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U",
    "QWERTZUIOPASDFGHJKLYXCVBNM",
    "user:password",
    "Bearer KEY",
    "KEY ",
    " ",
    "A" * 65,
    "_NAME",
    "KEY__A",
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_in_the_place_of_a_name_is_refused_and_not_repeated(value: str) -> None:
    problems = bind(auth={"type": "bearer", "secret": value})
    assert errors(problems) == [(Reason.BAD_BINDING, "auth.secret")]
    (problem,) = problems
    assert not value.strip() or value not in problem.message + problem.hint


@pytest.mark.parametrize(
    ("fields", "warned"),
    [
        ({"headers": {"X-API-Key": "abc"}}, True),
        ({"headers": {"X-Token": "abc"}}, True),
        ({"headers": {"X-Page-Token-Style": "opaque"}}, False),
        ({"parameters": {"city": {"in": "header", "name": "X-Auth-Token"}}}, True),
        ({"parameters": {"city": {"in": "query", "name": "api_key"}}}, True),
        ({"parameters": {"city": {"in": "query", "name": "page_token"}}}, False),
    ],
)
def test_what_is_named_like_a_secret_is_labelled(fields: dict[str, Any], warned: bool) -> None:
    found = [(x.code, x.severity) for x in bind(**fields)]
    assert found == [(Reason.LINT_SECRET_VALUE, Severity.WARNING)] * warned


def test_other_types_have_no_such_fields() -> None:
    auth = {"type": "bearer", "secret": "KEY"}
    problems = bind(type_="nuwa_a2a", target_did="did:x:y", service_method="m", auth=auth)
    assert {(x.code, x.severity) for x in problems} == {(Reason.UNKNOWN_FIELD, Severity.NOTE)}


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
RULES = st.dictionaries(
    st.sampled_from(["city", "days", "x"]),
    ODD | st.fixed_dictionaries({"in": st.sampled_from(["path", "query", "header", "body"])}),
)


@given(
    st.sampled_from(["http_get", "http_post"]),
    ODD | RULES,
    ODD | st.dictionaries(st.text(max_size=6), st.text(max_size=6)),
    ODD | st.fixed_dictionaries({"type": st.sampled_from(["bearer", "header"]), "secret": ODD}),
)
def test_any_value_is_read_to_its_end(type_: str, mapping: Any, headers: Any, auth: Any) -> None:
    for problem in bind(type_=type_, headers=headers, auth=auth, parameters=mapping):
        assert problem.message.isprintable()


# the binding type `http` -------------------------------------------------------------------------


def http(names: tuple[str, ...] = ("city", "days"), method: str = "PATCH", **fields: Any) -> Any:
    return errors(bind(names, "http", method=method, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"city": {"in": "query", "style": "deepObject"}}},
        {"parameters": {"city": {"in": "header", "content": "application/json"}}},
        {"body": {"content": "application/vnd.api+json"}},
        {"body": {"parameter": "city"}, "parameters": {"days": {"in": "query"}}},
        {"auth": {"type": "bearer", "secret": "TOKEN"}},
        {
            "auth": [
                {"type": "header", "name": "X-A", "secret": "A"},
                {"type": "query", "name": "b", "secret": "B", "optional": True},
                {"type": "cookie", "name": "c", "secret": "C"},
            ]
        },
    ],
)
def test_what_http_may_say_has_no_problem(fields: dict[str, Any]) -> None:
    assert bind(("city", "days"), "http", method="PUT", **fields) == []


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"method": "TRACE"}, "method"),
        ({"method": "get"}, "method"),
        ({"method": "GET", "body": {}}, "body"),
        ({"method": "DELETE", "parameters": {"city": {"in": "body"}}}, "parameters.city.in"),
        ({"body": {"content": "text/plain"}}, "body.content"),
        ({"body": {"parameter": "place"}}, "body.parameter"),
        ({"body": {"parameter": "city"}}, "parameters"),
        ({"parameters": {"city": {"in": "path", "style": "form"}}}, "parameters.city.in"),
        ({"parameters": {"city": {"in": "query", "style": "matrix"}}}, "parameters.city.style"),
        ({"parameters": {"city": {"in": "body", "style": "form"}}}, "parameters.city.style"),
        (
            {
                "parameters": {
                    "city": {"in": "query", "style": "form", "content": "application/json"}
                }
            },
            "parameters.city.content",
        ),
        (
            {"parameters": {"city": {"in": "query", "content": "text/xml"}}},
            "parameters.city.content",
        ),
        ({"auth": [{"type": "query", "secret": "A"}]}, "auth[0].name"),
        ({"auth": [{"type": "cookie", "name": "a b", "secret": "A"}]}, "auth[0].name"),
        ({"auth": [{"type": "bearer", "secret": "A"}, {"type": "basic", "secret": "B"}]}, "auth"),
        (
            {
                "parameters": {"city": {"in": "query"}},
                "auth": [{"type": "query", "name": "city", "secret": "A"}],
            },
            "auth",
        ),
        (
            {"body": {"content": "application/json"}, "headers": {"content-type": "text/plain"}},
            "headers",
        ),
    ],
)
def test_what_http_may_not_say(fields: dict[str, Any], path: str) -> None:
    assert path in [x for _, x in http(**fields)]


def test_the_older_types_know_no_word_of_http() -> None:
    secrets = [{"type": "bearer", "secret": "A"}]
    assert [x for _, x in errors(bind(type_="http_post", auth=secrets))] == ["auth"]
    assert errors(bind(type_="http_get", auth={"type": "query", "name": "k", "secret": "A"}))
    noted = bind(type_="http_get", parameters={"city": {"in": "query", "style": "matrix"}})
    assert [x.code for x in noted] == [Reason.UNKNOWN_FIELD]
