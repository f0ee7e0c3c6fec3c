"""Find the changes between two manifests, section by section; each falls under one `Rule`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from capdex.diagnostics import Path, show, show_change, show_path
from capdex.diff.change import Change, ChangeKind, changed, differs, gap_change, only, reworded
from capdex.diff.schema_compatibility import StepsLeft, compare_schemas
from capdex.diff.semver_step import Rule
from capdex.diff.tool_changes import TAKES_LESS, tool_changes
from capdex.json_schema.keywords import same
from capdex.json_schema.subschema import Schema
from capdex.manifest.bindings.contacts import SecretUse, contacts, secret_uses
from capdex.manifest.manifest import SECTIONS, Manifest
from capdex.manifest.resources import KNOWN as RESOURCE_FIELDS
from capdex.manifest.resources import Resource
from capdex.manifest.triggers import Trigger


def collect(old: Manifest, new: Manifest) -> Iterator[Change]:
    """Every change, in the order of the rules' sections."""
    yield from _authors(old, new)
    yield from _permissions(old, new)
    yield from _hosts(old, new)
    yield from _secrets(old, new)
    left = StepsLeft.of()
    yield from _schema(old, new, left)
    yield from tool_changes(old, new, left)
    yield from _bindings(old, new)
    yield from _resources(old, new)
    scope = ("metadata", "memory_scope")
    yield from _text(Rule.MEMORY_SCOPE, scope, "memory scope", old.memory_scope, new.memory_scope)
    yield from _requirements(old, new)
    yield from _text(Rule.PROMPT, ("prompt",), "prompt", old.prompt, new.prompt)
    yield from _triggers(old, new)
    yield from _fields(old.metadata, new.metadata, _ELSEWHERE, ("metadata",))
    yield from _fields(old.document, new.document, SECTIONS, ())  # unknown sections
    yield from _unknown_fields(old, new)


# authors, permissions, hosts, secrets -------------------------------------------------------------


def _authors(old: Manifest, new: Manifest) -> Iterator[Change]:
    sides = {"author": (old.author, new.author), "publisher": (old.publisher, new.publisher)}
    for field, (was, now) in sides.items():
        if was != now:
            shown = (x and x.partition("#")[0].removeprefix("did:pkh:") for x in (was, now))
            who = "signer" if field == "author" else "publishing account"
            message = f"the {who} {show_change(*shown)}"
            yield differs(Rule.AUTHOR, ("metadata", field), was, now, message)


def _permissions(old: Manifest, new: Manifest) -> Iterator[Change]:
    path, asks = ("metadata", "permissions", "require"), "asks for the permission"
    for name in only(new.permissions, old.permissions):
        yield differs(Rule.PERMISSION_ADDED, path, None, name, f"{asks} {show(name)}")
    for name in only(old.permissions, new.permissions):
        yield differs(Rule.PERMISSION_REMOVED, path, name, None, f"{asks} {show(name)} no longer")


