"""Installation: resolve ─> fetch ─> verify ─> compare ─> consent ─> commit.

The commit writes blocks, folders beside their places, and grants, then the lock file, whose
replacement is the moment of change: before it the old package is installed, after it the new one.
Then the folders take their places. What a killed process leaves (a block, a grant for bytes that
are not installed) has no effect, and goes with the next commit; `sync` mends the folders.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

from capdex.errors import CapdexError, Code, InvalidInput, UsageError, VerificationFailure
from capdex.manifest.manifest import read
from capdex.net.ipfs.multi_source import MultiSource
from capdex.package import VerifiedPackage
from capdex.uri import PREFIX, CapabilityURI
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.config import Config
from capdex_router.home.directory import Home
from capdex_router.install.fetch import (
    Cache,
    fetch,
    fetch_files,
    files_here,
    installed,
    open_gateways,
)
from capdex_router.install.lock_store import LockStore
from capdex_router.install.lockfile import Lock, Locked
from capdex_router.install.outcome import InstallOutcome
from capdex_router.install.plan import InstallPlan, make
from capdex_router.install.resolve import Release, resolve
from capdex_router.install.wish import with_suggestions
from capdex_router.policy.consent import Asker, agree
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.grants import Grant
from capdex_router.policy.proposal import INSTALL
from capdex_router.skills.placing import Placed, folder_target, losses, written

AT_ONCE: Final = 8  # packages that are resolved and fetched at the same time


@dataclass(eq=False)
class Installer:
    """Changes what is installed: `seen` gets each verified package, `gone` each removed name."""

    home: Home
    config: Config
    _: KW_ONLY
    rights: GrantFile
    audit: AuditLog
    seen: Callable[[VerifiedPackage], None] = lambda package: None
    gone: Callable[[str], None] = lambda name: None
    kept: Callable[[str], int] = lambda owner: 0  # how many objects a package has here

    def __post_init__(self) -> None:
        self._store = LockStore(self.home.lock_file)
        self.cache = Cache(self.home.blocks)

    @property
    def lock(self) -> Lock:
        """The lock file as it is now; raises UsageError CONFIG if it is damaged."""
        return self._store.read()

    def entry(self, name: str) -> Locked:
        """Return the entry of a name or a URI; raises InvalidInput NOT_FOUND."""
        return _entry(self.lock, name)

    # install and upgrade ------------------------------------------------------------------------

    async def install(self, uri: CapabilityURI, asker: Asker) -> InstallOutcome:
        """Install the release that a URI means, after a person agreed.

        Raises the errors of `resolve`, `fetch` and `plan.make`, Refused NO_CONSENT or
        CONFIRM_NEEDED, and InvalidInput LOCK_DRIFT if the package was changed meanwhile.
        """
        return await self.carry_out(await self.plan(uri), asker)

    async def plan(
        self,
        uri: CapabilityURI,
        *,
        allow_signer_change: bool = False,
        folders: Collection[str] = (),
    ) -> InstallPlan:
        """Return what the installation of a URI would change; nothing is written.

        `folders` are absolute paths at which it is to be written as a skill, besides those that it
        has.
        """
        async with open_gateways(self.config) as source:
            return await self._plan(uri, source, allow_signer_change, folders)

    async def upgrades(
        self, names: Collection[str] = (), *, allow_signer_change: bool = False
    ) -> list[InstallOutcome]:
        """Return what an upgrade of some or all packages would change; nothing is written.

        An outcome has the error of this one package, or a plan: of the newest release, which may be
        the installed one or older (`unchanged`). Raises InvalidInput NOT_FOUND for another name.
        """
        lock = self.lock
        chosen = _entries(lock, names) if names else lock.packages.values()
        turns = asyncio.Semaphore(AT_ONCE)
        async with open_gateways(self.config) as source:

            async def upgrade(entry: Locked) -> InstallOutcome:
                async with turns:
                    try:
                        plan = await self._plan(entry.wanted, source, allow_signer_change)
                    except CapdexError as error:
                        return InstallOutcome(entry.name, "failed", entry, error=error)
                was, now = entry.uri.version, plan.entry.uri.version
                if now > was:
                    return InstallOutcome(entry.name, "upgraded", plan.entry, entry, plan)
                return InstallOutcome(entry.name, "unchanged", entry, plan=plan)

            return list(await asyncio.gather(*map(upgrade, chosen)))

    async def carry_out(self, plan: InstallPlan, asker: Asker) -> InstallOutcome:
        """Ask if the plan has to be agreed to, and commit it; raises as `install`."""
        if plan.asks:
            await agree(plan.proposal(), asker, self.audit.write)
        changed = self._commit(plan)
        status = "installed" if changed else "unchanged"
        if changed and plan.old is not None and not plan.same:
            down = plan.entry.uri.version < plan.old.uri.version
            status = "downgraded" if down else "upgraded"
        return InstallOutcome(plan.entry.name, status, plan.entry, plan.old, plan)

    async def _plan(
        self,
        uri: CapabilityURI,
        source: MultiSource,
        allow_signer_change: bool,
        folders: Collection[str] = (),
    ) -> InstallPlan:
        try:
            release = await resolve(uri, self.config)
        except InvalidInput as error:
            raise await with_suggestions(error, uri, self.config, self.audit.write) from None
        package = await fetch(release.announcement, self.cache, source)
        request = "" if uri.selector is None else str(uri.selector)
        return self.planned(
            package,
            release,
            request,
            allow_signer_change=allow_signer_change,
            files=await fetch_files(package, self.cache, source),
            folders=folders,
        )

    def planned(
        self,
        package: VerifiedPackage,
        release: Release,
        request: str = "",
        *,
        allow_signer_change: bool = False,
        files: Mapping[str, bytes] | None = None,
        folders: Collection[str] = (),
    ) -> InstallPlan:
        """Return the plan for a package that was resolved and verified, with its files by path.

        Raises as `plan.make` and `Placed.check`.
        """
        lock = self.lock
        old, before = lock.packages.get(package.manifest.uri.name), None
        with suppress(CapdexError):  # its bytes are missing, or do not pass
            before = None if old is None else self.cache.package(old.announcement)
        plan = make(
            package,
            release,
            request,
            lock,
            before,
            agreed=self._signers(package.manifest.uri.name),
            had=frozenset() if old is None else self._had(old),
            allow_signer_change=allow_signer_change,
            files=files,
            folders=folders,
        )
        absent = tuple(x for x in plan.entry.folders if not os.path.lexists(x))
        kept = self.kept(f"{PREFIX}{plan.entry.name}") if plan.fresh else 0
        plan, ours = replace(plan, absent=absent, kept=kept), self._placed(plan.entry.name)
        plan.placed.check(ours)
        lost: list[str] = []
        for folder, states in plan.placed.differences():
            if states and folder in ours:
                lost += losses(folder, written(plan.entry.name, ours[folder], self.cache.get))
        return replace(plan, widened=(*plan.widened, *lost))

    def _placed(self, name: str) -> dict[str, str]:
        """Return the folders that packages of a name were written into, each with its sha256."""
        granted = self.rights.read().by_name.get(f"{PREFIX}{name}", ())
        return {x.folder: x.digest for x in granted if x.folder}

    def _signers(self, name: str) -> set[str]:
        """Return the signers of the contents that a person agreed to here under a name."""
        granted = self.rights.read().by_name.get(f"{PREFIX}{name}", ())
        mine = {x.digest for x in granted if x.target == INSTALL}
        blobs = (self.cache.get(bytes.fromhex(digest)) for digest in mine)
        return {str(read(data).require().metadata["author"]) for data in blobs if data is not None}

    def _had(self, entry: Locked) -> frozenset[str]:
        """Return the targets granted with an installed content; none if nobody agreed to it."""
        grants = self.rights.read().by_digest.get(entry.sha256, ())
        had = frozenset(grant.target for grant in grants if grant.until is None)
        return had if INSTALL in had else frozenset()

    def _commit(self, plan: InstallPlan) -> bool:
        """Write blocks, grants and the lock file; return False if nothing was to be done."""
        entry, old = plan.entry, plan.old
        self.cache.put([plan.package.data, *plan.files.values()])
        plan.placed.check(self._placed(entry.name))
        with self.home.writing(), plan.placed.staged() as put:
            lock = self.lock
            if lock.packages.get(entry.name) != old:
                raise _changed(entry.name)
            if entry == old and not plan.asks and not plan.placed.folders:
                return False
            before = self.rights.read()
            self.rights.grant(self._granted(plan))
            try:
                if entry != old:  # a file that people share stays as they wrote it
                    self._store.write(lock.plus([entry]))
            except BaseException:
                if not before.by_digest.get(entry.sha256):
                    self.rights.forget([entry.sha256])
                raise
            put()
            self._forget_unused([entry.name])
        self.seen(plan.package)
        event = "install" if old is None else "upgrade"
        self.audit.write(event, **audited(entry), was=old and old.version)
        return True

    # remove ---------------------------------------------------------------------------------------

    def remove(self, names: Collection[str], asked: Locked | None = None) -> list[Locked]:
        """Remove some packages, their grants, and what was written into their folders.

        Files there that were edited or added stay, and the folders of an entry that was edited.
        `asked` is the entry that a person was asked about. Raises InvalidInput NOT_FOUND, or
        LOCK_DRIFT if that is another one now, and Unavailable if the bytes that tell which files
        are ours are missing.
        """
        with self.home.writing():
            lock = self.lock
            gone = _entries(lock, names)
            if asked is not None and asked not in gone:
                raise _changed(asked.name)
            placed = []
            for entry in gone:
                if entry.folders and self.is_agreed(entry):
                    with suppress(InvalidInput, VerificationFailure):  # its line was edited
                        placed.append(self.contents(entry))
            for place in placed:  # before the lock: a removal that is cut off can be repeated
                place.take_away()
            self._store.write(lock.minus({entry.name for entry in gone}))
            self._forget_unused({entry.name for entry in gone})
        for entry in gone:
            self.audit.write("remove", **audited(entry))
            self.gone(entry.name)
        return gone

    def _granted(self, plan: InstallPlan) -> list[Grant]:
        """Return what was agreed to, without what was taken back from the old content meanwhile."""
        grants = plan.proposal().grants(time.time())
        if plan.old is None:
            return grants
        gone = plan.had - self._had(plan.old)
        return [grant for grant in grants if grant.target not in gone]

    # parts that the synchronisation uses, too ---------------------------------------------------

    def is_agreed(self, entry: Locked) -> bool:
        """Return True if a person agreed here to a package, and to each folder of it."""
        return self._had(entry).issuperset((INSTALL, *map(folder_target, entry.folders)))

    def contents(self, entry: Locked) -> Placed:
        """Return an installed package and its files, verified again; raises as `installed`."""
        package = installed(entry, self.cache)
        return Placed(package, files_here(package, self.cache), entry.folders)

    def standing(self, entry: Locked) -> str:
        """Return `ready`, `missing` (its bytes) or `not agreed`; the bytes are not read."""
        if not self.cache.holds(bytes.fromhex(entry.sha256)):
            return "missing"
        return "ready" if self.is_agreed(entry) else "not agreed"

    def _forget_unused(self, names: Collection[str]) -> None:
        """Remove grants for what had these names before, and for what the lock file does not name.

        Where other people changed a line, the grants for what it was tell who signed it before, and
        where they removed one, which folders were written for it.
        """
        lock, gone = self.lock.packages, set()
        placed = {x.digest for x in self.rights.read().all if x.folder}
        for grant in self.rights.read().all:
            name = grant.name.partition("#")[0].removeprefix(PREFIX)
            unnamed = grant.target == INSTALL and name not in lock and grant.digest not in placed
            if name in names or unnamed:
                gone.add(grant.digest)
        with suppress(UsageError):  # they have no effect, and go with the next commit
            self.rights.forget(gone.difference(entry.sha256 for entry in lock.values()))


def audited(entry: Locked) -> dict[str, Any]:
    """Return what the audit log says of an entry."""
    about = {"capability_id": f"{PREFIX}{entry.name}", "version": entry.version}
    return {**about, "digest": entry.sha256, "signer": entry.signer}


def _changed(name: str) -> InvalidInput:
    message = f"{name} was changed by another call or process meanwhile"
    return InvalidInput(message, Code.LOCK_DRIFT, fix="try again")


def _entries(lock: Lock, names: Collection[str]) -> list[Locked]:
    """Return the entries of names or URIs, each once; raises as `_entry`."""
    return list({entry.name: entry for entry in (_entry(lock, name) for name in names)}.values())


def _entry(lock: Lock, name: str) -> Locked:
    """Return the entry of a name or URI; one with a version means what is installed, if at all."""
    short, _, version = name.removeprefix(PREFIX).partition("@")
    entry = lock.packages.get(short)
    if entry is None:
        if "#" in name:
            CapabilityURI.loose(name)  # says that it names a tool
        raise InvalidInput(
            f"no package {short[:80]!r} is installed",
            Code.NOT_FOUND,
            fix="the action list, or capdex installed, shows what is; "
            "of a program: capdex learn NAME --remove",
        )
    if version and not CapabilityURI.loose(name).takes(entry.uri.version):
        what = f"{short} {version} is not installed, but {entry.version}"
        raise InvalidInput(what, Code.NOT_FOUND, fix=f"to have it, install {short}@{version}")
    return entry
