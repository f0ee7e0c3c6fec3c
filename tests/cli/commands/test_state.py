"""`capdex state`: objects listed, moved to another machine by file, and purged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from capdex_router.state.rows import Space
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import model

NOTE = Space("did:nuwa:cap:note", "sc:note")
MODEL = model("did:nuwa:state:note#v1", {})


def store() -> ObjectStore:
    path = Path(os.environ["CAPDEX_HOME"]) / "data" / "router" / "state.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    return ObjectStore(path)


def test_objects_move_to_another_machine_by_file(
    tmp_path: Path, capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store() as here:
        here.create(NOTE, MODEL, "a", {"t": "a note"})
        here.create(NOTE, MODEL, "b", {"t": "another"})
        here.delete(NOTE, MODEL, "b")
    file = str(tmp_path / "note.state")
    assert capdex.json("state", "export", "note", file)["objects"] == 2
    assert capdex.json("state", "export", "note", file + "2", "--public")["objects"] == 0
    monkeypatch.setenv("CAPDEX_HOME", str(tmp_path / "there"))
    assert capdex.json("state", "list")["results"] == []
    found = capdex.json("state", "import", file)
    assert (found["capability"], found["new"]) == (NOTE.owner, 2)
    again = capdex("state", "import", file)
    assert again.exit_code == 1
    assert "capdex state merge" in again.stderr
    assert capdex.json("state", "merge", file)["same"] == 2
    listed = capdex.json("state", "list")["results"][0]
    assert (listed["objects"], listed["deleted"]) == (1, 1)
    assert capdex("state", "purge").exit_code == 4, "erasing needs a yes"
    assert capdex.json("state", "purge", "note", "--yes")["objects"] == 1
    assert capdex.json("state", "list")["results"][0]["deleted"] == 0


def test_an_export_of_nothing_leaves_an_older_export(tmp_path: Path, capdex: Any) -> None:
    file = tmp_path / "note.state"
    with store() as here:
        here.create(NOTE, MODEL, "a", {"t": "a note"})
    assert capdex.json("state", "export", "note", str(file))["objects"] == 1
    before = file.read_bytes()
    misspelt = capdex("state", "export", "notes", str(file))
    assert (misspelt.exit_code, file.read_bytes()) == (1, before)
    assert "nothing is kept of did:nuwa:cap:notes" in misspelt.stderr


def test_a_bad_file_is_refused_with_its_fault(tmp_path: Path, capdex: Any) -> None:
    (tmp_path / "bad").write_bytes(b"{}\n")
    assert capdex("state", "merge", str(tmp_path / "bad")).exit_code == 1
    assert capdex("state", "merge", str(tmp_path / "none")).exit_code == 2
    assert capdex("state", "export", "no name", str(tmp_path / "x")).exit_code == 1
