"""What an installation or an upgrade would change, and the question about it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from capdex.diff.diff import Change, compare
from capdex.errors import Code, Refused, VerificationFailure
from capdex.manifest.bindings import secret_uses
from capdex.manifest.effects import effects
from capdex.manifest.manifest import Manifest
from capdex.manifest.tools import Annotations
from capdex.package import VerifiedPackage
from capdex.problems import Reason
from capdex.uri import is_reserved, skeleton
from router.install.facts import INSTALL, granted_targets, lint_codes, lint_label, locked, rights
from router.install.lockfile import Lock, Locked
from router.install.resolve import Release
from router.policy.consent import Question, clean

MAX_LISTED: Final = 12  # tools, hosts or changes shown of each kind
_LABELS: Final = (None, "medium", "high")


@dataclass(frozen=True, slots=True)
class Plan:
    """One package to be installed. `old` is the entry that it replaces.

    `changes` are all changes of meaning since `old`; `widened` are those that a person must agree
    to again, each in one line. They are empty if `old` is None: then everything is asked.
    `fresh` is true if nobody agreed to `old` on this machine.
    """

    package: VerifiedPackage
    entry: Locked
    old: Locked | None
    changes: tuple[Change, ...] = ()
    widened: tuple[str, ...] = ()
    proven: str = ""
    warnings: tuple[str, ...] = ()
    fresh: bool = True

    @property
    def same(self) -> bool:
        """True if nothing but the entry's own text would change."""
        return self.old is not None and self.old.sha256 == self.entry.sha256

    @property
    def asks(self) -> bool:
        """True if a person must agree."""
        return self.fresh or bool(self.widened)

    def question(self) -> Question:
        """Return the question, whose lines are ours and whose quotes are the package's words."""
        entry = self.entry
        manifest = self.package.manifest
        named = f"{entry.name} {entry.version}"
        if self.fresh or self.old is None:
            summary, kind, lines = f"Install {named}?", "install", self._facts()
        else:
            summary = f"Upgrade {entry.name} {self.old.version} to {entry.version}?"
            kind = "upgrade"
            lines = [f"new: {line}" for line in self.widened]
            lines += [f"changed: {clean(x.message)}" for x in self.changes[:MAX_LISTED]]
        lines += [f"warning: {clean(warning)}" for warning in self.warnings]
        quoted = (("name", clean(manifest.title)), ("description", clean(manifest.description)))
        command = f"capdex {kind} {entry.name}"
        return Question(summary, tuple(lines), quoted, grant=command, kind=kind)

    def _facts(self) -> list[str]:
        entry, manifest = self.entry, self.package.manifest
        tools = [tool.name for tool in manifest.tools]
        uses = secret_uses(manifest.bindings)
        secrets = [f"the secret {x.secret} to {x.host} in {x.carrier}" for x in uses]
        harmless = [
            tool.name
            for tool in manifest.tools
            if not effects(manifest, tool).destructive
            and effects(manifest, tool._replace(annotations=Annotations())).destructive
        ]
        label = lint_label(entry.lint)
        codes = f" ({', '.join(entry.lint)})" if label else ""
        rows = {
            "signed by": entry.signer,
            "published by": entry.chain["publisher"],
            "proof": self.proven or "none: it is the word of the nodes asked",
            "permissions": _listed(entry.permissions),
            "contacts": _listed(entry.hosts),
            "sends": _listed(secrets),
            "tools": _listed(tools),
            "says to destroy nothing": _listed(harmless),
            "memory": _scope(manifest),
            "text lint": f"{label or 'nothing found'}{codes}",
        }
        lines = [f"{key}: {clean(value)}" for key, value in rows.items() if value]
        return lines + _broad(self.package)


