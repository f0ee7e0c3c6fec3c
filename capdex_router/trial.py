"""A tool of a package file that is not published yet: the request that it makes, and a call of it.

Its input is checked, and its call made, by the pipeline of installed packages.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson
from typing_extensions import override
from yarl import URL

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex.manifest.manifest import ManifestReading
from capdex.manifest.tools import Tool
from capdex_router.bindings.build import Wiring, bound, moving
from capdex_router.bindings.egress import OWN_HEADERS, Egress, Reply
from capdex_router.bindings.mcp import McpServices
from capdex_router.catalog.catalog import Fixed
from capdex_router.catalog.packages import owner, tool_of
from capdex_router.home.directory import Home
from capdex_router.invoke.invoke import Caller, Invoker, prompt_of
from capdex_router.invoke.validation import canonical
from capdex_router.model.capability import Capability
from capdex_router.model.refs import InvokeResult
from capdex_router.model.requests import HostRequest
from capdex_router.policy.consent import Asker
from capdex_router.policy.secrets import Secrets, forms, written
from capdex_router.runtime import open_runtime


def chosen(file: ManifestReading, name: str) -> Tool:
    """Return the tool of a file with this name, or the only one that has a binding.

    Raises InvalidInput for a file that is not valid, and for a tool without a binding.
    """
    manifest = file.require()
    tools = [tool for tool in manifest.tools if tool.name in manifest.bindings]
    meant = [tool for tool in tools if tool.name == name or not name]
    if len(meant) == 1:
        return meant[0]
    names = ", ".join(tool.name for tool in tools) or "none"
    which = "say which tool: FILE#TOOL" if tools else "the file binds no tool, and sends nothing"
    message = f"the file binds no tool {name[:64]!r}" if name else which
    raise InvalidInput(message, Code.NOT_FOUND, fix=f"tools with a binding: {names}")


async def requests(
    home: Home, file: ManifestReading, tool: Tool, arguments: Any, at: Mapping[str, str]
) -> list[Json]:
    """Return what a call of a tool would send, with `[secret NAME]` for secrets; nothing is sent.

    An HTTP request is `{method, url, headers, body}`, a call of an MCP service `{service_uri,
    action, arguments}`. `at` is that of `Wiring`. Raises InvalidInput for a wrong input.
    """
    egress, names = _Recorder(addresses=at), _Names()
    async with _opened(home, file, tool, at, Secrets(names), egress) as (made, invoker):
        invoker.proposal(made.ref.capability_id, made.ref.version, arguments)
        if (executor := made.executor) is None:
            return [prompt_of(made, arguments)]
        given = orjson.loads(canonical(arguments))
        accesses = executor.requests(given)
        if not all(isinstance(access, HostRequest) for access in accesses):
            return [asdict(access) | {"arguments": given} for access in accesses]
        await executor.run(given, timeout_s=1)
        return [names.named(request) for request in egress.sent]


async def send(
    home: Home,
    file: ManifestReading,
    tool: Tool,
    arguments: object,
    at: Mapping[str, str],
    *,
    secrets: Secrets,
    asker: Asker,
) -> InvokeResult:
    """Call a tool as `requests` shows it, after the consent that a person is asked for."""
    async with _opened(home, file, tool, at, secrets, moving(at)) as (made, invoker):
        ref = made.ref
        return await invoker.invoke(ref.capability_id, ref.version, arguments, Caller(asker))


@asynccontextmanager
async def _opened(
    home: Home,
    file: ManifestReading,
    tool: Tool,
    at: Mapping[str, str],
    secrets: Secrets,
    egress: Egress,
) -> AsyncIterator[tuple[Capability, Invoker]]:
    """Open the pipeline over one tool of a file."""
    # Without pins: what a service says may change between two trials.
    wiring = Wiring(egress, secrets, McpServices(egress), at)
    manifest = file.require()
    binding, capability = manifest.bindings[tool.name], manifest.uri.name
    executor = bound(binding, capability=capability, wiring=wiring)
    owned = owner(manifest, hashlib.sha256(file.data).hexdigest())
    made = tool_of(manifest, owned, tool, executor)
    try:
        async with open_runtime(home.path, [Fixed([made])], hidden=secrets) as runtime:
            yield made, runtime.invoker
    finally:
        await wiring.close()


class _Recorder(Egress):
    """Sends nothing: keeps each request, and answers it with an empty object."""

    def __init__(self, *, addresses: Mapping[str, str]) -> None:
        super().__init__(addresses=addresses)
        self.sent: list[Json] = []

    @override
    async def fetch(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        **bounds: float,
    ) -> Reply:
        text = None if body is None else body.decode("utf-8")
        sent = {**OWN_HEADERS, **(headers or {})}
        self.sent.append({"method": method, "url": str(url), "headers": sent, "body": text})
        return Reply(200, {}, b"{}")


@dataclass(slots=True)
class _Names:
    """A vault that holds, for every secret, a text that stands for it."""

    texts: dict[str, str] = field(default_factory=dict)

    def read(self, key: str) -> str:
        """Return a text that is as good as `user:password`, and has one form."""
        name = key.rpartition(" ")[2]
        return self.texts.setdefault(name, f"secret-{name}:hidden")

    def write(self, key: str, value: str | None) -> None:
        """Keep nothing."""

    def named(self, value: object) -> Any:
        """Return a request with the names of secrets in place of their texts."""
        if isinstance(value, dict):
            return {key: self.named(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        for name, text in self.texts.items():
            value = written(forms(text)).sub(f"[secret {name}]", value)
        return value
