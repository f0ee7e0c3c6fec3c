"""SemVer steps: the step that a new version takes, and the step that a change requires (P2)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from enum import Enum
from functools import total_ordering
from typing import Final

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


NONE, PATCH, MINOR, MAJOR = _ORDER = tuple(Step)
RISK: Final = True


class Rule(Enum):
    """Kinds of changes, and the step that each requires from 1.0.0 on.

    `section` is the part of the package, in reading order. A RISK: the package can do more than
    before, which is never a patch.
    """

    AUTHOR = ("author", PATCH, "another key signs it, or another account publishes it")
    PERMISSION_ADDED = ("permissions", MINOR, "a permission is added", RISK)
    PERMISSION_REMOVED = ("permissions", PATCH, "a permission is removed")
    HOST_ADDED = ("hosts", MINOR, "a host or agent is contacted that was not", RISK)
    HOST_REMOVED = ("hosts", PATCH, "a host or agent is no longer contacted")
    SECRET_ADDED = (
        "secrets",
        MINOR,
        "a secret is sent, or to another host or in another header",
        RISK,
    )
    SECRET_REMOVED = ("secrets", PATCH, "a secret is no longer sent")
    SCHEMA_URI = ("schema", MAJOR, "the `$id` is another: state kept under it is left")
    SCHEMA_INCOMPATIBLE = ("schema", MAJOR, "state that was valid is not any more")
    SCHEMA_UNDECIDED = (
        "schema",
        MAJOR,
        "the comparison cannot decide whether valid state stays valid",
    )
    SCHEMA_EXTENDED = ("schema", MINOR, "the schema takes all it took, and more")
    SCHEMA_WORDING = ("schema", PATCH, "titles, descriptions, the same said otherwise")
    TOOL_REMOVED = ("tools", MAJOR, "a tool is removed or renamed")
    PARAMETER_REMOVED = ("tools", MAJOR, "a parameter is removed or renamed")
    PARAMETER_REQUIRED = ("tools", MAJOR, "a parameter is required that was not")
    PARAMETER_NARROWED = (
        "tools",
        MAJOR,
        "a parameter takes less: its type, an enum's value, a bound",
    )
    OUTPUT_REMOVED = (
        "tools",
        MAJOR,
        "an output field, or the whole output schema, is removed or renamed",
    )
    OUTPUT_WIDENED = (
        "tools",
        MAJOR,
        "an output may be what it was not: another type or value, or left out",
    )
    EFFECTS = (
        "tools",
        MINOR,
        "a tool has other effects: it may do more, or a person is asked about less",
        RISK,
    )
    TOOL_ADDED = ("tools", MINOR, "a tool is added")
    PARAMETER_ADDED = ("tools", MINOR, "an optional parameter is added")
    PARAMETER_WIDENED = ("tools", MINOR, "a parameter takes more")
    OUTPUT_ADDED = ("tools", MINOR, "an output field, or an output schema, is added")
    OUTPUT_NARROWED = ("tools", MINOR, "an output says more: fewer types or values")
    IDEMPOTENCE = ("tools", MINOR, "a call may be repeated safely, or no longer")
    TOOL_WORDING = ("tools", PATCH, "descriptions, the same parameters said otherwise")
    BINDING_REMOVED = ("bindings", MAJOR, "a tool that stays is bound no longer")
    BINDING_TYPE_ADDED = ("bindings", MINOR, "tools are called in a way that none was", RISK)
    BINDING_ADDED = ("bindings", MINOR, "a tool that was there is bound now")
    BINDING_CHANGED = (
        "bindings",
        MINOR,
        "a tool is called in another way, elsewhere, or by another method",
    )
    BINDING_PATH = ("bindings", PATCH, "the same host is asked at another path")
    PROGRAM = ("resources", MINOR, "a file that may be run is added, or is another one now", RISK)
    FILE_ADDED = ("resources", MINOR, "another file is added")
    FILE_REMOVED = ("resources", MINOR, "a file is removed or renamed")
    FILE_CHANGED = ("resources", PATCH, "another file changes")
    MEMORY_SCOPE = ("memory_scope", MAJOR, "the memory scope is another")
    REQUIREMENT_RAISED = ("llm_requirements", MINOR, "more is asked of the model")
    REQUIREMENT_LOWERED = ("llm_requirements", PATCH, "less is asked of the model")
    PROMPT = ("prompt", PATCH, "the prompt is worded otherwise; always shown")
    TRIGGERS = ("triggers", PATCH, "triggers are added, removed, worded otherwise")
    METADATA = ("metadata", PATCH, "title, description, tags and all other fields")

    def __init__(self, section: str, step: Step, what: str, risk: bool = False) -> None:
        self.section = section
        self.step = step
        self.what = what
        self.risk = risk


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


def next_version(old: Version, step: Step, released: Container[Version] = ()) -> Version:
    """The lowest stable version that takes `step` from `old`; for NONE, the lowest above it.

    What is released is passed over, by the same step.
    """
    version = _step_on(old, step)
    while version in released:
        version = _step_on(version, step)
    return version


def _step_on(old: Version, step: Step) -> Version:
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
