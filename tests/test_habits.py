"""What contributors and their tools are told exists, and is what `make check` does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE))
KINDS = set(re.findall(r"^soak\.([a-z-]+) = ", MAKEFILE, re.MULTILINE))
FOLDERS = ("docs", "tests", "contracts", "benchmarks", ".github")
NAMING = [
    *(ROOT / name for name in ("Makefile", "pyproject.toml")),
    *ROOT.glob("*.md"),
    *(
        x
        for folder in FOLDERS
        for end in ("md", "py", "yml")
        for x in ROOT.glob(f"{folder}/**/*.{end}")
    ),
]
HOOKS: list[dict[str, Any]] = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    for hook in repository["hooks"]
]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def named(pattern: str) -> set[str]:
    texts = (x.read_text("utf-8") for x in NAMING if "node_modules" not in x.parts)
    return {word for text in texts for word in re.findall(pattern, text)}


def recipe(target: str) -> list[str]:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None, target
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in found[1].splitlines()]


def test_every_target_of_make_that_a_text_names_exists() -> None:
    assert named(r"`make ([a-z][a-z0-9-]*)") - TARGETS == set()


def test_help_lists_every_target_that_has_a_line_about_itself() -> None:
    said = set(re.findall(r"^([^.#\s:]+):.*## ", MAKEFILE, re.MULTILINE))
    shown = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert set(re.findall(r"^  make (\S+) ", shown.stdout, re.MULTILINE)) == said


def test_a_part_of_the_router_that_misses_its_aim_lets_the_others_be_measured(
    tmp_path: Path,
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$1"\nexit 1\n')
    python.chmod(0o755)
    command = ["make", "--silent", "--assume-old", ".venv/.dev", "bench-router", f"BIN={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    scripts = sorted(f"benchmarks/router/{x.name}" for x in (ROOT / "benchmarks/router").glob("*"))
    ran = [line for line in done.stdout.splitlines() if not line.startswith("##")]
    assert sorted(ran) == [x for x in scripts if x.endswith(".py")]
    assert done.returncode


def test_every_kind_of_soak_that_a_text_names_exists() -> None:
    assert named(r"KIND=([a-z-]+)") - KINDS == set()
    assert named(r"make soak-[a-z]+") == set()


def test_every_script_that_soaks_is_run_by_a_kind() -> None:
    scripts = {x.stem for x in (ROOT / "tests/soak").glob("*.py") if "__main__" in x.read_text()}
    assert [x for x in scripts if f"{x}.py" not in MAKEFILE and x not in MAKEFILE] == []


def test_a_commit_is_checked_as_make_check_checks_without_a_network() -> None:
    [checked] = re.findall(r"^check: dev (.*) ##", MAKEFILE, re.MULTILINE)
    assert [hook["id"] for hook in HOOKS] == checked.split()
    for hook in HOOKS:
        assert hook["language"] == "system"
        if hook["entry"] != f"make --silent {hook['id']}":
            assert f"{hook['entry'].removesuffix(' --force-exclude')} $(SOURCES)" in recipe(
                hook["id"]
            )


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_the_code_and_the_output_of_the_doctor(form: Path) -> None:
    text = form.read_text("utf-8")
    fields = [x for x in yaml.safe_load(text)["body"] if x["type"] != "markdown"]
    assert len({x["id"] for x in fields}) == len(fields)
    assert "error[CODE]" in text
    assert "`capdex doctor --json`" in text


def test_a_change_is_asked_for_the_code_and_the_output_of_the_doctor() -> None:
    text = (ROOT / ".github/PULL_REQUEST_TEMPLATE.md").read_text("utf-8")
    assert "error[CODE]" in text
    assert "`capdex doctor --json`" in text
