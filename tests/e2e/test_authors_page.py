"""The page for authors, run word for word: from an MCP server to a version that was withdrawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import REPOSITORY, console_blocks, run_page

pytestmark = pytest.mark.real

PAGE = (REPOSITORY / "docs" / "authors.md").read_text("utf-8")


def test_the_page_leads_from_a_tool_to_a_withdrawn_version() -> None:
    verbs = [command.split()[1] for command, _ in console_blocks(PAGE) if "capdex" in command]
    assert verbs == [
        *("init", "validate", "try", "publish", "publish", "search", "show"),
        *("diff", "publish", "deprecate", "yank", "show"),
    ]


def test_every_command_of_the_page_does_what_it_shows(examples_up: Path, node_binary: str) -> None:
    run_page(PAGE, examples_up, REPOSITORY / "node_modules" / ".bin", Path(node_binary).parent)
