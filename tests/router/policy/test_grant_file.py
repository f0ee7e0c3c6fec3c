"""The file of grants: shared by processes, written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdex.errors import UsageError
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.grants import Grant

HOST = Grant("did:nuwa:cap:weather", "aa", "now", "host:api.example.org", 100.0)


def opened(path: Path, now: float = 0.0) -> GrantFile:
    return GrantFile(path / "grants.json", lambda: now)


def test_what_one_process_grants_another_sees(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    assert other.granted(HOST.name, "aa", "now") == frozenset()
    one.grant([HOST])
    assert other.granted(HOST.name, "aa", "now") == {HOST.target}
    assert opened(tmp_path, 100.0).granted(HOST.name, "aa", "now") == frozenset()


def test_grants_are_taken_back(tmp_path: Path) -> None:
    grants = opened(tmp_path)
    grants.grant([HOST])
    assert grants.revoke(HOST.name) == 1
    assert grants.granted(HOST.name, "aa", "now") == frozenset()


def test_a_damaged_file_is_told_and_kept(tmp_path: Path) -> None:
    (tmp_path / "grants.json").write_bytes(b"{")
    with pytest.raises(UsageError):
        opened(tmp_path).grant([HOST])
    assert (tmp_path / "grants.json").read_bytes() == b"{"
