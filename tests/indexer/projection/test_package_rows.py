"""Judgements: only judged packages and checked answers of workers become one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from capdex.encoding.abi import checksum_address
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.package import judge
from capdex.problems import Verdict
from capdex.registry.events import Announcement
from capdex_indexer.projection.package_rows import MAX_JSON_CHARS, Judgement, document

NAMES = tuple(Judgement.__slots__)


@pytest.fixture
def package(making: Any) -> tuple[Announcement, bytes]:
    data = making.package_bytes()
    cid, publisher = Cid.of(data), checksum_address(making.PUBLISHER)
    uri = "did:nuwa:cap:note@1.0.0"
    return Announcement(making.CHAIN_ID, publisher, uri, "1.0.0", str(cid), cid.digest), data


def test_nobody_else_makes_one(package: tuple[Announcement, bytes]) -> None:
    judgement = Judgement.of(judge(*package))
    columns = [getattr(judgement, name) for name in NAMES]
    with pytest.raises(TypeError, match="only"):
        Judgement(*columns, object())  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Judgement(*columns)  # type: ignore[call-arg]
    with pytest.raises((TypeError, ValueError)):
        replace(judgement, verdict=Verdict.SIGNED)  # type: ignore[call-arg]


def test_an_answer_is_read_as_the_judgement_it_was_made_of(
    making: Any, package: tuple[Announcement, bytes]
) -> None:
    announcement, good = package
    for data in (good, making.package_bytes(publisher=None), b"", b"\xff", good[:-1]):
        judgement = Judgement.of(judge(announcement, data))
        assert Judgement.read(announcement, data, judgement.to_json()) == judgement


FORGED: dict[str, list[Any]] = {
    "verdict": ["good", None, "signed", 1],
    "reason": ["UNKNOWN", "UNSIGNED", 5],
    "message": [None, 5, "x" * 1025],
    "signer": [None, 5, "x" * 2049],
    "checks": [None, "{}", "[", "é", "x" * (MAX_JSON_CHARS + 1)],
    "problems": [[], '"text"'],
    "metadata": [None, "[]", "{", {}],
    "document": [
        *(None, "[]", "{}", '{"words":{},"facets":{}}', '{"words":{"name":1},"facets":[]}'),
        '{"words":{},"facets":[["name",1]]}',
        json.dumps({"words": {}, "facets": [["name", "x" * 257]]}),
    ],
    "schema_uri": [None, 5],
    "memory_scope": [5],
}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, some in FORGED.items() for v in some])
def test_an_answer_of_other_types_sizes_or_words_is_none(
    package: tuple[Announcement, bytes], name: str, value: Any
) -> None:
    columns = orjson.loads(Judgement.of(judge(*package)).to_json())
    columns[NAMES.index(name)] = value
    with pytest.raises((ValueError, TypeError)):
        Judgement.read(*package, orjson.dumps(columns))


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b"null", b"\xff", b"[1,2,3]"])
def test_what_is_no_array_of_columns_is_none(
    package: tuple[Announcement, bytes], answer: bytes
) -> None:
    with pytest.raises((ValueError, TypeError)):
        Judgement.read(*package, answer)


def test_bytes_of_another_digest_are_never_verified(package: tuple[Announcement, bytes]) -> None:
    announcement, data = package
    answer = Judgement.of(judge(announcement, data)).to_json()
    with pytest.raises(ValueError, match="digest"):
        Judgement.read(announcement, data + b"\n", answer)


def test_a_skill_has_files_or_a_prompt_alone(making: Any) -> None:
    tools, files = [making.tool("look")], {"a.md": b"A"}
    kinds: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["skill"]),
        ({"prompt": None}, []),
        ({"tools": tools}, ["tools"]),
        ({"tools": tools, "files": files}, ["skill", "tools"]),
        ({"prompt": None, "files": files}, ["skill"]),
    ]
    for options, expected in kinds:
        made = document(read(making.package_bytes(**options)).require(), "0x1", 1)
        assert [value for key, value in made["facets"] if key == "kind"] == expected
