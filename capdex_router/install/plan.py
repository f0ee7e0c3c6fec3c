"""What an installation or an upgrade would change, and the question about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from capdex.diff.change import Change
from capdex.diff.diff import compare
from capdex.diff.semver_step import Rule
from capdex.errors import Code, InvalidInput, Refused, VerificationFailure
from capdex.manifest.tools import BUILT_IN
from capdex.package import VerifiedPackage
from capdex.problems import Reason
from capdex.uri import PREFIX, is_reserved, skeleton
from capdex_router.install.facts import accesses, lint_codes, lint_label, locked
from capdex_router.install.lockfile import MAX_ITEMS, Lock, Locked
from capdex_router.install.model_texts import is_shown_whole, texts_changed
from capdex_router.install.resolve import Release
from capdex_router.policy.proposal import INSTALL, Access, Kind, Proposal
from capdex_router.policy.quoting import escaped, quoted, visible
from capdex_router.skills.placing import Placed, folder_access, folder_target

_LABELS: Final = (None, "medium", "high")
# A binding by which less is sent may do more, and a prompt has a model do what a file says.
_AGAIN: Final = (Rule.BINDING_CHANGED, Rule.BINDING_PATH, Rule.FILE_ADDED, Rule.FILE_CHANGED)
# Codex looks for skills six folders deep, and has settings of one in agents/openai.yaml.
_ALONE: Final = re.compile(r"(?i)(/skill|\b(claude|agents|gemini)[.\w]*)\.md$|agents/openai.yaml$")
# What Claude Code runs before a model reads a skill: !`command`, and a block that begins with ```!
_RUN: Final = re.compile(r"!`[^`]+`|```!.*?```", re.DOTALL)
MAX_FIRST_LINE: Final = 256  # bytes that are shown of a script's first line
MAX_FILES_NAMED: Final = 64  # of those that are neither scripts nor read by a host itself
_NO_LINT: Final = "text lint: nothing found"


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """One package to be installed, as it was resolved. `old` is the entry that it replaces.

    `changes` are all changes of meaning since `old`; `widened` are those that a person must agree
    to again, each in one line. They are empty if `old` is None: then everything is asked.
    `had` are the targets that were granted with `old`, `granted` those that come with this one:
    what a person took back from the old package stays taken back. `files` are those of the package
    by path, and are written into the entry's folders, of which `absent` are gone from the disk.
    `kept` is the number of objects that are here from an installation that was removed.
    """

    package: VerifiedPackage
    release: Release
    entry: Locked
    old: Locked | None
    granted: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    widened: tuple[str, ...] = ()
    had: frozenset[str] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    kept: int = 0

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All that the package may do, and the folders that it is written into."""
        return (*accesses(self.package), *map(folder_access, self.entry.folders))

    @property
    def placed(self) -> Placed:
        """The package in the folders that are written: of the same content those not there yet."""
        there = self.had.difference(map(folder_target, self.absent)) if self.same else ()
        folders = [x for x in self.entry.folders if folder_target(x) not in there]
        return Placed(self.package, self.files, folders)

    @property
    def fresh(self) -> bool:
        """True if nobody agreed to the old content on this machine."""
        return not self.had

    @property
    def same(self) -> bool:
        """True if nothing but the entry's own text would change."""
        return self.old is not None and self.old.sha256 == self.entry.sha256

    @property
    def asks(self) -> bool:
        """True if a person must agree."""
        return self.fresh or bool(self.widened)

    def proposal(self) -> Proposal:
        """Return all that the installation does, whose lines are ours, with the package's words."""
        entry, manifest = self.entry, self.package.manifest
        kind: Kind = "install" if self.fresh or self.same or self.old is None else "upgrade"
        new = set(self.widened)
        asked = tuple(
            replace(
                access, lines=tuple(f"new: {row}" if row in new else row for row in access.lines)
            )
            for access in self.accesses
        )
        new.difference_update(row for access in self.accesses for row in access.lines)
        changes = [f"new: {line}" for line in self.widened if line in new]
        rest = (x for x in self.changes if not _asked_again(x) and not is_shown_whole(x))
        changes += [f"changed: {visible(change.message)}" for change in rest]
        warnings = [f"warning: {visible(warning)}" for warning in self.release.warnings]
        old = self.old if kind == "upgrade" else None
        was = f" {old.version} to" if old else ""
        verb = "Downgrade" if old and entry.uri.version < old.uri.version else kind.title()
        wanted = str(entry.wanted).removeprefix(PREFIX)
        following = old and old.request == entry.request
        command = ("upgrade", entry.name) if following else ("install", wanted)
        return Proposal(
            kind,
            f"{verb} {entry.name}{was} {entry.version}?",
            f"{PREFIX}{entry.name}",
            entry.version,
            entry.sha256,
            ("capdex", *(("sync",) if self.same and self.fresh else command)),
            entry.signer,
            accesses=asked,
            changes=tuple(changes),
            facts=(*self._facts(), *warnings),
            words=(("name", manifest.title), ("description", manifest.description)),
            granted=self.granted,
        )

    def _facts(self) -> Iterator[str]:
        entry, manifest = self.entry, self.package.manifest
        if self.kept and any(verb in BUILT_IN for verb in manifest.permissions):
            yield f"objects of an earlier installation, which it may use: {self.kept}"
        unbound = [tool.name for tool in manifest.tools if tool.name not in manifest.bindings]
        if others := [name for name in unbound if name not in BUILT_IN]:
            yield f"tools that nothing here runs: {', '.join(others)}"
        label = lint_label(lint := lint_codes(self.package))
        yield f"text lint: {label} ({', '.join(lint)})" if label else _NO_LINT
        yield from _broad(self.package)
        yield from self._files()
        where = f"on chain {entry.chain['chain_id']}"
        if registry := entry.chain.get("contract"):  # a name says nothing without its registry
            where += f", in the registry {registry}"
        yield f"published by: {entry.chain['publisher']}, {where}"
        hosts = f" ({escaped(', '.join(self.release.asked))})" if self.release.asked else ""
        unproven = f"none, only the word of the nodes that were asked{hosts}"
        yield f"proof: {self.release.proven or unproven}"

    def _files(self) -> Iterator[str]:
        if self.entry.folders:
            for command in dict.fromkeys(_RUN.findall(self.package.manifest.prompt or "")):
                yield f"may be run by its host, from the prompt: {quoted(command)}"
        if not self.files:
            return
        total = sum(map(len, self.files.values()))
        yield f"files: {len(self.files)}, {total} bytes in all; capdex runs none of them"
        others = []
        for file in self.package.manifest.resources:
            first = self.files[file.path][:MAX_FIRST_LINE].partition(b"\n")[0]
            says = quoted(first.decode("utf-8", "replace")) if first.startswith(b"#!") else ""
            if file.may_run or says:
                mode = "executable" if file.executable else "not executable"
                row = f"may be run by its host: {quoted(file.path)}, {mode}"
                yield f"{row}, {says}" if says else row
            elif not _ALONE.search(file.path):
                others.append(quoted(file.path))
            if _ALONE.search(file.path):
                yield f"some hosts read it without SKILL.md: {quoted(file.path)}"
        if others:
            rest = len(others) - MAX_FILES_NAMED
            more = f" and {rest} more" if rest > 0 else ""
            names = ", ".join(others[:MAX_FILES_NAMED])
            yield f"other files, which commands may read or run: {names}{more}"
        if self.entry.folders and self.package.manifest.tools:
            yield "its tools are not in the folder: agents reach them by capdex router"


