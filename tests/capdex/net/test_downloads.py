"""Files are written whole, and never through a link that another account planted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capdex.errors import Code, UsageError
from capdex.net.files import write_download

NEW = b"name: new\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "got.acp.yaml"


@pytest.mark.parametrize("replace", [False, True])
def test_a_new_file_is_created_with_the_usual_mode(path: Path, replace: bool) -> None:
    mask = os.umask(0o022)
    try:
        write_download(path, NEW, replace=replace)
    finally:
        os.umask(mask)
    assert path.read_bytes() == NEW
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_a_file_with_other_bytes_stays_unless_it_is_to_be_replaced(path: Path) -> None:
    path.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists already") as refused:
        write_download(path, NEW, replace=False)
    assert "--force" in refused.value.fix
    assert path.read_bytes() == b"mine"
    write_download(path, NEW, replace=True)
    assert path.read_bytes() == NEW


def test_a_file_with_the_same_bytes_is_left_as_it_is(path: Path) -> None:
    path.write_bytes(NEW)
    before = path.stat()
    write_download(path, NEW, replace=False)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("target", ["victim", "absent", "got.acp.yaml"])
def test_nothing_is_written_through_a_link(path: Path, target: str, replace: bool) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(NEW if replace else b"mine")
    before = victim.read_bytes()
    path.symlink_to(path.with_name(target))
    with pytest.raises(UsageError, match="is a link") as refused:
        write_download(path, NEW + b"more", replace=replace)
    assert refused.value.code is Code.UNREADABLE
    assert path.is_symlink()
    assert victim.read_bytes() == before
    assert not path.with_name("absent").exists()


def test_replacing_a_file_with_two_names_leaves_the_other_name_alone(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"mine")
    path.hardlink_to(other)
    write_download(path, NEW, replace=True)
    assert (path.read_bytes(), other.read_bytes()) == (NEW, b"mine")


@pytest.mark.parametrize("replace", [False, True])
def test_what_is_no_regular_file_is_refused(path: Path, replace: bool) -> None:
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a regular file"):
        write_download(path, NEW, replace=replace)
    folder = path.with_name("folder")
    folder.mkdir()
    with pytest.raises(UsageError, match="is not a regular file"):
        write_download(folder, NEW, replace=replace)


@pytest.mark.parametrize("replace", [False, True])
def test_a_directory_that_is_not_there_is_not_made(path: Path, replace: bool) -> None:
    with pytest.raises(UsageError) as refused:
        write_download(path.parent / "absent" / "got.yaml", NEW, replace=replace)
    assert refused.value.code is Code.UNREADABLE
