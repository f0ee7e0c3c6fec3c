"""CARs of the gateway conformance suite and of Kubo, every block of them taken for a root (P3).

`roots.json` says what Kubo makes of each: a file with its size and sha256, a directory, something
else, or a file that lacks blocks.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.car import read_car
from capdex.ipld.cid import Cid

SUITE = Path(__file__).parents[2] / "vectors" / "car"
ROOTS: list[tuple[str, str, str, int, str] | tuple[str, str, str]] = json.loads(
    (SUITE / "roots.json").read_text("utf-8")
)


def outcome(car: str, root: str, kind: str, size: int = 0, sha256: str = "") -> str:
    try:
        cid = Cid.parse(root)
    except InvalidInput:
        return "refused by policy: another codec or hash"
    try:
        data = read_car((SUITE / car).read_bytes(), cid)
    except Unavailable as error:
        return "passed: incomplete" if kind == "incomplete" else f"failed: {error.why}"
    except InvalidInput as error:
        return f"failed: {error.why}" if kind in ("file", "incomplete") else f"passed: {error.why}"
    good = kind == "file" and (len(data), hashlib.sha256(data).hexdigest()) == (size, sha256)
    return "passed: read" if good else "failed: read something else"


def test_files_are_read_from_every_car_and_all_else_is_refused() -> None:
    outcomes = {(root[0], root[1]): outcome(*root) for root in ROOTS}
    assert [root for root, found in outcomes.items() if found.startswith("failed")] == []
    assert Counter(outcomes.values()) == {
        "passed: read": 88,
        "passed: it is a directory": 60,
        "passed: it has more than 64 links": 1,  # a directory
        "passed: it is a sharded directory": 236,
        "passed: it is a symlink": 1,
        "passed: it is not raw or dag-pb with sha2-256": 3,  # what a directory links to
        "passed: incomplete": 1,
        "refused by policy: another codec or hash": 21,
    }


def test_every_car_of_both_suites_has_its_roots() -> None:
    cars = {str(path.relative_to(SUITE)) for path in SUITE.glob("*/*.car")}
    assert cars == {root[0] for root in ROOTS}
    assert Counter(car.partition("/")[0] for car in cars) == {"gateway-conformance": 26, "kubo": 5}


@pytest.mark.parametrize("car", sorted({root[0] for root in ROOTS}))
def test_a_block_that_is_not_in_the_car_may_be_had_elsewhere(car: str) -> None:
    with pytest.raises(Unavailable):
        read_car((SUITE / car).read_bytes(), Cid.of(b"not in there"))


def test_a_car_of_version_2_is_refused_for_its_version() -> None:
    with pytest.raises(Unavailable) as caught:
        read_car((SUITE / "kubo" / "TestDagStatCARv2.car").read_bytes(), Cid.of(b""))
    assert "not a CAR of version 1" in caught.value.why
