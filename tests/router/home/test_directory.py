"""The data directory: for its user alone, with one writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capdex.errors import Code, Unavailable, UsageError
from capdex_router.home.directory import Home

HOLD = """
import sys
from pathlib import Path
from capdex_router.home.directory import Home
with Home(Path(sys.argv[1])).writing():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_home_is_made_for_its_user_alone(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "one" / "router")
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert Home.open(home.path) == Home.open(str(home.path)) == home
    files = {home.lock_file, home.blocks, home.derived, home.grants, home.audit}
    assert {path.parent for path in files} == {home.path}
    assert len(files) == 5


def test_a_home_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        Home.open(tmp_path / "file" / "router")
    assert "CAPDEX_HOME" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("audit.jsonl", "pipe", "it is not a regular file"),
        ("state.sqlite", "pipe", "it is not a regular file"),
        ("pins.json.lock", "pipe", "it is not a regular file"),
        ("grants.json", "folder", "it is not a regular file"),
        ("capdex.lock", "device", "it is not a regular file"),
        ("results", "pipe", "it is not a folder"),
    ],
)
def test_a_file_of_the_home_that_is_something_else_is_named_at_once(
    name: str, kind: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("/dev/zero")
    with pytest.raises(UsageError) as caught:
        Home.open(tmp_path)
    assert (caught.value.code, caught.value.why) == (Code.UNREADABLE, words)
    assert str(path) in caught.value.message
    assert "remove it" in caught.value.fix


def test_what_a_home_has_beside_its_files_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "old.copies").mkdir()
    os.mkfifo(tmp_path / "mine")
    assert Home.open(tmp_path).path == tmp_path


def test_one_process_writes_and_a_killed_one_gives_the_lock_up(tmp_path: Path) -> None:
    home = Home.open(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(Unavailable) as caught, home.writing(wait_s=0):
            pass
        assert caught.value.code is Code.DATABASE_LOCKED
        process.send_signal(signal.SIGKILL)
        process.wait()
        with home.writing(), pytest.raises(Unavailable), Home(tmp_path).writing(wait_s=0):
            pass
