"""The frameworks and clients that are tried, each in an environment of its own, made by uv."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from network import ROOT

IN_TESTS = ROOT / "tests" / "mcp_service" / "clients" / "agents"
HERE = Path(__file__).parent / "agents"
UV = Path(sys.executable).parent / "uv"
# Telemetry of frameworks, which would leave the machine.
QUIET = {
    "AGNO_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OTEL_SDK_DISABLED": "true",
}


@dataclass(frozen=True)
class Framework:
    """A framework: its name, the package that has its version, and what is installed for it.

    `elicits` says that it can ask a person; `fills` that it wants every argument, also an optional
    one, so that the model gives all.
    """

    name: str
    package: str
    installs: tuple[str, ...]
    elicits: bool = False
    fills: bool = False

    @property
    def agent(self) -> Path:
        """Its program."""
        name = f"use_{self.name.casefold().replace(' ', '_').replace('-', '_')}.py"
        return next(folder / name for folder in (IN_TESTS, HERE) if (folder / name).exists())


OLD_SDK = "mcp>=1.30,<2"  # what a framework needs that says no more than `mcp`
FRAMEWORKS = (
    Framework("FastMCP", "fastmcp", ("fastmcp", "openai"), elicits=True),
    Framework("pydantic-ai", "pydantic-ai-slim", ("pydantic-ai-slim[mcp,openai]",), elicits=True),
    Framework("openai-agents", "openai-agents", ("openai-agents",)),
    Framework(
        "LangChain",
        "langchain-mcp-adapters",
        ("langchain", "langchain-openai", "langchain-mcp-adapters"),
        elicits=True,
    ),
    Framework(
        "LlamaIndex",
        "llama-index-tools-mcp",
        ("llama-index-tools-mcp", "llama-index-llms-openai-like"),
    ),
    Framework("CrewAI", "crewai", ("crewai", "crewai-tools[mcp]")),
    Framework("AutoGen", "autogen-ext", ("autogen-ext[mcp,openai]", "autogen-agentchat", OLD_SDK)),
    Framework("Semantic Kernel", "semantic-kernel", ("semantic-kernel[mcp]",)),
    Framework(
        "agent-framework",
        "agent-framework-core",
        ("agent-framework-core", "agent-framework-openai", "mcp", "tenacity"),
    ),
    Framework("Google ADK", "google-adk", ("google-adk", "litellm", "mcp")),
    Framework("smolagents", "smolagents", ("smolagents[mcp,openai]", OLD_SDK), fills=True),
    Framework("Strands", "strands-agents", ("strands-agents[openai]",)),
    Framework("Haystack", "mcp-haystack", ("mcp-haystack",)),
    Framework("Agno", "agno", ("agno", "openai", "fastmcp>=4,<5")),
    Framework("mcp-use", "mcp-use", ("mcp-use", "langchain-openai")),
)


@dataclass(frozen=True)
class Installed:
    """The Python of a framework's environment, and the versions of the framework and of its SDK."""

    python: Path
    version: str
    sdk: str


def install(framework: Framework, into: Path) -> Installed:
    """Make the environment of a framework, where it is not there yet; raises CalledProcessError."""
    folder = into / framework.package
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--quiet", "--python", str(python), *framework.installs)
        (folder / ".done").touch()
    listed = json.loads(_uv("pip", "list", "--format", "json", "--python", str(python)))
    versions = {one["name"]: one["version"] for one in listed}
    return Installed(python, versions[framework.package], versions["mcp"])


def _uv(*args: str) -> str:
    """Run uv at a low priority: an environment takes both processors."""
    done = subprocess.run(
        [UV, *args], check=True, stdout=subprocess.PIPE, text=True, preexec_fn=_nicely
    )
    return done.stdout


def _nicely() -> None:
    os.nice(15)
