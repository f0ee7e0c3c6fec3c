"""Hosts of npm, run without a person: what reaches their models through the scripted endpoint."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialects import dialect
from network import ROOT, Network
from tried import NODE, ROUTER, TASKS, UNKNOWN, Tried, keep, tasks

from tests.mcp_service.clients.model import LAST, Step, serving
from tests.mcp_service.clients.scripts import Heard

MODULES = ROOT / ".tools" / "hosts" / "node_modules"
ENDS_WITHIN_S = 240
WISH = "Do what I wish."
Server = Sequence[str]


@dataclass(frozen=True)
class Host:
    """A host: its package and program, and how it is given a home, a server and a model.

    `prepare(home, server, model)` writes its files, and returns arguments and an environment.
    """

    name: str
    package: str
    program: str
    prepare: Callable[[Path, Server, str], tuple[list[str], dict[str, str]]]


def _stdio(server: Server) -> dict[str, Any]:
    return {"command": server[1], "args": list(server[2:])}


def _claude(home: Path, server: Server, model: str) -> tuple[list[str], dict[str, str]]:
    own = _stdio(server) if server[0] == "--" else {"type": "http", "url": server[0]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"capdex": own}}))
    args = ["-p", WISH, "--mcp-config", str(home / "mcp.json"), "--strict-mcp-config"]
    env = {
        "ANTHROPIC_BASE_URL": model.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",  # else its model looks for tools first
    }
    return [*args, "--allowedTools", "mcp__capdex"], env


def _codex(home: Path, server: Server, model: str) -> tuple[list[str], dict[str, str]]:
    own = _stdio(server) if server[0] == "--" else {"url": server[0]}
    lines = [
        'model_provider = "scripted"',
        'model = "gpt-5"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f"base_url = {json.dumps(model)}",
        'wire_api = "responses"',
        "[mcp_servers.capdex]",
        "startup_timeout_sec = 60",
        'default_tools_approval_mode = "approve"',
        *(f"{key} = {json.dumps(value)}" for key, value in own.items()),
    ]
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text("\n".join(lines))
    return ["exec", "--skip-git-repo-check", WISH], {"CODEX_HOME": str(home / ".codex")}


def _gemini(home: Path, server: Server, model: str) -> tuple[list[str], dict[str, str]]:
    own = _stdio(server) if server[0] == "--" else {"httpUrl": server[0]}
    settings = {
        "mcpServers": {"capdex": own | {"trust": True}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    env = {
        "GEMINI_API_KEY": "key",
        "GOOGLE_GEMINI_BASE_URL": model.removesuffix("/v1"),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return ["-p", WISH, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"], env


def _opencode(home: Path, server: Server, model: str) -> tuple[list[str], dict[str, str]]:
    own: dict[str, Any] = {"type": "remote", "url": server[0]}
    if server[0] == "--":
        own = {"type": "local", "command": list(server[1:])}
    options = {"baseURL": model, "apiKey": "key"}
    provider = {"npm": "@ai-sdk/openai-compatible", "models": {"one": {}}, "options": options}
    settings = {
        "mcp": {"capdex": own | {"enabled": True}},
        "provider": {"scripted": provider},
        "autoupdate": False,
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    return ["run", "-m", "scripted/one", WISH], {"OPENCODE_DISABLE_AUTOUPDATE": "1"}


HOSTS = (
    Host("Claude Code", "@anthropic-ai/claude-code", "claude", _claude),
    Host("Codex", "@openai/codex", "codex", _codex),
    Host("Gemini CLI", "@google/gemini-cli", "gemini", _gemini),
    Host("opencode", "opencode-linux-x64", "opencode", _opencode),
)


async def _asked(
    host: Host, server: Server, script: Sequence[Step], network: Network, env: dict[str, str]
) -> Heard:
    home = Path(env["HOME"])
    with serving(script, dialect=dialect) as model:
        args, own = host.prepare(home, server, model.url)
        process = await asyncio.create_subprocess_exec(
            str(program(host)),
            *args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **env, **own},
            cwd=network.project,
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
        except TimeoutError:
            out = b"it did not end"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.decode(errors="replace"))
    handed = tuple(model.handed)
    return Heard(tuple(model.functions), handed, tuple(model.requests), LAST in text, text)


def program(host: Host) -> Path:
    """Return the program of a host; opencode's is in a package of its platform."""
    own = MODULES / "opencode-linux-x64" / "bin" / "opencode"
    return own if host.name == "opencode" else MODULES / ".bin" / host.program


def version(host: Host) -> str:
    """Return the version of a host that `make hosts` has installed."""
    return str(json.loads((MODULES / host.package / "package.json").read_text())["version"])


def through(host: Host, network: Network, env: dict[str, str]) -> Tried:
    """Let a host's agent call every tool of the node and of a router, and do the tasks."""

    def asked(server: Server, script: Sequence[Step]) -> Heard:
        return asyncio.run(_asked(host, server, script, network, env))

    of_node = [step for step, _ in NODE] + [Step("resolve_capability", UNKNOWN)]
    of_router = [step for step, _ in ROUTER] + [Step("call", {"uri": "nothing-like-it"})]
    node = keep(NODE, asked((network.node,), of_node))
    router = keep(ROUTER, asked(network.router, of_router))
    tried = Tried(host.name, version(host), "its own", node, router)
    if router.right == len(ROUTER):
        tried.task_tokens = tasks(asked(network.router, TASKS))
    return tried
