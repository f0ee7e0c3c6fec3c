"""`make release-check`: what it refuses, and the tag that it takes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from capdex import __version__

ROOT = Path(__file__).parents[2]
ENVIRONMENT = dict(os.environ)  # as it was: tests see a cleaned one, but uv needs its cache
CHECK = (sys.executable, "release/check.py")
OF_TAG = """
import sys
sys.path.insert(0, "release")
import check
wanted = check.message("0.5.0", (check.ROOT / "CHANGELOG.md").read_text("utf-8"))
print(list(check.of_tag("v0.5.0", "0.5.0", wanted)))
"""
CHANGELOG = """\
# Changelog

## [Unreleased]

## [0.5.0] - 2026-12-01

### Added

- A thing.

## [0.4.0] - 2026-11-22

- Older.
"""
MESSAGE = "capdex 0.5.0\n\nAdded\n\n- A thing.\n"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """The module release/check.py."""
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "release/check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_entry_without_a_fault_is_taken_and_is_the_message_of_the_tag(check: Any) -> None:
    assert list(check.of_version("0.5.0", CHANGELOG)) == []
    assert check.message("0.5.0", CHANGELOG) == MESSAGE


def test_an_entry_that_is_too_long_for_github_is_not_the_message_of_the_tag(check: Any) -> None:
    short = check.message("0.5.0", CHANGELOG.replace("A thing.", "A thing. " * 20_000))
    assert short.startswith("capdex 0.5.0\n\nCHANGELOG.md has the entry")
    assert len(short) < 200


@pytest.mark.parametrize(
    ("version", "old", "new", "said"),
    [
        ("0.5.0.dev0", "", "", "is not of the form"),
        ("0.5", "", "", "is not of the form"),
        ("0.5.0", "## [Unreleased]\n", "## [Unreleased]\n\n- New.\n", "an empty entry"),
        ("0.5.0", "## [Unreleased]\n\n", "", "an empty entry"),
        ("0.5.1", "", "", "is not [0.5.1]"),
        ("0.5.0", " - 2026-12-01", "", "has no date"),
        ("0.5.0", "### Added\n\n- A thing.\n", "", "no text"),
        ("0.5.0", "[0.4.0]", "[0.6.0]", "is not newer than 0.6.0"),
        ("one", "", "", "is none"),
    ],
)
def test_a_version_or_an_entry_with_a_fault_is_refused(
    check: Any, version: str, old: str, new: str, said: str
) -> None:
    assert old in CHANGELOG
    found = list(check.of_version(version, CHANGELOG.replace(old, new, 1)))
    assert any(said in problem for problem in found), found


@pytest.fixture
def clone(tmp_path: Path) -> Callable[..., Any]:
    """A clone of these sources in which 0.5.0 is ready; `clone(*command)` runs there."""
    root = tmp_path / "clone"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if not name.startswith(("tests/", "benchmarks/")) and (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes((ROOT / name).read_bytes())
    (root / ".tools").symlink_to(ROOT / ".tools")
    init = root / "capdex/__init__.py"
    init.write_text(init.read_text().replace(__version__, "0.5.0"))
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    who = {"NAME": "A maintainer", "EMAIL": "maintainer@example.net"}
    names = {f"GIT_{x}_{key}": who[key] for x in ("AUTHOR", "COMMITTER") for key in who}

    def run(*command: str, code: int = 0, text: str = "") -> str:
        done = subprocess.run(
            command, cwd=root, env={**ENVIRONMENT, **names}, input=text,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("git", "init", "--quiet")
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", "Release 0.5.0")
    return run


def test_a_commit_is_checked_and_built_and_its_tag_is_made_by_the_command_told(
    clone: Callable[..., str], dist: Path
) -> None:
    said = clone(*CHECK)
    assert "✓ capdex 0.5.0 can be released\n" in said
    [told] = [line for line in said.splitlines() if "git tag --annotate v0.5.0" in line]
    assert clone(*CHECK, "--message") == MESSAGE
    clone("sh", "-c", f"PATH=/usr/bin:/bin; {told}")  # as in a shell without this environment
    assert clone(sys.executable, "-c", OF_TAG) == "[]\n"  # without a second build


def test_a_tag_with_a_fault_and_files_that_are_not_committed_are_refused(
    clone: Callable[..., str],
) -> None:
    assert "the tag v0.6.0 is not v0.5.0" in clone(*CHECK, "v0.6.0", code=1)
    assert "v0.5.0 is not an annotated tag" in clone(*CHECK, "v0.5.0", code=1)
    clone("git", "tag", "v0.5.0")
    assert "v0.5.0 is not an annotated tag" in clone(*CHECK, "v0.5.0", code=1)
    clone("git", "tag", "--force", "--annotate", "v0.5.0", "--message", "Version 0.5.0")
    assert "is not the entry of CHANGELOG.md" in clone(*CHECK, "v0.5.0", code=1)
    clone("git", "commit", "--quiet", "--allow-empty", "--message", "More")
    assert "v0.5.0 is not at this commit" in clone(*CHECK, "v0.5.0", code=1)
    clone("touch", "capdex/new.py")
    assert "files that are not committed" in clone(*CHECK, code=1)
