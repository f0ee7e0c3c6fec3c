"""From a verified package's binding to what runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capdex.errors import InvalidInput
from capdex.package import VerifiedPackage
from router.bindings.a2a import Agents, AgentTool
from router.bindings.egress import Egress
from router.bindings.http import HttpTool
from router.bindings.mcp import McpServices, McpTool
from router.model.capability import Executor
from router.model.refs import Json
from router.model.requests import Request
from router.policy.secrets import Secrets


@dataclass(frozen=True, slots=True)
class Wiring:
    """The shared parts that executors use."""

    egress: Egress
    secrets: Secrets
    services: McpServices
    agents: Agents

    async def close(self) -> None:
        """Close all sessions and connections."""
        await self.services.close()
        await self.egress.close()


def executor(package: VerifiedPackage, tool: str, *, wiring: Wiring) -> Executor | None:
    """Return what runs a tool of a package; None without a binding of a type that is known here."""
    binding = package.manifest.bindings.get(tool)
    capability = package.manifest.uri.name
    return None if binding is None else bound(binding, capability=capability, wiring=wiring)


def bound(binding: Mapping[str, Any], *, capability: str, wiring: Wiring) -> Executor | None:
    """Return what runs a binding; None for a type that is not known here.

    A binding that cannot be used gives an executor that says so when it is called, so that the
    other tools of the package run.
    """
    try:
        match binding.get("type"):
            case "http_get" | "http_post" | "http":
                egress, secrets = wiring.egress, wiring.secrets
                return HttpTool(binding, capability=capability, egress=egress, secrets=secrets)
            case "mcp_service":
                return McpTool(binding, capability=capability, services=wiring.services)
            case "nuwa_a2a":
                return AgentTool(binding, agents=wiring.agents)
            case _:
                return None
    except InvalidInput as error:
        return UnusableTool(error.message, error.why)


@dataclass(frozen=True, slots=True)
class UnusableTool:
    """A tool that cannot be used, and why."""

    message: str
    why: str
    fix: str = "tell the author of the package"

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Raise InvalidInput."""
        raise InvalidInput(self.message, why=self.why, fix=self.fix)

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Raise InvalidInput."""
        raise InvalidInput(self.message, why=self.why, fix=self.fix)
