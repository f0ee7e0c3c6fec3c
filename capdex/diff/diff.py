"""Changes of meaning between two releases, and the SemVer step that they require (P2, NIP-7).

`compare` is pure and total for manifests; `check_step` is what `publish` asks before gas is paid.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from capdex.diff.change import Change
from capdex.diff.changes import collect
from capdex.diff.semver_step import Rule, Step, next_version, required_step, taken_step
from capdex.errors import Code, InvalidInput
from capdex.manifest.manifest import Manifest
from capdex.version import Version


class Allowance(StrEnum):
    """Exceptions that an author may insist on; none for an incompatible schema under one `$id`."""

    SMALLER_STEP = "smaller-step"
    WIDENED_PERMISSION = "widened-permission"


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes from one release to another, in the order in which they should be read.

    `schema_conflict` says that state valid under the old schema is not valid under the new one
    while both have the same `$id`, which NIP-7 refuses.
    """

    changes: tuple[Change, ...]
    schema_conflict: bool = False

    @property
    def required(self) -> Step:
        """The largest step that a change requires from 1.0.0 on; see `required_after`."""
        return max((change.rule.step for change in self.changes), default=Step.NONE)

    @property
    def risks(self) -> tuple[Change, ...]:
        """Changes that let the package do or reach more than before."""
        return tuple(change for change in self.changes if change.rule.risk)

    def required_after(self, old: Version, new: Version) -> Step:
        """Return the step that `new` requires after `old`; none inside one `major.minor.patch`."""
        if old < new and old.core == new.core:
            return Step.NONE
        return required_step(self.required, old, widened=bool(self.risks))


def compare(old: Manifest, new: Manifest) -> Difference:
    """Every change of meaning from `old` to `new`; the name and the version are not compared."""
    changes = tuple(collect(old, new))
    conflict = old.schema_uri == new.schema_uri and any(
        change.rule is Rule.SCHEMA_INCOMPATIBLE for change in changes
    )
    return Difference(changes, conflict)


def check_step(
    difference: Difference,
    old: Version,
    new: Version,
    *,
    allow: frozenset[Allowance] = frozenset(),
    released: Container[Version] = (),
) -> None:
    """Refuse a release whose version moves less than its changes require (P2).

    The version that a refusal tells is none of `released`.
    Raises InvalidInput: SCHEMA_CHANGED, which nothing allows; STEP_TOO_SMALL, unless `allow` says
    otherwise; INVALID_INPUT where `new` is not above `old`.
    """
    required = difference.required_after(old, new)
    try:
        taken = taken_step(old, new)
    except InvalidInput as error:
        if new == old:
            fix = f"raise metadata.id to {next_version(old, required, released)}"
            raise replace(error, fix=fix) from None
        raise
    if difference.schema_conflict:
        raised = next_version(old, required, released) if taken < required else None
        raise _schema_changed(difference, raised)
    if taken >= required:
        return
    others = [x for x in difference.changes if not x.rule.risk]
    plain = max((required_step(x.rule.step, old) for x in others), default=Step.NONE)
    too_small = taken < plain and Allowance.SMALLER_STEP not in allow
    if difference.risks and taken < Step.MINOR and Allowance.WIDENED_PERMISSION not in allow:
        message = f"{new} is a patch of {old}, and a patch never widens what a package may do"
        allowances = [Allowance.WIDENED_PERMISSION, *([Allowance.SMALLER_STEP] * too_small)]
        raised = next_version(old, required, released)
        raise _too_small(message, difference.risks, required, taken, raised, *allowances)
    if too_small:
        requiring = [x for x in others if required_step(x.rule.step, old) == plain]
        message = f"required: {plain}, you chose: {taken} ({old} to {new})"
        raised = next_version(old, plain, released)
        raise _too_small(message, requiring, plain, taken, raised, Allowance.SMALLER_STEP)


MAX_NAMED: Final = 3  # changes named in one error; `capdex diff` shows them all


def _schema_changed(difference: Difference, raised: Version | None) -> InvalidInput:
    above = f" and raise metadata.id to {raised}" if raised else ""
    breaking = [x for x in difference.changes if x.rule is Rule.SCHEMA_INCOMPATIBLE]
    return InvalidInput(
        "the schema changed incompatibly under an unchanged $id",
        Code.SCHEMA_CHANGED,
        why=_named(breaking),
        fix=f"give the schema a new $id (…#v2){above}, or take the change back",
        details={"changes": [x.to_json() for x in breaking]},
    )


def _too_small(
    message: str,
    requiring: Sequence[Change],
    required: Step,
    taken: Step,
    raised: Version,
    *allowances: Allowance,
) -> InvalidInput:
    insisting = " ".join(f"--allow {allowance}" for allowance in allowances)
    return InvalidInput(
        message,
        Code.STEP_TOO_SMALL,
        why=_named(requiring),
        fix=f"raise metadata.id to {raised}, or insist with publish {insisting}",
        details={
            "required": str(required),
            "taken": str(taken),
            "version": str(raised),
            "changes": [x.to_json() for x in requiring],
        },
    )


def _named(changes: Sequence[Change]) -> str:
    named = "; ".join(x.message for x in changes[:MAX_NAMED])
    more = len(changes) - MAX_NAMED
    return f"{named}; and {more} more" if more > 0 else named
