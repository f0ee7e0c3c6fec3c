"""A capability as the router holds it: its manifest (CAP), its owner, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from capdex.json import Json
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import Request

Kind = Literal["tool", "skill"]
Check = Callable[[Json, Any], str | None]
"""Returns why a value breaks a schema, and None if it does not (`invoke.validation`)."""


@dataclass(frozen=True, slots=True)
class ToolHints:
    """Hints about a tool's effects, with the cautious values of MCP where nothing is said."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """The source of a capability, to which grants, state and secrets are bound.

    `source` is `package`, `learned`, `mcp` or `skill`; `name` is unique within it; `digest` changes
    whenever the content does (the sha256 of a package, in hex). `scope` is the memory scope, and
    `signer` the DID URL of the key that signed it; empty if nobody did.
    """

    source: Literal["package", "learned", "mcp", "skill"]
    name: str
    digest: str
    scope: str | None = None
    permissions: tuple[str, ...] = ()
    signer: str = ""


class Executor(Protocol):
    """Runs a tool: a binding, a state verb, a learned command, a tool of a mounted MCP server."""

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return every access that a run with these valid arguments would make.

        Raises InvalidInput if the arguments name no allowed target.
        """
        ...

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Run the tool with valid arguments; return its output.

        Raises CapdexError: TIMEOUT at the deadline, EXECUTION_FAILED if the tool reports an error.
        """
        ...


NO_INPUT: Final[Json] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Capability:
    """A tool, or a skill: a package with a prompt. `executor` is None for a skill.

    Where there is a `closed_schema`, it refuses arguments of which `input_schema` says nothing
    (P10), and the input is checked by it. `read` returns what a resource holds, by its name.
    `example` is an input of its author's, which nobody has checked. `tools` has ids, of a skill.
    """

    ref: CapabilityRef
    kind: Kind
    name: str
    description: str
    input_schema: Json
    owner: Owner
    output_schema: Json | None = None
    prompt: str | None = None
    annotations: ToolHints = ToolHints()
    executor: Executor | None = None
    resources: tuple[Json, ...] = ()
    tools: tuple[str, ...] = ()
    closed_schema: Json | None = None
    read: Callable[[str], bytes] | None = None
    example: Json | None = None

    def manifest(self) -> dict[str, Any]:
        """Return the CapabilityManifest (CAP, Capability Manifest).

        Of the state verbs of its package a skill needs all, a tool the one that it is (P10).
        """
        skill, verbs = self.kind == "skill", list(self.owner.permissions)
        tools = [{**self.ref.to_json(), "capability_id": id_} for id_ in self.tools]
        return {
            **self.ref.to_json(),
            "kind": self.kind,
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "prompt_template": self.prompt,
            "resources": list(self.resources) if skill else None,
            "required_permissions": verbs if skill else [self.name] if self.name in verbs else None,
            **({"tools": tools} if skill else {}),
        }
