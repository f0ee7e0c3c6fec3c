"""CAP manifests of a package (Loops CAP 0.1.0-draft, Capability Manifest; P10).

The package is a skill, each of its tools a tool. Nothing says how a tool is reached (no URL,
command or transport): CAP leaves that to the host, which reads the bindings of the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex.json_schema.bundle import self_contained
from capdex.manifest.manifest import Manifest
from capdex.manifest.prompt import placeholders
from capdex.manifest.tools import Tool
from capdex.uri import PREFIX

KINDS: Final = ("skill", "tool")
PACKAGE_TYPE: Final = "application/yaml"  # RFC 9512
SCHEMA_TYPE: Final = "application/schema+json"


def vars_of(prompt: str | None) -> Json:
    """Return the input schema of a skill: a message, and the placeholders of its prompt (P10)."""
    message = {"type": "string", "description": "what is wanted, in plain words"}
    values = {name: {"type": "string"} for name in placeholders(prompt or "")}
    return {"type": "object", "properties": {**values, "message": message}}


def capability_id(name: str, tool: str = "") -> str:
    """Return the CAP id of a package, or of one of its tools."""
    return f"{PREFIX}{name}#{tool}" if tool else PREFIX + name


def manifests(manifest: Manifest) -> Iterator[Json]:
    """Yield the manifests of a package: the skill, then its tools in their order."""
    yield skill(manifest)
    for tool in manifest.tools:
        yield tool_manifest(manifest, tool)


def skill(manifest: Manifest) -> Json:
    """Return the manifest of the package itself; `tools` refers to those of its tools."""
    name, version = manifest.uri.name, str(manifest.uri.version)
    return {
        "capability_id": capability_id(name),
        "version": version,
        "kind": "skill",
        "name": manifest.title,
        "description": manifest.description,
        "input_schema": vars_of(manifest.prompt),
        "output_schema": None,
        "prompt_template": manifest.prompt,
        "resources": resources(name, version) + files(manifest),
        "required_permissions": list(manifest.permissions),
        "tools": [
            {"capability_id": capability_id(name, tool.name), "version": version}
            for tool in manifest.tools
        ],
    }


def find_tool(manifest: Manifest, name: str) -> Tool:
    """Return the tool of that name; raises InvalidInput NOT_FOUND with the names there are."""
    for tool in manifest.tools:
        if tool.name == name:
            return tool
    names = [tool.name for tool in manifest.tools]
    raise InvalidInput(
        f"{manifest.uri} has no tool {name[:64]!r}",
        Code.NOT_FOUND,
        fix=f"it has {', '.join(names)}" if names else "it has no tools",
        details={"tools": names},
    )


def tool_manifest(manifest: Manifest, tool: Tool) -> Json:
    """Return the manifest of a tool; its schemas need nothing outside of them."""
    output = tool.output_schema
    return {
        "capability_id": capability_id(manifest.uri.name, tool.name),
        "version": str(manifest.uri.version),
        "kind": "tool",
        "name": tool.name,
        "description": tool.description,
        "input_schema": self_contained(tool.parameters, manifest.schema),
        "output_schema": None if output is None else self_contained(output, manifest.schema),
        "prompt_template": None,
        "resources": None,
        # A built-in tool is a verb on state, which the user grants by its name (NIP-7).
        "required_permissions": [tool.name] if tool.built_in else None,
    }


def resources(name: str, version: str) -> list[Json]:
    """Return the resources of every package: its file, and the JSON Schema of its state."""
    types = {"package": PACKAGE_TYPE, "schema": SCHEMA_TYPE}
    return [
        {"uri": f"capdex://{name}/{version}/{part}", "name": part, "mimeType": media_type}
        for part, media_type in types.items()
    ]


def files(manifest: Manifest) -> list[Json]:
    """Return the files that a package names as resources, `size` in bytes.

    Their URIs are those of IPFS, since the node that answers need not have them.
    """
    return [
        {"uri": f"ipfs://{x.cid}", "name": x.path, "mimeType": x.media_type, "size": x.size}
        for x in manifest.resources
    ]
