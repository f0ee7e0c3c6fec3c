"""Learned tools in files, which another process may change, and which may be damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capdex.errors import UsageError
from capdex_router.commands import store
from capdex_router.commands.help import Help
from capdex_router.commands.intents.manifest import CommandManifest, CommandTool
from capdex_router.commands.learned import Learned
from capdex_router.commands.store import LearnedStore

TOOL = Learned(
    CommandTool(CommandManifest("files", "ls", "Names", "9.1", "ls"), ()),
    Path("/usr/bin/ls"),
    "ab" * 32,
    Help({"--all": False}, ()),
    {},
    (),
)


def named(name: str) -> Learned:
    return replace(TOOL, tool=replace(TOOL.tool, manifest=replace(TOOL.tool.manifest, name=name)))


def test_two_processes_share_the_tools(tmp_path: Path) -> None:
    one, other = LearnedStore(tmp_path / "learned"), LearnedStore(tmp_path / "learned")
    assert (one.all(), one.revision) == ({}, ())
    other.put(TOOL)
    other.put(named("dir"))
    assert one.all() == {"dir": named("dir"), "ls": TOOL}
    before = one.revision
    other.remove("dir")
    other.remove("nothing")
    assert one.revision != before
    assert list(one.all()) == ["ls"]


def test_a_damaged_tool_is_left_out_and_can_be_learned_again(tmp_path: Path) -> None:
    kept = LearnedStore(tmp_path)
    kept.put(TOOL)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / store.FILE).write_bytes(TOOL.to_bytes())
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    assert kept.all() == {"ls": TOOL}
    (tmp_path / "ls" / store.FILE).write_bytes(b"{")
    assert kept.all() == {}
    kept.put(TOOL)
    assert kept.all() == {"ls": TOOL}


def test_the_number_of_tools_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_TOOLS", 2)
    kept = LearnedStore(tmp_path)
    for name in ("a", "b", "b"):
        kept.put(named(name))
    with pytest.raises(UsageError, match="over 2"):
        kept.put(named("c"))
