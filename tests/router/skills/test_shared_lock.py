"""One lock file in a repository: teammates have homes and clones of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from capdex.errors import CapdexError, Code
from capdex_router.home.directory import Home
from capdex_router.install.installer import Installer
from capdex_router.install.outcome import InstallOutcome
from capdex_router.install.sync import check, sync
from tests.indexer import making
from tests.router.simulated import Machine, Person, SimulatedNode, uri

SKILLS = ".claude/skills"


@dataclass
class Teammate:
    """A person with a home and a clone, into which the lock file of the home is a link."""

    here: Machine
    clone: Path
    person: Person

    @property
    def installer(self) -> Installer:
        return self.here.installer

    @property
    def lock(self) -> Path:
        return self.clone / "capdex.lock"

    @property
    def folders(self) -> list[str]:
        """The folders of forms as the file has them."""
        (entry,) = (
            x for x in orjson.loads(self.lock.read_bytes())["packages"] if x["name"] == "forms"
        )
        return list(entry["folders"])

    @property
    def skill(self) -> Path:
        return self.clone / SKILLS / "forms"

    async def install(self, name: str, *folders: Path) -> InstallOutcome:
        plan = await self.installer.plan(uri(name), folders=[str(x) for x in folders])
        return await self.installer.carry_out(plan, self.person)

    async def sync(self, **options: Any) -> dict[str, InstallOutcome]:
        return {x.name: x for x in await sync(self.installer, self.person, **options)}

    def pull(self, other: Teammate) -> None:
        """Have the lock file as the other one pushed it."""
        self.lock.write_bytes(other.lock.read_bytes())


@pytest.fixture
def teammate(
    machine: Callable[..., Machine], node: SimulatedNode, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], Teammate]:  # fmt: skip
    """`teammate(name)` has a home and a clone of its own."""

    def joins(name: str) -> Teammate:
        home, clone = tmp_path / name, tmp_path / name / "work/project"
        clone.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(home))
        data = Home.open(home / "capdex")
        data.lock_file.symlink_to(clone / "capdex.lock")
        return Teammate(machine(node, at=data), clone, Person())

    return joins


@pytest.fixture
def alice(teammate: Callable[[str], Teammate], node: SimulatedNode) -> Teammate:
    for version in ("1.0.0", "1.1.0"):
        node.publish(forms(version))
    return teammate("alice")


@pytest.fixture
def bob(teammate: Callable[[str], Teammate], alice: Teammate) -> Teammate:
    return teammate("bob")


def forms(version: str, **more: Any) -> bytes:
    return making.package_bytes("forms", version, prompt=f"Fill forms as {version} does.", **more)


async def both_have_the_old_version(alice: Teammate, bob: Teammate) -> None:
    await alice.install("forms@1.0.0", alice.skill)
    bob.pull(alice)
    await bob.sync()


async def test_a_folder_of_a_project_is_in_the_clone_of_each_who_syncs(
    alice: Teammate, bob: Teammate
) -> None:
    await alice.install("forms", alice.skill)
    assert alice.folders == [f"{SKILLS}/forms"]
    bob.pull(alice)
    assert (await bob.sync())["forms"].status == "installed"
    assert f'writes SKILL.md and its files into "{bob.skill}"' in bob.person.lines
    assert (bob.skill / "SKILL.md").read_bytes() == (alice.skill / "SKILL.md").read_bytes()
    assert bob.lock.read_bytes() == alice.lock.read_bytes()
    assert check(bob.installer) == []


async def test_a_folder_of_a_user_is_in_the_home_of_each_who_syncs(
    alice: Teammate, bob: Teammate
) -> None:
    home = alice.clone.parents[1]
    await alice.install("forms", home / SKILLS / "forms")
    assert alice.folders == [f"~/{SKILLS}/forms"]
    bob.pull(alice)
    await bob.sync()
    assert (bob.clone.parents[1] / SKILLS / "forms/SKILL.md").exists()
    assert bob.lock.read_bytes() == alice.lock.read_bytes()


async def test_absolute_folders_of_a_file_before_are_these_folders_until_it_is_written(
    alice: Teammate, node: SimulatedNode
) -> None:
    await alice.install("forms@1.0.0", alice.skill)
    line = f'"folders":["{SKILLS}/forms"]'.encode()
    before = alice.lock.read_bytes().replace(
        line, f'"folders":["{alice.skill}","{SKILLS}/forms"]'.encode()
    )
    alice.lock.write_bytes(before)
    assert alice.installer.entry("forms").folders == (str(alice.skill),)
    assert (await alice.sync(frozen=True))["forms"].status == "unchanged"
    assert check(alice.installer) == []
    assert alice.lock.read_bytes() == before
    alice.here.home.grants.unlink()
    assert (await alice.sync(frozen=True))["forms"].status == "installed"
    assert alice.lock.read_bytes() == before
    node.publish(making.package_bytes("tides", "1.0.0"))
    await alice.install("tides")
    assert alice.folders == [f"{SKILLS}/forms"]


async def test_a_newer_version_that_somebody_else_installed_takes_the_place_of_the_old_one(
    alice: Teammate, bob: Teammate
) -> None:
    await both_have_the_old_version(alice, bob)
    await alice.install("forms")
    bob.pull(alice)
    outcome = (await bob.sync())["forms"]
    assert outcome.error is None
    assert (bob.skill / "SKILL.md").read_bytes() == (alice.skill / "SKILL.md").read_bytes()
    assert check(bob.installer) == []


async def test_a_branch_with_an_older_version_and_back_again_needs_no_folder_moved(
    alice: Teammate,
) -> None:
    await alice.install("forms@1.0.0", alice.skill)
    main = alice.lock.read_bytes()
    await alice.install("forms", alice.skill)
    branch = alice.lock.read_bytes()
    for checkout in (main, branch, main):
        alice.lock.write_bytes(checkout)
        assert (await alice.sync(frozen=True))["forms"].error is None
        assert check(alice.installer) == []


async def test_what_is_lost_of_a_person_with_the_version_before_is_asked_about_by_name(
    alice: Teammate, bob: Teammate
) -> None:
    await both_have_the_old_version(alice, bob)
    (bob.skill / "mine.md").write_text("mine")
    await alice.install("forms")
    bob.pull(alice)
    bob.person.agrees = False
    error = (await bob.sync())["forms"].error
    assert error is not None
    assert error.code is Code.NO_CONSENT
    assert f'"{bob.skill}/mine.md", not of the package, is lost' in bob.person.lines
    assert (bob.skill / "mine.md").read_text() == "mine"
    bob.person.agrees = True
    assert (await bob.sync())["forms"].status == "installed"
    assert check(bob.installer) == []


async def test_a_folder_of_another_package_is_not_one_of_ours(
    alice: Teammate, node: SimulatedNode
) -> None:
    node.publish(making.package_bytes("tides", "1.0.0", prompt="Tell the tide."))
    await alice.install("tides", alice.skill)
    with pytest.raises(CapdexError, match="is there already, with other content"):
        await alice.install("forms", alice.skill)


async def test_another_signer_in_a_line_is_refused_whatever_else_was_agreed_to_before(
    alice: Teammate, bob: Teammate, node: SimulatedNode
) -> None:
    """Bytes that a person agreed to tell who signed a name, until another version is agreed to."""
    await alice.install("forms")
    bob.pull(alice)
    await bob.sync()
    node.publish(making.package_bytes("coffee", "1.0.0"))
    node.publish(forms("1.2.0", key=making.OTHER_KEY))
    plan = await alice.installer.plan(uri("forms"), allow_signer_change=True)
    await alice.installer.carry_out(plan, alice.person)
    await alice.install("coffee")
    bob.pull(alice)
    outcomes = await bob.sync()
    assert outcomes["coffee"].status == "installed"
    error = outcomes["forms"].error
    assert error is not None
    assert error.code is Code.SIGNER_CHANGED


async def test_what_somebody_else_removed_goes_from_each_clone(
    alice: Teammate, bob: Teammate, node: SimulatedNode
) -> None:
    other = bob.clone.parent / "other/forms"
    await alice.install("forms", alice.skill, alice.clone / ".agents/skills/forms")
    bob.pull(alice)
    await bob.sync()
    await bob.install("forms", other)
    (bob.clone / ".agents/skills/forms/mine.md").write_text("mine")
    alice.installer.remove(["forms"])
    node.publish(making.package_bytes("tides", "1.0.0"))
    await alice.install("tides")
    bob.pull(alice)
    why = f"{bob.skill} is not in the lock file any more"
    assert {"name": "forms", "why": why} in check(bob.installer)
    await bob.install("tides")
    outcomes = await bob.sync(frozen=True)
    assert outcomes["forms"].status == "removed"
    assert not bob.skill.exists()
    assert [x.name for x in (bob.clone / ".agents/skills/forms").iterdir()] == ["mine.md"]
    assert (other / "SKILL.md").exists()  # as that of a project whose lock file was this one
    assert check(bob.installer) == []
    assert list(await bob.sync()) == ["tides"]


async def test_a_folder_that_somebody_else_took_out_of_a_line_goes_from_each_clone(
    alice: Teammate, bob: Teammate
) -> None:
    second = Path(".agents/skills/forms")
    await alice.install("forms", alice.skill, alice.clone / second)
    bob.pull(alice)
    await bob.sync()
    alice.installer.remove(["forms"])
    await alice.install("forms", alice.skill)
    bob.pull(alice)
    assert (await bob.sync())["forms"].status == "removed"
    assert bob.skill.exists()
    assert not (bob.clone / second).exists()
    assert check(bob.installer) == []


async def test_a_folder_that_git_brought_to_the_new_version_loses_nothing(
    alice: Teammate, bob: Teammate
) -> None:
    await both_have_the_old_version(alice, bob)
    await alice.install("forms")
    bob.pull(alice)
    (bob.skill / "SKILL.md").write_bytes((alice.skill / "SKILL.md").read_bytes())
    assert (await bob.sync())["forms"].status == "installed"
    assert "is lost" not in bob.person.lines


async def test_nothing_is_taken_away_where_a_link_leads_that_came_later(
    alice: Teammate, bob: Teammate
) -> None:
    await alice.install("forms", alice.skill)
    bob.pull(alice)
    await bob.sync()
    home = bob.clone.parents[1] / "mine"
    (bob.clone / ".claude").rename(home)
    (bob.clone / ".claude").symlink_to(home)
    alice.installer.remove(["forms"])
    bob.pull(alice)
    assert await bob.sync() == {}
    assert (home / "skills/forms/SKILL.md").exists()
