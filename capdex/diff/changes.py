"""Find the changes between two manifests, section by section; each falls under one `Rule`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from capdex.diagnostics import show, show_change, show_path
from capdex.diff.schema_compatibility import MAX_STEPS, SchemaGap, compare_schemas
from capdex.diff.semver_step import Rule, Step
from capdex.json_schema.keywords import same
from capdex.json_schema.subschema import Effort, Schema
from capdex.manifest.bindings import contacts
from capdex.manifest.manifest import SECTIONS, Manifest
from capdex.manifest.tools import Tool


class ChangeKind(StrEnum):
    """Kind of change at a path."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """A change. `message` is a line for people; `old` and `new` are short texts, or None.

    All of them quote untrusted packages: printable, and to be escaped for a terminal.
    """

    rule: Rule
    path: str
    kind: ChangeKind
    message: str
    old: str | None = None
    new: str | None = None

    @property
    def section(self) -> str:
        """The part of the package that changed."""
        return self.rule.section

    @property
    def step(self) -> Step:
        """The step owed from 1.0.0 on."""
        return self.rule.step

    @property
    def risk(self) -> bool:
        """True if the package can do or reach more than before."""
        return self.rule.risk

    def to_json(self) -> dict[str, Any]:
        """Return the change as `capdex diff --json` and errors show it."""
        return {
            "section": self.section,
            "path": self.path,
            "kind": str(self.kind),
            "step": str(self.step),
            "risk": self.risk,
            "message": self.message,
            "old": self.old,
            "new": self.new,
        }


def collect(old: Manifest, new: Manifest) -> Iterator[Change]:
    """Every change, in the order of the rules' sections."""
    yield from _permissions(old, new)
    yield from _hosts(old, new)
    effort = iter(range(MAX_STEPS))
    yield from _schema(old, new, effort)
    yield from _tools(old, new, effort)
    yield from _bindings(old, new)
    yield from _memory_scope(old, new)
    yield from _requirements(old, new)
    yield from _prompt(old, new)
    yield from _triggers(old, new)
    yield from _metadata(old, new)


# permissions and hosts --------------------------------------------------------------------------


def _permissions(old: Manifest, new: Manifest) -> Iterator[Change]:
    path, asks = ("metadata", "permissions", "require"), "asks for the permission"
    for name in _only(new.permissions, old.permissions):
        yield _differs(Rule.PERMISSION_ADDED, path, None, name, f"{asks} {show(name)}")
    for name in _only(old.permissions, new.permissions):
        yield _differs(Rule.PERMISSION_REMOVED, path, name, None, f"{asks} {show(name)} no longer")


