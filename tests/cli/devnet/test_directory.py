"""The directory of `capdex up`: held once, wiped only where it was made, keys made once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from capdex.errors import Code, UsageError
from capdex_cli.devnet.directory import LOCK, MARKER, NetworkDirectory

HOLD = (
    "import pathlib, sys\n"
    "from capdex_cli.devnet.directory import NetworkDirectory\n"
    "with NetworkDirectory(pathlib.Path(sys.argv[1])).locked(fresh=False):\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture
def home(tmp_path: Path) -> NetworkDirectory:
    return NetworkDirectory(tmp_path / "deep" / "up")


def hold(home: NetworkDirectory, *, fresh: bool = False) -> list[str]:
    """Hold the directory for a moment; what was in it then."""
    with home.locked(fresh=fresh):
        return sorted(path.name for path in home.path.iterdir())


def test_a_new_directory_gets_its_parts_and_the_mark(home: NetworkDirectory) -> None:
    assert hold(home) == sorted([MARKER, LOCK, "keys", "blocks", "packages"])


def test_what_a_run_left_is_there_for_the_next(home: NetworkDirectory) -> None:
    hold(home)
    (home.path / "index.db").write_text("rows")
    assert "index.db" in hold(home)
    assert (home.path / "index.db").read_text() == "rows"


def test_a_directory_is_held_once(home: NetworkDirectory) -> None:
    with home.locked(fresh=False):
        for fresh in (False, True):
            with pytest.raises(UsageError, match="another `capdex up` runs") as raised:
                hold(home, fresh=fresh)
            assert raised.value.code == Code.CONFIG
        assert (home.path / MARKER).exists()  # --fresh of the second wiped nothing
    hold(home)


def test_a_directory_is_held_against_other_processes_until_they_end(home: NetworkDirectory) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another `capdex up` runs"):
            hold(home)
        other.kill()
    hold(home)  # a killed process holds nothing


def test_a_failure_inside_lets_the_directory_go(home: NetworkDirectory) -> None:
    with pytest.raises(ZeroDivisionError), home.locked(fresh=False):
        raise ZeroDivisionError
    hold(home)


def test_fresh_forgets_everything_that_up_had_made(home: NetworkDirectory, tmp_path: Path) -> None:
    hold(home)
    (home.path / "index.db").write_text("rows")
    (home.path / "blocks" / "ab").mkdir()
    (home.path / "blocks" / "ab" / "block").write_text("bytes")
    assert hold(home, fresh=True) == sorted([MARKER, LOCK, "keys", "blocks", "packages"])
    assert list((home.path / "blocks").iterdir()) == []


def test_fresh_follows_no_link_out_of_the_directory(home: NetworkDirectory, tmp_path: Path) -> None:
    hold(home)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis").write_text("four years of work")
    (home.path / "link").symlink_to(mine)
    (home.path / "keys").rmdir()
    (home.path / "keys").symlink_to(mine)
    hold(home, fresh=True)
    assert (mine / "thesis").read_text() == "four years of work"
    assert not (home.path / "link").exists()
    assert not (home.path / "keys").is_symlink()


def test_fresh_spares_a_directory_that_up_did_not_make(home: NetworkDirectory) -> None:
    home.path.mkdir(parents=True)
    (home.path / "thesis").write_text("four years of work")
    with pytest.raises(UsageError, match="was not made by `capdex up`"):
        hold(home, fresh=True)
    assert (home.path / "thesis").read_text() == "four years of work"
    assert not (home.path / MARKER).exists()  # asking twice does not make it ours
    with pytest.raises(UsageError):
        hold(home, fresh=True)


def test_fresh_of_a_new_or_empty_directory_is_fine(home: NetworkDirectory) -> None:
    hold(home, fresh=True)
    other = NetworkDirectory(home.path.parent / "empty")
    other.path.mkdir()
    hold(other, fresh=True)


def test_keys_are_made_once_and_are_their_owners_alone(home: NetworkDirectory) -> None:
    before = os.umask(0)
    try:
        with home.locked(fresh=False):
            account, author = home.open_keys()
            again = home.open_keys()
    finally:
        os.umask(before)
    assert again[0].address == account.address
    assert again[1].did == author.did
    files = list((home.path / "keys").iterdir())
    assert {path.name for path in files} == {"passphrase", "account.json", "author.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_keys_made_by_half_are_completed(home: NetworkDirectory) -> None:
    with home.locked(fresh=False):
        account, _ = home.open_keys()
        (home.path / "keys" / "author.json").unlink()  # killed between the two
        again, author = home.open_keys()
    assert again.address == account.address
    assert author.did.startswith("did:key:z6Mk")


def test_every_directory_has_keys_of_its_own(home: NetworkDirectory) -> None:
    other = NetworkDirectory(home.path.parent / "other")
    found = []
    for one in (home, other):
        with one.locked(fresh=False):
            found.append(one.open_keys())
    assert found[0][0].address != found[1][0].address
    assert found[0][1].did != found[1][1].did


def test_dropping_the_index_takes_its_journals_and_search_along_and_nothing_else(
    home: NetworkDirectory,
) -> None:
    hold(home)
    for name in ("index.db", "index.db-wal", "index.db-shm", "anvil.json", "my-index.db"):
        (home.path / name).write_text(name)
    (home.path / "index.db.search").mkdir()
    (home.path / "index.db.search" / "manifest").write_text("{}")
    home.drop_index()
    assert not list(home.path.glob("index.db*"))
    left = {path.name for path in home.path.iterdir() if path.is_file()}
    assert left == {MARKER, LOCK, "anvil.json", "my-index.db"}
    home.drop_index()  # there is none: fine
