"""Tool bindings (P10): how a runtime executes the tools that are not built in."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from capdex.diagnostics import Findings, Path, show, walk
from capdex.manifest.fields import Fields
from capdex.manifest.tools import BUILT_IN, MAX_TOOLS, Tool
from capdex.manifest.urls import url_fault
from capdex.problems import Reason

FIELDS: Final = {
    "http_get": ("url",),
    "http_post": ("url",),
    "nuwa_a2a": ("target_did", "service_method"),
    "mcp_service": ("service_uri", "mcp_action"),
}
MAX_FIELD_CHARS: Final = 2048

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.-]{1,64})\}", re.ASCII)
DID = re.compile(r"did:[a-z0-9]+:[A-Za-z0-9._:%-]+(?:[/?#]\S*)?", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\s]*@)?([^/?#\s]*)")
_ROOT = re.compile(r"\.(?=:|$)")  # `example.com.` is the same host
_ANY_DID = re.compile(r"did:[^/?#\s]+")
_ANY_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


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
    value: Any, path: Path, findings: Findings, parameters: Collection[str] | None
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
    fields.note_unknown(("type", *FIELDS[type_]))
    for name in FIELDS[type_]:
        text = fields.text(name, required=True, most_chars=MAX_FIELD_CHARS, one_line=True)
        if text is not None:
            _check_target(name, text, fields)
    if parameters is not None:
        for where, text in walk(fields.values, path):
            if isinstance(text, str):
                _check_placeholders(text, where, findings, parameters)
    return fields.values


def _check_target(name: str, text: str, fields: Fields) -> None:
    match name:
        case "url":
            complaint = url_fault(text)
        case "target_did":
            complaint = _did_fault(text)
        case "service_uri":
            complaint = _service_fault(text)
        case _:
            return
    if complaint:
        fields.wrong(name, f"{name} is refused: {complaint}")


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


def _check_placeholders(
    text: str, path: Path, findings: Findings, parameters: Collection[str]
) -> None:
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        if name not in parameters:
            message = f"the placeholder {{{name}}} names no parameter of the tool"
            hint = findings.suggest(name, parameters)
            findings.error(Reason.BAD_BINDING, path, message, hint=hint)
    rest = PLACEHOLDER.sub("", text)
    if "{" in rest or "}" in rest:
        message = "a brace stands here that belongs to no placeholder"
        findings.error(Reason.BAD_BINDING, path, message, hint="write {parameter}, or %7B and %7D")


def contacts(bindings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the hosts and agents that bindings contact, each with the first tool to do so.

    Hosts are in lower case, with a port unless it is that of https; agents and services are DIDs;
    a `{placeholder}` alone stands for the party that the argument names. Every text of a binding
    counts, so that an unknown type hides nothing.
    """
    found: dict[str, str] = {}
    for tool, binding in bindings.items():
        for _, text in walk(binding):
            for contact in _contacts(text.strip()) if isinstance(text, str) else ():
                found.setdefault(contact, tool)
    return found


def _contacts(text: str) -> list[str]:
    if _ANY_PLACEHOLDER.fullmatch(text):
        return [text]
    whole = _URL.match(text)  # what stands in its path and query is not contacted by itself
    hosts = [whole[1]] if whole else _URL.findall(text)
    plain = [_ROOT.sub("", host.lower().removesuffix(":443")) for host in hosts]
    return [*filter(None, plain), *([] if whole else _ANY_DID.findall(text))]
