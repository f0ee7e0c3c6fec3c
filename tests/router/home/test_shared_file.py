"""Files that several routers change: no change of one is lost to another, whatever the order."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code
from capdex_router.bindings.pins import Pins
from capdex_router.home.shared_file import SharedFile, texts_file
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.grants import Grant, Grants
from capdex_router.policy.secrets import SecretFile

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a disk takes 10 times as long
COUNT = int(os.environ.get("COUNT", "300"))  # examples of each property: COUNT=10000 for a soak

Held = dict[str, str]


class Kind(NamedTuple):
    """A file that routers share, as names and their texts: opened, changed (None removes), read."""

    opened: Callable[[Path], Any]
    change: Callable[[Any, str, str | None], Any]
    held: Callable[[Path], Held]


def pin(pins: Pins, name: str, value: str | None) -> None:
    pins.forget(name)
    if value is not None:
        pins.check(name, "did:x", "t", value)


def grant(grants: GrantFile, name: str, value: str | None) -> None:
    grants.revoke(name)
    if value is not None:
        grants.grant([Grant(name, value, "t", f"host:{name}.example")])


def texts(path: Path) -> Held:
    return orjson.loads(path.read_bytes()) if path.exists() else {}


def granted(path: Path) -> Held:
    found = Grants.parse(path.read_bytes()) if path.exists() else Grants()
    return {one.name: one.digest for one in found.all}


KINDS = {
    "pins": Kind(Pins, pin, lambda path: {orjson.loads(x)[0]: y for x, y in texts(path).items()}),
    "secrets": Kind(SecretFile, SecretFile.write, texts),
    "grants": Kind(GrantFile, grant, granted),
}

NAMES = st.sampled_from("abc")
CHANGES = st.tuples(NAMES, st.none() | st.sampled_from(["1", "2", "33"]))


def applied(held: Held, name: str, value: str | None) -> None:
    if value is None:
        held.pop(name, None)
    else:
        held[name] = value


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=COUNT)
@given(steps=st.lists(st.tuples(st.integers(0, 1), CHANGES), min_size=2, max_size=8))
def test_changes_of_two_routers_in_turn_are_all_kept(
    kind: str, steps: list[tuple[int, tuple[str, str | None]]]
) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "file"
        routers = [KINDS[kind].opened(path) for _ in range(2)]
        expected: Held = {}
        for router, (name, value) in steps:
            KINDS[kind].change(routers[router], name, value)
            applied(expected, name, value)
            assert KINDS[kind].held(path) == expected


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=COUNT)
@given(each=st.lists(st.lists(CHANGES, min_size=1, max_size=3), min_size=2, max_size=2))
def test_changes_of_two_routers_at_once_are_all_kept(
    kind: str, each: list[list[tuple[str, str | None]]]
) -> None:
    """Each changes names of its own, so that the result does not depend on the order."""
    with TemporaryDirectory(dir=MEMORY) as folder, ThreadPoolExecutor(2) as pool:
        path = Path(folder) / "file"
        ready = Barrier(2)

        def work(number: int) -> None:
            router = KINDS[kind].opened(path)
            ready.wait()
            for name, value in each[number]:
                KINDS[kind].change(router, f"{name}{number}", value)

        list(pool.map(work, range(2)))
        expected: Held = {}
        for number, changes in enumerate(each):
            for name, value in changes:
                applied(expected, f"{name}{number}", value)
        assert KINDS[kind].held(path) == expected


@settings(max_examples=COUNT)
@given(steps=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), min_size=2, max_size=12))
def test_what_one_router_wrote_another_reads(steps: list[tuple[int, int]]) -> None:
    """Also where the contents have one length."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        routers = [texts_file(Path(folder) / "file", "") for _ in range(2)]
        for router, digit in steps:

            def write(_: Held, digit: int = digit) -> Held:
                return {"a": str(digit)}

            routers[router].change(write)
            assert [one.read() for one in routers] == [{"a": str(digit)}] * 2


def test_what_is_the_same_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    file = SharedFile(path, b"", bytes, bytes)
    assert file.change(lambda _: b"a") == b""
    written = path.stat()
    assert file.change(lambda before: before) == b"a"
    after = path.stat()
    # Not the time of access, which reading changes.
    assert (after.st_ino, after.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"[" * 100_000, b"\xff"])
def test_a_file_that_is_no_object_of_texts_is_told_and_kept(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for work in (SharedFile.read, lambda file: file.change(dict)):
        with pytest.raises(CapdexError) as damaged:
            work(texts_file(path, "look"))
        assert (damaged.value.code, damaged.value.fix) == (Code.UNREADABLE, "look")
    assert path.read_bytes() == content
