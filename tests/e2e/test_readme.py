"""The README's console blocks, run word for word beside a `capdex up`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .pages import REPOSITORY, console_blocks, run_page

README = (REPOSITORY / "README.md").read_text("utf-8")


def test_the_readme_has_commands_to_run() -> None:
    commands = [command.split()[0:2] for command, _ in console_blocks(README)]
    for verb in ("init", "validate", "sign", "publish", "resolve", "search", "get"):
        assert ["capdex", verb] in commands


def test_every_command_of_the_readme_does_what_it_shows(examples_up: Path) -> None:
    run_page(README, examples_up)


def test_the_readmes_snippets_for_agent_hosts_are_json() -> None:
    snippets = re.findall(r"^```json\n(.*?)^```", README, re.M | re.S)
    assert len(snippets) == 2
    for snippet in snippets:
        assert "capdex" in json.loads(snippet)["mcpServers"]
