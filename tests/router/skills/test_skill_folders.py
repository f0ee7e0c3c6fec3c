"""Skills in folders of hosts: installed, compared, mended, upgraded and removed."""

# ruff: noqa: ASYNC240 - files of a test

from __future__ import annotations

import errno
import io
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import CapdexError, Code, UsageError
from capdex.yaml import read_yaml
from capdex_publisher.authoring.imports.skill import split
from capdex_router.install.lock_store import LockStore
from capdex_router.install.lockfile import MAX_ITEMS
from capdex_router.install.plan import MAX_FILES_NAMED
from capdex_router.install.sync import check, sync
from capdex_router.skills.document import _text
from capdex_router.skills.folder import STAGING
from capdex_router.skills.places import PLACES, folder_of
from tests.indexer import making
from tests.router.simulated import Machine, Person, SimulatedNode, answer, uri

Open = Callable[..., Machine]

FILES = {
    "scripts/fill.py": b"#!/usr/bin/env python3\nprint('filled')\n",
    "references/forms.md": "# Formulare \u2028 und mehr\n".encode(),
    "assets/empty.txt": b"",
}
PROMPT = "# Forms\n\nFill the form with `scripts/fill.py`.\n\ttabs stay\n"


def forms(version: str = "1.0.0", files: Any = None, **more: Any) -> bytes:
    named = FILES if files is None else files
    return making.package_bytes("forms", version, prompt=PROMPT, files=named, **more)


def publish(node: SimulatedNode, data: bytes, files: Any = None) -> None:
    """Serve a package and the blocks of its files."""
    node.publish(data)
    for one in (FILES if files is None else files).values():
        node.blocks |= {str(cid): block for cid, block in making.divide(one)}


async def install(here: Machine, person: Person, folder: Path, name: str = "forms") -> Any:
    plan = await here.installer.plan(uri(name), folders=[str(folder)])
    return await here.installer.carry_out(plan, person)


