"""Find the changes of tools: parameters, outputs, effects, wording."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from capdex.diagnostics import show, show_change, show_path
from capdex.diff.change import Change, changed, differs, gap_change, only, reworded
from capdex.diff.schema_compatibility import IN_PLACE, StepsLeft, compare_schemas
from capdex.diff.semver_step import Rule
from capdex.json_schema.subschema import Schema
from capdex.manifest.manifest import Effects, Manifest, effects
from capdex.manifest.tools import Tool

TAKES_LESS: Final = "; it cannot be told whether it takes less"
GIVES_MORE: Final = "; it cannot be told whether it gives what it did not"

_OF_PARAMETERS: Final = {"dropped": Rule.PARAMETER_REMOVED, "required": Rule.PARAMETER_REQUIRED}


def tool_changes(old: Manifest, new: Manifest, left: StepsLeft) -> Iterator[Change]:
    """Iterate over the changes of all tools."""
    before = {tool.name: tool for tool in old.tools}
    after = {tool.name: tool for tool in new.tools}
    for name in only(before, after):
        message = f"the tool {show(name)} is gone"
        yield differs(Rule.TOOL_REMOVED, ("tools", name), name, None, message)
    for name in only(after, before):
        message = f"the tool {show(name)} is new"
        yield differs(Rule.TOOL_ADDED, ("tools", name), None, name, message)
    for name in [name for name in before if name in after]:
        was, now = before[name], after[name]
        changes = {
            "parameters": [*_parameters_changed(name, was, now, (old, new), left)],
            "output_schema": [*_output_changed(name, was, now, (old, new), left)],
            "annotations": [*_effects_changed(name, was, now, (old, new))],
        }
        for differences in changes.values():
            yield from differences
        told = [field for field, differences in changes.items() if differences]
        yield from _tool_wording(_function(old, name), _function(new, name), name, told)


def _parameters_changed(
    tool: str, old: Tool, new: Tool, around: tuple[Manifest, Manifest], left: StepsLeft
) -> Iterator[Change]:
    # Parameters that name none are an empty list of names, not a form that takes anything.
    was, now = ({"properties": {}} | side.parameters for side in (old, new))
    words = {*was, *now}
    if "additionalProperties" in words and words.isdisjoint({*IN_PLACE, "unevaluatedProperties"}):
        # Where one says nothing of other arguments, none is sent (P10).
        was, now = ({"additionalProperties": False} | x for x in (was, now))
    before, after = Schema(was, was, around[0].schema), Schema(now, now, around[1].schema)
    comparison = compare_schemas(before, after, left, state=False)
    path, doubt = show_path(("tools", tool)), "" if comparison.decided else TAKES_LESS
    for gap in comparison.narrowed:
        rule = _OF_PARAMETERS.get(gap.keyword, Rule.PARAMETER_NARROWED)
        yield gap_change(rule, gap, path, f"{tool}({gap.path})", doubt=doubt)
    for gap in comparison.widened:
        rule = Rule.PARAMETER_ADDED if gap.keyword == "dropped" else Rule.PARAMETER_WIDENED
        yield gap_change(rule, gap, path, f"{tool}({gap.path})", widened=True)


def _output_changed(
    tool: str, old: Tool, new: Tool, around: tuple[Manifest, Manifest], left: StepsLeft
) -> Iterator[Change]:
    was, now = old.output_schema, new.output_schema
    path = ("tools", tool, "output_schema")
    if was is None or now is None:
        if was is not now:
            rule = Rule.OUTPUT_ADDED if was is None else Rule.OUTPUT_REMOVED
            message = f"{tool} says {'now' if was is None else 'no longer'} what it gives"
            yield differs(rule, path, was, now, message)
        return
    before, after = Schema(was, was, around[0].schema), Schema(now, now, around[1].schema)
    # A caller accepts what the old schema does: the new one has to give no more than that.
    comparison = compare_schemas(after, before, left, state=False)
    doubt = "" if comparison.examples else GIVES_MORE
    at = show_path(path)
    gone = {show_path((name,)) for name in was.get("properties", {})}
    gone -= {show_path((name,)) for name in now.get("properties", {})}
    for gap in comparison.narrowed:
        it = _it(tool, gap.path)
        if gap.keyword == "dropped":
            yield gap_change(Rule.OUTPUT_ADDED, gap, at, it, widened=True)
        elif gap.keyword == "required" and gap.path in gone:  # not optional, but gone
            yield gap_change(Rule.OUTPUT_REMOVED, replace(gap, keyword="dropped"), at, it)
        else:
            yield gap_change(Rule.OUTPUT_WIDENED, gap, at, it, widened=True, doubt=doubt)
    for gap in comparison.widened:
        rule = Rule.OUTPUT_REMOVED if gap.keyword == "dropped" else Rule.OUTPUT_NARROWED
        yield gap_change(rule, gap, at, _it(tool, gap.path))


def _it(tool: str, path: str) -> str:
    return f"the output {path} of {tool}" if path else f"the output of {tool}"


def _effects_changed(
    tool: str, old: Tool, new: Tool, around: tuple[Manifest, Manifest]
) -> Iterator[Change]:
    if not old.built_in and not all(tool in manifest.bindings for manifest in around):
        return  # nothing is known about a tool that nothing runs
    was, now = effects(around[0], old), effects(around[1], new)
    path = ("tools", tool, "annotations")
    before, after = _word(was), _word(now)
    if before != after:
        message = f"{tool} was {before}, is {after}"
        yield differs(Rule.EFFECTS, path, before, after, message)
    elif was.idempotent != now.idempotent:
        message = f"{tool} may be called again safely{'' if now.idempotent else ' no longer'}"
        yield differs(Rule.IDEMPOTENCE, path, was.idempotent, now.idempotent, message)


def _word(effects: Effects) -> str:
    if effects.read_only:
        return "read-only"
    return "destructive" if effects.destructive else "not destructive"


def _function(manifest: Manifest, name: str) -> dict[str, Any]:
    """A tool as it is written, unknown fields too."""
    functions = (item["function"] for item in manifest.document["tools"])
    return next(x for x in functions if x["name"] == name)


def _tool_wording(
    old: dict[str, Any], new: dict[str, Any], name: str, told: Collection[str]
) -> Iterator[Change]:
    for field, *values in changed(old, new):
        rewordings = [((), *values)] if field not in told else reworded(*values)
        for path, before, after in rewordings:
            message = f"{name}: {show_path((field, *path))} {show_change(before, after)}"
            place = ("tools", name, field, *path)
            yield differs(Rule.TOOL_WORDING, place, before, after, message)
