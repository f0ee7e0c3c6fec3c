"""Our own hostile packages, CIDs, CARs and hosts: each ends as its index says, offline (P3-P10)."""

from __future__ import annotations

import hashlib
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest

from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.car import read_car
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.manifest.urls import url_fault
from capdex.package import RejectedPackage, judge
from capdex.problems import Reason, Severity, Verdict
from capdex.registry.events import Announcement
from capdex.yaml.reader import read_yaml

VECTORS = Path(__file__).parents[1] / "vectors"
PACKAGES = VECTORS / "packages" / "hostile"
CARS = VECTORS / "hostile" / "car"
INDEX: list[dict[str, Any]] = json.loads((PACKAGES / "index.json").read_text("utf-8"))
URI = "did:nuwa:cap:note@1.0.0"

# Well-formed, and so unsigned alone; the second are so because nothing that runs them can hang.
ACCEPTED = ("ok-minimal", "norway", "version-float", "sexagesimal", "octal", "date")
BOUNDED = ("trigger-redos", "schema-self-ref", "schema-expo")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a package says, judging it opens no socket."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)


def announce(data: bytes, uri: str = URI) -> Announcement:
    digest = hashlib.sha256(data).digest()
    publisher = "0x00000000000000000000000000000000000000AA"
    return Announcement(31337, publisher, uri, uri.partition("@")[2], str(Cid.raw(digest)), digest)


def judged(name: str) -> RejectedPackage:
    data = (PACKAGES / f"{name}.acp.yaml").read_bytes()
    found = judge(announce(data), data)
    assert isinstance(found, RejectedPackage)
    return found


def outcome(name: str, expected: str) -> str:
    """`reject`, `flag` or `accept`, as the index means it."""
    found = judged(name)
    if name == "id-mismatch":
        return "mismatch" if found.reason is Reason.ID_MISMATCH else "failed"
    if found.verdict is Verdict.INVALID:
        return "rejected" if "reject" in expected else "failed"
    if found.verdict is not Verdict.UNSIGNED:
        return "failed"
    if name == "trigger-matchall":
        codes = [x.code for x in found.problems if x.severity is Severity.WARNING]
        return "flagged" if Reason.BAD_TRIGGER in codes else "failed"
    return "accepted" if name in ACCEPTED + BOUNDED else "failed"


def test_every_hostile_package_ends_as_its_index_says() -> None:
    names = {entry["file"].removesuffix(".acp.yaml"): entry["expect"] for entry in INDEX}
    names["crlf"] += " (reject)"  # of the two ways its entry leaves open
    outcomes = {name: outcome(name, expected) for name, expected in names.items()}
    assert [name for name, found in outcomes.items() if found == "failed"] == []
    assert Counter(outcomes.values()) == {
        "accepted": 9,
        "flagged": 1,
        "mismatch": 1,
        "rejected": 46,
    }


def test_what_other_readers_take_for_something_else_is_the_text_that_stands_there() -> None:
    def value(name: str) -> Any:
        return read_yaml((PACKAGES / f"{name}.acp.yaml").read_bytes()).value

    assert value("norway")["metadata"]["name"] == "no"
    assert value("sexagesimal")["x"] == "190:20:30"
    assert value("octal")["x"] == "0644"
    assert value("date")["x"] == "2025-05-13"


def test_a_version_that_is_a_number_is_not_so_silently() -> None:
    reading = read_yaml((PACKAGES / "version-float.acp.yaml").read_bytes())
    assert reading.value["x"] == 1.1
    (problem,) = reading.problems
    assert (problem.path, problem.severity) == ("x", Severity.NOTE)
    assert problem.message == "1.10 is the number 1.1 here"


# Lines of the list of hostile situations, the packages that show them, and why they are refused.
SITUATIONS: dict[str, tuple[tuple[str, ...], Reason]] = {
    "G22 aliases": (("one-alias", "recursive-alias"), Reason.YAML_FEATURE),
    "G23 merge keys": (("merge-1",), Reason.YAML_FEATURE),
    "G24 endless nesting": (("deep-100000", "deep-block-20000"), Reason.TOO_DEEP),
    "G25 duplicate keys": (("dup-id", "dup-escaped"), Reason.DUPLICATE_KEY),
    "G26 tags": (("py-tag", "binary-tag", "str-tag"), Reason.YAML_FEATURE),
    "G27 other encodings": (("utf16", "utf32", "bom-utf8", "overlong-utf8"), Reason.NOT_UTF8),
    "G28 norway": (("norway",), Reason.UNSIGNED),
    "G29 numbers without end": (("hugeint", "hugehex"), Reason.BAD_VALUE),
    "G30 two documents": (("two-docs",), Reason.YAML_FEATURE),
    "G31 a schema from elsewhere": (("schema-remote-ref",), Reason.BAD_SCHEMA),
    "G32 a schema that explodes": (("schema-expo", "schema-self-ref"), Reason.UNSIGNED),
    "G33 a pattern that backtracks": (("trigger-redos",), Reason.UNSIGNED),
    "G34 a backreference": (("trigger-backref",), Reason.BAD_TRIGGER),
    "G35 too many triggers": (("triggers-500",), Reason.TOO_MANY),
    "G36 another id than announced": (("id-mismatch",), Reason.ID_MISMATCH),
    "G41 no signature": (("ok-minimal",), Reason.UNSIGNED),
    "G42 an id with other characters": (("id-path", "ver-v", "ver-build"), Reason.BAD_ID),
}


