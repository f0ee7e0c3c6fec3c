"""Hooks of mkdocs: the README is the first page, links out of docs/ lead to the repository."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
FIRST = "index.md"
# The target of a link or picture that is relative, without its anchor.
_TARGET = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the README to the pages, with its links as those of a page of docs/."""
    readme = (ROOT / "README.md").read_text("utf-8")
    content = _TARGET.sub(lambda found: _address(found[1], ""), readme)
    files.append(File.generated(config, FIRST, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with links out of docs/ as addresses of the repository."""
    if page.file.src_uri == FIRST:
        return markdown
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))
    return _TARGET.sub(lambda found: _address(found[1], folder), markdown)


def _address(target: str, folder: str) -> str:
    """Return what a link to `target` from a page in `folder` of the repository becomes."""
    path = posixpath.normpath(posixpath.join(folder, target))
    if path == "README.md":
        return posixpath.relpath(FIRST, posixpath.relpath(folder, "docs"))
    if path.startswith("docs/") and (ROOT / path).is_file():
        return posixpath.relpath(path, folder or "docs")
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{_repository()}/{kind}/main/{path}"


def _repository() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    address: str = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    return address