def tree(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """All files below a folder, with their executable bit."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o111))
        for path in folder.rglob("*")
        if path.is_file()
    }


def whys(here: Machine) -> str:
    return "\n".join(problem["why"] for problem in check(here.installer))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "project/.claude/skills/forms"


@pytest.fixture
async def placed(machine: Open, node: SimulatedNode, person: Person, folder: Path) -> Machine:
    publish(node, forms())
    here = machine(node)
    await install(here, person, folder)
    return here


async def test_a_skill_is_written_with_its_files_and_modes_after_one_question(
    placed: Machine, person: Person, folder: Path
) -> None:
    written = tree(folder)
    assert {path: data for path, (data, _) in written.items() if path != "SKILL.md"} == FILES
    assert [path for path, (_, executable) in written.items() if executable] == ["scripts/fill.py"]
    front, prompt, _ = split(written["SKILL.md"][0], "SKILL.md")
    digest = placed.installer.entry("forms").sha256
    assert (front["name"], front["description"], prompt) == (
        "forms", "What forms does.", PROMPT.strip()
    )  # fmt: skip
    assert front["metadata"] == {
        "uri": "did:nuwa:cap:forms@1.0.0", "version": "1.0.0", "sha256": digest
    }  # fmt: skip
    size = sum(map(len, FILES.values()))
    for line in (
        f'writes SKILL.md and its files into "{folder}"',
        f"files: 3, {size} bytes in all; capdex runs none of them",
        'may be run by its host: "scripts/fill.py", executable, "#!/usr/bin/env python3"',
        f"granted as long as the content is the same: folder:{folder}",
    ):
        assert line in person.lines
    assert placed.installer.entry("forms").folders == (str(folder),)
    assert not list(folder.parent.glob(f"{STAGING}*"))
    assert whys(placed) == ""


async def test_a_file_that_is_a_skill_of_its_own_for_some_hosts_is_named(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    paths = ["more/SKILL.md", "agents/openai.yaml", "more/CLAUDE.md", "agents.MD", "GEMINI.md"]
    paths += ["more/AGENTS.md", "AGENTS.override.md", "CLAUDE.local.md"]
    files = FILES | dict.fromkeys(paths, b"---\nname: other\n")
    publish(node, forms(files=files), files)
    await install(machine(node), person, folder)
    for path in paths:
        assert f'some hosts read it without SKILL.md: "{path}"' in person.lines


async def test_files_that_make_a_folder_a_repository_are_named(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    paths = (".git/config", "deep/.Git", "more/HEAD", "more/.hg/hgrc")
    files = {path: path.encode() for path in paths}
    publish(node, forms(files=files), files)
    await install(machine(node), person, folder)
    for path in paths:
        assert f'may be run by its host: "{path}", not executable' in person.lines


@pytest.mark.parametrize(
    "path",
    ["more/.envrc", ".vscode/tasks.json", "--checkpoint-action=exec=sh x", "__pycache__/a.pyc"],
)
async def test_what_a_program_takes_by_itself_from_a_folder_is_named(
    machine: Open, node: SimulatedNode, person: Person, folder: Path, path: str
) -> None:
    publish(node, forms(files={path: b"x"}), {path: b"x"})
    await install(machine(node), person, folder)
    assert f'may be run by its host: "{path}", not executable' in person.lines


async def test_a_file_of_any_other_kind_is_named_too_up_to_a_number(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    files = FILES | {"Makefile": b"all:\n\techo ran\n", "package.json": b"{}"}
    publish(node, forms(files=files), files)
    await install(machine(node), person, folder)
    names = '"references/forms.md", "assets/empty.txt", "Makefile", "package.json"'
    assert f"other files, which commands may read or run: {names}\n" in person.lines
    files = {f"{number}.txt": b"" for number in range(MAX_FILES_NAMED + 2)}
    publish(node, forms("2.0.0", files), files)
    plan = await machine(node).installer.plan(uri("forms@2.0.0"))
    assert f'"{MAX_FILES_NAMED - 1}.txt" and 2 more\n' in "\n".join(plan.proposal().lines)


async def test_commands_in_a_prompt_that_a_host_runs_are_named(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    prompt = "See !`cat notes`, not `ls`!\n```!\nrm -r x\n```\n  ```!\n  echo `id`\n  ```\n"
    node.publish(making.package_bytes("forms", prompt=prompt, version="1.0.0"))
    await install(machine(node), person, folder)
    for command in ("!`cat notes`", r"```!\nrm -r x\n```", r"```!\n  echo `id`\n  ```"):
        assert f'may be run by its host, from the prompt: "{command}"' in person.lines
    assert "`ls`" not in person.lines


async def test_nothing_is_written_if_a_file_is_not_the_one_that_the_package_names(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    publish(node, forms())
    cid = str(making.divide(FILES["scripts/fill.py"])[0][0])
    for bad in (FILES["scripts/fill.py"] + b"x", None):
        node.blocks.pop(cid) if bad is None else node.blocks.update({cid: bad})
        with pytest.raises(CapdexError) as caught:
            await install(machine(node), person, folder)
        assert "scripts/fill.py" in caught.value.message
    assert not folder.parent.exists()
    assert person.asked == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
async def test_a_place_that_is_taken_is_left_alone(
    machine: Open, node: SimulatedNode, person: Person, folder: Path, tmp_path: Path, kind: str
) -> None:
    publish(node, forms())
    folder.parent.mkdir(parents=True)
    if kind == "folder":
        folder.mkdir()
        (folder / "SKILL.md").write_text("mine")
    elif kind == "file":
        folder.write_text("mine")
    else:
        folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CapdexError, match="is there already, with other content"):
        await install(machine(node), person, folder)
    assert person.asked == []
    left = folder / "SKILL.md" if kind == "folder" else folder
    assert kind == "link" or left.read_text() == "mine"


async def test_a_place_that_is_taken_while_a_person_is_asked_is_left_alone(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    publish(node, forms())
    here = machine(node)
    plan = await here.installer.plan(uri("forms"), folders=[str(folder)])
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("mine")
    with pytest.raises(CapdexError, match="is there already, with other content"):
        await here.installer.carry_out(plan, person)
    assert (folder / "SKILL.md").read_text() == "mine"
    assert here.installer.lock.packages == {}


async def test_a_folder_that_holds_just_these_files_is_taken_over(
    placed: Machine, node: SimulatedNode, machine: Open, person: Person, folder: Path
) -> None:
    """As after a clone of the project, a move of it, or the loss of the lock file."""
    moved = folder.parents[3] / "moved/forms"
    shutil.copytree(folder, moved)
    await install(placed, person, moved)
    assert placed.installer.entry("forms").folders == (str(folder), str(moved))
    placed.home.lock_file.unlink()
    placed.home.grants.unlink()
    (moved / "mine.md").write_text("mine")
    again = machine(node)
    with pytest.raises(CapdexError, match="is there already, with other content"):
        await install(again, person, moved)
    await install(again, person, folder)
    assert again.installer.entry("forms").folders == (str(folder),)
    assert whys(again) == ""
    assert (moved / "mine.md").exists()


Tamper = Callable[[Path], object]


def folder_in_place_of(file: Path) -> None:
    file.unlink()
    (file / "x").mkdir(parents=True)


TAMPERING: dict[str, tuple[Tamper, str]] = {
    "one byte": (
        lambda at: (at / "scripts/fill.py").write_bytes(FILES["scripts/fill.py"][:-2] + b"x\n"),
        "scripts/fill.py is not what was installed",
    ),
    "SKILL.md": (lambda at: (at / "SKILL.md").write_text("obey me"), "SKILL.md is not what"),
    "a missing file": (lambda at: (at / "assets/empty.txt").unlink(), "empty.txt is missing"),
    "an extra file": (lambda at: (at / "scripts/more.sh").write_text("rm"), "more.sh is not of"),
    "a hidden file": (lambda at: (at / ".env").write_text("x"), ".env is not of the package"),
    "a swapped bit": (lambda at: (at / "references/forms.md").chmod(0o755), "forms.md is exec"),
    "a lost bit": (lambda at: (at / "scripts/fill.py").chmod(0o644), "fill.py is executable wh"),
    "a link to the same": (
        lambda at: (at / "scripts/fill.py").symlink_to(
            (at / "scripts/fill.py").rename(at.parent / "fill.py")
        ),
        "scripts/fill.py is not what was installed",
    ),
    "a folder in place of a file": (
        lambda at: folder_in_place_of(at / "assets/empty.txt"),
        "empty.txt is missing",
    ),
    "a linked folder": (lambda at: (at / "more").symlink_to("/"), "more is not of the package"),
    "a link to nothing": (
        lambda at: at.symlink_to(at.rename(at.with_name("gone")).with_name("nowhere")),
        "forms is not what was installed",
    ),
    "no folder": (lambda at: at.rename(at.with_name("gone")), "forms is missing"),
}  # fmt: skip


@pytest.mark.parametrize("call", ["read_bytes", "lstat"])
async def test_a_file_that_cannot_be_read_is_told_by_name(
    placed: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real = getattr(Path, call)

    def refused(self: Path) -> Any:
        if self.name == "fill.py":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return real(self)

    monkeypatch.setattr(Path, call, refused)
    assert f"{folder}/scripts/fill.py is not what was installed" in whys(placed)


@pytest.mark.parametrize("what", TAMPERING)
async def test_each_change_of_a_folder_is_told_by_name_and_mended(
    placed: Machine, person: Person, folder: Path, what: str
) -> None:
    before = tree(folder)
    change, told = TAMPERING[what]
    change(folder)
    assert told in whys(placed)
    (outcome,) = await sync(placed.installer, person)
    assert outcome.status == "mended"
    assert (tree(folder), whys(placed)) == (before, "")
    assert len(person.asked) == 1
    (again,) = await sync(placed.installer, person)
    assert again.status == "unchanged"


async def test_without_a_network_the_folder_is_mended_from_this_machine(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path
) -> None:
    before = tree(folder)
    node.down = True
    node.blocks.clear()
    (folder / "SKILL.md").unlink()
    (outcome,) = await sync(placed.installer, person)
    assert (outcome.status, tree(folder)) == ("mended", before)


async def test_nothing_is_written_or_deleted_where_a_later_link_leads(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine/forms").mkdir(parents=True)
    (tmp_path / "mine/forms/notes.md").write_text("mine")
    folder.parent.rename(tmp_path / "away")
    folder.parent.symlink_to(tmp_path / "mine")
    (outcome,) = await sync(placed.installer, person)
    assert "leads elsewhere" in (outcome.error.why if outcome.error else "")
    publish(node, forms("1.1.0"))
    (planned,) = await placed.installer.upgrades()
    assert planned.plan is not None
    with pytest.raises(UsageError, match="cannot be written"):
        await placed.installer.carry_out(planned.plan, person)
    placed.installer.remove(["forms"])
    assert tree(tmp_path / "mine") == {"forms/notes.md": (b"mine", False)}
    assert [x.name for x in (tmp_path / "mine").iterdir()] == ["forms"]


async def test_files_that_are_lost_are_fetched_again(
    placed: Machine, node: SimulatedNode, person: Person
) -> None:
    for block in placed.home.blocks.rglob("*"):
        if block.is_file() and block.read_bytes() in FILES.values():
            block.unlink()
    assert "are not on this machine" in whys(placed)
    (outcome,) = await sync(placed.installer, person)
    assert (outcome.status, whys(placed)) == ("fetched", "")


async def test_an_upgrade_replaces_the_folder_whole_and_asks_about_programs(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path
) -> None:
    files = {"scripts/fill.py": b"#!/bin/sh\necho new\n", "references/new.md": b"new"}
    publish(node, forms("1.1.0", files), files)
    (folder / "mine.txt").write_text("added by hand")
    (planned,) = await placed.installer.upgrades()
    assert planned.plan is not None
    assert any("scripts/fill.py" in line for line in planned.plan.widened)
    await placed.installer.carry_out(planned.plan, person)
    assert {path: data for path, (data, _) in tree(folder).items() if path != "SKILL.md"} == files
    assert all(path in person.lines for path in {*FILES, *files})  # gone, changed and new ones


async def test_an_upgrade_of_texts_alone_is_asked_about(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path
) -> None:
    files = FILES | {"references/forms.md": b"other"}
    publish(node, forms("1.0.1", files), files)
    (planned,) = await placed.installer.upgrades()
    assert planned.plan is not None
    await placed.installer.carry_out(planned.plan, person)
    assert 'new: the file "references/forms.md" changed (5 bytes)' in person.lines
    assert (folder / "references/forms.md").read_bytes() == b"other"


async def test_what_an_upgrade_would_lose_of_a_person_is_asked_about_by_name(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path
) -> None:
    files = FILES | {"references/forms.md": b"other"}
    publish(node, forms("1.0.1", files), files)
    (folder / "mine.txt").write_text("mine")
    (folder / "references/forms.md").write_text("edited")
    (planned,) = await placed.installer.upgrades()
    assert planned.plan is not None
    await placed.installer.carry_out(planned.plan, person)
    for path, what in (
        ("mine.txt", "not of the package"),
        ("references/forms.md", "not what was installed"),
    ):
        assert f'new: "{folder / path}", {what}, is lost' in person.lines


async def test_a_mended_folder_tells_what_went_with_it(
    placed: Machine, person: Person, folder: Path
) -> None:
    (folder / "mine.txt").write_text("mine")
    (folder / "assets/empty.txt").unlink()
    (outcome,) = await sync(placed.installer, person)
    assert outcome.status == "mended"
    assert outcome.lost == (f'"{folder / "mine.txt"}", not of the package, is lost',)


async def test_a_downgrade_is_asked_about_as_one(
    placed: Machine, node: SimulatedNode, person: Person
) -> None:
    publish(node, forms("0.9.0"))
    plan = await placed.installer.plan(uri("forms@0.9.0"))
    assert plan.proposal().summary == "Downgrade forms 1.0.0 to 0.9.0?"


async def test_a_second_place_leaves_the_first_one_as_it_is(
    placed: Machine, person: Person, folder: Path, tmp_path: Path
) -> None:
    (folder / "mine.txt").write_text("mine")
    await install(placed, person, tmp_path / "other/forms")
    assert (folder / "mine.txt").read_text() == "mine"


async def test_a_place_that_was_deleted_is_written_again(
    placed: Machine, person: Person, folder: Path
) -> None:
    before = tree(folder)
    shutil.rmtree(folder)
    assert (await install(placed, person, folder)).status == "installed"
    assert tree(folder) == before
    assert (await install(placed, person, folder)).status == "unchanged"


async def test_folders_of_a_person_whose_names_begin_as_ours_stay(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path
) -> None:
    own = folder.parent / f"{STAGING}notes"
    own.mkdir()
    left = folder.parent / f"{STAGING}0a1b2c3d"  # as a killed process leaves one
    left.mkdir()
    publish(node, forms("1.1.0"))
    (planned,) = await placed.installer.upgrades()
    assert planned.plan is not None
    await placed.installer.carry_out(planned.plan, person)
    assert own.is_dir()
    assert not left.exists()


async def test_a_second_place_is_asked_about_alone(
    placed: Machine, person: Person, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "home/.codex/skills/forms"
    await install(placed, person, other)
    assert tree(other) == tree(folder)
    assert len(person.asked) == 2
    assert f'new: writes SKILL.md and its files into "{other}"' in person.lines
    assert placed.installer.entry("forms").folders == (str(folder), str(other))


@pytest.mark.parametrize(
    "edit", [{"permissions": ("state.create",)}, {"version": "1.0.1"}], ids=["facts", "version"]
)
async def test_a_package_whose_line_was_edited_is_removed_and_its_folder_stays(
    placed: Machine, folder: Path, edit: Any
) -> None:
    store = LockStore(placed.home.lock_file)
    store.write(store.read().plus([replace(placed.installer.entry("forms"), **edit)]))
    with pytest.raises(CapdexError):
        placed.installer.contents(placed.installer.entry("forms"))
    placed.installer.remove(["forms"])
    assert not placed.installer.lock.packages
    assert not placed.rights.read().all
    assert (folder / "SKILL.md").exists()


async def test_a_removal_takes_exactly_what_was_written(placed: Machine, folder: Path) -> None:
    (folder / "mine.txt").write_text("mine")
    (folder / "references/forms.md").write_text("edited")
    placed.installer.remove(["forms"])
    assert set(tree(folder)) == {"mine.txt", "references/forms.md"}
    assert not (folder / "scripts").exists()


async def test_a_removal_of_an_untouched_folder_leaves_nothing(
    placed: Machine, folder: Path
) -> None:
    placed.installer.remove(["forms"])
    assert not folder.exists()
    assert folder.parent.exists()


async def test_a_folder_of_somebody_is_neither_read_whole_nor_listed(
    placed: Machine, person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "taken"
    (taken / "more/deep").mkdir(parents=True)
    for number in range(9):
        (taken / f"mine{number}").write_text("mine")
    store = LockStore(placed.home.lock_file)
    entry = replace(placed.installer.entry("forms"), folders=(str(taken),))
    store.write(store.read().plus([entry]))
    read: list[str] = []
    scandir = os.scandir

    def noted(place: Any) -> Any:
        read.append(str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", noted)
    assert "mine" not in whys(placed)
    (outcome,) = await sync(placed.installer, person)
    assert "is there already, with other content" in str(outcome.error)
    assert str(taken / "more") not in read


async def test_more_folders_than_a_lock_file_holds_are_refused_before_anything_is_written(
    placed: Machine, person: Person, folder: Path
) -> None:
    store = LockStore(placed.home.lock_file)
    many = tuple(f"{folder}{number}" for number in range(MAX_ITEMS))
    store.write(store.read().plus([replace(placed.installer.entry("forms"), folders=many)]))
    with pytest.raises(CapdexError) as caught:
        await install(placed, person, folder.parent / "one more")
    assert caught.value.code is Code.TOO_LARGE
    assert len(placed.installer.entry("forms").folders) == MAX_ITEMS


async def test_a_folder_that_cannot_be_written_stops_no_other_package(
    placed: Machine, node: SimulatedNode, person: Person, folder: Path, tmp_path: Path
) -> None:
    publish(node, making.package_bytes("tides", "1.0.0", prompt=PROMPT, files=FILES))
    tides = tmp_path / "other/tides"
    await install(placed, person, tides, "tides")
    (tides / "SKILL.md").unlink()
    shutil.rmtree(tmp_path / "project")
    (tmp_path / "project").write_text("a file")
    found = {x.name: (x.status, x.error) for x in await sync(placed.installer, person)}
    assert found["tides"] == ("mended", None)
    status, error = found["forms"]
    assert (status, error and error.code) == ("failed", Code.UNREADABLE)
    assert str(folder) in whys(placed)
    placed.installer.remove(["forms"])
    assert set(placed.installer.lock.packages) == {"tides"}


async def test_a_line_of_the_lock_file_alone_writes_no_folder(
    placed: Machine, person: Person, folder: Path, tmp_path: Path
) -> None:
    taken, free = tmp_path / "taken", tmp_path / "free"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    store = LockStore(placed.home.lock_file)
    entry = placed.installer.entry("forms")
    for place in (taken, free):
        store.write(store.read().plus([replace(entry, folders=(str(folder), str(place)))]))
        assert "nobody agreed to it on this machine" in whys(placed)
        person.agrees = False
        (outcome,) = await sync(placed.installer, person)
        assert outcome.status == "failed"
    assert tree(taken) == {"mine": (b"mine", False)}
    assert not free.exists()


async def test_a_package_without_a_prompt_is_no_skill(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    node.publish(making.package_bytes("forms", prompt=None))
    with pytest.raises(CapdexError, match="cannot be written as a skill"):
        await install(machine(node), person, folder)


async def test_an_archive_is_a_file_like_any_other(
    machine: Open, node: SimulatedNode, person: Person, folder: Path
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../climbs", b"\0" * 10_000_000)
    files = {"assets/bomb.zip": packed.getvalue()}
    publish(node, forms(files=files), files)
    await install(machine(node), person, folder)
    assert set(tree(folder)) == {"SKILL.md", "assets/bomb.zip"}
    assert {path.name for path in folder.parent.iterdir()} == {"forms"}


@pytest.mark.parametrize(
    "paths",
    [
        ["../out"], ["a/../../out"], ["/etc/x"], ["a.txt", "A.TXT"], ["a", "a/b"], ["SKILL.md"],
        ["con"],
    ],
    ids=str,
)  # fmt: skip
async def test_a_package_whose_paths_are_refused_is_not_installed(
    machine: Open, node: SimulatedNode, person: Person, folder: Path, paths: list[str]
) -> None:
    data = forms(files=dict.fromkeys(paths, b"x"))
    cid = making.Cid.of(data)
    told = answer(forms(), ipfs_cid=str(cid), sha256=cid.digest.hex())  # no honest node says it
    node.releases.append(told)
    node.blocks[str(cid)] = data
    with pytest.raises(CapdexError) as caught:
        await install(machine(node), person, folder)
    assert caught.value.code is Code.UNVERIFIED
    assert not folder.parent.exists()


def test_each_host_has_a_folder_of_a_project_and_of_a_user(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home"), "CODEX_HOME": str(tmp_path / "codex")}
    for host in PLACES:
        mine = folder_of(host, "forms", user=False, project=tmp_path, environ=environ)
        user = folder_of(host, "forms", user=True, project=tmp_path, environ=environ)
        assert mine.parent.parent.parent == tmp_path
        assert user.parts[-2:] == ("skills", "forms")
    assert folder_of("codex", "x", user=True, project=tmp_path, environ=environ) == (
        tmp_path / "codex/skills/x"
    )
    assert folder_of("./here", "x", user=False, project=tmp_path, environ={}) == tmp_path / "here/x"
    with pytest.raises(CapdexError, match="is no host"):
        folder_of("./here", "x", user=True, project=tmp_path, environ={})


@pytest.mark.parametrize("to", ["", " ", "Claude", "curser", "claude-code", "vscode"])
def test_what_looks_like_a_host_is_no_new_directory(to: str, tmp_path: Path) -> None:
    with pytest.raises(CapdexError, match="neither a host nor a directory that is there"):
        folder_of(to, "x", user=False, project=tmp_path, environ={})
    for place in ("Claude", "curser"):
        (tmp_path / place).mkdir()
        assert folder_of(place, "x", user=False, project=tmp_path, environ={}).parent.name == place
    assert folder_of("./codexx", "x", user=False, project=tmp_path, environ={})


@pytest.mark.parametrize("to", ["~nobody-here/skills", "./caf\udce9"])
def test_a_place_that_has_no_path_in_a_lock_file_is_refused(to: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="skills cannot be written"):
        folder_of(to, "x", user=False, project=tmp_path, environ={})


def test_a_user_without_home_in_the_environment_has_one_nevertheless(tmp_path: Path) -> None:
    found = folder_of("claude", "x", user=True, project=tmp_path, environ={})
    assert found == (Path.home() / ".claude/skills/x").resolve()


def test_front_matter_is_the_same_for_any_text() -> None:
    for text in ('a "quote": and \\', "é 日 😀", "\u2028 \x85 \x7f", "- x", "yes", "# no"):
        assert read_yaml(f"a: {_text(text)}\n".encode()).value == {"a": text}


async def test_where_the_disk_is_full_no_new_folder_stays(
    machine: Open, node: SimulatedNode, person: Person, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    sync = os.fsync

    def full(file: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().is_relative_to(folder.parent):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    publish(node, forms())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="cannot write"):
        await install(machine(node), person, folder)
    assert not folder.parents[2].exists()


async def test_a_folder_that_cannot_be_written_leaves_the_old_lock(
    machine: Open, node: SimulatedNode, person: Person, tmp_path: Path
) -> None:
    publish(node, forms())
    here, in_the_way = machine(node), tmp_path / "skills"
    in_the_way.write_text("a file")
    with pytest.raises(CapdexError, match="cannot be written") as caught:
        await install(here, person, in_the_way / "forms")
    assert "sync" not in caught.value.fix  # which has nothing to mend
    assert here.installer.lock.packages == {}


async def test_a_line_with_a_folder_that_cannot_be_here_says_how_the_package_is_installed(
    machine: Open, node: SimulatedNode, person: Person, tmp_path: Path
) -> None:
    """The lock file of another person names a folder below that person's home."""
    publish(node, forms())
    here = machine(node)
    await install(here, person, tmp_path / "alice/skills/forms")
    here.home.grants.unlink()
    shutil.rmtree(tmp_path / "alice")
    (tmp_path / "alice").write_text("nobody lives here")
    (outcome,) = await sync(here.installer, person)
    assert outcome.error is not None
    assert outcome.error.fix.endswith("or capdex remove forms and install elsewhere")
    here.installer.remove(["forms"])
    await install(here, person, tmp_path / "bob/skills/forms")
    assert check(here.installer) == []