@pytest.mark.parametrize(("names", "reason"), SITUATIONS.values(), ids=SITUATIONS)
def test_a_hostile_situation_ends_with_its_reason(names: tuple[str, ...], reason: Reason) -> None:
    assert {name: judged(name).reason for name in names} == dict.fromkeys(names, reason)


def test_65_triggers_are_one_too_many() -> None:
    """G35, at its very border."""
    text = (PACKAGES / "ok-minimal.acp.yaml").read_text("utf-8")
    line = '    - {type: regex, value: "note"}\n'
    for times, reasons in ((64, []), (65, [Reason.TOO_MANY])):
        problems = read(text.replace(line, line * times).encode()).problems
        assert [x.code for x in problems if x.severity is Severity.ERROR] == reasons


def test_a_name_in_cyrillic_is_no_id() -> None:
    """G42: `nоte`, with U+043E."""
    data = (
        (PACKAGES / "ok-minimal.acp.yaml").read_bytes().replace(b"cap:note@", "cap:nоte@".encode())
    )
    found = judge(announce(data), data)
    assert isinstance(found, RejectedPackage)
    assert found.reason is Reason.BAD_ID
    early = judge(announce(data, "did:nuwa:cap:nоte@1.0.0"), data)
    assert isinstance(early, RejectedPackage)
    assert early.reason is Reason.BAD_EVENT


def test_every_hostile_cid_is_read_or_refused_as_its_index_says() -> None:
    """G19, G20, G21; an upper-case one is refused, so that one CID is never two rows."""
    cases: list[dict[str, str]] = json.loads((VECTORS / "hostile" / "cid.json").read_text("utf-8"))
    found: Counter[str] = Counter()
    for case in cases:
        try:
            cid = Cid.parse(case["cid"])
        except InvalidInput:
            assert case["expect"].startswith("reject"), case["id"]
            found["passed: refused"] += 1
        else:
            assert case["expect"].startswith("accept"), case["id"]
            assert str(cid) == case["cid"]
            found["passed: read"] += 1
    assert found == {"passed: read": 3, "passed: refused": 26}


# G14 to G18. What is a fact of the DAG no other source can mend; the rest is whoever sent the CAR.
READ = {"good-raw": 1024, "good-two-links": 2048, "extra-blocks": 1024, "wrong-root-header": 1024}
FACTS = {
    *("dag-bomb-2pow40", "lying-filesize-huge", "dir-traversal-name"),
    *("symlink-root", "identity-block"),
}


def test_every_hostile_car_is_read_or_refused_by_whose_fault_it_is() -> None:
    index: list[dict[str, str]] = json.loads((CARS / "index.json").read_text("utf-8"))
    found: Counter[str] = Counter()
    for entry in index:
        name = entry["file"].removesuffix(".car")
        data = (CARS / entry["file"]).read_bytes()
        if name in READ:
            assert entry["expect"].startswith("accept")
            assert read_car(data, Cid.parse(entry["root"])) == b"x" * READ[name]
            found["passed: read"] += 1
            continue
        assert entry["expect"].startswith("reject")
        with pytest.raises(InvalidInput if name in FACTS else Unavailable):
            read_car(data, Cid.parse(entry["root"]))
        found["passed: a fact" if name in FACTS else "passed: another source may do"] += 1
    assert found == {
        "passed: read": 4,
        "passed: a fact": 5,
        "passed: another source may do": 7,
    }


def test_every_host_inside_a_network_is_refused_and_the_public_ones_are_not() -> None:
    hosts: dict[str, list[str]] = json.loads(
        (VECTORS / "hostile" / "ssrf_hosts.json").read_text("utf-8")
    )
    assert [x for x in hosts["public"] if url_fault(f"https://{x}/")] == []
    assert [x for x in hosts["blocked"] if not url_fault(f"https://{x}:8443/a?b")] == []
    assert {kind: len(found) for kind, found in hosts.items()} == {"public": 2, "blocked": 19}
