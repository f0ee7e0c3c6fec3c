"""The workflows of GitHub: what they may do, and that what they run is fixed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = {x.name: x.read_text("utf-8") for x in [*FILES, ROOT / "docs/publishing-from-ci.md"]}
WORKFLOWS: dict[str, Any] = {x.stem: yaml.safe_load(TEXTS[x.name]) for x in FILES}
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def jobs(may: str) -> set[str]:
    """The jobs of the release that have a permission to write."""
    found = WORKFLOWS["release"]["jobs"].items()
    return {name for name, job in found if job["permissions"].get(may) == "write"}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(text: str) -> None:
    used = re.findall(r"^ *(?:- )?uses: (.*)$", text, re.MULTILINE)
    assert used
    assert [x for x in used if not PINNED.fullmatch(x)] == []


def test_an_action_has_one_commit_everywhere() -> None:
    used = re.findall(r"uses: (\S+)@(\S+)", "".join(TEXTS.values()))
    assert len(dict(used)) == len(set(used))


def test_no_value_of_a_workflow_becomes_code_of_a_shell() -> None:
    steps = [x for one in WORKFLOWS.values() for job in one["jobs"].values() for x in job["steps"]]
    assert [x["run"] for x in steps if "${{" in x.get("run", "")] == []


def test_each_job_may_do_what_it_has_to_and_nothing_else() -> None:
    assert WORKFLOWS["ci"]["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in WORKFLOWS["ci"]["jobs"].values())
    assert WORKFLOWS["release"]["permissions"] == {}
    assert jobs("id-token") == {"attest", "pypi"}
    assert jobs("attestations") == {"attest"}
    assert jobs("contents") == {"page"}
    assert WORKFLOWS["release"]["jobs"]["build"]["permissions"] == {"contents": "read"}
    assert WORKFLOWS["release"]["jobs"]["pypi"]["environment"]["name"] == "pypi"


def test_what_can_sign_or_upload_runs_nothing_of_the_repository() -> None:
    for name in jobs("id-token"):
        steps = WORKFLOWS["release"]["jobs"][name]["steps"]
        assert not any("checkout" in step.get("uses", "") for step in steps)


def test_the_targets_of_make_that_are_run_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    run = re.findall(r"run: make (\S+)", "".join(TEXTS.values()))
    assert set(run) == {"test", "release-check"} <= targets


def test_python_is_the_oldest_and_the_newest_that_the_package_names() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    [job] = WORKFLOWS["ci"]["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == [named[0], named[-1]]
    assert f'requires-python = ">={named[0]},<3.{int(named[-1][2:]) + 1}"' in project


def test_the_page_of_a_candidate_is_that_of_a_pre_release() -> None:
    (script,) = [x["run"] for x in WORKFLOWS["release"]["jobs"]["page"]["steps"] if "run" in x]
    said = {}
    for tag in ("v0.5.0", "v0.5.0rc1"):
        shown = subprocess.run(
            ["bash", "-c", script.replace("gh release create", "echo")],
            capture_output=True,
            text=True,
            env={"GITHUB_REF_NAME": tag},
            check=True,
        )
        said[tag] = shown.stdout.split()[-1]
    assert said == {"v0.5.0": "--prerelease=false", "v0.5.0rc1": "--prerelease"}
