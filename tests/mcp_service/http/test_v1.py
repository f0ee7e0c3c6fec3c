"""The pages of `/v1`: the answers of the tools, conditional requests, and typed errors."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from jsonschema import Draft202012Validator

from capdex_service.answers.hit_schemas import RESULTS_SCHEMA
from capdex_service.answers.schemas import RESOLUTION_SCHEMA

PROBLEM = "application/problem+json"
NOTE = "/v1/resolve?uri=did:nuwa:cap:note"


async def get(http: aiohttp.ClientSession, path: str, **headers: str) -> tuple[int, Any]:
    """Status and JSON of a page."""
    async with http.get(path, headers=headers) as answer:
        failed = answer.status >= 400
        assert answer.content_type == (PROBLEM if failed else "application/json")
        assert answer.headers["Cache-Control"] == ("no-store" if failed else "no-cache")
        return answer.status, await answer.json()


async def test_a_uri_is_resolved(http: aiohttp.ClientSession) -> None:
    status, answer = await get(http, NOTE)
    assert (status, answer["semver"], answer["acp_metadata"]["name"]) == (200, "1.1.0", "Note")
    Draft202012Validator(RESOLUTION_SCHEMA).validate(answer)
    _, answer = await get(http, "/v1/resolve?uri=did%3Anuwa%3Acap%3Anote%40%3C1.1")
    assert answer["semver"] == "1.0.0"


async def test_parts_of_a_package_are_included(tools_http: aiohttp.ClientSession) -> None:
    path = "/v1/resolve?uri=did:nuwa:cap:guide&include=prompt,tools&include=history"
    _, answer = await get(tools_http, path)
    assert answer["prompt"] == "Do it."
    assert [x["function"]["name"] for x in answer["tools"]] == ["ask", "look"]
    assert [x["semver"] for x in answer["history"]] == ["1.10.0", "1.2.0", "1.0.0"]


async def test_a_search_takes_words_filters_and_pages(tools_http: aiohttp.ClientSession) -> None:
    _, answer = await get(tools_http, "/v1/search?q=place&domain=travel&detail=full&facets=domain")
    Draft202012Validator(RESULTS_SCHEMA).validate(answer)
    assert answer["list_of_results"][0]["cap_uri"] == "did:nuwa:cap:guide@1.10.0"
    assert answer["facets"] == {"domain": [{"value": "travel", "count": answer["total"]}]}
    _, first = await get(tools_http, "/v1/search?limit=3")
    _, second = await get(tools_http, f"/v1/search?limit=3&cursor={first['next_cursor']}")
    names = [x["cap_uri"] for x in (*first["list_of_results"], *second["list_of_results"])]
    assert names == sorted(set(names))
    assert len(names) == 6


async def test_cap_and_cmp_are_answered(tools_http: aiohttp.ClientSession) -> None:
    _, listed = await get(tools_http, "/v1/capabilities?kind=tool&limit=1")
    assert listed["capabilities"][0]["capability_id"] == "did:nuwa:cap:eyes#ask"
    path = "/v1/describe?capability_id=did:nuwa:cap:eyes%23ask&version=1.0.0"
    _, described = await get(tools_http, path)
    assert described["input_schema"] == listed["capabilities"][0]["input_schema"]
    _, level = await get(tools_http, "/v1/cmp")
    assert "travel" in level["domains"]
    _, level = await get(tools_http, "/v1/cmp?level=schema&of=guide%23ask")
    assert level["command"] == "ask"


@pytest.mark.parametrize("written", ["{cid}", "{sha256}", "0x{upper}"])
async def test_a_search_for_the_hash_of_a_package_finds_it(
    http: aiohttp.ClientSession, written: str
) -> None:
    _, weather = await get(http, "/v1/resolve?uri=did:nuwa:cap:weather")
    cid, sha256 = weather["ipfs_cid"], weather["sha256"]
    query = written.format(cid=cid, sha256=sha256, upper=sha256.upper())
    _, found = await get(http, f"/v1/search?q={query}")
    assert found["list_of_results"][0]["ipfs_cid"] == cid


async def test_the_feed_is_read_in_pages_and_has_tombstones(http: aiohttp.ClientSession) -> None:
    found: dict[str, Any] = {}
    path, pages = "/v1/changes?limit=4", 0
    while path:
        _, page = await get(http, path)
        assert len(page["changes"]) <= 4
        found |= {x["name"]: x for x in page["changes"]}
        path = f"/v1/changes?limit=4&since={page['next_since']}" if page["more"] else ""
        pages += 1
    assert pages > 3
    assert found["note"]["semver"] == "1.1.0"
    assert len(found["note"]["sha256"]) == 64
    for name in ("gone", "forged", "loose", "soon"):
        assert found[name].keys() == {"name", "revision", "deleted"}
        assert found[name]["deleted"]
    _, after = await get(http, f"/v1/changes?since={page['next_since']}")
    assert (after["changes"], after["next_since"]) == ([], page["next_since"])


async def test_a_plain_resolution_is_the_same_page_when_it_is_kept(
    http: aiohttp.ClientSession,
) -> None:
    plain, escaped = (
        "/v1/resolve?uri=did:nuwa:cap:note@1.0.0",
        "/v1/resolve?uri=did%3Anuwa%3Acap%3Anote",
    )
    first, again = [await get(http, plain) for _ in range(2)]
    assert first == again
    assert (await get(http, f"{escaped}@1.0.0")) == first


async def test_a_client_that_has_the_answer_gets_304(http: aiohttp.ClientSession) -> None:
    async with http.get(NOTE) as answer:
        etag = answer.headers["ETag"]
    for given in (etag, f'"other", W/{etag}', "*"):
        async with http.get(NOTE, headers={"If-None-Match": given}) as answer:
            assert (answer.status, answer.headers["ETag"]) == (304, etag)
            assert await answer.read() == b""
    async with http.get(NOTE, headers={"If-None-Match": '"other"'}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", [NOTE, "/c/note.json", "/v1/search", "/v1/cmp", "/v1/nothing"])
async def test_head_is_answered_like_get_without_the_body(
    http: aiohttp.ClientSession, path: str
) -> None:
    async with http.get(path) as answer:
        body, got = await answer.read(), answer
    async with http.head(path) as answer:
        assert await answer.read() == b""
        assert answer.status == got.status
        assert answer.headers["Content-Length"] == str(len(body))
        assert answer.headers["Content-Type"] == got.headers["Content-Type"]
        assert answer.headers.get("ETag") == got.headers.get("ETag")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/resolve", 400, "INVALID_INPUT"),
        ("/v1/resolve?uri=note", 400, "INVALID_INPUT"),
        ("/v1/resolve?uri=did:nuwa:cap:note&include=all", 400, "INVALID_INPUT"),
        ("/v1/resolve?uri=did:nuwa:cap:note&proof=list", 400, "INVALID_INPUT"),
        ("/v1/resolve?uri=did:nuwa:cap:note&include=proof", 400, "INVALID_INPUT"),
        ("/v1/resolve?uri=did:nuwa:cap:note&proof_block=5", 400, "INVALID_INPUT"),
        ("/v1/resolve?uri=did:nuwa:cap:nobody", 404, "NOT_FOUND"),
        ("/v1/resolve?uri=did:nuwa:cap:gone", 404, "YANKED"),
        ("/v1/resolve?uri=did:nuwa:cap:forged", 422, "UNVERIFIED"),
        ("/v1/resolve?uri=did:nuwa:cap:soon", 503, "PENDING"),
        ("/v1/search?limit=0", 400, "INVALID_INPUT"),
        ("/v1/search?detail=all", 400, "INVALID_INPUT"),
        ("/v1/search?facets=name", 400, "INVALID_INPUT"),
        ("/v1/search?facets=", 400, "INVALID_INPUT"),
        ("/v1/search?colour=red", 400, "INVALID_INPUT"),
        ("/v1/capabilities?kind=app", 400, "INVALID_INPUT"),
        ("/v1/describe?capability_id=did:nuwa:cap:soon", 404, "NOT_FOUND"),
        ("/v1/cmp?level=words", 400, "INVALID_INPUT"),
        ("/v1/changes?since=x", 400, "INVALID_INPUT"),
        ("/v1/changes?since=999999", 400, "INVALID_INPUT"),
        ("/v1/changes?limit=1001", 400, "INVALID_INPUT"),
        ("/v1/changes/stream?since=x", 400, "INVALID_INPUT"),
        ("/v1/changes/stream?from=1", 400, "INVALID_INPUT"),
        ("/v1/nothing", 404, "NOT_FOUND"),
    ],
)
async def test_every_error_is_a_problem_document_with_its_code(
    http: aiohttp.ClientSession, path: str, status: int, code: str
) -> None:
    answered, problem = await get(http, path)
    assert (answered, problem["status"], problem["code"]) == (status, status, code)
    assert problem["title"] == problem["message"]
    assert problem["type"] == "about:blank"


@pytest.mark.parametrize("path", ["/v1/resolve", "/v1/changes", "/v1/changes/stream"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_other_methods_are_refused(
    http: aiohttp.ClientSession, path: str, method: str
) -> None:
    async with http.request(method, path) as answer:
        assert answer.status == 405
        assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}
        assert answer.content_type == PROBLEM


async def test_an_index_that_cannot_be_read_is_a_problem_without_details(
    damaged: Any, serve: Any
) -> None:
    async with (
        serve(damaged("DROP TABLE listing")) as url,
        aiohttp.ClientSession(url) as http,
    ):
        for path in (NOTE, "/v1/search?q=x", "/v1/capabilities", "/v1/changes"):
            status, problem = await get(http, path)
            assert status in (500, 503)
            assert "listing" not in str(problem)
            assert "secret" not in str(problem)
