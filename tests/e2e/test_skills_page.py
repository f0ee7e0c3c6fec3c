"""The page about skills, run word for word: from a folder to installed on another machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capdex_router.skills.places import PLACES

from .pages import REPOSITORY, console_blocks, run_page

pytestmark = pytest.mark.real

PAGE = (REPOSITORY / "docs" / "skills.md").read_text("utf-8")


def test_the_page_leads_from_a_folder_to_another_machine_in_eight_commands() -> None:
    assert len(console_blocks(PAGE)) == 8


def test_every_command_of_the_page_does_what_it_shows(examples_up: Path) -> None:
    (document,) = re.findall(r"^```markdown\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    scripts = examples_up / "tea-chart/scripts"
    scripts.mkdir(parents=True)
    (scripts.parent / "SKILL.md").write_text(document, "utf-8")
    (scripts / "chart.py").write_text("#!/usr/bin/env python3\nprint('green: 2 min')\n", "utf-8")
    (scripts / "chart.py").chmod(0o755)
    run_page(PAGE, examples_up)
    installed = examples_up / ".claude/skills/tea-chart"
    assert (installed / "scripts/chart.py").read_bytes() == (scripts / "chart.py").read_bytes()
    assert (installed / "scripts/chart.py").stat().st_mode & 0o777 == 0o755


def test_the_table_of_hosts_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| `~/([^`]+)/skills`", PAGE, re.MULTILINE)
    assert rows == [(host, place.project, place.home) for host, place in PLACES.items()]
