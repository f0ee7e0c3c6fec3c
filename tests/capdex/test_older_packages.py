"""Packages of older rules keep their verdict and every problem: its code, place and severity.

`tests/vectors/packages/rules-3.json` was written by `python tests/capdex/test_older_packages.py` in
a tree whose answers were, byte for byte, those of rules version 3, before packages had the fields
of version 4. Messages and hints may change.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.package import judge
from capdex.registry.events import Announcement

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "vectors" / "packages" / "rules-3.json"
ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
Row = list[str]


def files() -> Iterator[Path]:
    yield from sorted((ROOT / "examples").glob("*.acp.yaml"))
    yield from sorted((ROOT / "tests" / "vectors" / "packages" / "hostile").glob("*.acp.yaml"))


def judged(data: bytes) -> Row:
    """The verdict on a file, its reason, and the sha256 of all problems without their words."""
    reading = read(data)
    uri = str(reading.manifest.uri) if reading.manifest else "did:nuwa:cap:unread@1.0.0"
    digest = hashlib.sha256(data).digest()
    version = uri.partition("@")[2]
    event = Announcement(31337, ACCOUNT, uri, version, str(Cid.raw(digest)), digest)
    found = judge(event, reading)
    places = [(x.code, x.path, x.line, x.column, x.severity) for x in found.problems]
    problems = json.dumps(places)
    reason = str(getattr(found, "reason", ""))
    return [str(found.verdict), reason, hashlib.sha256(problems.encode()).hexdigest()]


EXPECTED: dict[str, Row] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_older_package_is_judged_as_before(name: str) -> None:
    assert judged((ROOT / name).read_bytes()) == EXPECTED[name]


def test_every_kept_package_is_compared() -> None:
    assert len(EXPECTED) >= 75


if __name__ == "__main__":
    rows = {str(path.relative_to(ROOT)): judged(path.read_bytes()) for path in files()}
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
