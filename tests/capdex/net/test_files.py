"""Files written as a whole or not at all, and read within a bound."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, InvalidInput, UsageError
from capdex.net.files import drop_leftovers, read_bounded, write_folder, write_whole


def test_a_file_is_replaced_and_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").touch()
    with pytest.raises(UsageError, match="cannot write") as caught:
        write_whole(tmp_path / "b", b"new")
    assert caught.value.code is Code.UNREADABLE
    assert [found.name for found in tmp_path.iterdir()] == ["b"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"mine")
    (tmp_path / "a").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "target").read_bytes() == b"mine"
    assert not (tmp_path / "a").is_symlink()


def test_a_file_is_read_within_a_bound(tmp_path: Path) -> None:
    assert read_bounded(tmp_path / "none", 10) is None
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_bounded(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(InvalidInput) as caught:
        read_bounded(tmp_path / "a", 9)
    assert caught.value.code is Code.TOO_LARGE
    assert caught.value.fix


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        for path in (tmp_path, tmp_path / "pipe", tmp_path / "socket", Path("/dev/zero")):
            with pytest.raises(UsageError) as caught:
                read_bounded(path, 10)
            assert caught.value.code is Code.UNREADABLE
            assert caught.value.fix


def test_what_killed_writers_left_is_removed(tmp_path: Path) -> None:
    for name in (".a.0123", ".a.4567", ".b.0123", "a"):
        (tmp_path / name).touch()
    drop_leftovers(tmp_path / "a")
    assert sorted(found.name for found in tmp_path.iterdir()) == [".b.0123", "a"]


def test_a_folder_is_written_whole_with_its_modes(tmp_path: Path) -> None:
    write_folder(tmp_path / "new", {"a/b.sh": (b"1", 0o755), "c": (b"2", 0o644)})
    found = {
        x.relative_to(tmp_path / "new").as_posix(): (x.read_bytes(), x.stat().st_mode & 0o777)
        for x in (tmp_path / "new").rglob("*")
        if x.is_file()
    }
    assert found == {"a/b.sh": (b"1", 0o755), "c": (b"2", 0o644)}
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", {"c": (b"2", 0o644)})
    assert (tmp_path / "empty" / "c").read_bytes() == b"2"


@pytest.mark.parametrize("taken", ["file", "folder", "link"])
def test_a_folder_is_never_written_over_what_is_there(tmp_path: Path, taken: str) -> None:
    path = tmp_path / taken
    if taken == "folder":
        path.mkdir()
        (path / "own").touch()
    elif taken == "link":
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_text("own")
    with pytest.raises(UsageError, match="exists already"):
        write_folder(path, {"c": (b"2", 0o644)})
    assert not list(tmp_path.rglob("c"))
    assert not [x for x in tmp_path.iterdir() if x.name.startswith(".")]


def test_a_folder_with_two_files_at_one_place_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_folder(tmp_path / "new", {"a": (b"1", 0o644), "a/b": (b"2", 0o644)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", [".", ".."])
def test_a_folder_without_a_name_of_its_own_is_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UsageError) as caught:
        write_folder(Path(taken), {"c": (b"2", 0o644)})
    assert caught.value.message == f"{taken} exists already"
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_a_folder_that_is_interrupted_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> Iterator[tuple[str, tuple[bytes, int]]]:
        yield "a", (b"1", 0o644)
        assert list(tmp_path.glob("*/a"))
        raise KeyboardInterrupt

    class Files(dict[str, tuple[bytes, int]]):
        def items(self) -> Any:
            return interrupted()

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "new", Files())
    assert not list(tmp_path.iterdir())
