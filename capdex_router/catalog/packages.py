"""Capabilities of a verified package: the package itself as a skill, and each of its tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex.manifest.manifest import Manifest, effects
from capdex.manifest.tools import BUILT_IN, Tool
from capdex.package import VerifiedPackage
from capdex.profiles import cap
from capdex_router.model.capability import Capability, Executor, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.state.tools import standard

Executors = Callable[[VerifiedPackage, str], Executor | None]
"""Gives what runs a tool of a package; None if nothing here does."""


def offered(manifest: Manifest) -> Iterator[Tool]:
    """Yield the tools of a package, then the state verbs that it requires but declares no tool of.

    NIP-7 has these verbs built in: the runtime provides them.
    """
    yield from manifest.tools
    declared = {tool.name for tool in manifest.tools}
    for verb in BUILT_IN:
        if verb in manifest.permissions and verb not in declared and manifest.memory_scope:
            yield standard(verb, manifest.schema_uri)


def owner(manifest: Manifest, digest: str, signer: str = "") -> Owner:
    """Return the owner of all capabilities of a package; `digest` is its sha256 in hex."""
    name, verbs = cap.capability_id(manifest.uri.name), tuple(manifest.permissions)
    return Owner("package", name, digest, manifest.memory_scope, verbs, signer)


def owner_of(package: VerifiedPackage) -> Owner:
    """Return the owner of all capabilities of a verified package."""
    return owner(package.manifest, package.announcement.sha256.hex(), package.signer)


def skill(
    package: VerifiedPackage, stored: Callable[[bytes], bytes | None] = lambda sha256: None
) -> Capability:
    """Return the package itself: its prompt, with a message as its input.

    `stored` gives the bytes of a sha256 that are on this machine: those of the package's files.
    """
    manifest = package.manifest
    held = {"package": package.data, "schema": orjson.dumps(manifest.schema)}
    files = {file.path: file.sha256 for file in manifest.resources}

    def read(part: str) -> bytes:
        if part in held:
            return held[part]
        if part in files and (data := stored(files[part])) is not None:
            return data
        why = f"{manifest.uri} names it, and its bytes are on IPFS"
        raise InvalidInput(f"the file {part[:128]!r} is not held here", Code.NOT_FOUND, why=why)

    made = cap.skill(manifest)
    return Capability(
        CapabilityRef(made["capability_id"], made["version"]),
        "skill",
        made["name"],
        made["description"],
        made["input_schema"],
        owner_of(package),
        prompt=made["prompt_template"],
        resources=tuple(made["resources"]),
        tools=tuple(f"{made['capability_id']}#{tool.name}" for tool in offered(manifest)),
        read=read,
    )


def tool_of(manifest: Manifest, owner: Owner, tool: Tool, executor: Executor | None) -> Capability:
    """Return one tool of a package."""
    made = cap.tool_manifest(manifest, tool)
    closed = {"unevaluatedProperties": False, **made["input_schema"]}
    given = (x["input"] for x in manifest.examples if "input" in x and x.get("tool") == tool.name)
    return Capability(
        CapabilityRef(made["capability_id"], made["version"]),
        "tool",
        made["name"],
        made["description"],
        made["input_schema"],
        owner,
        output_schema=made["output_schema"],
        annotations=ToolHints(*effects(manifest, tool)),
        executor=executor,
        closed_schema=None if tool.built_in else closed,
        example=next(given, None),
    )


def unmet(requirements: Json) -> list[str]:
    """Return warnings about `llm_requirements`, since no host tells what its model is.

    NIP-7: the router SHOULD attempt to satisfy them; it never refuses for them.
    """
    warnings = []
    if families := [str(name) for name in requirements.get("model_family") or ()]:
        warnings.append(f"made for {', '.join(families)}; the model here is unknown")
    if isinstance(least := requirements.get("min_context_window"), int):
        warnings.append(f"needs a context of {least} tokens; that here is unknown")
    named = [requirements.get("specific_model_uri"), *(requirements.get("required_features") or ())]
    if others := ", ".join(str(x) for x in named if x):
        warnings.append(f"asks for {others[:200]}; the model here is unknown")
    return warnings