def make(
    package: VerifiedPackage,
    release: Release,
    request: str,
    lock: Lock,
    old_package: VerifiedPackage | None,
    *,
    agreed: bool,
    allow_signer_change: bool = False,
) -> Plan:
    """Return the plan for a package; `old_package` is the installed one if its bytes are here.

    `agreed` is true if a person agreed to the installed one on this machine.

    Raises Refused SIGNER_CHANGED for another signer than the installed version's, unless it is
    allowed; VerificationFailure for a name that cannot be, or other bytes of one version.
    """
    old = lock.packages.get(package.manifest.uri.name)
    explicit = True if old is None else old.explicit
    entry = locked(package, request, release.chain, explicit=explicit)
    _check_name(entry.name, lock)
    if old is None:
        return Plan(package, entry, None, proven=release.proven, warnings=release.warnings)
    entry = replace(entry, extra=old.extra)
    plan = Plan(
        package, entry, old, proven=release.proven, warnings=release.warnings, fresh=not agreed
    )
    if old.version == entry.version and old.sha256 != entry.sha256:
        raise VerificationFailure(
            f"{entry.name} {entry.version} is installed with other bytes",
            why=f"the lock file has sha256 {old.sha256}, the node says {entry.sha256}; "
            "a release is never replaced",
            fix="ask another node",
        )
    changed_signer = _did(old.signer) != _did(entry.signer)
    if changed_signer and not allow_signer_change:
        raise Refused(
            f"{entry.name} {entry.version} is signed by another key than the installed version",
            Code.SIGNER_CHANGED,
            why=f"{old.version} is signed by {old.signer}, {entry.version} by {entry.signer}",
            fix="ask its author; if this is right, add --allow-signer-change",
            details={"was": old.signer, "is": entry.signer},
        )
    if plan.same:
        return plan
    if old_package is None:
        words = f"everything: the bytes of {old.version} are not here to compare"
        return replace(plan, widened=(words, *plan._facts()))
    difference = compare(old_package.manifest, package.manifest)
    widened = list(_widened(old_package, package, difference.risks))
    if changed_signer:
        widened.insert(0, f"signed by {clean(entry.signer)}, before by {clean(old.signer)}")
    return replace(plan, changes=difference.changes, widened=tuple(widened))


def targets_after(old: Manifest | None, new: Manifest, had: Collection[str]) -> tuple[str, ...]:
    """Return the targets that are granted after a yes; `had` are those of the old package.

    What a person took back from the old package stays taken back.
    """
    before = frozenset() if old is None else frozenset(granted_targets(old))
    return tuple(
        target
        for target in granted_targets(new)
        if target == INSTALL or target in had or target not in before
    )


def _scope(manifest: Manifest) -> str:
    """Return the memory scope in words, empty if there is none."""
    return f"scope {manifest.memory_scope}" if manifest.memory_scope else ""


def _broad(package: VerifiedPackage) -> list[str]:
    """Return a line about triggers that would take unrelated messages, if there are any."""
    count = sum(problem.code is Reason.BAD_TRIGGER for problem in package.problems)
    return [f"triggers: {count} match messages that have nothing in common"] if count else []


def _widened(old: VerifiedPackage, new: VerifiedPackage, risks: Sequence[Change]) -> Iterable[str]:
    """Yield a line for each thing that the new package may do and the old one may not."""
    yield from (clean(change.message) for change in risks)
    before, after = rights(old.manifest), rights(new.manifest)
    known = {target for needed in before.values() for target in needed}
    for tool, needed in after.items():
        for target in needed:
            # Of a target that no tool had, the risks tell already.
            if tool and target in known and target not in before.get(tool, ()):
                yield f"the tool {tool} uses {clean(target)}, which it did not"
    if new.manifest.memory_scope not in (None, old.manifest.memory_scope):
        yield f"keeps its objects in the scope {clean(str(new.manifest.memory_scope))}"
    label, was = (lint_label(lint_codes(one)) for one in (new, old))
    if _LABELS.index(label) > _LABELS.index(was):
        yield f"text lint: {label}, {', '.join(lint_codes(new))}"
    if len(_broad(new)) > len(_broad(old)):
        yield from _broad(new)


def _check_name(name: str, lock: Lock) -> None:
    if is_reserved(name):
        raise VerificationFailure(
            f"{name} is a reserved name",
            why="no registry has it (P1), so the node lies",
            fix="ask another node",
        )
    twin = skeleton(name)
    for other in lock.packages:
        if other != name and skeleton(other) == twin:
            raise VerificationFailure(
                f"{name} looks like {other}, which is installed",
                why="no registry has two names that look alike (P1), so a node lies",
                fix=f"remove {other} first if it is the wrong one",
            )


def _did(signer: str) -> str:
    return signer.partition("#")[0]


def _listed(items: Sequence[str]) -> str:
    shown = ", ".join(clean(item, 100) for item in items[:MAX_LISTED])
    more = len(items) - MAX_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
