"""Read the section `tool_bindings` (P10)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from capdex.diagnostics import Findings, Path, show, walk
from capdex.manifest.bindings.http_request import HTTP_TYPES, METHODS, PLACEHOLDER, check_request
from capdex.manifest.fields import Fields
from capdex.manifest.tools import BUILT_IN, MAX_TOOLS, Tool
from capdex.manifest.urls import url_fault
from capdex.problems import Reason

FIELDS: Final = {
    "http_get": ("url",),
    "http_post": ("url",),
    "http": ("method", "url"),
    "nuwa_a2a": ("target_did", "service_method"),
    "mcp_service": ("service_uri", "mcp_action"),
}
MAX_FIELD_CHARS: Final = 2048

DID = re.compile(r"did:[a-z0-9]+:[A-Za-z0-9._:%-]+(?:[/?#]\S*)?", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)


def read_bindings(
    top: Fields, tools: dict[int, Tool], package_schema: dict[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Return all bindings as written, unknown types too; problems are added to the findings."""
    bindings: dict[str, Any] = top.get("tool_bindings", dict) or {}
    by_name = {tool.name: tool for tool in tools.values()}
    if len(bindings) > MAX_TOOLS:
        message = f"tool_bindings has {len(bindings)} entries; at most {MAX_TOOLS} are allowed"
        top.findings.error(Reason.TOO_MANY, top.at("tool_bindings"), message)
    read = {}
    for name, value in list(bindings.items())[:MAX_TOOLS]:
        path = (*top.at("tool_bindings"), name)
        if name in BUILT_IN:
            message = f"{name} is built in; a binding may not replace it"
            top.findings.error(Reason.BAD_BINDING, path, message, hint="remove it")
            continue
        tool = by_name.get(name)
        if tool is None:
            message = f"no tool is named {show(name)}"
            hint = top.findings.suggest(name, by_name)
            top.findings.error(Reason.BAD_BINDING, path, message, hint=hint)
        parameters = tool.parameter_names(package_schema) if tool is not None else None
        binding = _read(value, path, top.findings, parameters)
        if binding is not None:
            read[name] = binding
    for i, tool in tools.items():
        if not tool.built_in and tool.name not in bindings:
            message = f"{tool.name} has no binding"
            top.findings.warn(Reason.UNBOUND_TOOL, ("tools", i, "function", "name"), message)
    return read


def _read(
    value: object, path: Path, findings: Findings, parameters: Collection[str] | None
) -> dict[str, Any] | None:
    fields = Fields.of(value, path, findings, Reason.BAD_BINDING)
    if fields is None:
        return None
    type_ = fields.text("type", required=True)
    if type_ is None:
        return None
    if type_ not in FIELDS:
        message = f"the binding type {show(type_)} is unknown here; it is kept, and not judged"
        hint = findings.suggest(type_, FIELDS)
        findings.warn(Reason.BAD_BINDING, fields.at("type"), message, hint=hint)
        return fields.values
    optional = HTTP_TYPES.get(type_, ())
    fields.note_unknown(("type", *FIELDS[type_], *optional))
    for name in FIELDS[type_]:
        text = fields.text(name, required=True, most_chars=MAX_FIELD_CHARS, one_line=True)
        if text is not None:
            _check_target(name, text, fields)
    renamed = check_request(fields, parameters) if optional else frozenset()
    if parameters is not None:
        others = {name: x for name, x in fields.values.items() if name not in optional}
        for where, text in walk(others, path):
            if isinstance(text, str):
                _check_placeholders(text, where, findings, {*parameters, *renamed})
    return fields.values


def _check_placeholders(
    text: str, path: Path, findings: Findings, parameters: Collection[str]
) -> None:
    """Report placeholders that name none of `parameters`, and braces of no placeholder."""
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        if name not in parameters:
            message = f"the placeholder {{{name}}} names no parameter of the tool"
            hint = findings.suggest(name, parameters)
            findings.error(Reason.BAD_BINDING, path, message, hint=hint)
    rest = PLACEHOLDER.sub("", text)
    if "{" in rest or "}" in rest:
        message = "a brace stands here that belongs to no placeholder"
        findings.error(Reason.BAD_BINDING, path, message, hint="write {parameter}, or %7B and %7D")


def _check_target(name: str, text: str, fields: Fields) -> None:
    match name:
        case "url":
            complaint = url_fault(text)
        case "method":
            fields.one_of(name, text, METHODS, "a method")
            return
        case "target_did":
            complaint = _did_fault(text)
        case "service_uri":
            complaint = _service_fault(text)
        case _:
            return
    if complaint:
        hint = "write the https:// address of a public host"
        fields.wrong(name, f"{name} is refused: {complaint}", hint=hint)


def _did_fault(text: str) -> str | None:
    filled = PLACEHOLDER.sub("x", text)
    if PLACEHOLDER.fullmatch(text) or DID.fullmatch(filled):
        return None
    return f"{show(text)} is neither a DID nor one placeholder"


def _service_fault(text: str) -> str | None:
    if text.startswith("did:"):
        known = DID.fullmatch(text) is not None
        return None if known else f"{show(text)} is not a DID"
    scheme = _SCHEME.match(text)
    if scheme is None:
        return f"{show(text)} is not a URI"
    return url_fault(text)