def make(
    package: VerifiedPackage,
    release: Release,
    request: str,
    lock: Lock,
    old_package: VerifiedPackage | None,
    *,
    agreed: Collection[str],
    had: frozenset[str] = frozenset(),
    allow_signer_change: bool = False,
    files: Mapping[str, bytes] | None = None,
    folders: Collection[str] = (),
) -> InstallPlan:
    """Return the plan for a package; `old_package` is the installed one if its bytes are here.

    `agreed` are the signers of all that a person agreed to here under this name, and `had` the
    targets that are granted to the installed one; both are empty if nobody agreed to it. `files`
    are the package's; it is written into `folders`, and into those of the old entry.

    Raises InvalidInput TOO_LARGE for more folders than a lock file holds; Refused SIGNER_CHANGED
    for another signer than theirs, unless it is allowed; VerificationFailure for a name that cannot
    be, or other bytes of one version.
    """
    old = lock.packages.get(package.manifest.uri.name)
    entry = locked(package, request, release.chain, explicit=old is None or old.explicit)
    _check_name(entry.name, lock)
    all_folders = tuple(dict.fromkeys((*(old.folders if old else ()), *folders)))
    if len(all_folders) > MAX_ITEMS:
        raise InvalidInput(
            f"{entry.name} would be in more than {MAX_ITEMS} folders",
            Code.TOO_LARGE,
            fix=f"capdex remove {entry.name}, then install it where it is still used",
        )
    entry = replace(entry, folders=all_folders)
    if old is not None:
        entry = replace(entry, extra=old.extra)
        _check_bytes(old, entry, proven=bool(release.proven))
    # The lock file is a text that anybody may have written: the bytes agreed to here come first.
    before = {_did(signer) for signer in agreed or ([old.signer] if old is not None else [])}
    changed_signer = bool(before) and _did(entry.signer) not in before
    if changed_signer and not allow_signer_change:
        known_by = "was agreed to here" if agreed else "the lock file names"
        line = entry if old is None or old.version != entry.version else old
        raise _of_another_signer(replace(entry, request=line.request), before, known_by)
    compared = old_package if had else None
    plan = InstallPlan(
        package,
        release,
        entry,
        old,
        (*targets_after(compared, package, had), *map(folder_target, all_folders)),
        had=had,
        files=files or {},
    )
    new = [folder_access(folder) for folder in all_folders if folder_target(folder) not in had]
    added = tuple(line for access in new for line in access.lines)
    if not had or plan.same:
        return replace(plan, widened=added) if had else plan
    if compared is None:
        words = f"everything: the bytes of {entry.name} before are not here to compare"
        return replace(plan, widened=(words,))
    difference = compare(compared.manifest, package.manifest)
    again = list(filter(_asked_again, difference.changes))
    widened = [*_widened(compared, package, again), *added]
    if old is not None and entry.uri.version < old.uri.version:  # a node may hide the newer one
        widened.insert(0, f"it is older than {old.version}, which is installed")
    if changed_signer:
        widened.insert(0, f"signed by {_did(entry.signer)}, before by {_named(before)}")
    return replace(plan, changes=difference.changes, widened=tuple(widened))


