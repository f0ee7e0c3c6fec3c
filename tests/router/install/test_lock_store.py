"""The lock file on disk: read when it changed, replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capdex.errors import Code, InvalidInput, UsageError
from capdex_router.home.shared_file import MAX_BYTES
from capdex_router.install.lock_store import LockStore
from capdex_router.install.lockfile import Lock


def test_a_lock_is_read_again_when_another_process_wrote_it(tmp_path: Path) -> None:
    one, two = LockStore(tmp_path / "capdex.lock"), LockStore(tmp_path / "capdex.lock")
    assert (one.read(), one.stamp) == (Lock(), None)
    one.write(Lock(extra={"a": 1}))
    assert two.read().extra == {"a": 1}
    assert one.read() is one.read()
    before = one.stamp
    two.write(Lock(extra={"a": 2}))
    assert one.stamp != before
    assert one.read().extra == {"a": 2}


def test_an_empty_file_is_damage_and_no_empty_list(tmp_path: Path) -> None:
    (tmp_path / "capdex.lock").touch()
    with pytest.raises(UsageError):
        LockStore(tmp_path / "capdex.lock").read()


def test_a_damaged_lock_is_named_by_its_path(tmp_path: Path) -> None:
    """What to do is to move it away, and it lies where no user looks."""
    (tmp_path / "capdex.lock").write_text("<<<<<<< HEAD\n")
    with pytest.raises(UsageError) as caught:
        LockStore(tmp_path / "capdex.lock").read()
    assert str(tmp_path / "capdex.lock") in caught.value.why


def test_a_lock_that_is_a_pipe_or_too_long_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "long").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for name, code in (("pipe", Code.UNREADABLE), ("long", Code.TOO_LARGE)):
        with pytest.raises(InvalidInput) as caught:
            LockStore(tmp_path / name).read()
        assert caught.value.code is code
        assert caught.value.fix


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    """People share the file by a link into their clone of a repository."""
    clone, home = tmp_path / "clone", tmp_path / "home"
    clone.mkdir()
    home.mkdir()
    (home / "capdex.lock").symlink_to(clone / "capdex.lock")
    for number in (1, 2):  # the first one makes the file
        LockStore(home / "capdex.lock").write(Lock(extra={"a": number}))
        assert LockStore(clone / "capdex.lock").read().extra == {"a": number}
    assert (home / "capdex.lock").is_symlink()
    assert [path.name for path in (*home.iterdir(), *clone.iterdir())] == ["capdex.lock"] * 2


def test_what_a_killed_writer_left_goes_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".capdex.lock.0123").write_bytes(b"half")
    LockStore(tmp_path / "capdex.lock").write(Lock())
    assert [path.name for path in tmp_path.iterdir()] == ["capdex.lock"]
