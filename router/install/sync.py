"""The machine brought to what the lock file lists, or compared with it.

Every package is verified from its bytes; no socket is opened if all of them are here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.package import VerifiedPackage
from router.install.facts import granted_targets
from router.install.fetch import fetch, installed, missing
from router.install.installer import AT_ONCE, Installer, Outcome, grants_of, noted
from router.install.lockfile import Locked
from router.policy.consent import Asker, Question, clean
from router.policy.grants import Grant

MAX_LISTED = 50  # packages named in one question

Json = dict[str, str]


async def sync(installer: Installer, asker: Asker, *, frozen: bool = False) -> list[Outcome]:
    """Fetch what is missing, and ask once about all packages that nobody agreed to here.

    An entry whose request does not allow its version is resolved again. `frozen` never changes the
    lock file and refuses such an entry. Raises InvalidInput LOCK_DRIFT for it, and for an entry
    that does not say what its package says; Unavailable for bytes that nobody has.
    """
    entries = list(installer.lock.packages.values())
    stale = [entry for entry in entries if not entry.wanted.admits(entry.uri)]
    if stale and frozen:
        raise drift([_stale(entry) for entry in stale])
    current = [entry for entry in entries if entry not in stale]
    agreed = installer.agreed()
    asked: list[tuple[Locked, list[Grant]]] = []
    absent: list[Locked] = []

    def take(entry: Locked, package: VerifiedPackage) -> None:
        installer.seen(package)
        if entry.sha256 not in agreed:
            asked.append((entry, grants_of(package, granted_targets(package.manifest))))

    for entry in current:
        try:
            package = installed(entry, installer.cache)
        except Unavailable:
            absent.append(entry)
        else:
            take(entry, package)
    outcomes = [
        Outcome(entry.name, "fetched" if entry in absent else "unchanged", entry)
        for entry in current
    ]
    if absent:
        for entry, package in await _fetch_all(installer, absent):
            take(entry, package)
    await _agree(installer, asked, asker)
    for entry in stale:
        plan = await installer.plan(entry.wanted)
        outcomes.append(await installer.carry_out(plan, asker))
    return outcomes


def check(installer: Installer) -> list[Json]:
    """Return each difference between the lock file and this machine as `{name, why}`.

    Nothing is written, and no socket is opened.
    """
    found: list[Json] = []
    agreed = installer.agreed()
    for entry in installer.lock.packages.values():
        if not entry.wanted.admits(entry.uri):
            found.append(_stale(entry))
        try:
            installed(entry, installer.cache)
        except CapdexError as error:
            found.append({"name": entry.name, "why": error.line})
        if entry.sha256 not in agreed:
            found.append({"name": entry.name, "why": "nobody agreed to it on this machine"})
    return found


def drift(problems: Sequence[Json]) -> InvalidInput:
    """Return the error for some differences."""
    shown = "; ".join(f"{problem['name']}: {problem['why']}" for problem in problems[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return InvalidInput(
        "the lock file and this machine differ",
        Code.LOCK_DRIFT,
        why=shown + more,
        fix="capdex sync",
        details={"problems": list(problems)},
    )


async def _fetch_all(
    installer: Installer, entries: Sequence[Locked]
) -> list[tuple[Locked, VerifiedPackage]]:
    if not installer.config.nodes:
        raise missing(entries[0].announcement)
    turns = asyncio.Semaphore(AT_ONCE)
    async with installer.files() as files:

        async def one(entry: Locked) -> tuple[Locked, VerifiedPackage]:
            async with turns:
                package = await fetch(entry.announcement, installer.cache, files)
            installer.cache.put([package.data])
            return entry, installed(entry, installer.cache)

        return list(await asyncio.gather(*map(one, entries)))


async def _agree(
    installer: Installer, asked: Sequence[tuple[Locked, list[Grant]]], asker: Asker
) -> None:
    """Ask about some packages in one question, and keep the grants."""
    if not asked:
        return
    lines = [
        f"{entry.name} {entry.version}, signed by {clean(entry.signer, 80)}: "
        + (", ".join(clean(x, 80) for x in (*entry.permissions, *entry.hosts)) or "no rights")
        for entry, _ in asked
    ]
    more = len(lines) - MAX_LISTED
    shown = (*lines[:MAX_LISTED], *([f"and {more} more"] if more > 0 else []))
    question = Question(
        f"Install {len(asked)} packages that the lock file lists?",
        shown,
        grant="capdex sync",
        kind="install",
    )
    agreed = await asker.ask(question)
    for entry, _ in asked:
        installer.journal.write("consent", **noted(entry), asked=["sync"], agreed=agreed)
    if not agreed:
        raise Refused(
            "the packages of the lock file were not agreed to",
            Code.NO_CONSENT,
            fix="nothing was changed",
        )
    installer.rights.grant([grant for _, grants in asked for grant in grants])


def _stale(entry: Locked) -> Json:
    return {
        "name": entry.name,
        "why": f"{entry.version} is not a version of {entry.request}, which was asked for",
    }
