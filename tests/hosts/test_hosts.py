"""`capdex add-to` against hosts in their present versions, each of which says what it sees.

`make hosts` installs them, `make test-hosts` runs this. No account is needed: none asks a model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".tools" / "hosts" / "node_modules"
OPENCODE = MODULES / "opencode-linux-x64" / "bin" / "opencode"  # its package for this platform
BIN = Path(sys.executable).parent
START_S = 180  # a loaded machine is slow, not broken
HOSTS = [
    "claude",
    "codex",
    "gemini",
    pytest.param(
        "opencode",
        marks=pytest.mark.skipif(not OPENCODE.exists(), reason="opencode is for Linux x64 here"),
    ),
]
STARTUP = "mcpServer/startupStatus/updated"  # what Codex tells of a server
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "NO_COLOR": "1",
}

pytestmark = pytest.mark.skipif(
    not MODULES.with_name(".done").exists(),
    reason="agents' hosts are not part of `make dev`: run `make test-hosts`",
)


@pytest.fixture
def environment(clean_environment: Path) -> dict[str, str]:
    """What a shell of this user gives to programs."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(clean_environment), "PATH": path, **QUIET}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that is not where capdex was added."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def beside_up(tmp_path: Path) -> Path:
    """A directory in which a `capdex up` runs, by its file."""
    stack = {
        "pid": os.getpid(), "rpc_url": "http://127.0.0.1:1", "chain_id": 31337,
        "registry": "0x5FbDB2315678afecb367f032d93F642f64180aa3", "start_block": 3,
        "http_url": "http://127.0.0.1:2", "mcp_url": "http://127.0.0.1:2/mcp",
    }  # fmt: skip
    folder = tmp_path / "network" / ".capdex"
    folder.mkdir(parents=True)
    (folder / "up.json").write_text(json.dumps(stack))
    return folder.parent


def added(host: str, folder: Path, env: dict[str, str], *options: str) -> None:
    command = [str(BIN / "capdex"), "add-to", host, "--yes", *options]
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)


def program(host: str) -> str:
    return str(OPENCODE if host == "opencode" else MODULES / ".bin" / host)


def said(folder: Path, env: dict[str, str], host: str, *args: str) -> str:
    """What a host writes, without its colours."""
    done = subprocess.run(
        [program(host), *(args or ("mcp", "list"))],
        cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=START_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)


def codex_status(folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """What Codex says of the servers that it has started; its `mcp list` starts none."""
    process = subprocess.Popen(
        [program("codex"), "app-server"],
        cwd=folder, env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    lines = map(json.loads, process.stdout)

    def asked(number: int, method: str, params: dict[str, Any]) -> Any:
        request = {"id": number, "method": method, "params": params}
        print(json.dumps(request), file=process.stdin, flush=True)
        return next(x for x in lines if x.get("id") == number)["result"]

    try:
        asked(1, "initialize", {"clientInfo": {"name": "test", "version": "1"}})
        print(json.dumps({"method": "initialized"}), file=process.stdin, flush=True)
        thread = asked(2, "thread/start", {"cwd": str(folder)})["thread"]["id"]
        states = (x["params"]["status"] for x in lines if x.get("method") == STARTUP)
        assert next(x for x in states if x != "starting") == "ready"
        servers = asked(3, "mcpServerStatus/list", {"threadId": thread})["data"]
        return {server["name"]: server for server in servers}
    finally:
        process.kill()
        process.communicate()


def assert_connected(host: str, folder: Path, env: dict[str, str]) -> None:
    text = said(folder, env, host)
    if host == "codex":
        assert re.search(r"^capdex .*\benabled\b", text, re.MULTILINE), text
        status = codex_status(folder, env)["capdex"]
        assert status["serverInfo"]["name"] == "capdex-router"
        assert sorted(status["tools"]) == ["call", "describe", "find", "manage", "route"]
    else:
        assert re.search(r"[✔✓] capdex.*connected|capdex: .*[✔✓].*connected", text, re.I), text


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_connects_to_the_router_that_was_added_beside_capdex_up(
    host: str, environment: dict[str, str], project: Path, beside_up: Path
) -> None:
    added(host, beside_up, environment)
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"} if host == "gemini" else {}
    assert_connected(host, project, environment | trusted)


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_has_the_router_of_a_project_once_it_has_what_it_asks_besides(
    host: str, environment: dict[str, str], project: Path
) -> None:
    added(host, project, environment, "--scope", "project")
    home = Path(environment["HOME"])
    if host == "claude":
        assert "Pending approval" in said(project, environment, host)
        settings = project / ".claude" / "settings.local.json"  # where its session keeps a yes
        settings.parent.mkdir()
        settings.write_text('{"enabledMcpjsonServers": ["capdex"]}')
        known = {"projects": {str(project): {"hasTrustDialogAccepted": True}}}
        (home / ".claude.json").write_text(json.dumps(known))
    elif host == "codex":
        assert "No MCP servers configured" in said(project, environment, host)
        (home / ".codex").mkdir(exist_ok=True)
        trust = f'[projects."{project}"]\ntrust_level = "trusted"\n'
        (home / ".codex" / "config.toml").write_text(trust)
    elif host == "gemini":
        assert "Disabled" in said(project, environment, host)
        trust = json.dumps({str(project): "TRUST_FOLDER"})
        (home / ".gemini").mkdir(exist_ok=True)
        (home / ".gemini" / "trustedFolders.json").write_text(trust)
    assert_connected(host, project, environment)


def test_gemini_starts_no_server_of_the_user_in_a_folder_that_is_not_trusted(
    environment: dict[str, str], project: Path, beside_up: Path
) -> None:
    added("gemini", beside_up, environment)
    assert "User-level servers are also suppressed" in said(project, environment, "gemini")


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_no_longer_has_a_router_that_was_taken_out(
    host: str, environment: dict[str, str], project: Path
) -> None:
    added(host, project, environment)
    added(host, project, environment, "--remove")
    assert "capdex" not in said(project, environment, host)
