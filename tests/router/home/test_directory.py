"""The data directory: for its user alone, with one writer."""

from __future__ import annotations

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
    assert Home.open(home.path) == home
    files = {home.lock_file, home.blocks, home.derived, home.grants, home.audit}
    assert {path.parent for path in files} == {home.path}
    assert len(files) == 5


def test_a_home_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        Home.open(tmp_path / "file" / "router")
    assert "CAPDEX_HOME" in caught.value.fix


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
