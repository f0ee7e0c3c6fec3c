"""SemVer steps: the step that a new version takes, and the step that a change requires (P2)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import total_ordering
from typing import Final, NamedTuple

from capdex.errors import InvalidInput
from capdex.version import Version


@total_ordering
class Step(Enum):
    """Size of a version step, ordered."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    def __lt__(self, other: Step) -> bool:
        return _ORDER.index(self) < _ORDER.index(other)

    def __str__(self) -> str:
        return self.value


_ORDER: Final = tuple(Step)


class RuleRow(NamedTuple):
    """A row of the table of changes; `risk`: the change widens what a package may do."""

    section: str
    step: Step
    what: str
    risk: bool = False


class Rule(Enum):
    """Kinds of changes, and the step that each requires from 1.0.0 on.

    The sections are in reading order.
    """

    PERMISSION_ADDED = RuleRow("permissions", Step.MINOR, "a permission is added", risk=True)
    PERMISSION_REMOVED = RuleRow("permissions", Step.PATCH, "a permission is removed")
    HOST_ADDED = RuleRow(
        "hosts", Step.MINOR, "a host or agent is contacted that was not", risk=True
    )
    HOST_REMOVED = RuleRow("hosts", Step.PATCH, "a host or agent is no longer contacted")
    SECRET_ADDED = RuleRow(
        "secrets",
        Step.MINOR,
        "a secret is sent, or to another host or in another header",
        risk=True,
    )
    SECRET_REMOVED = RuleRow("secrets", Step.PATCH, "a secret is no longer sent")
    SCHEMA_URI = RuleRow("schema", Step.MAJOR, "the `$id` is another: state kept under it is left")
    SCHEMA_INCOMPATIBLE = RuleRow("schema", Step.MAJOR, "state that was valid is not any more")
    SCHEMA_UNDECIDED = RuleRow(
        "schema", Step.MAJOR, "the comparison cannot decide whether valid state stays valid"
    )
    SCHEMA_EXTENDED = RuleRow("schema", Step.MINOR, "the schema takes all it took, and more")
    SCHEMA_WORDING = RuleRow("schema", Step.PATCH, "titles, descriptions, the same said otherwise")
    TOOL_REMOVED = RuleRow("tools", Step.MAJOR, "a tool is removed or renamed")
    PARAMETER_REMOVED = RuleRow("tools", Step.MAJOR, "a parameter is removed or renamed")
    PARAMETER_REQUIRED = RuleRow("tools", Step.MAJOR, "a parameter is required that was not")
    PARAMETER_NARROWED = RuleRow(
        "tools", Step.MAJOR, "a parameter takes less: its type, an enum's value, a bound"
    )
    OUTPUT_REMOVED = RuleRow(
        "tools", Step.MAJOR, "an output field, or the whole output schema, is removed or renamed"
    )
    OUTPUT_WIDENED = RuleRow(
        "tools", Step.MAJOR, "an output may be what it was not: another type or value, or left out"
    )
    EFFECTS = RuleRow(
        "tools",
        Step.MINOR,
        "a tool has other effects: it may do more, or a person is asked about less",
        risk=True,
    )
    TOOL_ADDED = RuleRow("tools", Step.MINOR, "a tool is added")
    PARAMETER_ADDED = RuleRow("tools", Step.MINOR, "an optional parameter is added")
    PARAMETER_WIDENED = RuleRow("tools", Step.MINOR, "a parameter takes more")
    OUTPUT_ADDED = RuleRow("tools", Step.MINOR, "an output field, or an output schema, is added")
    OUTPUT_NARROWED = RuleRow("tools", Step.MINOR, "an output says more: fewer types or values")
    IDEMPOTENCE = RuleRow("tools", Step.MINOR, "a call may be repeated safely, or no longer")
    TOOL_WORDING = RuleRow("tools", Step.PATCH, "descriptions, the same parameters said otherwise")
    BINDING_REMOVED = RuleRow("bindings", Step.MAJOR, "a tool that stays is bound no longer")
    BINDING_TYPE_ADDED = RuleRow(
        "bindings", Step.MINOR, "tools are called in a way that none was", risk=True
    )
    BINDING_ADDED = RuleRow("bindings", Step.MINOR, "a tool that was there is bound now")
    BINDING_CHANGED = RuleRow(
        "bindings", Step.MINOR, "a tool is called in another way, elsewhere, or by another method"
    )
    BINDING_PATH = RuleRow("bindings", Step.PATCH, "the same host is asked at another path")
    PROGRAM = RuleRow(
        "resources", Step.MINOR, "a script or program is added, or is another one now", risk=True
    )
    FILE_ADDED = RuleRow("resources", Step.MINOR, "another file is added")
    FILE_REMOVED = RuleRow("resources", Step.MINOR, "a file is removed or renamed")
    FILE_CHANGED = RuleRow("resources", Step.PATCH, "another file changes")
    MEMORY_SCOPE = RuleRow("memory_scope", Step.MAJOR, "the memory scope is another")
    REQUIREMENT_RAISED = RuleRow("llm_requirements", Step.MINOR, "more is asked of the model")
    REQUIREMENT_LOWERED = RuleRow("llm_requirements", Step.PATCH, "less is asked of the model")
    PROMPT = RuleRow("prompt", Step.PATCH, "the prompt is worded otherwise; always shown")
    TRIGGERS = RuleRow("triggers", Step.PATCH, "triggers are added, removed, worded otherwise")
    METADATA = RuleRow("metadata", Step.PATCH, "title, description, tags and all other fields")

    @property
    def section(self) -> str:
        """The part of the package it is about."""
        return self.value.section

    @property
    def step(self) -> Step:
        """Step that it requires from 1.0.0 on."""
        return self.value.step

    @property
    def risk(self) -> bool:
        """True if the package can do more than before, which is never a patch."""
        return self.value.risk


