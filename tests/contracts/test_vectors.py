"""The vectors that forge holds the contract to, held against the Python core."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from capdex.encoding.keccak import keccak
from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.registry.events import TOPICS, Committed, Published, decode
from capdex.registry.logs import LogHead, LogPosition, RawLog
from capdex.uri import RESERVED, check_name, is_reserved, name_id, skeleton
from capdex.version import Version

REPOSITORY = Path(__file__).resolve().parents[2]
VECTORS = REPOSITORY / "tests" / "vectors" / "contract"


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


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def test_the_vectors_that_a_machine_can_make_are_what_it_makes() -> None:
    source = Path(__file__).with_name("make_vectors.py")
    for path, text in runpy.run_path(str(source))["vectors"]().items():
        assert path.read_text("utf-8") == text, f"run python {source.relative_to(REPOSITORY)}"


def test_the_contract_has_the_reserved_words_and_no_others() -> None:
    source = REPOSITORY / "contracts" / "src" / "libraries" / "Reserved.sol"
    words = re.findall(r'keccak256\("([^"]*)"\)', source.read_text("utf-8"))
    assert sorted(words) == sorted(skeleton(word) for word in RESERVED)


@pytest.mark.parametrize("case", cases("ids.json", "names"), ids=lambda c: c["name"])
def test_a_name_is_known_by_its_hash(case: dict[str, str]) -> None:
    assert name_id(case["name"]) == unhex(case["id"])


@pytest.mark.parametrize("case", cases("ids.json", "commitments"), ids=lambda c: c["claimer"])
def test_a_commitment_hides_name_claimer_and_secret(case: dict[str, str]) -> None:
    claimer = unhex(case["claimer"]).rjust(32, b"\0")
    preimage = name_id(case["name"]) + claimer + unhex(case["secret"])
    assert keccak(preimage) == unhex(case["commitment"])


@pytest.mark.parametrize("case", cases("signatures.json", "signatures"), ids=lambda c: c["name"])
def test_a_signature_is_its_publishers(case: dict[str, str]) -> None:
    recovered = Account._recover_hash(unhex(case["digest"]), signature=unhex(case["signature"]))
    assert recovered == case["publisher"]


def test_python_folds_and_decodes_an_event_of_every_kind() -> None:
    head, kinds = LogHead(), set()
    for number, case in enumerate(cases("log.json", "events"), start=1):
        topics = tuple(unhex(case[f"topic{n}"]) for n in range(3))
        position = LogPosition(number, bytes(32), bytes(32), 0)
        log = RawLog(bytes(20), topics, unhex(case["data"]), position)
        head = head.fold(log)
        assert head.word == unhex(case["log"])
        event = decode(log, 1)
        assert event.sequence == number
        kind = case["event"].partition("(")[0]
        assert topics[0] == TOPICS[kind] == keccak(case["event"].encode())
        kinds.add(kind)
        if isinstance(event, Committed):
            assert event.commitment == topics[1]
        elif isinstance(event, Published):
            assert event.announcement.cap_uri in {
                "did:nuwa:cap:memo@1.0.0",
                "did:nuwa:cap:note@1.0.0-abcdefghijklmnopqrstuvwxy",
            }
        else:
            assert event.name_id == name_id(event.name)
    assert kinds == set(TOPICS) - {"Voted"}
