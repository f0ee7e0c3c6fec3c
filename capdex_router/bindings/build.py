"""From a verified package's binding to what runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from yarl import URL

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.package import VerifiedPackage
from capdex_router.bindings.a2a import AgentTool
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import HttpTool
from capdex_router.bindings.mcp import McpServices, McpTool
from capdex_router.model.capability import Executor
from capdex_router.model.requests import Request
from capdex_router.policy.secrets import Secrets

_ADDRESSES: Final = ("url", "service_uri", "token_url")
_ORIGIN: Final = re.compile(r"https?://[^/?#]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wiring:
    """The shared parts that executors use.

    `at` moves every request of a binding from an origin to the URL beside it: rights and secrets
    are then those of that URL's host. The egress is `moving(at)`.
    """

    egress: Egress
    secrets: Secrets
    services: McpServices
    at: Mapping[str, str] = field(default_factory=dict)

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
    if wiring.at:
        there = moved(binding, wiring.at)
        # An agent has no URL in its binding: `moving` finds its DID, or refuses it.
        if there == binding and binding.get("type") != "nuwa_a2a":
            return UnusableTool(
                "nothing is sent, as the tool is not at any of the URLs that are moved",
                f"moved: {', '.join(wiring.at)}",
                "name the scheme and the host of its binding",
            )
        binding = there
    try:
        match binding.get("type"):
            case "http_get" | "http_post" | "http":
                egress, secrets = wiring.egress, wiring.secrets
                return HttpTool(binding, capability=capability, egress=egress, secrets=secrets)
            case "mcp_service":
                return McpTool(binding, capability=capability, services=wiring.services)
            case "nuwa_a2a":
                return AgentTool(binding, egress=wiring.egress)
            case _:
                return None
    except InvalidInput as error:
        return UnusableTool(error.message, error.why)


def moving(at: Mapping[str, str]) -> Egress:
    """Return an egress that may reach the URLs of `Wiring.at`, and finds its DIDs there."""
    agents = {name: url for name, url in at.items() if name.startswith("did:")}
    return Egress(inside=[URL(url).raw_authority for url in at.values()], addresses=agents)


def moved(value: object, at: Mapping[str, str]) -> Any:
    """Return a binding with its URLs moved from the origins in `at` to the URLs beside them."""
    if isinstance(value, list):
        return [moved(item, at) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _moved(part, at) if key in _ADDRESSES and isinstance(part, str) else moved(part, at)
        for key, part in value.items()
    }


def _moved(text: str, at: Mapping[str, str]) -> str:
    if (match := _ORIGIN.match(text)) is None:
        return at.get(text, text)  # the DID of an MCP service
    place = at.get(str(URL(match[0]).origin()))
    return text if place is None else place.rstrip("/") + text[match.end() :]


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
