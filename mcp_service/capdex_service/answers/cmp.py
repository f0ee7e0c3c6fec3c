"""The levels of CMP (Capability Manifest Protocol, Router Protocol), each a bounded answer.

    domains ──> manifests of a domain ──> capabilities of a tool ──> schema ──> examples

A CMP tool is a package, named by its capability name; its commands are the tools of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from capdex.json import Json
from capdex.json_schema.bundle import self_contained
from capdex.manifest.manifest import Manifest, effects
from capdex.manifest.tools import Tool
from capdex.profiles.cap import find_tool
from capdex_service.answers.paging import fill

LEVELS: Final = ("domains", "manifests", "capabilities", "schema", "examples")
MAX_PATTERNS: Final = 16  # of one intent
MAX_PATTERN_CHARS: Final = 160  # longer ones tell a model no more
MAX_ITEMS: Final = 100  # a package has at most 65 intents

_CALL: Final = (("tool", "command"), ("input", "input"))


def domains(counts: Mapping[str, int]) -> Json:
    """Return level 0: the domains, the one with most packages first."""
    names = sorted(counts, key=lambda name: (-counts[name], name))
    return {"domains": names, "counts": {name: counts[name] for name in names}}


def manifest(metadata: Mapping[str, Any], name: str, version: str) -> Json:
    """Return level 1 of one package, from its metadata section: who it is, in one line."""
    return {"name": name, "summary": summary(metadata), "version": version}


def summary(metadata: Mapping[str, Any]) -> str:
    """Return the summary of a package; without one, the start of its description."""
    text = metadata.get("summary") or metadata.get("description")
    words = " ".join(str(text or "").split())
    return words if len(words) <= 120 else words[:119].rsplit(" ", 1)[0] + "…"


def capabilities(package: Manifest, start: int = 0) -> tuple[Json, int | None]:
    """Return level 2: the intents of a package, and where the next page begins.

    The first is the package's own, of its triggers; each other is of one tool (`tool`), with what
    its examples say. `confirm` is true for a tool that may destroy something: any that is not known
    to read only, or to change nothing but the user's own state.
    """
    intents = []
    triggers = [x for x in package.triggers if x.model is None]  # else it is a vector
    texts = [f"re:{x.value}" if x.type == "regex" else x.value for x in triggers]
    if patterns := _patterns(texts):
        intents.append({"patterns": patterns, "confirm": False})
    intents += [_intent(package, tool) for tool in package.tools]
    page, after = fill(intents, start, MAX_ITEMS)
    return {"tool": package.uri.name, "intents": page}, after


def schema(package: Manifest, tool: str = "", start: int = 0) -> tuple[Json, int | None]:
    """Return level 3: the schema of one tool's parameters, or the tools with their parameters.

    Raises InvalidInput NOT_FOUND for a tool that the package does not have.
    """
    if tool:
        selected = find_tool(package, tool)
        params = self_contained(selected.parameters, package.schema)
        answer = {"command": selected.name, "summary": selected.description, "params": params}
        return {"tool": package.uri.name} | answer, None
    page, after = fill([_command(package, x) for x in package.tools], start, MAX_ITEMS)
    return {"tool": package.uri.name, "commands": page}, after


def examples(package: Manifest, tool: str = "", start: int = 0) -> tuple[Json, int | None]:
    """Return level 4: what people say, and the call that should come of it; of one tool or all.

    Raises InvalidInput NOT_FOUND for a tool that the package does not have.
    """
    if tool:
        find_tool(package, tool)
    entries = [
        {"say": example["say"]}
        | {key: example[name] for name, key in _CALL if example.get(name) is not None}
        for example in package.examples
        if not tool or example.get("tool") == tool
    ]
    page, after = fill(entries, start, MAX_ITEMS)
    return {"tool": package.uri.name, "examples": page}, after


def _intent(package: Manifest, tool: Tool) -> Json:
    said = [x["say"] for x in package.examples if x.get("tool") == tool.name]
    words = tool.name.replace("_", " ").replace("-", " ").replace(".", " ")
    patterns = _patterns([*said, words])
    confirm = effects(package, tool).destructive
    return {"patterns": patterns, "confirm": confirm, "command": tool.name}


def _command(package: Manifest, tool: Tool) -> Json:
    names = tool.parameter_names(package.schema)
    required = [x for x in tool.parameters.get("required", []) if x in names]
    params = [*required, *sorted(names.difference(required))]
    return {"command": tool.name, "params": params, "required": required}


def _patterns(texts: Sequence[str]) -> list[str]:
    short = (text.strip() for text in texts if len(text) <= MAX_PATTERN_CHARS)
    return [text for text in dict.fromkeys(short) if text][:MAX_PATTERNS]
