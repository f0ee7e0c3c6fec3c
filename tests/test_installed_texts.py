"""No text of an installed program sends its reader to a clone of the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = [
    *ROOT.glob("capdex*"), ROOT / "indexer", ROOT / "publisher", ROOT / "mcp_service",
    ROOT / "examples",
]  # fmt: skip
SOURCES = re.compile(
    r"\bmake (?:install|run|dev|test|check|node|lock|clean)\b|\b(?:a|the|this) (?:clone|checkout)\b"
    r"|\bsource of capdex\b|\bin the project\b|\bpip install (?:-e|\.)|\bgit clone\b",
    re.IGNORECASE,
)


def texts(file: Path) -> Iterator[str]:
    """The texts of a file that a person may see: of Python, what is no docstring of a module,
    a class or an undecorated function (click shows those of commands).
    """
    if file.suffix != ".py":
        yield file.read_text("utf-8")
        return
    tree = ast.parse(file.read_text("utf-8"))
    hidden = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and not getattr(node, "decorator_list", [])
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            yield node.value


def files() -> list[Path]:
    kinds = {".py", ".toml", ".json", ".html", ".js", ".yaml"}
    found = (x for room in ROOMS for x in room.rglob("*") if "__pycache__" not in x.parts)
    return [x for x in found if x.suffix in kinds and "abi" not in x.parts]


def test_no_text_speaks_of_a_clone_or_of_make() -> None:
    found = [(str(file), text) for file in files() for text in texts(file) if SOURCES.search(text)]
    assert found == []


@pytest.mark.parametrize("text", ["run `make install` in the project", "in the source of capdex"])
def test_such_a_text_would_be_found(text: str, tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(f'"""In a clone."""\nraise ValueError("{text}")\n')
    assert [x for x in texts(file) if SOURCES.search(x)] == [text]
