"""A runtime over real small executors: one echoes, one asks an HTTP server on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from capdex.errors import ExecutionFailed
from capdex.json import Json
from capdex_router.catalog.catalog import Catalog, Fixed
from capdex_router.invoke.invoke import Caller, CallLimits, Invoker
from capdex_router.invoke.validation import Validation
from capdex_router.model.capability import Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import HostRequest, Request
from capdex_router.policy.grant_file import GrantFile

READS = ToolHints(read_only=True, destructive=False)
LIMITS = CallLimits()
TEXT_INPUT: Json = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


@dataclass
class Echo:
    """Answers what it was given. `touches` are the accesses that it states."""

    touches: Sequence[Request] = ()
    runs: list[Json] = field(default_factory=list)

    def requests(self, arguments: Json) -> Sequence[Request]:
        return self.touches

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        self.runs.append(arguments)
        return {"text": arguments["text"]}


@dataclass
class Http:
    """Posts the input to a server on loopback, and answers its JSON."""

    port: int
    path: str = "/echo"

    def requests(self, arguments: Json) -> Sequence[Request]:
        return [HostRequest("POST", "http", "127.0.0.1", self.port, self.path)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        url = f"http://127.0.0.1:{self.port}{self.path}"
        async with aiohttp.ClientSession() as session, session.post(url, json=arguments) as answer:
            if answer.status != 200:
                raise ExecutionFailed(f"the server answered {answer.status}")
            found: Json = await answer.json()
            return found


def tool(name: str, executor: Any, annotations: ToolHints = READS, **fields: Any) -> Capability:
    owner = fields.pop("owner", Owner("package", "did:nuwa:cap:demo", "aa" * 32, "sc:demo"))
    values = {"input_schema": TEXT_INPUT, **fields}
    ref = CapabilityRef(f"{owner.name}#{name}", values.pop("version", "1.0.0"))
    return Capability(
        ref, "tool", name, f"the tool {name}", owner=owner, executor=executor,
        annotations=annotations, **values,
    )  # fmt: skip


check = Validation().check


@dataclass
class Runtime:
    """An invoker with everything around it."""

    source: Fixed
    catalog: Catalog
    rights: GrantFile
    audit: Path
    invoker: Invoker

    async def call(self, name: str, arguments: Any, asker: Any = None, **caller: Any) -> Json:
        """Invoke a tool of the demo package, and return the result as JSON."""
        who = Caller(asker, **caller) if asker else Caller(**caller)
        capability_id = name if ":" in name else f"did:nuwa:cap:demo#{name}"
        return (await self.invoker.invoke(capability_id, None, arguments, who)).to_json()
