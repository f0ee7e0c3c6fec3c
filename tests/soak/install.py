"""install.py COUNT [--seed N]: kill -9 an installer at COUNT write points of its work.

A process of its own installs, upgrades, synchronises or removes a package, and is killed by SIGKILL
before, in the middle of, or after one of its system calls that change files (open for writing,
write, fsync, rename, unlink, mkdir, rmdir). After every kill the lock file is the old or the new
one, each of its packages verifies from the cache and has its rights, and the audit log is whole.
Then the same work is done again, and must end as if nothing had happened. The last line is
`N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from attempts import arguments, attempt, conclude

sys.path.append(str(Path(__file__).resolve().parents[2]))

from capdex.encoding.abi import checksum_address
from capdex.ipld.cid import Cid
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex.uri import PREFIX
from capdex_router.catalog.short_forms import ShortForms
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.audit_log import verify as verify_audit
from capdex_router.home.config import Config
from capdex_router.home.directory import Home
from capdex_router.install.installer import Installer
from capdex_router.install.resolve import Release
from capdex_router.install.sync import check
from capdex_router.policy.grant_file import GrantFile
from tests.indexer import making
from tests.router.simulated import all_grants

CALLS = ("open", "write", "fsync", "replace", "unlink", "rename", "mkdir", "rmdir")
WHEN = ("before", "halfway", "after")


class Yes:
    """A person who agrees."""

    async def ask(self, question: Any) -> bool:
        return True


def package(
    name: str, version: str, tools: int, files: dict[str, bytes] | None = None
) -> VerifiedPackage:
    named = [making.tool(f"tool{number}", city="A city.") for number in range(tools)]
    data = making.package_bytes(name, version, tools=named, files=files)
    cid = Cid.of(data)
    publisher = checksum_address(making.PUBLISHER)
    said = Announcement(
        making.CHAIN_ID, publisher, f"{PREFIX}{name}@{version}", version, cid.text, cid.digest
    )
    return verify(said, data)


OLD, NEW = package("weather", "1.0.0", 1), package("weather", "1.1.0", 3)
OTHER = package("tides", "1.0.0", 2)


def opened(home: Home) -> Installer:
    return Installer(
        home,
        Config(),
        rights=GrantFile(home.grants),
        audit=AuditLog(home.audit),
        seen=ShortForms(home).add,
    )


def put(installer: Installer, found: VerifiedPackage) -> None:
    """Install a package whose resolution is known."""
    said = found.announcement
    release = Release(said, {"chain_id": said.chain_id, "publisher": said.publisher})
    asyncio.run(installer.carry_out(installer.planned(found, release), Yes()))


def install(installer: Installer) -> None:
    put(installer, OTHER)


def upgrade(installer: Installer) -> None:
    put(installer, NEW)


def remove(installer: Installer) -> None:
    if "weather" in installer.lock.packages:
        installer.remove(["weather"])


def agree(installer: Installer) -> None:
    put(installer, OLD)


@dataclass(frozen=True)
class Work:
    """One kind of work: what is installed before and after it, by version."""

    run: Callable[[Installer], None]
    before: dict[str, str]
    after: dict[str, str]


WORKS = {
    "install": Work(install, {"weather": "1.0.0"}, {"weather": "1.0.0", "tides": "1.0.0"}),
    "upgrade": Work(upgrade, {"weather": "1.0.0"}, {"weather": "1.1.0"}),
    "remove": Work(remove, {"weather": "1.0.0"}, {}),
    "agree": Work(agree, {"weather": "1.0.0"}, {"weather": "1.0.0"}),
}


@dataclass
class Knife:
    """Counts the calls of this process that change files, and kills it at one of them."""

    at: int
    when: str
    count: int = 0
    real: dict[str, Any] = field(default_factory=dict)

    def lay(self) -> None:
        for name in CALLS:
            self.real[name] = getattr(os, name)
            setattr(os, name, partial(self.call, name))

    def call(self, name: str, *given: Any, **more: Any) -> Any:
        if name == "open" and not given[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return self.real[name](*given, **more)
        self.count += 1
        if self.count != self.at:
            return self.real[name](*given, **more)
        if self.when == "halfway" and name == "write":
            self.real[name](given[0], given[1][: len(given[1]) // 2])
        if self.when == "after":
            with suppress(OSError):  # of a file that is not there
                self.real[name](*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")


def in_child(work: Work, home: Home, at: int, when: str) -> tuple[bool, int]:
    """Do some work in a process that is killed; tell if it was, and how many calls it made."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            knife = Knife(at, when)
            knife.lay()
            work.run(opened(home))
            knife.real["write"](write, str(knife.count).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        count = said.read()
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status), int(count or 0)


def faults(home: Home, *expected: dict[str, str], whole: bool = True) -> list[str]:
    """What is wrong with a home that should hold one of these lists."""
    installer = opened(home)
    versions = {name: entry.version for name, entry in installer.lock.packages.items()}
    wrong = [] if versions in expected else [f"it lists {versions}"]
    if whole:
        wrong += [f"{one['name']}: {one['why']}" for one in check(installer)]
        for entry in installer.lock.packages.values():
            found = installer.cache.package(entry.announcement)
            granted = installer.rights.granted(f"{PREFIX}{entry.name}", entry.sha256, "any")
            if found and not granted >= {grant.target for grant in all_grants(found)}:
                wrong.append(f"{entry.name} lacks rights: {sorted(granted)}")
    if verify_audit(home.audit).broken is not None:
        wrong.append("the audit log is broken")
    return wrong


@dataclass
class Soak:
    """A folder with a home for each kind of work, as it is before it."""

    folder: Path
    random: Random
    calls: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> None:
        for name, work in WORKS.items():
            home = Home.open(self.folder / name)
            put(opened(home), OLD)
            if name == "agree":
                home.grants.unlink()
            copy = self.copy(name)
            _, self.calls[name] = in_child(work, copy, 0, "never")
            assert self.calls[name] > 3, (name, self.calls)
            assert not faults(copy, work.after)

    def copy(self, name: str) -> Home:
        target = self.folder / "here"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder / name, target)
        return Home(target)

    def kill_once(self) -> tuple[str, list[str]]:
        name = self.random.choice(sorted(WORKS))
        work, at = WORKS[name], self.random.randint(1, self.calls[name])
        when = self.random.choice(WHEN)
        home = self.copy(name)
        killed, _ = in_child(work, home, at, when)
        what = f"{name}, killed {when} call {at} of {self.calls[name]}"
        if not killed:
            return what, ["it was not killed"]
        wrong = faults(home, work.before, work.after, whole=name != "agree")
        work.run(opened(home))
        wrong += [f"done again: {one}" for one in faults(home, work.after)]
        return what, wrong


def main() -> int:
    options = arguments(__doc__).parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), Random(options.seed))
        soak.prepare()
        failed = sum(
            attempt(soak.kill_once, number, options.verbose) for number in range(options.count)
        )
    return conclude(options.count, failed)


if __name__ == "__main__":
    sys.exit(main())
