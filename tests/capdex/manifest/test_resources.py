"""Files of a package: which lists are taken, which paths are refused, and the check of bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from capdex.diagnostics import Findings
from capdex.errors import VerificationFailure
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.manifest.fields import Fields
from capdex.manifest.manifest import read
from capdex.manifest.resources import (
    MAX_RESOURCES,
    Resource,
    check_resource,
    fold,
    path_fault,
    read_resources,
)
from capdex.problems import Problem, Reason, Severity

DATA = b"#!/bin/sh\necho hello\n"


def item(path: Any = "scripts/hello.sh", data: bytes = DATA, **other: Any) -> dict[str, Any]:
    return {
        "path": path,
        "cid": str(divide(data)[0][0]),
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "media_type": "text/x-sh",
        "executable": True,
        **other,
    }


def read_list(*items: Any) -> tuple[tuple[Resource, ...], list[Problem]]:
    findings = Findings()
    found = read_resources(Fields({"resources": list(items)}, (), findings))
    return found, list(findings.problems())


def faults(*items: Any) -> list[tuple[Reason, str]]:
    return [(x.code, x.path) for x in read_list(*items)[1]]


def document(**sections: Any) -> bytes:
    return json.dumps(
        {
            "metadata": {
                "id": "did:nuwa:cap:note@1.0.0",
                "name": "Note",
                "description": "Keeps notes.",
            },
            "schema": '{"$id": "did:nuwa:state:note#v1"}',
            **sections,
        }
    ).encode()


def test_a_file_is_read_as_it_is_written() -> None:
    found, problems = read_list(item(), item("a/b.bin", executable=None))
    assert problems == []
    assert [x.to_json() for x in found] == [item(), item("a/b.bin", executable=False)]


def test_a_package_has_the_files_of_its_section_and_none_without_one() -> None:
    assert read(document()).require().resources == ()
    manifest = read(document(resources=[item()])).require()
    assert [x.path for x in manifest.resources] == ["scripts/hello.sh"]


def test_a_package_with_a_file_that_is_refused_is_invalid() -> None:
    reading = read(document(resources=[item("../climbs")]))
    assert reading.manifest is None
    assert [x.code for x in reading.problems if x.severity is Severity.ERROR] == [
        Reason.BAD_RESOURCE
    ]


@pytest.mark.parametrize(
    ("value", "reason", "field"),
    [
        ("scripts", Reason.WRONG_TYPE, ""),
        (item(path=None), Reason.MISSING_FIELD, ".path"),
        (item(cid=None), Reason.MISSING_FIELD, ".cid"),
        (item(sha256=None), Reason.MISSING_FIELD, ".sha256"),
        (item(size=None), Reason.MISSING_FIELD, ".size"),
        (item(media_type=None), Reason.MISSING_FIELD, ".media_type"),
        (item(path=3), Reason.WRONG_TYPE, ".path"),
        (item(executable="yes"), Reason.WRONG_TYPE, ".executable"),
        (item(executable=1), Reason.WRONG_TYPE, ".executable"),
        (item(size=True), Reason.WRONG_TYPE, ".size"),
        (item(size=-1), Reason.BAD_RESOURCE, ".size"),
        (item(size=4 * 1024 * 1024 + 1), Reason.BAD_RESOURCE, ".size"),
        (item(cid="Qm"), Reason.BAD_RESOURCE, ".cid"),
        (item(cid=str(Cid.of(b"other"))), Reason.BAD_RESOURCE, ".cid"),
        (item(sha256="0" * 63), Reason.BAD_RESOURCE, ".sha256"),
        (item(sha256="A" * 64), Reason.BAD_RESOURCE, ".sha256"),
        (item(media_type="markdown"), Reason.BAD_RESOURCE, ".media_type"),
        (item(media_type="a/" + "b" * 127), Reason.TOO_LARGE, ".media_type"),
    ],
)
def test_a_field_that_is_not_allowed_is_named(value: Any, reason: Reason, field: str) -> None:
    assert faults(item("first"), value) == [(reason, f"resources[1]{field}")]


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/etc/passwd", "a//b", "a/", "./a", "a/..", "../a", "a/../../b", ".", ".."),
        *("a\\b", "C:/a", "a:b", "a\tb", "a\nb", "a\x00b", "a\x7fb", "a?", "a*", '"', "<", "|"),
        *("a.", "a ", "a./b", "a /b", "...", "con", "CON.txt", "a/Nul.tar.gz", "com1", "LPT\xb9.x"),
        *("nul .txt", "aux/b", "conin$", "skill.md", "SKILL.md", "Skill.MD"),
        *("cafe\u0301", "a\u202eb", "a\u200bb", "a\u00a0b", "a\ue000b", "a\U0001f600b", "a\ud800b"),
        *("a/b/c/d/e/f/g/h/i", "a" * 201, "é" * 101),
    ],
)
def test_a_path_that_is_not_safe_everywhere_is_refused(path: str) -> None:
    assert path_fault(path)
    assert all(
        x.code in (Reason.BAD_RESOURCE, Reason.MISSING_FIELD) for x in read_list(item(path))[1]
    )


@pytest.mark.parametrize(
    "path",
    [
        *("a", "scripts/a.py", ".env.example", "a b/c d.md", "LICENSE", "references/SKILL.md"),
        *(
            "caf\u00e9.md",
            "说明.md",
            "común/ß.txt",
            "console.py",
            "com.txt",
            "com10",
            "~a",
            "-a",
            "a..b",
        ),
        *("a/b/c/d/e/f/g/h", "a" * 200, "é" * 100),
    ],
)
def test_an_ordinary_path_is_taken(path: str) -> None:
    assert path_fault(path) is None
    assert faults(item(path)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("a", "a"), ("a", "A"), ("docs/a", "Docs/b"), ("a", "a/b"), ("A/b", "a"), ("ß", "SS")),
        *(("\u00e9/a", "\u00c9/b"), ("\u03c3", "\u03c2"), ("ﬁ", "fi"), ("K", "\u212a")),
    ],
)
def test_two_paths_that_are_one_place_on_some_file_system_are_refused(
    first: str, second: str
) -> None:
    if first == "K":  # U+212A is not in normal form C
        assert path_fault(second)
    else:
        assert faults(item(first), item(second)) == [(Reason.BAD_RESOURCE, "resources[1].path")]


WORDS = st.text(st.sampled_from("aA.é/ ~-_b1"), min_size=1, max_size=12)


@given(WORDS | st.text(max_size=8))
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # most texts are no path
def test_a_path_that_is_taken_stays_below_its_folder(path: str) -> None:
    """No path that passes climbs, is absolute or means something else on POSIX or Windows."""
    assume(path_fault(path) is None)
    posix, windows = PurePosixPath(path), PureWindowsPath(path)
    assert str(posix) == path
    assert posix.parts == windows.parts == tuple(path.split("/"))
    assert not posix.is_absolute()
    assert not windows.drive
    assert not windows.root
    assert ".." not in posix.parts
    assert not set(path) & set('\\:*?"<>|')
    assert all(ord(x) >= 32 for x in path)


@given(st.lists(st.text(st.sampled_from("aA/b"), min_size=1, max_size=3), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_paths_that_are_taken_together_are_different_when_folded(paths: list[str]) -> None:
    found, problems = read_list(*map(item, paths))
    assume(not problems)
    folded = [fold(x.path) for x in found]
    assert len(set(folded)) == len(paths)
    assert not [x for x in folded for y in folded if y.startswith(x + "/")]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists))
def test_whatever_a_list_holds_it_is_read_without_an_exception(value: Any) -> None:
    read_list(value, {"path": value, "cid": value, "size": value}, {"sha256": value})


def test_the_limits_are_on_count_and_on_the_sum() -> None:
    many = [item(f"f{i}") for i in range(MAX_RESOURCES)]
    assert faults(*many) == []
    assert faults(*many, item("one-more")) == [(Reason.TOO_MANY, "resources")]
    large: dict[str, Any] = {"cid": str(divide(bytes(300_000))[0][0]), "size": 4 * 1024 * 1024}
    assert faults(*(item(f"f{i}", **large) for i in range(8))) == []
    nine = [item(f"f{i}", **large) for i in range(9)]
    assert faults(*nine) == [(Reason.BAD_RESOURCE, "resources")]


def test_a_full_list_fits_into_a_package() -> None:
    """512 files with paths of usual length need less than the 256 KiB of a package."""
    written = document(resources=[item(f"references/chapter-{i:03}/notes.md") for i in range(512)])
    assert len(written) < MAX_PACKAGE_BYTES
    assert len(read(written).require().resources) == 512


def test_the_bytes_of_a_file_are_compared_with_size_and_digest() -> None:
    (found,), _ = read_list(item())
    check_resource(found, DATA)
    with pytest.raises(VerificationFailure, match=r"scripts/hello\.sh") as other:
        check_resource(found, DATA.replace(b"hello", b"hallo"))
    assert "sha256" in other.value.why
    with pytest.raises(VerificationFailure) as shorter:
        check_resource(found, DATA[:-1])
    assert shorter.value.why == "it has 20 bytes, the package says 21"
