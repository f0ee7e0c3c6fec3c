"""What an import found, and the package that is written of it.

What the format refuses is left out and named, so that the package of every import is valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.json_schema.bounds import unusable
from capdex.manifest import manifest
from capdex.manifest.metadata import MAX_DESCRIPTION_BYTES, MAX_TITLE_CHARS
from capdex.manifest.resources import Resource
from capdex.manifest.tools import MAX_TOOL_DESCRIPTION_BYTES, MAX_TOOLS
from capdex.manifest.urls import url_fault
from capdex.problems import Problem, Reason, Severity
from capdex.uri import PREFIX, CapabilityURI
from capdex.yaml import read_yaml
from capdex.yaml.characters import forbidden
from capdex_publisher.authoring.files import section
from capdex_publisher.authoring.imports.report import (
    DOCUMENT,
    UNSEEN,
    Note,
    clean,
    cut,
    tidied,
    tool_name_of,
    unseen,
)
from capdex_publisher.authoring.licence import check_licence
from capdex_publisher.authoring.lint import lint
from capdex_publisher.authoring.scaffold import (
    DESCRIPTION_END,
    FIRST_VERSION,
    empty_schema,
    misfit,
    quote,
)

MAX_HEAVY: Final = 8  # tools that an error weighs
_ROUNDS: Final = 3  # of leaving out what the format refuses

_LICENCE = re.compile(r"\s+licen[cs]e$", re.IGNORECASE)
_VERSIONED = re.compile(r"(?i)(\w+)(?: licen[cs]e)?,? (?:v|version )?(\d+(?:\.\d+)*)")
_TOOL = re.compile(r"tools\[(\d+)\]")
_BINDING = re.compile(r"tool_bindings\.([^.\[]+)")


@dataclass(frozen=True, slots=True)
class DraftTool:
    """A tool with its binding; `source` is its name where it comes from, `name` that in a package.

    The names are made where all tools are known.
    """

    source: str
    description: str
    parameters: Json
    binding: Json
    output_schema: Json | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """What an import found. `notes` say what of its source does not stand in it unchanged."""

    name: str
    title: str
    description: str = ""
    summary: str = ""
    prompt: str = ""
    license: str = ""
    homepage: str = ""
    tools: Sequence[DraftTool] = ()
    files: Sequence[Resource] = ()
    notes: Sequence[Note] = ()
    to_edit: tuple[str, ...] = ()  # what only the author knows, in sentences

    def with_values(self, **values: str | None) -> Draft:
        """Return a draft with the given values in place of what was found; None keeps a value."""
        given: Any = {key: value for key, value in values.items() if value is not None}
        notes = self.notes
        if values.get("name") is not None:
            notes = [x for x in notes if (x.source, x.subject) != (DOCUMENT, "name")]
        return replace(self, notes=notes, **given)


@dataclass(frozen=True, slots=True)
class Imported:
    """The text of a package, the report, and which of its lines the author must edit."""

    name: str
    text: str
    notes: tuple[Note, ...]
    to_edit: tuple[str, ...]


def write_package(
    draft: Draft,
    *,
    keywords: Sequence[str] = (),
    tags: Sequence[str] = (),
    domain: str | None = None,
) -> Imported:
    """Return the package of a draft.

    Tools that the format refuses are left out and named. Raises InvalidInput if it refuses all, or
    if a value that was given does not fit its field.
    """
    drafted = draft.tools
    draft, notes = _bounded(draft)
    for _ in range(_ROUNDS):
        text = _text(draft, keywords, tags, domain)
        reading = manifest.read(text.encode())
        errors = [x for x in reading.problems if x.severity is Severity.ERROR]
        if not errors and drafted and not draft.tools:
            raise InvalidInput(
                "a package can carry none of these tools",
                why="; ".join(str(x) for x in notes if x.fate == "refused"),
                fix="correct what is named in one of them, and import it again",
            )
        if not errors:
            return Imported(
                draft.name, text, tidied(notes), draft.to_edit + _to_edit(text, reading)
            )
        draft, said = _without(draft, errors)
        notes += said
        if not said:
            break
    first = errors[0]
    if len(draft.tools) > 1 and first.code in (Reason.TOO_LARGE, Reason.TOO_MANY):
        weights = {x.source: len(_flow([x.parameters, x.output_schema])) for x in draft.tools}
        heavy = sorted(weights.items(), key=itemgetter(1), reverse=True)[:MAX_HEAVY]
        raise InvalidInput(
            "these tools do not fit into one package",
            why=f"{first.message}; " + ", ".join(f"{x} has {n} bytes" for x, n in heavy),
            fix="make two packages of them, or leave out the first of these",
        )
    raise misfit(errors)


def _bounded(draft: Draft) -> tuple[Draft, list[Note]]:
    """Cut texts and lists to the limits of the format."""
    notes = list(draft.notes)
    tools = _bounded_tools(draft.tools, notes)
    try:
        spdx = _LICENCE.sub("", draft.license)  # `MIT License`, `Apache License, Version 2.0`
        spdx = _VERSIONED.sub(r"\1-\2", spdx) if _VERSIONED.fullmatch(spdx) else spdx
        license_ = check_licence(spdx) if spdx else ""
        if license_ != draft.license:
            notes.append(Note(DOCUMENT, "license", "changed", draft.license, license_))
    except InvalidInput as error:
        license_ = ""
        reason = f"{error.why}: {error.fix}"
        notes.append(Note(DOCUMENT, "license", "left out", draft.license, reason))
    homepage = draft.homepage
    if homepage and (why := url_fault(homepage, schemes=("https", "http"))):
        notes.append(Note(DOCUMENT, "homepage", "left out", homepage, why))
        homepage = ""
    texts = (draft.title, draft.summary, draft.description)
    title, summary, description = (" ".join(clean(x).split()) for x in texts)
    description = _cut(notes, DOCUMENT, "description", description, MAX_DESCRIPTION_BYTES)
    prompt = _cut(notes, DOCUMENT, "prompt", draft.prompt, manifest.MAX_PROMPT_BYTES, 1)
    if len(title) > MAX_TITLE_CHARS:
        whole, title = f"{len(title)} characters", title[:MAX_TITLE_CHARS]
        notes.append(Note(DOCUMENT, "title", "changed", whole, title))
    draft = replace(draft, title=title or draft.name, summary=summary, description=description)
    return replace(draft, license=license_, homepage=homepage, prompt=prompt, tools=tools), notes


def _bounded_tools(drafted: Sequence[DraftTool], notes: list[Note]) -> list[DraftTool]:
    tools, names, sources = list[DraftTool](), list[str](), [x.source for x in drafted]
    for tool in drafted[:MAX_TOOLS]:
        if fault := unusable(tool.parameters) or _unseen([tool.parameters, tool.binding]):
            notes.append(Note(tool.source, "tool", "refused", "", fault))
            continue
        if fault := unusable(tool.output_schema or {}) or _unseen(tool.output_schema):
            notes.append(Note(tool.source, "output schema", "left out", "", fault))
            tool = replace(tool, output_schema=None)
        names.append(name := tool_name_of(tool.source, names, sources))
        description = clean(tool.description)
        if lost := unseen(tool.description):
            notes.append(Note(tool.source, "description", "left out", lost, UNSEEN))
        kept = _cut(notes, tool.source, "description", description, MAX_TOOL_DESCRIPTION_BYTES)
        if name != tool.source:
            notes.append(Note(tool.source, "name", "changed", tool.source, name))
            kept = cut(f"{tool.source}: {kept}".removesuffix(": "), MAX_TOOL_DESCRIPTION_BYTES)
        tools.append(replace(tool, name=name, description=kept or f"Calls {tool.source}."))
    over = f"a package has at most {MAX_TOOLS} tools"
    notes += [Note(x.source, "tool", "refused", "", over) for x in drafted[MAX_TOOLS:]]
    return tools


def _unseen(value: object) -> str:
    """Return the reason why names in a tool may not stand in a package, empty if they may."""
    unseen = next(iter(forbidden(_flow(value))), None)
    return "" if unseen is None else "it has characters that are not seen"


def _cut(
    notes: list[Note], source: str, subject: str, text: str, most_bytes: int, line_end: int = 0
) -> str:
    """Return a text cut to a number of bytes with its line end; `notes` gets what was cut."""
    kept = cut(text, most_bytes - line_end)
    if kept != text:
        after = f"{most_bytes} bytes, without its end"
        notes.append(Note(source, subject, "changed", f"{len(text.encode())} bytes", after))
    return kept


def _without(draft: Draft, errors: Sequence[Problem]) -> tuple[Draft, list[Note]]:
    """Leave out the schemas of outputs, or the tools, that errors are about."""
    said, tools = [], {tool.name: tool for tool in draft.tools}
    for error in errors:
        in_list, in_bindings = _TOOL.match(error.path), _BINDING.match(error.path)
        name = in_bindings[1] if in_bindings else ""
        name = draft.tools[int(in_list[1])].name if in_list else name
        if (tool := tools.get(name)) is None:
            continue
        if ".output_schema" in error.path:
            if tool.output_schema is not None:
                said.append(Note(tool.source, "output schema", "left out", "", error.message))
                tools[name] = replace(tool, output_schema=None)
            continue
        said.append(Note(tool.source, "tool", "refused", "", error.message))
        del tools[name]
    return replace(draft, tools=list(tools.values())), said


def _to_edit(text: str, reading: manifest.ManifestReading) -> tuple[str, ...]:
    lines = text.split("\n")
    numbers = {x.line for x in lint(reading) if x.code is Reason.UNEDITED}
    return tuple(f"line {number}: {lines[number - 1].strip()}" for number in sorted(numbers))


def _text(draft: Draft, keywords: Sequence[str], tags: Sequence[str], domain: str | None) -> str:
    title = draft.title
    metadata: Json = {
        "id": str(CapabilityURI.exact(f"{PREFIX}{draft.name}@{FIRST_VERSION}")),
        "name": title,
        "description": draft.description or f"What {title}{DESCRIPTION_END}",
        **({"summary": draft.summary} if draft.summary else {}),
        **({"domain": domain} if domain else {}),
        **({"tags": list(tags)} if tags else {}),
        **({"license": draft.license} if draft.license else {}),
        **({"homepage": draft.homepage} if draft.homepage else {}),
    }
    lines = ["# Made by capdex init. Edit it, then:  capdex validate FILE  ·  capdex publish FILE"]
    lines += ["metadata:", *_block(metadata, 1)]
    lines += ["  # What a person says that should bring this capability up.", "  triggers:"]
    words = list(keywords) or [draft.name.replace("-", " ")]
    lines += [f"    - {{type: keyword, value: {quote(word)}}}" for word in words]
    lines += ["  permissions: {require: []}"]
    lines += ["", *empty_schema(draft.name).splitlines()]
    lines += ["", "# What the model is told while this capability is in use.", *_prompt(draft)]
    if draft.tools:
        lines += ["", "# What the model may call …", "tools:"]
        for tool in draft.tools:
            function = {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                **({"output_schema": tool.output_schema} if tool.output_schema else {}),
                **({"annotations": dict(tool.annotations)} if tool.annotations else {}),
            }
            lines += ["  - type: function", "    function:", *_block(function, 3)]
        lines += ["", "# … and how a call is carried out.", "tool_bindings:"]
        for tool in draft.tools:
            lines += [f"  {_key(tool.name)}:", *_block(tool.binding, 2)]
    if draft.files:
        lines += ["", "# Its files: capdex sign writes what they are now. They are not in here."]
        lines += section(draft.files).splitlines()
    return "\n".join([*lines, ""])


def _prompt(draft: Draft) -> list[str]:
    prompt = draft.prompt or f"Use the tools of {draft.title} when the user asks for what they do."
    block = ["prompt: |", *(f"  {line}" if line else "" for line in prompt.split("\n"))]
    read = read_yaml("\n".join([*block, ""]).encode()).value
    if isinstance(read, dict) and read["prompt"] == prompt + "\n":
        return block
    return [f"prompt: {quote(prompt)}"]  # a block cannot hold it as it is


def _block(value: Mapping[str, Any], level: int) -> Iterator[str]:
    """Yield a mapping as block YAML; lists and what is short stand on one line."""
    indent = "  " * level
    for key, item in value.items():
        flow = _flow(item)
        if isinstance(item, Mapping) and item and len(indent) + len(flow) > 100:
            yield f"{indent}{_key(key)}:"
            yield from _block(item, level + 1)
        else:
            yield f"{indent}{_key(key)}: {flow}"


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return quote(value)


def _key(key: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) and key.lower() not in _WORDS
    return key if plain else quote(key)


_WORDS: Final = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
