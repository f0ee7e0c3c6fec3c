"""IPLD codec fixtures: CIDs of dag-pb name their very bytes; only UnixFS files are read (P3)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from capdex.errors import InvalidInput
from capdex.ipld.cid import DAG_PB, Cid
from capdex.ipld.unixfs import Assembly

SUITE = Path(__file__).parents[2] / "vectors" / "ipld-codec-fixtures"
BLOCKS: list[dict[str, str]] = json.loads((SUITE / "blocks.json").read_text("utf-8"))
NEGATIVE: list[tuple[str, str, str]] = json.loads(
    (SUITE / "dag-pb-negative.json").read_text("utf-8")
)


def read(block: bytes, cid: Cid) -> str:
    """What putting a file together from one block comes to."""
    assembly = Assembly(cid)
    try:
        assembly.give(block)
    except InvalidInput as error:
        return f"refused by policy: {error.why}"
    return "passed" if assembly.wanted is None else "failed: asks for more"


def outcome(fixture: dict[str, Any]) -> str:
    try:
        cid = Cid.parse(fixture["cid"])
    except InvalidInput:
        return f"refused by policy: {fixture['codec']}"
    if fixture["codec"] != DAG_PB or cid.codec != DAG_PB:
        return "failed"
    block = bytes.fromhex(fixture["hex"])
    good = cid.matches(block) and not cid.matches(block + b"\0")
    return "passed: the CID of its bytes" if good else "failed"


def test_the_cid_of_each_block_is_that_of_its_bytes_or_of_another_codec() -> None:
    assert Counter(outcome(fixture) for fixture in BLOCKS) == {
        "passed: the CID of its bytes": 17,
        "refused by policy: dag-cbor": 128,
        "refused by policy: dag-json": 128,
    }


def test_no_block_of_the_fixtures_is_a_package() -> None:
    blocks = [bytes.fromhex(x["hex"]) for x in BLOCKS if x["codec"] == DAG_PB]
    assert Counter(read(x, pb_cid(x)) for x in blocks) == {
        "refused by policy: it is not raw or dag-pb with sha2-256": 8,  # a link to something else
        "refused by policy: it holds no UnixFS data": 2,
        "refused by policy: a field is cut off, or of a kind that dag-pb does not have": 3,
        "refused by policy: it is a directory": 1,
        "refused by policy: the UnixFS field 0 has the wrong type": 1,
        "refused by policy: it is UnixFS type -1": 1,
        "refused by policy: it declares 306208971 bytes": 1,  # the one real file
    }


def test_blocks_that_are_no_dag_pb_are_refused() -> None:
    outcomes = [read(block, pb_cid(block)) for block in (bytes.fromhex(x[1]) for x in NEGATIVE)]
    assert Counter(x.partition(":")[0] for x in outcomes) == {"refused by policy": 9}


def pb_cid(block: bytes) -> Cid:
    return Cid.from_bytes(b"\x01\x70\x12\x20" + Cid.of(block).digest)


def test_each_cid_that_a_fixture_is_named_after_is_read_or_refused_by_its_form() -> None:
    texts = {x["fixture"][4:] for x in BLOCKS if x["fixture"].startswith("cid-")}
    texts -= {"arrayof", "mapof"}
    others = ("dag-cbor", "dag-jose", "bitcoin-block", "bitcoin-tx", "zcash-block")
    outcomes: Counter[str] = Counter()
    for text in sorted(texts):
        try:
            cid = Cid.parse(text)
        except InvalidInput as error:
            kind = next((x for x in others if f"codec is {x}," in error.why), error.why[:22])
            outcomes[f"refused by policy: {kind}"] += 1
        else:
            assert str(cid) == text
            outcomes[f"passed: version {cid.version}, {cid.codec}"] += 1
    assert outcomes == {
        "passed: version 0, dag-pb": 3,
        "passed: version 1, raw": 2,
        "refused by policy: dag-cbor": 2,
        "refused by policy: dag-jose": 1,
        "refused by policy: bitcoin-block": 1,
        "refused by policy: bitcoin-tx": 1,
        "refused by policy: zcash-block": 2,
        "refused by policy: its hash is identity o": 1,
        "refused by policy: its one spelling is ba": 3,  # base58btc, of whatever codec
    }