def _hosts(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = contacts(old.bindings), contacts(new.bindings)
    for host in only(after, before):
        path, message = ("tool_bindings", after[host]), f"contacts {_whom(host)}"
        yield differs(Rule.HOST_ADDED, path, None, host, message)
    for host in only(before, after):
        path, message = ("tool_bindings", before[host]), f"contacts {_whom(host)} no longer"
        yield differs(Rule.HOST_REMOVED, path, host, None, message)


def _whom(contact: str) -> str:
    if contact.startswith("{"):
        return f"whomever the argument {show(contact[1:-1])} names"
    return show(contact)


def _secrets(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = secret_uses(old.bindings), secret_uses(new.bindings)
    for use in only(after, before):
        path, message = ("tool_bindings", after[use], "auth"), f"sends {_sent(use)}"
        yield differs(Rule.SECRET_ADDED, path, None, use.secret, message)
    for use in only(before, after):
        path, message = ("tool_bindings", before[use], "auth"), f"sends {_sent(use)} no longer"
        yield differs(Rule.SECRET_REMOVED, path, use.secret, None, message)


def _sent(use: SecretUse) -> str:
    return f"the secret {use.secret} to {show(use.host)} in {use.carrier}"


# schemas ----------------------------------------------------------------------------------------


def _root(manifest: Manifest) -> Schema:
    return Schema(manifest.schema, manifest.schema)


def _schema(old: Manifest, new: Manifest, left: StepsLeft) -> Iterator[Change]:
    if old.schema_uri != new.schema_uri:
        before, after = show(old.schema_uri), show(new.schema_uri)
        message = f"the schema's $id was {before} and is {after}"
        yield Change(Rule.SCHEMA_URI, "schema.$id", ChangeKind.CHANGED, message, before, after)
    comparison = compare_schemas(_root(old), _root(new), left, state=True)
    rule = Rule.SCHEMA_INCOMPATIBLE if comparison.decided else Rule.SCHEMA_UNDECIDED
    doubt = "" if comparison.decided else TAKES_LESS
    for gap in comparison.narrowed:
        yield gap_change(rule, gap, "schema", gap.path or "state", doubt=doubt)
    for gap in comparison.widened:
        yield gap_change(Rule.SCHEMA_EXTENDED, gap, "schema", gap.path or "state", widened=True)
    if not comparison.narrowed and not comparison.widened:
        ours, theirs = ({k: v for k, v in x.schema.items() if k != "$id"} for x in (old, new))
        if not same(ours, theirs):
            message = "the schema says the same in other words"
            yield Change(Rule.SCHEMA_WORDING, "schema", ChangeKind.CHANGED, message)
        return
    for path, before, after in reworded(old.schema, new.schema):
        message = f"{show_path(path)} {show_change(before, after)}"
        yield differs(Rule.SCHEMA_WORDING, ("schema", *path), before, after, message)


# the rest ---------------------------------------------------------------------------------------


def _bindings(old: Manifest, new: Manifest) -> Iterator[Change]:
    tools = [tool.name for tool in old.tools if tool.name in {x.name for x in new.tools}]
    before, after = old.bindings, new.bindings
    known = {str(x["type"]) for x in before.values()}
    for type_ in dict.fromkeys(str(x["type"]) for x in after.values()):
        if type_ not in known:
            message = f"tools are called by {show(type_)}, as none was before"
            yield differs(Rule.BINDING_TYPE_ADDED, ("tool_bindings",), None, type_, message)
    for name in tools:
        path, was, now = ("tool_bindings", name), before.get(name), after.get(name)
        if was is not None and now is None:
            yield differs(Rule.BINDING_REMOVED, path, was, None, f"{name} is bound no longer")
        elif now is not None and was is None:
            yield differs(Rule.BINDING_ADDED, path, None, now, f"{name} is bound now")
    for name in before:
        if name in after:
            yield from _binding(name, before[name], after[name])


def _binding(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    for field, before, after in changed(old, new):
        path_alone = field == "url" and contacts({name: old}).keys() == contacts({name: new}).keys()
        rule = Rule.BINDING_PATH if path_alone else Rule.BINDING_CHANGED
        message = f"{name}: {field} {show_change(before, after)}"
        yield differs(rule, ("tool_bindings", name, field), before, after, message)


def _resources(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = ({x.path: x for x in side.resources} for side in (old, new))
    for path in dict.fromkeys([*before, *after]):
        was, now = before.get(path), after.get(path)
        if was == now:
            continue
        rule, said = (Rule.FILE_REMOVED, "is gone") if now is None else _file(was, now)
        size = f" ({now.size} bytes)" if now is not None else ""
        old_cid, new_cid = (None if x is None else str(x.cid) for x in (was, now))
        message = f"the file {show(path)} {said}{size}"
        yield differs(rule, ("resources", path), old_cid, new_cid, message)


def _file(was: Resource | None, now: Resource) -> tuple[Rule, str]:
    """Return what became of a file that is another one than before, or described otherwise."""
    if was is None and now.may_run:
        return Rule.PROGRAM, "may be run, and is new"
    if was is None:
        return Rule.FILE_ADDED, "is new"
    if was.sha256 != now.sha256 and now.may_run:
        return Rule.PROGRAM, "may be run, and is another one"
    if was.sha256 != now.sha256:
        return Rule.FILE_CHANGED, "changed"
    if was.executable is now.executable:
        return Rule.FILE_CHANGED, "has the same bytes, and another media type or CID"
    if now.executable:
        return Rule.PROGRAM, "is now executable"
    return Rule.FILE_CHANGED, "is no longer executable"


def _text(
    rule: Rule, path: tuple[str, ...], what: str, old: str | None, new: str | None
) -> Iterator[Change]:
    if old != new:
        yield differs(rule, path, old, new, f"the {what} {show_change(old, new)}")


def _requirements(old: Manifest, new: Manifest) -> Iterator[Change]:
    for field, was, now in changed(old.llm_requirements, new.llm_requirements):
        rule = Rule.REQUIREMENT_RAISED if _raised(field, was, now) else Rule.REQUIREMENT_LOWERED
        message = f"{field} {show_change(was, now)}"
        yield differs(rule, ("metadata", "llm_requirements", field), was, now, message)


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


def _triggers(old: Manifest, new: Manifest) -> Iterator[Change]:
    path = ("metadata", "triggers")
    for trigger in only(old.triggers, new.triggers):
        message = f"the {trigger.type} trigger {show(trigger.value)} is gone"
        yield differs(Rule.TRIGGERS, path, trigger.value, None, message)
    for trigger in only(new.triggers, old.triggers):
        message = f"the {trigger.type} trigger {show(trigger.value)} is new"
        yield differs(Rule.TRIGGERS, path, None, trigger.value, message)


_ELSEWHERE: Final = (
    *("id", "author", "publisher"),
    "signature",  # of other bytes, of course
    "permissions",
    "triggers",
    "memory_scope",
    "llm_requirements",
)


def _unknown_fields(old: Manifest, new: Manifest) -> Iterator[Change]:
    """Compare what stands beside the known fields of entries that both have, such as `x-team`."""
    before, after = dict(_entries(old)), dict(_entries(new))
    for path in [x for x in before if x in after]:
        for field, was, now in changed(before[path], after[path]):
            place = (*path, field)
            message = f"{show_path(place)} {show_change(was, now)}"
            yield differs(Rule.METADATA, place, was, now, message)


def _entries(manifest: Manifest) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Iterate over the entries that rules read field by field, without these fields."""
    metadata, sections = manifest.metadata, manifest.document
    yield ("metadata", "permissions"), _without(metadata.get("permissions") or {}, ("require",))
    for trigger in metadata.get("triggers") or ():
        path = ("metadata", "triggers", f"{trigger['type']} {trigger['value']}")
        yield path, _without(trigger, Trigger._fields)
    for tool in sections.get("tools") or ():
        yield ("tools", tool["function"]["name"]), _without(tool, ("type", "function"))
    for file in sections.get("resources") or ():
        yield ("resources", file["path"]), _without(file, RESOURCE_FIELDS)


def _without(fields: Mapping[str, Any], known: Sequence[str]) -> Mapping[str, Any]:
    return {field: value for field, value in fields.items() if field not in known}


def _fields(
    old: Mapping[str, Any], new: Mapping[str, Any], left_out: Iterable[str], path: tuple[str, ...]
) -> Iterator[Change]:
    for field, before, after in changed(old, new):
        if field not in left_out:
            message = f"{show_path((field,))} {show_change(before, after)}"
            yield differs(Rule.METADATA, (*path, field), before, after, message)
