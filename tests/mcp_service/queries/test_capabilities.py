"""CAP discovery and the levels of CMP over an index; every answer is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.problems import Verdict
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_service.answers.paging import MAX_PAGE_BYTES
from capdex_service.queries.capabilities import describe, list_capabilities, read_level
from capdex_service.queries.reader import Reader

NAMES = ["eyes", "far-away", "guide", "maps", "now-bound", "plain", "was-bound"]


async def every(reader: Reader, **options: Any) -> list[Any]:
    """All manifests, page after page."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = (await list_capabilities(reader, cursor=cursor, **options)).to_json()
        found += page["capabilities"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def ids(found: list[Any]) -> list[str]:
    return [x["capability_id"].removeprefix("did:nuwa:cap:") for x in found]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_the_list_has_each_package_and_its_tools_once(
    tools_reader: Reader, limit: int
) -> None:
    found = await every(tools_reader, limit=limit)
    assert ids([x for x in found if x["kind"] == "skill"]) == NAMES
    assert ids(found)[:3] == ["eyes", "eyes#ask", "eyes#look"]
    assert len({(x["capability_id"], x["version"]) for x in found}) == len(found) == 16
    assert next(x for x in found if x["name"] == "Guide")["version"] == "1.10.0"


@pytest.mark.parametrize("limit", [1, 3])
async def test_the_list_can_be_of_one_kind(tools_reader: Reader, limit: int) -> None:
    assert ids(await every(tools_reader, limit=limit, kind="skill")) == NAMES
    tools = await every(tools_reader, limit=limit, kind="tool")
    assert ids(tools)[-2:] == ["now-bound#look", "was-bound#look"]
    assert {x["kind"] for x in tools} == {"tool"}


async def test_pages_of_large_packages_are_bounded(reader: Reader) -> None:
    page = await list_capabilities(reader, limit=50)
    assert len(page.body) < MAX_PAGE_BYTES + 4096
    first = page.to_json()
    assert first["next_cursor"] is not None  # eight packages of 200 kB are not read for one page
    assert len(ids(await every(reader, limit=50))) == 12


async def test_a_package_that_the_node_does_not_hold_is_left_out(
    index: Any, read: Callable[..., Reader]
) -> None:
    assert await every(read(index, blocks=None)) == []


@pytest.mark.parametrize(
    "options", [{"kind": "app"}, {"limit": 0}, {"limit": 51}, {"limit": True}, {"cursor": "x"}]
)
async def test_a_wrong_question_is_refused(tools_reader: Reader, options: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await list_capabilities(tools_reader, **options)
    assert refusal.value.code is Code.INVALID_INPUT


async def test_a_skill_and_a_tool_are_described_with_the_file_behind_them(
    tools_reader: Reader,
) -> None:
    skill = (await describe(tools_reader, "did:nuwa:cap:guide")).to_json()
    assert (skill["version"], skill["kind"], skill["prompt_template"]) == (
        "1.10.0",
        "skill",
        "Do it.",
    )
    assert skill["package"]["cap_uri"] == "did:nuwa:cap:guide@1.10.0"
    assert skill["package"]["verdict"] == "verified"
    answer = await describe(tools_reader, "did:nuwa:cap:guide#ask", "1.0.0")
    tool = answer.to_json()
    assert (tool["version"], tool["kind"], tool["name"]) == ("1.0.0", "tool", "ask")
    assert Draft202012Validator(tool["input_schema"]).is_valid({"place": "Oslo"})
    again = await describe(tools_reader, "did:nuwa:cap:guide@1.0.0#ask", "1.0.0")
    assert again.text == answer.text
    assert answer.text.startswith("did:nuwa:cap:guide#ask 1.0.0 [tool] ask\nAsk about a place.")


@pytest.mark.parametrize(
    ("capability_id", "version", "reason"),
    [
        ("did:nuwa:cap:nothing", None, "NOT_FOUND"),
        ("did:nuwa:cap:note", "9.9.9", "NOT_FOUND"),
        ("did:nuwa:cap:note#sing", "1.0.0", "NOT_FOUND"),
        ("did:nuwa:cap:gone", None, "YANKED"),
        ("did:nuwa:cap:forged", "1.0.0", "UNVERIFIED"),
        ("did:nuwa:cap:soon", "1.0.0", "PENDING"),
        ("note", "1.0.0", "INVALID_INPUT"),
        ("did:nuwa:cap:note", "^1", "INVALID_INPUT"),
    ],
)
async def test_every_pair_that_is_not_served_is_not_found(
    reader: Reader, capability_id: str, version: str | None, reason: str
) -> None:
    with pytest.raises(CapdexError) as refusal:
        await describe(reader, capability_id, version)
    assert refusal.value.code is Code.NOT_FOUND
    assert refusal.value.details is not None
    assert refusal.value.details["reason"] == reason


async def test_the_levels_lead_from_domains_to_an_example(
    tools_reader: Reader, count_tokens: Callable[[str], int]
) -> None:
    spent = 0

    async def level(*given: str) -> Any:
        nonlocal spent
        answer = await read_level(tools_reader, *given)
        spent += count_tokens(answer.text)
        return answer.to_json()

    assert (await level("domains"))["domains"] == ["travel", "other", "data", "media"]
    tools = (await level("manifests", "travel"))["tools"]
    assert [x["name"] for x in tools] == ["far-away", "guide", "maps"]
    assert tools[1] == {"name": "guide", "summary": "Knows every place", "version": "1.10.0"}
    intents = (await level("capabilities", "guide"))["intents"]
    assert intents[1] == {"patterns": ["Where is Oslo?", "ask"], "confirm": True, "command": "ask"}
    assert (await level("schema", "guide"))["commands"][0]["params"] == ["language", "place"]
    assert "place" in (await level("schema", "did:nuwa:cap:guide@^1#ask"))["params"]["properties"]
    (example,) = (await level("examples", "guide#ask"))["examples"]
    assert example == {"say": "Where is Oslo?", "command": "ask", "input": {"place": "Oslo"}}
    assert spent < 300


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (("words",), Code.INVALID_INPUT),
        (("manifests",), Code.INVALID_INPUT),
        (("manifests", "nowhere"), Code.NOT_FOUND),
        (("schema", "nothing-here"), Code.NOT_FOUND),
        (("schema", "guide#sing"), Code.NOT_FOUND),
        (("schema", "guide@1.2.3.4"), Code.INVALID_INPUT),
    ],
)
async def test_levels_of_nothing_are_refused(
    tools_reader: Reader, given: tuple[str, ...], code: Code
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await read_level(tools_reader, *given)
    assert refusal.value.code is code


async def test_a_domain_is_read_in_pages(making: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'index.db'}"
    chain = making.Chain()
    for i in range(23):
        chain.publish(f"city-{chr(ord('a') + i)}", domain="travel")
    store = Store.open(url, making.DEPLOYMENT)
    making.follow(store, chain)
    store.close()
    index = Index(url)
    reader = Reader(index, serve=frozenset({Verdict.VERIFIED}))
    try:
        cursor, pages = None, []
        while True:
            page = (await read_level(reader, "manifests", "travel", cursor=cursor)).to_json()
            pages.append(len(page["tools"]))
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert pages == [10, 10, 3]
    finally:
        reader.close()
        index.close()
