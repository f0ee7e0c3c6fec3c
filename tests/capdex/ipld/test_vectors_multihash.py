"""multihash: a CID of ours holds sha2-256 of all 32 bytes, whatever else has a code (P3)."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from capdex.errors import InvalidInput
from capdex.ipld.cid import DAG_PB, RAW, Cid

SUITE = Path(__file__).parents[2] / "vectors" / "multihash" / "cases.json"
CASES: list[tuple[str, int, str, str]] = json.loads(SUITE.read_text("utf-8"))
Form = TypeVar("Form")
PREFIXES = {b"\x01\x55": RAW, b"\x01\x70": DAG_PB}


def read_both_ways(data: bytes) -> Cid | None:
    """The CID with this binary form, from its bytes and from its text; None where refused."""
    text = "b" + base64.b32encode(data).decode().rstrip("=").lower()
    found = [_read(Cid.from_bytes, data), _read(Cid.parse, text)]
    assert found[0] == found[1]
    return found[0]


def _read(read: Callable[[Form], Cid], form: Form) -> Cid | None:
    try:
        return read(form)
    except InvalidInput:
        return None


def outcome(algorithm: str, bits: int, text: str, multihash: bytes) -> str:
    for prefix, codec in PREFIXES.items():
        cid = read_both_ways(prefix + multihash)
        if (algorithm, bits) == ("sha2-256", 256):
            good = cid is not None and cid.codec == codec and cid.matches(text.encode())
            if not good:
                return "failed"
        elif cid is not None:
            return "failed"
    if (algorithm, bits) == ("sha2-256", 256):
        return "passed"
    return f"refused by policy: {'cut short' if algorithm == 'sha2-256' else 'another hash'}"


def test_whole_sha2_256_is_read_and_every_other_hash_refused() -> None:
    assert Counter(outcome(a, b, text, bytes.fromhex(m)) for a, b, text, m in CASES) == {
        "passed": 20,
        "refused by policy: cut short": 40,
        "refused by policy: another hash": 200,
    }


def test_a_bare_multihash_is_a_version_0_cid_for_whole_sha2_256_alone() -> None:
    taken = []
    for algorithm, bits, text, multihash in CASES:
        try:
            cid = Cid.from_bytes(bytes.fromhex(multihash))
        except InvalidInput:
            continue
        assert (cid.version, cid.codec) == (0, DAG_PB)
        assert cid.matches(text.encode())
        assert Cid.parse(cid.text) == cid
        taken.append((algorithm, bits))
    assert set(taken) == {("sha2-256", 256)}


@pytest.mark.parametrize("length", [b"\x1f", b"\x21", b"\x20\x00", b"\xa0\x00", b""])
def test_another_length_of_the_digest_is_refused(length: bytes) -> None:
    with pytest.raises(InvalidInput):
        Cid.from_bytes(b"\x01\x55\x12" + length + bytes(32))
