"""From a verified package's binding to what runs it."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.errors import InvalidInput
from capdex.package import VerifiedPackage
from router.bindings.a2a import Agents, AgentTool
from router.bindings.egress import Egress
from router.bindings.http import HttpTool
from router.bindings.mcp import McpServices, McpTool
from router.model.capability import Executor
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


def executor(package: VerifiedPackage, tool: str, wiring: Wiring) -> Executor:
    """Return what runs a tool of a package, which is not built in.

    Raises InvalidInput for a tool without a binding, and for a binding of an unknown type.
    """
    binding = package.manifest.bindings.get(tool)
    capability = package.manifest.uri.name
    match binding and binding.get("type"):
        case "http_get" | "http_post" if binding:
            return HttpTool(
                binding, capability=capability, egress=wiring.egress, secrets=wiring.secrets
            )
        case "mcp_service" if binding:
            return McpTool(binding, capability=capability, services=wiring.services)
        case "nuwa_a2a" if binding:
            return AgentTool(binding, agents=wiring.agents)
        case None:
            why = "the package has no binding for it"
        case other:
            why = f"the router does not know the binding type {str(other)[:64]!r}"
    raise InvalidInput(f"the tool {tool[:64]!r} cannot run", why=why)
