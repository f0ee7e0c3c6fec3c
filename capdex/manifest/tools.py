"""Tools in OpenAI form (P10)."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from capdex.diagnostics import Findings, Path, show
from capdex.json import object_of
from capdex.json_schema.schema import check_schema
from capdex.manifest.fields import Fields
from capdex.problems import Reason

MAX_TOOLS: Final = 64
MAX_TOOL_DESCRIPTION_BYTES: Final = 2048
BUILT_IN: Final = ("state.create", "state.update", "state.query", "state.delete")

FUNCTION_FIELDS: Final = (
    *("name", "description", "parameters", "strict"),  # OpenAI's
    *("output_schema", "annotations"),
)

_FORM: Final = "write {type: function, function: {name: …, description: …, parameters: …}}"

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


# The names of MCP, for which those of `Annotations` belong here.
MCP_HINTS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
}


class Annotations(NamedTuple):
    """What a package states about the effects of a tool; None where it says nothing.

    The tool changes nothing (`read_only`), may destroy what is there (`destructive`), has no
    further effect when it is called again with the same arguments (`idempotent`).
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None


class Tool(NamedTuple):
    """A tool; `parameters` and `output_schema` are its JSON Schemas as written."""

    name: str
    description: str
    parameters: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: Annotations = Annotations()

    @property
    def built_in(self) -> bool:
        """True if the runtime itself provides this tool."""
        return self.name in BUILT_IN

    def parameter_names(self, package_schema: dict[str, Any] | None) -> frozenset[str]:
        """The names an argument may have; `#/schema` stands for the package's schema."""
        schema: Any = self.parameters
        if schema.get("$ref") == "#/schema" and package_schema is not None:
            schema = {"properties": {**_properties(package_schema), **_properties(schema)}}
        return frozenset(_properties(schema))


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    return object_of(schema.get("properties"))


def read_tools(top: Fields, package_schema: dict[str, Any] | None) -> dict[int, Tool]:
    """The usable tools by their place in the list; `package_schema` is what `#/schema` means."""
    tools: dict[int, Tool] = {}
    first: dict[str, int] = {}
    for i, item in enumerate(top.items("tools", MAX_TOOLS)):
        path = ("tools", i)
        tool = _read(item, path, top.findings, package_schema)
        if tool is None:
            continue
        if tool.name in first:
            message = f"the name {show(tool.name)} is taken by tools[{first[tool.name]}]"
            top.findings.error(Reason.BAD_TOOL, (*path, "function", "name"), message)
            continue
        first[tool.name] = i
        tools[i] = tool
    return tools


def _read(
    item: object, path: Path, findings: Findings, package_schema: dict[str, Any] | None
) -> Tool | None:
    outer = Fields.of(item, path, findings, Reason.BAD_TOOL, hint=_FORM)
    if outer is None:
        return None
    if "function" not in outer.values and "name" in outer.values:
        message = "name, description and parameters belong in function, below type"
        findings.error(Reason.MISSING_FIELD, outer.at("function"), message, hint=_FORM)
        return None
    outer.note_unknown(("type", "function"))
    type_ = outer.text("type", required=True)
    if type_ not in (None, "function"):
        outer.wrong("type", f"{show(type_)} is not a tool type", hint="write type: function")
    fields = outer.mapping("function", Reason.BAD_TOOL, required=True)
    if fields is None:
        return None
    fields.note_unknown(FUNCTION_FIELDS)
    name = fields.text("name", required=True)
    description = fields.text("description", most_bytes=MAX_TOOL_DESCRIPTION_BYTES)
    if "description" not in fields.values:
        message = "without a description, a model cannot tell when to call this tool"
        findings.warn(Reason.MISSING_FIELD, fields.at("description"), message)
    fields.get("strict", bool)
    parameters = _read_schema("parameters", fields, package_schema)
    output_schema = _read_schema("output_schema", fields, package_schema)
    annotations = _read_annotations(fields)
    if name is None or not _check_name(name, fields):
        return None
    if parameters is None:  # OpenAI: a function without parameters takes none
        parameters = {"type": "object", "properties": {}}
    return Tool(name, description or "", parameters, output_schema, annotations)


def _check_name(name: str, fields: Fields) -> bool:
    if name in BUILT_IN or NAME.fullmatch(name):
        return True
    message = f"{show(name)} is not a valid tool name: 1 to 64 of A-Z, a-z, 0-9, _ and -"
    if name.startswith("state."):
        message = f"{show(name)} is not a built-in tool; there are {', '.join(BUILT_IN)}"
    fields.wrong("name", message, hint=fields.findings.suggest(name, BUILT_IN))
    return False


def _read_schema(
    name: str, fields: Fields, package_schema: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the schema of an object: of the arguments, or of the output."""
    schema: dict[str, Any] | None = fields.get(name, dict)
    if schema is None:
        return None
    path = fields.at(name)
    check_schema(schema, path, fields.findings, package_schema=package_schema or {})
    type_ = schema.get("type")
    if type_ not in (None, "object"):
        message = (
            "a model sends its arguments as one object"
            if name == "parameters"
            else "an output is one object; a reply of another type is in its field `value`"
        )
        fields.findings.error(Reason.BAD_TOOL, (*path, "type"), message, hint="write type: object")
    elif type_ is None and "$ref" not in schema:
        plural = name == "parameters"
        says = "parameters do not say that they are" if plural else "output_schema is not that of"
        fields.findings.warn(Reason.BAD_TOOL, path, f"{says} an object", hint="add type: object")
    return schema


def _read_annotations(fields: Fields) -> Annotations:
    stated = fields.mapping("annotations", Reason.BAD_TOOL)
    if stated is None:
        return Annotations()
    for name, ours in MCP_HINTS.items():
        if name in stated.values:
            message = f"{name} is MCP's name, and is not read here"
            stated.findings.warn(Reason.BAD_TOOL, stated.at(name), message, hint=f"write {ours}")
    stated.note_unknown((*Annotations._fields, *MCP_HINTS))
    hints = Annotations(*(stated.get(name, bool) for name in Annotations._fields))
    if hints.read_only and hints.destructive:
        stated.wrong("destructive", "a tool that is read_only destroys nothing")
    return hints
