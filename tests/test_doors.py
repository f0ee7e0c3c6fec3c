"""The doors of the rooms: their `__all__`, docs/python-api.md, and what the page imports."""

from __future__ import annotations

import ast
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "python-api.md").read_text("utf-8")
ROOMS = {
    **{room: room for room in ("capdex", "capdex_cli", "capdex_explorer", "capdex_router")},
    "capdex_indexer": "indexer/capdex_indexer",
    "capdex_publisher": "publisher/capdex_publisher",
    "capdex_service": "mcp_service/capdex_service",
}
LISTED = {
    room: re.findall(r"`(\w+)`", names)
    for room, names in re.findall(r"^\| `([\w.]+)` \| (.+) \|$", PAGE, re.M)
}
SCRIPT = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))


def test_every_room_has_a_door_on_the_page_and_types() -> None:
    assert ROOMS.keys() <= LISTED.keys()
    assert all((ROOT / folder / "py.typed").is_file() for folder in ROOMS.values())


@pytest.mark.parametrize("room", LISTED)
def test_a_door_has_the_names_of_the_page_and_each_is_there(room: str) -> None:
    door = import_module(room)
    assert list(door.__all__) == LISTED[room]
    assert all(getattr(door, name) is not None for name in door.__all__)
    with pytest.raises(AttributeError):
        door.nothing_of_this_name  # noqa: B018


@pytest.mark.parametrize("room", LISTED)
def test_help_and_completion_have_the_names_of_a_door(room: str) -> None:
    door = import_module(room)
    assert set(LISTED[room]) <= set(dir(door))
    shown = pydoc.plain(pydoc.render_doc(door)).partition("PACKAGE CONTENTS")[2]
    described = shown.partition("\nDATA\n")[0]
    classes = {x for x in LISTED[room] if isinstance(getattr(door, x), type)}
    assert {x for x in classes if re.search(rf"^    class {x}\b", described, re.M)} == classes


def test_the_page_imports_from_doors_alone() -> None:
    imported = [x for x in ast.walk(ast.parse(SCRIPT)) if isinstance(x, ast.ImportFrom)]
    ours = [x for x in imported if x.module and x.module.partition(".")[0] in ROOMS]
    assert len(ours) > 5
    for statement in ours:
        assert {x.name for x in statement.names} <= set(LISTED[statement.module or ""])


def test_a_room_imports_no_module_before_a_name_is_asked_for() -> None:
    code = f"import sys, {', '.join(ROOMS)}; print(sorted(x for x in sys.modules if '.' in x))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [x for x in ast.literal_eval(found.stdout) if x.partition(".")[0] in ROOMS]
    assert loaded == ["capdex.door"]


def test_all_that_a_room_has_is_imported_by_a_star() -> None:
    code = "from capdex_router import *; print(Home.__name__, open_agent.__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "Home open_agent\n"