def targets_after(
    old: VerifiedPackage | None, new: VerifiedPackage, had: Collection[str]
) -> tuple[str, ...]:
    """Return the targets that are granted with a package; `had` are those of the old one.

    What a person took back from the old package stays taken back.
    """
    before = frozenset() if old is None else frozenset(_targets(old))
    return tuple(x for x in _targets(new) if x == INSTALL or x in had or x not in before)


def _targets(package: VerifiedPackage) -> dict[str, None]:
    return dict.fromkeys(access.target for access in accesses(package) if access.target)


def _broad(package: VerifiedPackage) -> list[str]:
    """Return a line about triggers that would take unrelated messages, if there are any."""
    count = sum(problem.code is Reason.BAD_TRIGGER for problem in package.problems)
    return [f"triggers: {count} match messages that have nothing in common"] if count else []


def _asked_again(change: Change) -> bool:
    """Return True for a risk, for a binding that is another, and for a file that models read."""
    return change.rule.risk or change.rule in _AGAIN


def _widened(old: VerifiedPackage, new: VerifiedPackage, again: Sequence[Change]) -> Iterator[str]:
    """Yield a line for each thing that a person did not agree to with the old package."""
    yield from (visible(change.message) for change in again)
    known = {line for access in accesses(old) for line in access.lines}
    yield from (line for access in accesses(new) for line in access.lines if line not in known)
    if new.manifest.memory_scope not in (None, old.manifest.memory_scope):
        yield f"keeps its objects in the scope {quoted(str(new.manifest.memory_scope))}"
    label, was = (lint_label(lint_codes(package)) for package in (new, old))
    if _LABELS.index(label) > _LABELS.index(was):
        yield f"text lint: {label}, {', '.join(lint_codes(new))}"
    if len(_broad(new)) > len(_broad(old)):
        yield from _broad(new)
    yield from texts_changed(old.manifest, new.manifest)


def _check_name(name: str, lock: Lock) -> None:
    if is_reserved(name):
        why, fix = "no registry has it (P1), so the node lies", "ask another node"
        raise VerificationFailure(f"{name} is a reserved name", why=why, fix=fix)
    other = lock.by_skeleton.get(skeleton(name), name)
    if other != name:
        raise VerificationFailure(
            f"{name} looks like {other}, which is installed",
            why="no registry has two names that look alike (P1), so a node lies",
            fix=f"remove {other} first if it is the wrong one",
        )


def _check_bytes(old: Locked, entry: Locked, *, proven: bool) -> None:
    if old.version == entry.version and old.sha256 != entry.sha256:
        again = f"capdex remove {entry.name}, then install it again"
        raise VerificationFailure(
            f"{entry.name} {entry.version} has other bytes in the lock file",
            why=f"the lock file has sha256 {old.sha256}, the {'chain' if proven else 'node'} says "
            f"{entry.sha256}; a release is never replaced",
            fix=again if proven else f"ask another node; if that says the same: {again}",
        )


def _of_another_signer(entry: Locked, before: Collection[str], known_by: str) -> Refused:
    wanted = str(entry.wanted).removeprefix(PREFIX)
    return Refused(
        f"{entry.name} {entry.version} is signed by another key than what {known_by}",
        Code.SIGNER_CHANGED,
        why=f"that is signed by {_named(before)}, this by {_did(entry.signer)}",
        fix=f"ask its author; if this is right: capdex install '{wanted}' --allow-signer-change",
        details={"was": sorted(before), "is": _did(entry.signer)},
    )


def _named(signers: Collection[str]) -> str:
    return ", ".join(map(quoted, sorted(signers)))  # of the lock file they are any text


def _did(signer: str) -> str:
    return signer.partition("#")[0]
