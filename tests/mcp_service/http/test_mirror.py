"""A mirror and the tools tell the same of a release, in the same words (P15)."""

from __future__ import annotations

import json
from typing import Any

from capdex_indexer.mirror.content import path_of
from capdex_indexer.query.index import Index

LEFT_OUT = {"chain": {"finality"}, "verification": {"checks"}}


async def test_a_line_of_a_mirror_says_what_resolving_says(
    index: Index, connect: Any, http: Any
) -> None:
    for name in ("note", "weather", "pushy", "copy"):
        async with http.get(f"/index/{path_of(name)}") as reply:
            assert reply.status == 200
            lines = [json.loads(line) for line in (await reply.text()).splitlines()]
        assert [x["semver"] for x in lines] == [x.semver for x in reversed(index.releases(name))]
        for line in lines:
            asked = {"cap_uri": line["cap_uri"], "detail": "full"}
            async with connect() as client:
                answer = await client.call_tool("resolve_capability", asked)
            resolved = answer.structured_content
            line["verification"].pop("reason")
            for key, value in line.items():
                said = resolved[key]
                if isinstance(value, dict) and key in LEFT_OUT:
                    said = {x: y for x, y in said.items() if x not in LEFT_OUT[key]}
                assert said == value, key


async def test_what_has_no_file_is_told_as_plainly_as_on_a_static_host(http: Any) -> None:
    for path in ("no/te/nobody", "2/..", "config"):
        async with http.get(f"/index/{path}") as reply:
            assert reply.status == 404
