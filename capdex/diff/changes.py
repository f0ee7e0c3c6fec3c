"""Find the changes between two manifests, section by section; each falls under one `Rule`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from capdex.diagnostics import show, show_path
from capdex.diff.change import Change, ChangeKind
from capdex.diff.schema_compatibility import MAX_STEPS, compare_schemas
from capdex.diff.schema_gap import SchemaGap
from capdex.diff.semver_step import Rule
from capdex.json_schema.evaluate import Document, Effort, Node
from capdex.json_schema.values import same
from capdex.manifest.bindings import contacts
from capdex.manifest.manifest import SECTIONS, Manifest
from capdex.manifest.tools import Tool


def collect(old: Manifest, new: Manifest) -> Iterator[Change]:
    """Every change, in the order of the rules' sections."""
    yield from _permissions(old, new)
    yield from _hosts(old, new)
    effort = Effort(MAX_STEPS)
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
    path = "metadata.permissions.require"
    for name in _only(new.permissions, old.permissions):
        message = f"asks for the permission {show(name)}"
        yield Change(Rule.PERMISSION_ADDED, path, ChangeKind.ADDED, message, None, show(name))
    for name in _only(old.permissions, new.permissions):
        message = f"asks for the permission {show(name)} no longer"
        yield Change(Rule.PERMISSION_REMOVED, path, ChangeKind.REMOVED, message, show(name))


def _hosts(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = contacts(old.bindings), contacts(new.bindings)
    for host in _only(after, before):
        path, message = _path("tool_bindings", after[host]), f"contacts {_whom(host)}"
        yield Change(Rule.HOST_ADDED, path, ChangeKind.ADDED, message, None, show(host))
    for host in _only(before, after):
        path, message = _path("tool_bindings", before[host]), f"contacts {_whom(host)} no longer"
        yield Change(Rule.HOST_REMOVED, path, ChangeKind.REMOVED, message, show(host))


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
        path, message = _path("tools", name), f"the tool {show(name)} is gone"
        yield Change(Rule.TOOL_REMOVED, path, ChangeKind.REMOVED, message, show(name))
    for name in _only(after, before):
        path, message = _path("tools", name), f"the tool {show(name)} is new"
        yield Change(Rule.TOOL_ADDED, path, ChangeKind.ADDED, message, None, show(name))
    for name in [name for name in before if name in after]:
        documents = _parameters(before[name], old), _parameters(after[name], new)
        changes = list(_parameters_changed(name, *documents, effort))
        yield from changes
        yield from _tool_wording(_function(old, name), _function(new, name), name, bool(changes))


def _root(manifest: Manifest) -> Node:
    return Node(manifest.schema, Document(manifest.schema))


def _parameters(tool: Tool, manifest: Manifest) -> Node:
    # Parameters that name none are an empty list of names, not a form that takes anything.
    schema = {"properties": {}} | tool.parameters
    return Node(schema, Document(schema, manifest.schema))


def _parameters_changed(tool: str, old: Node, new: Node, effort: Effort) -> Iterator[Change]:
    found = compare_schemas(old, new, effort, state=False)
    path = _path("tools", tool)
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
    before, after = gap.values(widened=widened)
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
            message = f"{name}: {field} {_changed(before, after)}"
            yield _differs(Rule.TOOL_WORDING, ("tools", name, field), before, after, message)


# the rest ---------------------------------------------------------------------------------------


def _bindings(old: Manifest, new: Manifest) -> Iterator[Change]:
    tools = {tool.name for tool in old.tools} & {tool.name for tool in new.tools}
    before, after = old.bindings, new.bindings
    known = {str(x["type"]) for x in before.values()}
    for type_ in dict.fromkeys(str(x["type"]) for x in after.values()):
        if type_ not in known:
            message = f"tools are called by {show(type_)}, as none was before"
            path = _path("tool_bindings")
            yield Change(
                Rule.BINDING_TYPE_ADDED, path, ChangeKind.ADDED, message, None, show(type_)
            )
    for name in _only(before, after):
        if name in tools:
            path, message = _path("tool_bindings", name), f"{name} is bound no longer"
            yield Change(
                Rule.BINDING_REMOVED, path, ChangeKind.REMOVED, message, _short(before[name])
            )
    for name in _only(after, before):
        if name in tools:
            path, message = _path("tool_bindings", name), f"{name} is bound now"
            yield Change(
                Rule.BINDING_ADDED, path, ChangeKind.ADDED, message, None, _short(after[name])
            )
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
        message = f"{name}: {field} {_changed(before, after)}"
        yield _differs(rule, ("tool_bindings", name, field), before, after, message)


def _memory_scope(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = old.memory_scope, new.memory_scope
    if before != after:
        message = f"the memory scope {_changed(before, after)}"
        path = ("metadata", "memory_scope")
        yield _differs(Rule.MEMORY_SCOPE, path, before, after, message)


def _requirements(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = old.llm_requirements, new.llm_requirements
    for field in dict.fromkeys([*before, *after]):
        was, now = before.get(field), after.get(field)
        if not same(was, now):
            rule = Rule.REQUIREMENT_RAISED if _raised(field, was, now) else Rule.REQUIREMENT_LOWERED
            message = f"{field} {_changed(was, now)}"
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
        message = f"the prompt {_changed(old.prompt, new.prompt)}"
        yield _differs(Rule.PROMPT, ("prompt",), old.prompt, new.prompt, message)


def _triggers(old: Manifest, new: Manifest) -> Iterator[Change]:
    path = "metadata.triggers"
    for trigger in _only(old.triggers, new.triggers):
        message = f"the {trigger.type} trigger {show(trigger.value)} is gone"
        yield Change(Rule.TRIGGERS, path, ChangeKind.REMOVED, message, show(trigger.value))
    for trigger in _only(new.triggers, old.triggers):
        message = f"the {trigger.type} trigger {show(trigger.value)} is new"
        yield Change(Rule.TRIGGERS, path, ChangeKind.ADDED, message, None, show(trigger.value))


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
            message = f"{show_path((field,))} {_changed(before, after)}"
            yield _differs(Rule.METADATA, (*path, field), before, after, message)


def _differs(rule: Rule, path: tuple[str, ...], old: Any, new: Any, message: str) -> Change:
    kind = (
        ChangeKind.ADDED
        if old is None
        else ChangeKind.REMOVED
        if new is None
        else ChangeKind.CHANGED
    )
    return Change(rule, show_path(path), kind, message, _short(old), _short(new))


def _changed(old: Any, new: Any) -> str:
    """`was a, is b` for short values; long texts are shown by the text of the diff."""
    if old is None:
        return "is new" if _long(new) else f"is new: {show(new)}"
    if new is None:
        return "is gone"
    return "changed" if _long(old) or _long(new) else f"was {show(old)}, is {show(new)}"


def _long(value: Any) -> bool:
    return isinstance(value, dict) or show(value).endswith("…")


def _short(value: Any) -> str | None:
    return None if value is None else show(value)


def _only(these: Iterable[Any], those: Iterable[Any]) -> list[Any]:
    """Return the items of `these` that are not in `those`, once each, in order."""
    known = set(those)
    return [x for x in dict.fromkeys(these) if x not in known]


def _path(*steps: str) -> str:
    return show_path(steps)
