"""The vectors that forge holds the contract to, held against the Python core."""

import json
from pathlib import Path
from typing import Any

import pytest

from capdex.cid import Cid
from capdex.errors import InvalidInput
from capdex.uri import RESERVED, check_name, is_reserved, skeleton
from capdex.version import Version

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "contract"


def cases(file: str, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / file).read_text())[group]
    return found


@pytest.mark.parametrize("case", cases("names.json", "valid"), ids=lambda c: c["name"])
def test_python_accepts_the_names_the_contract_accepts(case: dict[str, str]) -> None:
    assert check_name(case["name"]) == case["name"]
    assert skeleton(case["name"]) == case["skeleton"]


@pytest.mark.parametrize("case", cases("names.json", "invalid"), ids=lambda c: c["why"])
def test_python_refuses_the_names_the_contract_refuses(case: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        check_name(case["name"])


@pytest.mark.parametrize("case", cases("names.json", "lookalikes"), ids=lambda c: c["name"])
def test_lookalikes_share_a_skeleton(case: dict[str, str]) -> None:
    assert skeleton(case["name"]) == skeleton(case["taken_by"])


@pytest.mark.parametrize("case", cases("names.json", "distinct"), ids=lambda c: c["name"])
def test_distinct_names_have_distinct_skeletons(case: dict[str, str]) -> None:
    assert skeleton(case["name"]) != skeleton(case["other"])


def test_python_and_the_vectors_have_the_same_reserved_words() -> None:
    assert list(RESERVED) == [case["name"] for case in cases("reserved.json", "reserved")]


@pytest.mark.parametrize("case", cases("reserved.json", "reserved"), ids=lambda c: c["name"])
def test_a_reserved_word_is_reserved(case: dict[str, str]) -> None:
    assert is_reserved(case["name"])
    assert skeleton(case["name"]) == case["skeleton"]


@pytest.mark.parametrize("case", cases("reserved.json", "lookalikes"), ids=lambda c: c["name"])
def test_what_looks_like_a_reserved_word_is_reserved(case: dict[str, str]) -> None:
    assert is_reserved(case["name"])
    assert skeleton(case["name"]) == skeleton(case["taken_by"])


@pytest.mark.parametrize("case", cases("reserved.json", "free"), ids=lambda c: c["name"])
def test_what_only_comes_near_a_reserved_word_is_free(case: dict[str, str]) -> None:
    assert not is_reserved(check_name(case["name"]))


@pytest.mark.parametrize("case", cases("versions.json", "valid"), ids=lambda c: c["semver"])
def test_python_accepts_the_versions_the_contract_accepts(case: dict[str, str]) -> None:
    assert str(Version.parse(case["semver"])) == case["semver"]


@pytest.mark.parametrize("case", cases("versions.json", "invalid"), ids=lambda c: c["why"])
def test_python_refuses_the_versions_the_contract_refuses(case: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        Version.parse(case["semver"])


@pytest.mark.parametrize("case", cases("cids.json", "valid"), ids=lambda c: c["cid"])
def test_python_spells_the_cids_the_contract_spells(case: dict[str, str]) -> None:
    digest = bytes.fromhex(case["sha256"].removeprefix("0x"))
    assert Cid.raw(digest).text == case["cid"]
    assert Cid.parse(case["cid"]).digest == digest


@pytest.mark.parametrize("case", cases("cids.json", "invalid"), ids=lambda c: c["why"])
def test_python_takes_no_other_spelling_for_the_raw_cid(case: dict[str, str]) -> None:
    digest = bytes.fromhex(case["sha256"].removeprefix("0x"))
    try:
        cid = Cid.parse(case["cid"])
    except InvalidInput:
        return
    assert (cid.version, cid.codec, cid.digest) != (1, "raw", digest)
