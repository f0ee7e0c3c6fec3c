"""Texts of others are read as their formats say: YAML 1.2, JSON, and JSON with comments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.errors import InvalidInput, Unavailable
from capdex.manifest.manifest import Manifest
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.openapi.tool import import_openapi
from capdex_publisher.authoring.imports.source import parse, read_source, shown


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((x, x) for x in ("on", "off", "yes", "NO", "y", "12:30", "1_000", "0b11", "=")),
        *((x, x) for x in ("2020-01-31", "2020-01-31T00:00:00Z", "01234", "'1'", "1.2.3")),
        *(("1e5", 1e5), ("0o17", 15), ("0x1F", 31), ("-0.5", -0.5), ("1.0", 1.0), ("+3", 3)),
        *(("True", True), ("~", None), ("", None), ("!!str 12", "12"), ("!!int '3'", 3)),
        *((str(2**64), float(2**64)), (".inf", math.inf)),
    ],
)
def test_plain_text_of_yaml_is_read_by_its_core_schema(written: str, value: Any) -> None:
    read = parse(f"{written or '~'}: 1\nof: {written}\n".encode(), "rain.yaml")["of"]
    assert (read, type(read)) == (
        value.strip("'") if isinstance(value, str) else value,
        type(value),
    )


def test_words_of_an_older_yaml_stay_names_and_values(
    manifest_of: Callable[[Imported], Manifest],
) -> None:
    document = b"""
openapi: 3.1.0
info: {title: Rain}
servers: [{url: https://api.rain.dev}]
paths:
  /x:
    get:
      operationId: op
      parameters:
        - {name: no, in: query, schema: {type: string, enum: [yes, no, 01, 12:30]}}
        - {name: from, in: query, schema: {type: string, default: 2020-01-31T00:00:00Z}}
"""
    (tool,) = manifest_of(write_package(import_openapi(document, "rain", ()))).tools
    assert tool.parameters["properties"] == {
        "no": {"type": "string", "enum": ["yes", "no", "01", "12:30"]},
        "from": {"type": "string", "default": "2020-01-31T00:00:00Z"},
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://user:hunter2@api.rain.dev/doc.json", "https://api.rain.dev/doc.json"),
        ("https://user:hun@ter2@api.rain.dev:8443", "https://api.rain.dev:8443"),
        ("http://api.rain.dev/a@b?key=hunter2#c", "http://api.rain.dev/a@b"),
        ("http://api.rain.dev?key=hunter2/a@b", "http://api.rain.dev"),
        ("notes/a?b@c.json", "notes/a?b@c.json"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_key(given: str, told: str) -> None:
    assert shown(given) == told


@pytest.mark.parametrize("path", ["gone", "loop"])
async def test_no_error_of_a_url_shows_its_password(path: str) -> None:
    async def loop(request: web.Request) -> web.Response:
        raise web.HTTPFound(str(request.url))

    application = web.Application()
    application.router.add_get("/loop", loop)
    async with TestServer(application) as server:
        url = f"http://user:hunter2@127.0.0.1:{server.port}/{path}?key=hunter2"
        with pytest.raises(Unavailable) as error:
            await read_source(url)
    with pytest.raises(Unavailable) as unheard:
        await read_source("http://user:hunter2@127.0.0.1:99999/?key=hunter2")
    said = f"{error.value} {error.value.why} {unheard.value} {unheard.value.why}"
    assert f"/{path} could not be fetched" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "text", ["/a: 1\nb: 2\n/a: 3\n", "x: {200: a, '200': b}", "x:\n  - {k: 1, k: 1}\n"]
)
def test_a_key_that_stands_twice_in_yaml_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read") as error:
        parse(text.encode(), "rain.yaml")
    assert "stands twice" in error.value.why
    assert "line " in error.value.why


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb:\n\tc: 1\n", "line 3: found character"),
        ("a: 1\nb: !include c.yaml\n", "line 2: could not determine a constructor for the tag"),
        ("a: 1\n---\nb: 1\n", "line 2: but found another document"),
        ("a: [1\nb: 2\n", "line 2: did not find expected"),
    ],
)
def test_what_yaml_cannot_read_is_told_with_its_line(text: str, line: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse(text.encode(), "rain.yaml")
    assert line in error.value.why


@pytest.mark.parametrize("text", ["<!doctype html>\n<p>a: b: c</p>", " <a/>", "<html></html>"])
def test_a_page_is_no_document_and_its_own_address_is_asked_for(text: str) -> None:
    with pytest.raises(InvalidInput, match="docs cannot be read") as error:
        parse(text.encode(), "docs")
    assert "a page or XML" in error.value.why
    assert "/openapi.json" in error.value.fix


@pytest.mark.parametrize(
    "text",
    ['{"/a": 1, "b": 2, "/a": 3}', '[{"k": {"a": 1, "\\u0061": 1}}]', '{"a": 1, /* */ "a": 1,}'],
)
def test_a_key_that_stands_twice_in_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read") as error:
        parse(text.encode(), "rain.json")
    assert "stands twice" in error.value.why


def test_a_merged_mapping_may_have_a_key_that_stands_beside_it() -> None:
    text = "a: &a {k: 1, l: 2}\nb: &b {<<: *a, k: 3}\nc: {<<: [*a, *b], l: 4}\n"
    assert parse(text.encode(), "rain.yaml")["c"] == {"k": 1, "l": 4}


def test_of_several_merged_mappings_the_first_one_holds() -> None:
    text = "a: &a {in: query}\nb: &b {in: header, k: 1}\nc: {<<: [*a, *b]}\n"
    assert parse(text.encode(), "rain.yaml")["c"] == {"in": "query", "k": 1}


def test_json_may_have_comments_and_commas_at_its_ends() -> None:
    text = """// servers
    { /* of
    rain */ "a": ["https://rain.dev/*no*/", "a \\"// b",], // one
      "b": {"c": 1,  /* , */ },
      "d": ",]",
    }"""
    value = {"a": ["https://rain.dev/*no*/", 'a "// b'], "b": {"c": 1}, "d": ",]"}
    assert parse(text.encode(), "mcp.json") == value


@pytest.mark.parametrize("text", ['{"a": 1 "b": 2} // c', "{,}", "[1,,]", '{"a" /* b: 1}'])
def test_other_faults_of_json_are_told_as_they_are(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse(text.encode(), "mcp.json")
    assert "it is not JSON: " in error.value.why


def test_json_behind_a_byte_order_mark_is_json() -> None:
    value = {"rain": "\U0001f327", "much": 1e5}
    assert parse(b"\xef\xbb\xbf" + json.dumps(value).encode(), "rain.json") == value


async def test_a_source_that_moved_has_the_address_that_it_moved_to() -> None:
    async def found(_: web.Request) -> web.Response:
        return web.Response(text="{}")

    async def moved(_: web.Request) -> web.Response:
        raise web.HTTPFound("/v3/rain.json")

    app = web.Application()
    app.router.add_get("/v3/rain.json", found)
    app.router.add_get("/rain.json", moved)
    async with TestServer(app) as server:
        read = await read_source(str(server.make_url("/rain.json")))
        assert read == (b"{}", str(server.make_url("/v3/rain.json")))
