"""The machine brought to what the lock file lists, or compared with it.

The lock file is believed in nothing. What a person agreed to on this machine is verified from its
bytes, without a network; every other line is resolved and asked about like an installation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable, VerificationFailure
from capdex.package import verify
from capdex.uri import PREFIX
from capdex_router.install.facts import check as check_entry
from capdex_router.install.facts import check_proof
from capdex_router.install.fetch import fetch, fetch_files, open_gateways
from capdex_router.install.installer import AT_ONCE, Installer
from capdex_router.install.lockfile import Locked
from capdex_router.install.outcome import InstallOutcome
from capdex_router.install.plan import InstallPlan
from capdex_router.install.resolve import need_nodes
from capdex_router.policy.consent import Asker
from capdex_router.policy.grants import Grant
from capdex_router.policy.quoting import quoted
from capdex_router.skills.folder import take_away
from capdex_router.skills.placing import written

Drift = dict[str, str]


async def sync(installer: Installer, asker: Asker, *, frozen: bool = False) -> list[InstallOutcome]:
    """Fetch what is missing, and install what nobody agreed to here, each after a question.

    Folders below the directory of the lock file that no entry has any more are taken away.
    An entry whose request does not allow its version is resolved again. `frozen` never changes the
    lock file and refuses such an entry. An outcome has the error of its entry alone, which has no
    effect then: LOCK_DRIFT where `frozen` refuses, or where it does not say what its package or its
    proof says; bytes that nobody has, a no of the person, another signer, a release that the nodes
    or the chain do not have as the entry says, a folder that cannot be written.
    """
    turns = asyncio.Semaphore(AT_ONCE)
    async with open_gateways(installer.config) as source:

        async def here(entry: Locked) -> InstallOutcome:
            """Mend an entry that a person agreed to here, offline if all its bytes are here."""
            with suppress(Unavailable):
                return _mended(installer, entry, "unchanged")
            async with turns:
                need_nodes(installer.config)
                package = await fetch(entry.announcement, installer.cache, source)
                files = await fetch_files(package, installer.cache, source)
            installer.cache.put([package.data, *files.values()])
            return _mended(installer, entry, "fetched")

        async def synced(entry: Locked) -> InstallOutcome:
            try:
                if forged := _forged(entry):
                    fix = "take capdex.lock back from a copy, or remove and install again: "
                    raise replace(drift(forged), fix=fix + entry.name)
                if entry.name in agreed:
                    return await here(entry)
                if entry.wanted.admits(entry.uri):
                    plan = await _announced(installer, entry, frozen=frozen)
                elif frozen:
                    raise drift([_stale(entry)])
                else:
                    plan = await installer.plan(entry.wanted)
                return await installer.carry_out(plan, asker)
            except CapdexError as error:
                return InstallOutcome(entry.name, "failed", entry, error=error)

        entries = installer.lock.packages.values()
        agreed = {x.name: x for x in entries if x.wanted.admits(x.uri) and installer.is_agreed(x)}
        outcomes = await asyncio.gather(*map(synced, agreed.values()))
        outcomes += [await synced(entry) for entry in entries if entry.name not in agreed]
    outcomes += [_taken_away(installer, *unlisted) for unlisted in _unlisted(installer)]
    return sorted(outcomes, key=lambda outcome: outcome.name)


def check(
    installer: Installer, on_entry: Callable[[int, int], None] = lambda done, total: None
) -> list[Drift]:
    """Return each difference between the lock file and this machine as `{name, why}`.

    `on_entry` is called before each entry, with how many are done of all. Nothing is written, and
    no socket is opened: an entry that nobody agreed to here is one, since nothing on this machine
    says that the chain knows it.
    """
    drifts: list[Drift] = []
    entries = installer.lock.packages.values()
    for done, entry in enumerate(entries):
        on_entry(done, len(entries))
        if not entry.wanted.admits(entry.uri):
            drifts.append(_stale(entry))
        drifts += _forged(entry)
        agreed = installer.is_agreed(entry)
        whys = [] if agreed else ["nobody agreed to it on this machine"]
        try:
            contents = installer.contents(entry)
            whys += contents.drifts() if agreed else ()  # else its folders are anybody's
        except CapdexError as error:
            whys.insert(0, error.line)
        drifts += [{"name": entry.name, "why": why} for why in whys]
    for grant, folder in _unlisted(installer):
        why = f"{folder} is not in the lock file any more"
        drifts.append({"name": grant.name.removeprefix(PREFIX), "why": why})
    return drifts


def drift(problems: Sequence[Drift]) -> InvalidInput:
    """Return the error for some differences."""
    shown = "; ".join(f"{problem['name']}: {problem['why']}" for problem in problems[:5])
    more = f"; and {len(problems) - 5} more, which --json has" if len(problems) > 5 else ""
    message, why = "the lock file and this machine differ", shown + more
    details = {"problems": list(problems)}
    return InvalidInput(message, Code.LOCK_DRIFT, why=why, fix="capdex sync", details=details)


async def _announced(installer: Installer, entry: Locked, *, frozen: bool) -> InstallPlan:
    """Return the plan for an entry that nobody agreed to here, resolved as an installation is.

    Raises VerificationFailure if the nodes, or the chain, say something else than the entry; if
    `frozen`, InvalidInput LOCK_DRIFT if the package does.
    """
    try:
        plan = await installer.plan(entry.uri, folders=entry.folders)
    except InvalidInput as error:
        if error.code is not Code.NOT_FOUND:
            raise
        raise _not_announced(entry, "the nodes know no such release") from None
    said = plan.entry.chain
    ours, theirs = ({**x.chain, "cid": x.cid, "sha256": x.sha256} for x in (entry, plan.entry))
    compared = ["cid", "sha256", "publisher"]
    if frozen:  # what a sync may not write anew has to be right already: the place on chain, too
        compared += ["contract", "block_number", "sequence"]
    for field in compared:
        if field in ours and ours[field] != theirs.get(field):
            here, there = quoted(str(ours[field])), theirs.get(field, "unknown")
            raise _not_announced(entry, f"its {field} is {there}, the lock file has {here}")
    if frozen:
        check_entry(entry, verify(entry.announcement, plan.package.data))
        return replace(plan, entry=entry)
    # A proof that a trusted endpoint gave to others stays in a line that is right.
    chain = entry.chain if said.items() <= entry.chain.items() else said
    kept = replace(plan.entry, request=entry.request, chain=chain)
    return replace(plan, entry=kept)


def _not_announced(entry: Locked, why: str) -> VerificationFailure:
    message = f"{entry.name} {entry.version} was not announced as the lock file says"
    fix = f"ask another node, or later; else: capdex remove {entry.name}, then install it again"
    return VerificationFailure(message, why=why, fix=fix)


def _mended(installer: Installer, entry: Locked, status: str) -> InstallOutcome:
    """Return the outcome for an entry whose bytes are here, after its folders are as they say."""
    contents = installer.contents(entry)
    installer.seen(contents.package)
    lost: tuple[str, ...] = ()
    if entry.folders:
        with installer.home.writing():
            lost = tuple(contents.losses())
            status = "mended" if contents.mend() else status
    return InstallOutcome(entry.name, status, entry, lost=lost)


def _unlisted(installer: Installer) -> list[tuple[Grant, Path]]:
    """Return the folders below that of the lock file which no line has any more, with grants."""
    listed = {x for entry in installer.lock.packages.values() for x in entry.folders}
    beside = installer.home.lock_file.resolve().parent
    placed = [(x, Path(x.folder)) for x in installer.rights.read().all if x.folder not in listed]
    here = [(x, at) for x, at in placed if at.is_relative_to(beside) and at.is_dir()]
    return [(x, at) for x, at in here if at.resolve() == at]  # no link that came later leads there


def _taken_away(installer: Installer, grant: Grant, folder: Path) -> InstallOutcome:
    """Take away what was written into a folder of a line that is gone; edited files stay."""
    name = grant.name.removeprefix(PREFIX)
    try:
        with installer.home.writing():
            take_away(folder, written(name, grant.digest, installer.cache.get))
            installer.rights.revoke(grant.name, grant.target)
    except CapdexError as error:
        return InstallOutcome(name, "failed", error=error)
    lost = f"{quoted(str(folder))} is not in the lock file any more, and was taken away"
    return InstallOutcome(name, "removed", lost=(lost,))


def _forged(entry: Locked) -> list[Drift]:
    """Return what is wrong with the storage proof that an entry keeps."""
    try:
        check_proof(entry)
    except CapdexError as error:
        return [{"name": entry.name, "why": error.message}]
    return []


def _stale(entry: Locked) -> Drift:
    return {
        "name": entry.name,
        "why": f"{entry.version} is not a version of {entry.request}, which was asked for",
    }
