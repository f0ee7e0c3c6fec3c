"""skills.py COUNT [--seed N]: kill -9 an installer at COUNT points of its work on skills.

A process of its own writes a skill into a folder, upgrades, mends or removes it, and is killed as
in install.py. After every kill the folder is the old or the new one, whole, or is not there where
it is first written or is removed. Then the work is done again, and must end as if nothing had
happened, with nothing left beside the folder. The last line is `N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from attempts import arguments, attempt, conclude
from install import WHEN, Work, Yes, in_child, opened, package

from capdex.package import VerifiedPackage
from capdex_router.home.directory import Home
from capdex_router.install.installer import Installer
from capdex_router.install.resolve import Release
from capdex_router.install.sync import check, sync
from capdex_router.skills.folder import content

OLD_FILES = {"scripts/run.py": b"#!/usr/bin/env python3\n", "a/b/old.txt": b"old" * 40_000}
NEW_FILES = {"scripts/run.py": b"#!/bin/sh\necho new\n", "a/new.txt": b"new", "c.txt": b"c"}
OLD = package("forms", "1.0.0", 1, OLD_FILES)
NEW = package("forms", "1.1.0", 1, NEW_FILES)
Tree = dict[str, tuple[bytes, bool]]


@dataclass
class Place:
    """A home and the folder of the skill, which are saved and put back together."""

    root: Path

    @property
    def home(self) -> Home:
        return Home.open(self.root / "home")

    @property
    def skill(self) -> Path:
        return self.root / "skills/forms"

    def put(self, installer: Installer, found: object, files: dict[str, bytes]) -> None:
        said = found.announcement  # type: ignore[attr-defined]
        release = Release(said, {"chain_id": said.chain_id, "publisher": said.publisher})
        plan = installer.planned(found, release, files=files, folders=[str(self.skill)])  # type: ignore[arg-type]
        asyncio.run(installer.carry_out(plan, Yes()))

    def tree(self) -> Tree:
        return {
            path.relative_to(self.skill).as_posix(): (
                path.read_bytes(),
                bool(path.stat().st_mode & 0o111),
            )
            for path in self.skill.rglob("*")
            if path.is_file()
        }

    def save(self, name: str) -> None:
        shutil.copytree(self.root, self.root.with_name(name))

    def restore(self, name: str) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.root.with_name(name), self.root)


def whole(found: VerifiedPackage, files: dict[str, bytes]) -> Tree:
    expected = content(found.manifest, found.announcement.sha256.hex(), files)
    return {path: (file.data, file.executable) for path, file in expected.items()}


@dataclass
class Soak:
    """For each kind of work: what may be in the folder after a kill, and what is at the end."""

    place: Place
    random: Random
    calls: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        old, new = whole(OLD, OLD_FILES), whole(NEW, NEW_FILES)
        broken = old | {"scripts/run.py": (b"edited", True)}
        place = self.place
        self.works = {
            "install": (lambda x: place.put(x, OLD, OLD_FILES), [{}, old], old),
            "upgrade": (lambda x: place.put(x, NEW, NEW_FILES), [old, new], new),
            "mend": (lambda x: asyncio.run(sync(x, Yes())), [broken, old], old),
            "remove": (self.remove, [old, {}], {}),
        }

    @staticmethod
    def remove(installer: Installer) -> None:
        if "forms" in installer.lock.packages:
            installer.remove(["forms"])

    def prepare(self) -> None:
        for name, (run, _, end) in self.works.items():
            shutil.rmtree(self.place.root, ignore_errors=True)
            self.place.skill.parent.mkdir(parents=True)
            if name != "install":
                self.place.put(opened(self.place.home), OLD, OLD_FILES)
            if name == "mend":
                (self.place.skill / "scripts/run.py").write_bytes(b"edited")
            self.place.save(name)
            _, self.calls[name] = in_child(Work(run, {}, {}), self.place.home, 0, "never")
            assert self.calls[name] > 3, (name, self.calls)
            assert self.place.tree() == end, name

    def kill_once(self) -> tuple[str, list[str]]:
        name = self.random.choice(sorted(self.works))
        run, allowed, end = self.works[name]
        at, when = self.random.randint(1, self.calls[name]), self.random.choice(WHEN)
        self.place.restore(name)
        killed, _ = in_child(Work(run, {}, {}), self.place.home, at, when)
        what = f"{name}, killed {when} call {at} of {self.calls[name]}"
        if not killed:
            return what, ["it was not killed"]
        found = self.place.tree()
        wrong = [] if found in allowed else [f"the folder is a mixture: {sorted(found)}"]
        run(opened(self.place.home))
        if name != "remove":
            asyncio.run(sync(opened(self.place.home), Yes()))
        if self.place.tree() != end:
            wrong.append(f"done again: {sorted(self.place.tree())}")
        wrong += [one["why"] for one in check(opened(self.place.home))]
        beside = {path.name for path in self.place.skill.parent.iterdir()} - {"forms"}
        if beside:
            wrong.append(f"left beside: {beside}")
        return what, wrong


def main() -> int:
    options = arguments(__doc__).parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Place(Path(folder) / "here"), Random(options.seed))
        soak.prepare()
        failed = sum(
            attempt(soak.kill_once, number, options.verbose) for number in range(options.count)
        )
    return conclude(options.count, failed)


if __name__ == "__main__":
    sys.exit(main())