def taken_step(old: Version, new: Version) -> Step:
    """The step from `old` to `new` by their three numbers; NONE inside one `major.minor.patch`.

    Raises InvalidInput unless `new` is the higher one.
    """
    if new <= old:
        same = new == old
        raise InvalidInput(
            f"{new} is {'the same version as before' if same else f'lower than {old}'}",
            why="a release is never replaced" if same else "the new version has to be the higher",
            fix=f"raise metadata.id above {old}" if same else "name the older one first",
        )
    moved = (a != b for a, b in zip(old.core, new.core, strict=True))
    steps = (Step.MAJOR, Step.MINOR, Step.PATCH)
    return next((step for step, differs in zip(steps, moved, strict=True) if differs), Step.NONE)


def required_step(step: Step, old: Version, *, widened: bool = False) -> Step:
    """Return the step that a change of size `step` requires after `old`, by npm's caret.

    Below 1.0.0 a breaking change has to leave `^old`: 0.y requires a minor step, 0.0.z a patch, and
    nothing else requires more than a patch. What widens permissions (`widened`) is never a patch.
    """
    required = step
    if old.major == 0:
        breaking = Step.MINOR if old.minor else Step.PATCH
        required = min(step, breaking if step is Step.MAJOR else Step.PATCH)
    return max(required, Step.MINOR) if widened else required


def next_version(old: Version, step: Step) -> Version:
    """The lowest stable version that takes `step` from `old`; for NONE, the lowest above it."""
    if step is Step.MAJOR:
        return Version(old.major + 1, 0, 0)
    if step is Step.MINOR:
        return Version(old.major, old.minor + 1, 0)
    if step is Step.NONE and not old.stable:
        return Version(*old.core)
    return Version(old.major, old.minor, old.patch + 1)


def predecessor(versions: Iterable[Version], new: Version) -> Version | None:
    """The version that `new` follows: the highest below it, a stable one if there is any.

    A pre-release of the same `major.minor.patch` is passed over: what it requires counts from the
    stable release before it.
    """
    below = [v for v in versions if v < new]
    stable = [v for v in below if v.stable]
    return max(stable or below, default=None)