def _hosts(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = contacts(old.bindings), contacts(new.bindings)
    for host in _only(after, before):
        path, message = ("tool_bindings", after[host]), f"contacts {_whom(host)}"
        yield _differs(Rule.HOST_ADDED, path, None, host, message)
    for host in _only(before, after):
        path, message = ("tool_bindings", before[host]), f"contacts {_whom(host)} no longer"
        yield _differs(Rule.HOST_REMOVED, path, host, None, message)


def _whom(contact: str) -> str:
    if contact.startswith("{"):
        return f"whomever the argument {show(contact[1:-1])} names"
    return show(contact)


# schemas ----------------------------------------------------------------------------------------


def _schema(old: Manifest, new: Manifest, effort: Effort) -> Iterator[Change]:
    if old.schema_uri != new.schema_uri:
        before, after = show(old.schema_uri), show(new.schema_uri)
        message = f"the schema's $id was {before} and is {after}"
        yield Change(Rule.SCHEMA_URI, "schema.$id", ChangeKind.CHANGED, message, before, after)
    found = compare_schemas(_root(old), _root(new), effort, state=True)
    rule = Rule.SCHEMA_INCOMPATIBLE if found.decided else Rule.SCHEMA_UNDECIDED
    for gap in found.narrowed:
        yield _gap(rule, gap, "schema", gap.path or "state", decided=found.decided)
    for gap in found.widened:
        yield _gap(Rule.SCHEMA_EXTENDED, gap, "schema", gap.path or "state", widened=True)
    if not found.narrowed and not found.widened:
        ours, theirs = ({k: v for k, v in x.schema.items() if k != "$id"} for x in (old, new))
        if not same(ours, theirs):
            message = "the schema says the same in other words"
            yield Change(Rule.SCHEMA_WORDING, "schema", ChangeKind.CHANGED, message)


_OF_PARAMETERS: Final = {"dropped": Rule.PARAMETER_REMOVED, "required": Rule.PARAMETER_REQUIRED}


def _tools(old: Manifest, new: Manifest, effort: Effort) -> Iterator[Change]:
    before = {tool.name: tool for tool in old.tools}
    after = {tool.name: tool for tool in new.tools}
    for name in _only(before, after):
        message = f"the tool {show(name)} is gone"
        yield _differs(Rule.TOOL_REMOVED, ("tools", name), name, None, message)
    for name in _only(after, before):
        message = f"the tool {show(name)} is new"
        yield _differs(Rule.TOOL_ADDED, ("tools", name), None, name, message)
    for name in [name for name in before if name in after]:
        documents = _parameters(before[name], old), _parameters(after[name], new)
        changes = list(_parameters_changed(name, *documents, effort))
        yield from changes
        yield from _tool_wording(_function(old, name), _function(new, name), name, bool(changes))


def _root(manifest: Manifest) -> Schema:
    return Schema(manifest.schema, manifest.schema)


def _parameters(tool: Tool, manifest: Manifest) -> Schema:
    # Parameters that name none are an empty list of names, not a form that takes anything.
    schema = {"properties": {}} | tool.parameters
    return Schema(schema, schema, manifest.schema)


def _parameters_changed(tool: str, old: Schema, new: Schema, effort: Effort) -> Iterator[Change]:
    found = compare_schemas(old, new, effort, state=False)
    path = show_path(("tools", tool))
    for gap in found.narrowed:
        rule = _OF_PARAMETERS.get(gap.keyword, Rule.PARAMETER_NARROWED)
        yield _gap(rule, gap, path, f"{tool}({gap.path})", decided=found.decided)
    for gap in found.widened:
        rule = Rule.PARAMETER_ADDED if gap.keyword == "dropped" else Rule.PARAMETER_WIDENED
        yield _gap(rule, gap, path, f"{tool}({gap.path})", widened=True)


def _gap(
    rule: Rule,
    gap: SchemaGap,
    section: str,
    it: str,
    *,
    widened: bool = False,
    decided: bool = True,
) -> Change:
    """Return the change of one place where a schema accepts less, or more."""
    kind = (
        (ChangeKind.ADDED if widened else ChangeKind.REMOVED)
        if gap.keyword == "dropped"
        else ChangeKind.CHANGED
    )
    path = f"{section}.{gap.path}" if gap.path else section
    before, after = map(_short, gap.values(widened=widened))
    doubt = "" if decided else "; it cannot be told whether it takes less"
    return Change(rule, path, kind, gap.words(it, widened=widened) + doubt, before, after)


def _function(manifest: Manifest, name: str) -> dict[str, Any]:
    """A tool as it is written, unknown fields too."""
    functions = (item["function"] for item in manifest.document["tools"])
    return next(x for x in functions if x["name"] == name)


def _tool_wording(
    old: dict[str, Any], new: dict[str, Any], name: str, changed: bool
) -> Iterator[Change]:
    for field in dict.fromkeys([*old, *new]):
        before, after = old.get(field), new.get(field)
        if not same(before, after) and not (field == "parameters" and changed):
            message = f"{name}: {field} {show_change(before, after)}"
            yield _differs(Rule.TOOL_WORDING, ("tools", name, field), before, after, message)


# the rest ---------------------------------------------------------------------------------------


def _bindings(old: Manifest, new: Manifest) -> Iterator[Change]:
    tools = [tool.name for tool in old.tools if tool.name in {x.name for x in new.tools}]
    before, after = old.bindings, new.bindings
    known = {str(x["type"]) for x in before.values()}
    for type_ in dict.fromkeys(str(x["type"]) for x in after.values()):
        if type_ not in known:
            message = f"tools are called by {show(type_)}, as none was before"
            yield _differs(Rule.BINDING_TYPE_ADDED, ("tool_bindings",), None, type_, message)
    for name in tools:
        path, was, now = ("tool_bindings", name), before.get(name), after.get(name)
        if was is not None and now is None:
            yield _differs(Rule.BINDING_REMOVED, path, was, None, f"{name} is bound no longer")
        elif now is not None and was is None:
            yield _differs(Rule.BINDING_ADDED, path, None, now, f"{name} is bound now")
    for name in before:
        if name in after:
            yield from _binding(name, before[name], after[name])


def _binding(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    for field in dict.fromkeys([*old, *new]):
        before, after = old.get(field), new.get(field)
        if same(before, after):
            continue
        path_alone = field == "url" and contacts({name: old}).keys() == contacts({name: new}).keys()
        rule = Rule.BINDING_PATH if path_alone else Rule.BINDING_CHANGED
        message = f"{name}: {field} {show_change(before, after)}"
        yield _differs(rule, ("tool_bindings", name, field), before, after, message)


def _memory_scope(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = old.memory_scope, new.memory_scope
    if before != after:
        message = f"the memory scope {show_change(before, after)}"
        path = ("metadata", "memory_scope")
        yield _differs(Rule.MEMORY_SCOPE, path, before, after, message)


def _requirements(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = old.llm_requirements, new.llm_requirements
    for field in dict.fromkeys([*before, *after]):
        was, now = before.get(field), after.get(field)
        if not same(was, now):
            rule = Rule.REQUIREMENT_RAISED if _raised(field, was, now) else Rule.REQUIREMENT_LOWERED
            message = f"{field} {show_change(was, now)}"
            path = ("metadata", "llm_requirements", field)
            yield _differs(rule, path, was, now, message)


def _raised(field: str, was: Any, now: Any) -> bool:
    """True if a model that was sufficient may not be now; unknown fields count as raised."""
    if now is None:
        return False
    if was is None:
        return True
    match field:
        case "min_context_window":
            return bool(now > was)
        case "model_family":
            return not set(was) <= set(now)
        case "required_features":
            return not set(now) <= set(was)
    return True


def _prompt(old: Manifest, new: Manifest) -> Iterator[Change]:
    if old.prompt != new.prompt:
        message = f"the prompt {show_change(old.prompt, new.prompt)}"
        yield _differs(Rule.PROMPT, ("prompt",), old.prompt, new.prompt, message)


def _triggers(old: Manifest, new: Manifest) -> Iterator[Change]:
    path = ("metadata", "triggers")
    for trigger in _only(old.triggers, new.triggers):
        message = f"the {trigger.type} trigger {show(trigger.value)} is gone"
        yield _differs(Rule.TRIGGERS, path, trigger.value, None, message)
    for trigger in _only(new.triggers, old.triggers):
        message = f"the {trigger.type} trigger {show(trigger.value)} is new"
        yield _differs(Rule.TRIGGERS, path, None, trigger.value, message)


_ELSEWHERE: Final = (
    "id",
    "signature",  # of other bytes, of course
    "permissions",
    "triggers",
    "memory_scope",
    "llm_requirements",
)


def _metadata(old: Manifest, new: Manifest) -> Iterator[Change]:
    """All other fields of metadata, and unknown sections."""
    yield from _fields(old.metadata, new.metadata, _ELSEWHERE, ("metadata",))
    yield from _fields(old.document, new.document, SECTIONS, ())


def _fields(
    old: Mapping[str, Any], new: Mapping[str, Any], left_out: Iterable[str], path: tuple[str, ...]
) -> Iterator[Change]:
    for field in dict.fromkeys([*old, *new]):
        before, after = old.get(field), new.get(field)
        if field not in left_out and not same(before, after):
            message = f"{show_path((field,))} {show_change(before, after)}"
            yield _differs(Rule.METADATA, (*path, field), before, after, message)


def _differs(rule: Rule, path: tuple[str, ...], old: Any, new: Any, message: str) -> Change:
    gone = ChangeKind.REMOVED if new is None else ChangeKind.CHANGED
    kind = ChangeKind.ADDED if old is None else gone
    return Change(rule, show_path(path), kind, message, _short(old), _short(new))


def _short(value: Any) -> str | None:
    return None if value is None else show(value)


def _only(these: Iterable[Any], those: Iterable[Any]) -> list[Any]:
    """Return the items of `these` that are not in `those`, once each, in order."""
    known = set(those)
    return [x for x in dict.fromkeys(these) if x not in known]
