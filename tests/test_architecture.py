"""The tree is the one that docs/architecture.md draws, and small enough to be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from capdex_cli.main import program

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
ROOMS = (
    *("capdex", "capdex_cli", "capdex_explorer", "capdex_router"),
    *("indexer/capdex_indexer", "publisher/capdex_publisher", "mcp_service/capdex_service"),
)
MAX_MODULES = 12  # in one folder, without `__init__` and `__main__`
MAX_LINES = 350
LINE = re.compile(r"( *)([\w/]+)/ +(\S.*)")


def drawn() -> dict[str, str]:
    """The folders of the tree with their texts, in its order; a level is indented by two spaces."""
    tree = re.search(r"## The tree\n.*?^```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert tree is not None
    folders: dict[str, str] = {}
    parents: list[str] = []
    for line in tree[1].splitlines():
        found = LINE.fullmatch(line)
        assert found is not None, line
        parents[len(found[1]) // 2 :] = [found[2]]
        folders["/".join(parents)] = found[3]
    return folders


def packages() -> list[Path]:
    inits = (path for room in ROOMS for path in (ROOT / room).rglob("__init__.py"))
    return sorted(path.parent for path in inits if path.parent.name != "versions")


def modules(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.py") if not path.stem.startswith("__")]


def test_the_tree_of_the_page_is_the_tree_of_the_folders() -> None:
    assert sorted(drawn()) == sorted(str(path.relative_to(ROOT)) for path in packages())


def test_the_commands_of_the_page_are_those_of_the_command_line() -> None:
    sections: dict[str, list[str]] = {}
    for name, entry in program.entries.items():
        sections.setdefault(f"capdex_cli/commands/{entry.section.lower()}", []).append(name)
    shown = {folder: text.split(", ") for folder, text in drawn().items() if folder in sections}
    assert shown == sections


@pytest.mark.parametrize("folder", packages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_has_few_modules_and_says_what_it_is_for(folder: Path) -> None:
    assert len(modules(folder)) <= MAX_MODULES
    assert re.match(r'"""(?!TODO)[`\w]', (folder / "__init__.py").read_text("utf-8"))


def test_the_purity_contract_names_all_of_the_core() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = configured["tool"]["importlinter"]["contracts"]
    [pure] = (x for x in contracts if x["name"].startswith("The pure core"))
    folders = [path for path in packages() if path.parent == ROOT / "capdex"]
    core = {f"capdex.{path.stem}" for path in [*folders, *modules(ROOT / "capdex")]}
    assert set(pure["source_modules"]) == core - {"capdex.net"}


def test_no_module_is_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for folder in packages()
        for path in modules(folder)
    }
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_every_path_of_the_page_exists() -> None:
    paths = re.findall(r"`((?:capdex\w*|indexer|publisher|mcp_service|tests)/[\w/.]+)`", PAGE)
    assert [path for path in paths if not (ROOT / path).exists()] == []
