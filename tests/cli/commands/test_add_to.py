"""`capdex add-to`: each host's file as it documents it, the question, the way back, and the start.

`DOCUMENTED` is written from the pages of the hosts, and not from the table of the product.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from capdex_router.faces.hosts.table import ALIASES, HOSTS

Json = dict[str, Any]
Start = tuple[str, list[str], dict[str, str]]  # the program, its arguments, its environment


def plain(program: str, args: list[str], env: dict[str, str]) -> Json:
    return {"command": program, "args": args, **({"env": env} if env else {})}


def typed(*start: Any) -> Json:
    return {"type": "stdio", **plain(*start)}


def copilot(*start: Any) -> Json:
    return {"type": "local", **plain(*start), "tools": ["*"]}


def opencode(program: str, args: list[str], env: dict[str, str]) -> Json:
    found: Json = {"type": "local", "command": [program, *args], "enabled": True}
    return {**found, **({"environment": env} if env else {})}


def goose(program: str, args: list[str], env: dict[str, str]) -> Json:
    return {
        "name": "capdex", "description": "Finds, installs and runs capabilities",
        "type": "stdio", "cmd": program, "args": args, "envs": env, "enabled": True, "timeout": 300,
    }  # fmt: skip


ROO = "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"
# host: the user's file below the home, the project's below the project, the key, the entry
DOCUMENTED: dict[str, tuple[str, str, str, Callable[..., Json]]] = {
    "claude": (".claude.json", ".mcp.json", "mcpServers", typed),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "", "mcpServers", plain),
    "codex": (".codex/config.toml", ".codex/config.toml", "mcp_servers", plain),
    "gemini": (".gemini/settings.json", ".gemini/settings.json", "mcpServers", plain),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", "mcpServers", plain),
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json", "servers", typed),
    "zed": (".config/zed/settings.json", ".zed/settings.json", "context_servers", plain),
    "opencode": (".config/opencode/opencode.jsonc", "opencode.json", "mcp", opencode),
    "goose": (".config/goose/config.yaml", "", "extensions", goose),
    "windsurf": (".codeium/windsurf/mcp_config.json", "", "mcpServers", plain),
    "jetbrains": (".junie/mcp/mcp.json", ".junie/mcp/mcp.json", "mcpServers", plain),
    "amp": (".config/amp/settings.json", ".amp/settings.json", "amp.mcpServers", plain),
    "copilot": (".copilot/mcp-config.json", "", "mcpServers", copilot),
    "cline": (".cline/data/settings/cline_mcp_settings.json", "", "mcpServers", plain),
    "roo": (f".config/{ROO}", ".roo/mcp.json", "mcpServers", plain),
    "continue": ("", ".continue/mcpServers/capdex.json", "mcpServers", plain),
    "kiro": (".kiro/settings/mcp.json", ".kiro/settings/mcp.json", "mcpServers", plain),
    "lm-studio": (".lmstudio/mcp.json", "", "mcpServers", plain),
    "qwen": (".qwen/settings.json", ".qwen/settings.json", "mcpServers", plain),
}
OF_USER = [host for host, row in DOCUMENTED.items() if row[0]]
OF_PROJECT = [host for host, row in DOCUMENTED.items() if row[1]]
# What a person has in it already, by the ending of the file.
OTHERS = {
    ".json": '{\n  "theme": "dark",\n  "KEY": {\n    "other": {"command": "x"}\n  }\n}\n',
    ".jsonc": '{\n  // mine\n  "KEY": {\n    "other": {"command": "x"}, // keep\n  },\n}\n',
    ".toml": '# mine\nmodel = "m"\n\n[KEY.other] # keep\ncommand = "x"\n',
    ".yaml": "# mine\nKEY:\n  other: # keep\n    cmd: x\n\nGOOSE_MODEL: m # last\n",
}


def read(file: Path) -> Json:
    text = file.read_text()
    if file.suffix == ".toml":
        return tomllib.loads(text)
    return dict(yaml.safe_load(text) if file.suffix == ".yaml" else json.loads(text))


@pytest.fixture
def claude(clean_environment: Path) -> Path:
    """The file of Claude Code in the test's home."""
    file = clean_environment / ".claude.json"
    file.write_text('{\n  "numStartups": 3\n}\n')
    return file


@pytest.fixture
def start() -> Start:
    """What a host of a user has to start: absolute paths, and whose router it is."""
    program = str(Path(sys.executable).with_name("capdex"))
    home = os.environ["CAPDEX_HOME"]
    own = f"{home}/config/config.toml"
    return program, ["--config", own, "router"], {"CAPDEX_HOME": home}


def test_every_host_of_the_table_has_its_documented_form_here() -> None:
    assert list(DOCUMENTED) == list(HOSTS)


def test_the_help_names_every_host(capdex: Any) -> None:
    text = capdex("add-to", "--help").stdout.partition("Hosts:")[2]
    assert [host for host in HOSTS if f" {host}" not in text] == []


@pytest.mark.parametrize("host", OF_USER)
def test_the_user_s_file_has_the_documented_form(
    capdex: Any, clean_environment: Path, start: Start, host: str
) -> None:
    path, _, key, shape = DOCUMENTED[host]
    told = capdex.json("add-to", host, "--yes")
    assert told["file"] == str(clean_environment / path)
    assert read(clean_environment / path) == {key: {"capdex": shape(*start)}}


@pytest.mark.parametrize("host", OF_PROJECT)
def test_a_project_s_file_names_the_program_alone(capdex: Any, folder: Path, host: str) -> None:
    _, path, key, shape = DOCUMENTED[host]
    assert capdex("add-to", host, "--scope", "project", "--yes").exit_code == 0
    assert read(folder / path) == {key: {"capdex": shape("capdex", ["router"], {})}}


@pytest.mark.parametrize("host", OF_USER)
def test_by_uvx_the_host_starts_what_uv_keeps(
    capdex: Any, clean_environment: Path, start: Start, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, key, shape = DOCUMENTED[host]
    uvx = clean_environment / "bin" / "uvx"
    uvx.parent.mkdir()
    uvx.touch(0o755)
    monkeypatch.setenv("PATH", str(uvx.parent))
    assert capdex("add-to", host, "--via", "uvx", "--yes").exit_code == 0
    entry = shape(str(uvx), ["capdex", *start[1]], start[2])
    assert read(clean_environment / path) == {key: {"capdex": entry}}


def test_the_file_that_a_project_s_link_leads_to_is_named(
    capdex: Any, folder: Path, claude: Path
) -> None:
    (folder / ".mcp.json").symlink_to(claude)
    told = capdex("add-to", "claude", "--scope", "project", "--dry-run", "--format", "human")
    assert str(claude) in told.output


def test_a_project_s_file_may_name_uvx(capdex: Any, folder: Path) -> None:
    assert capdex("add-to", "claude", "--scope", "project", "--via", "uvx", "--yes").exit_code == 0
    found = read(folder / ".mcp.json")["mcpServers"]["capdex"]
    assert found == typed("uvx", ["capdex", "router"], {})


def test_without_uvx_on_the_path_the_error_says_what_to_do(
    capdex: Any, claude: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = claude.read_text()
    monkeypatch.setenv("PATH", str(tmp_path))
    done = capdex("add-to", "claude", "--via", "uvx", "--yes")
    assert done.exit_code == 2
    assert "the program uvx is not on the PATH" in done.stderr
    assert "fix: install uv, or leave out --via uvx" in done.stderr
    assert claude.read_text() == before


@pytest.mark.parametrize("host", OF_USER)
def test_the_person_s_other_entries_stay_byte_for_byte(
    capdex: Any, clean_environment: Path, start: Start, host: str
) -> None:
    path, _, key, shape = DOCUMENTED[host]
    file = clean_environment / path
    file.parent.mkdir(parents=True, exist_ok=True)
    before = OTHERS[file.suffix].replace("KEY", key)
    file.write_text(before)
    assert capdex.json("add-to", host, "--yes")["action"] == "added"
    kept = [line for line in file.read_text().splitlines() if line in before.splitlines()]
    lost = [line for line in before.splitlines() if line not in kept]
    assert [line + "," for line in lost] == [
        line for line in file.read_text().splitlines() if line[:-1] in lost
    ]  # a comma alone may come behind the last entry
    if file.suffix != ".jsonc":
        found = read(file)
        assert found[key].pop("capdex") == shape(*start)
        assert found[key] == read_text(before, file)[key]
    assert capdex.json("add-to", host)["action"] == "unchanged"
    assert capdex.json("add-to", host, "--remove", "--yes")["action"] == "removed"
    assert file.read_text() == before


def read_text(text: str, like: Path) -> Json:
    other = like.with_name(f"before{like.suffix}")
    other.write_text(text)
    return read(other)


def test_a_host_without_a_file_of_that_scope_is_told(capdex: Any) -> None:
    for host, scope in (("goose", "project"), ("continue", "user")):
        done = capdex("add-to", host, "--scope", scope, "--yes")
        assert done.exit_code == 2
        assert f"has no file of a {scope}" in done.stderr


def test_other_names_of_a_host_are_taken(capdex: Any) -> None:
    for name, host in ALIASES.items():
        assert capdex.json("add-to", name, "--dry-run")["host"] == host


def test_a_file_of_opencode_that_is_there_is_taken(capdex: Any, clean_environment: Path) -> None:
    file = clean_environment / ".config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert capdex.json("add-to", "opencode", "--dry-run")["file"] == str(file)


def test_what_a_host_asks_besides_is_printed(capdex: Any) -> None:
    human = capdex("add-to", "gemini", "--yes", "--format", "human").stdout
    assert "/permissions trust" in human
    assert "look at it by: gemini mcp list" in human
    assert "find asks no node" in human
    told = capdex.json("add-to", "claude", "--scope", "project", "--yes")
    assert "session of this project" in told["asks"][0]
    assert capdex.json("add-to", "claude", "--yes")["asks"] == []


def test_qwen_code_asks_for_an_approval_in_a_project_alone(capdex: Any, folder: Path) -> None:
    """Qwen Code 0.24.4 connects the server of a user at once; `pending` is one of a project."""
    assert capdex.json("add-to", "qwen", "--yes")["asks"] == []
    assert "qwen mcp approve" in str(
        capdex.json("add-to", "qwen", "--scope", "project", "--yes")["asks"]
    )


def test_the_plan_is_shown_and_nothing_done_without_a_yes(capdex: Any, claude: Path) -> None:
    before = claude.read_text()
    done = capdex("add-to", "claude")
    assert done.exit_code == 4
    assert str(claude) in done.stderr
    assert '+ capdex: {"type": "stdio", "command": ' in done.stderr
    assert capdex.json("add-to", "claude", "--dry-run")["action"] == "planned"
    assert claude.read_text() == before


def test_the_router_is_added_once_and_removed(capdex: Any, claude: Path) -> None:
    before = json.loads(claude.read_text())
    added = capdex.json("add-to", "claude", "--yes")
    assert {**added, "backup": None} == {
        "schema": "capdex.host/1",
        "host": "claude",
        "scope": "user",
        "file": str(claude),
        "action": "added",
        "backup": None,
        "asks": [],
        "check": "claude mcp list",
        "node": None,
    }
    assert Path(added["backup"]).read_text() == '{\n  "numStartups": 3\n}\n'
    assert capdex.json("add-to", "claude")["action"] == "unchanged"
    assert capdex.json("add-to", "claude", "--remove", "--yes")["action"] == "removed"
    assert json.loads(claude.read_text()) == {**before, "mcpServers": {}}
    assert capdex.json("add-to", "claude", "--remove")["action"] == "unchanged"


def test_a_broken_file_is_refused_with_its_place(capdex: Any, claude: Path) -> None:
    claude.write_text('{\n  "a": }\n')
    done = capdex("add-to", "claude", "--yes", "--json")
    assert done.exit_code == 1
    error = json.loads(done.stderr)
    assert error["details"]["why"].startswith("line 2, column 8")
    assert claude.read_text() == '{\n  "a": }\n'


def test_hosts_are_listed(capdex: Any, claude: Path) -> None:
    capdex("add-to", "zed", "--yes")
    claude.write_text("{")
    rows = {one["host"]: one["state"] for one in capdex.json("add-to")["results"]}
    assert list(rows) == OF_USER
    assert (rows["zed"], rows["codex"]) == ("added", "not added")
    assert "line 1" in rows["claude"]


def test_an_unknown_host_is_a_usage_error(capdex: Any) -> None:
    assert capdex("add-to", "emacs").exit_code == 2


def test_without_a_home_of_capdex_the_directories_are_named(
    capdex: Any, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAPDEX_HOME")
    capdex("add-to", "claude", "--yes")
    home = os.environ["HOME"]
    assert json.loads(claude.read_text())["mcpServers"]["capdex"]["env"] == {
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_CACHE_HOME": f"{home}/.cache",
    }


def up(folder: Path, node: Any) -> None:
    """Write the file of a running `capdex up` into a directory."""
    stack = {
        "pid": os.getpid(), "rpc_url": "http://127.0.0.1:1", "chain_id": 31337,
        "registry": "0x5FbDB2315678afecb367f032d93F642f64180aa3", "start_block": 3,
        "http_url": node.url, "mcp_url": f"{node.url}/mcp", "gateway_url": node.url,
    }  # fmt: skip
    (folder / ".capdex").mkdir()
    (folder / ".capdex" / "up.json").write_text(json.dumps(stack))


@pytest.fixture
def network(node: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A node that `capdex up` in this directory started, and that nothing else names."""
    for name in ("CAPDEX_MCP_URL", "CAPDEX_NODE_URL", "CAPDEX_GATEWAY_URL"):
        monkeypatch.delenv(name)
    up(folder, node)
    return node


def own_network(mcp_url: str) -> None:
    """Write the user's own file, with a network that it chooses."""
    own = Path(os.environ["CAPDEX_HOME"], "config", "config.toml")
    own.parent.mkdir(parents=True)
    own.write_text(f'default-network = "team"\n[networks.team]\nmcp-url = "{mcp_url}"\n')


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another project, which has another network."""
    folder = tmp_path / "elsewhere"
    (folder / ".git").mkdir(parents=True)
    (folder / "capdex.toml").write_text('default-network = "base"\n')
    return folder


async def test_the_written_command_asks_the_node_of_capdex_up_from_another_directory(
    capdex: Any, network: Any, claude: Path, elsewhere: Path
) -> None:
    told = capdex.json("add-to", "claude", "--yes")
    assert told["node"] == f"{network.url}/mcp"
    entry = read(claude)["mcpServers"]["capdex"]
    assert entry["env"]["CAPDEX_NETWORK"] == "custom"
    network.answer("search_capabilities", {"list_of_results": []})
    server = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=entry["env"], cwd=elsewhere
    )
    async with Client(server) as client:
        assert {one.name for one in (await client.list_tools()).tools} >= {"find", "call"}
        await client.call_tool("find", {"want": "the weather of a city"})
    assert [name for name, _ in network.calls] == ["search_capabilities"]


@pytest.mark.parametrize("named", ["own", "none"])
async def test_the_file_of_the_project_that_a_host_opens_names_no_node(
    named: str, capdex: Any, network: Any, claude: Path, folder: Path, elsewhere: Path
) -> None:
    (folder / ".capdex" / "up.json").unlink()
    strange = f'mcp-url = "{network.url}/mcp"\nnodes = "{network.url}"\n'
    tables = "".join(f"[networks.{name}]\n{strange}" for name in ("team", "custom"))
    (elsewhere / "capdex.toml").write_text(f'default-network = "team"\n{tables}')
    if named == "own":
        own_network("http://127.0.0.1:1/mcp")
    capdex("add-to", "claude", "--yes")
    entry = read(claude)["mcpServers"]["capdex"]
    server = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=entry["env"], cwd=elsewhere
    )
    async with Client(server) as client:
        await client.call_tool("find", {"want": "the words of a wish"})
    assert network.calls == []


def test_every_host_starts_the_same_program_in_the_same_environment(
    capdex: Any, network: Any, claude: Path, clean_environment: Path
) -> None:
    capdex("add-to", "claude", "--yes")
    entry = json.loads(claude.read_text())["mcpServers"]["capdex"]
    for host in OF_USER:
        capdex("add-to", host, "--yes")
        path, _, key, shape = DOCUMENTED[host]
        found = read(clean_environment / path)[key]["capdex"]
        assert found == shape(entry["command"], entry["args"], entry["env"])


def test_a_network_of_the_user_s_own_file_is_named_and_not_copied(
    capdex: Any, claude: Path
) -> None:
    home = Path(os.environ["CAPDEX_HOME"])
    (home / "config").mkdir(parents=True)
    own = home / "config" / "config.toml"
    own.write_text('[networks.team]\nmcp-url = "https://node.example.org/mcp"\n')

    def env(*options: str) -> Json:
        capdex("add-to", "claude", "--yes", *options)
        return dict(json.loads(claude.read_text())["mcpServers"]["capdex"]["env"])

    assert env() == {"CAPDEX_HOME": str(home)}
    assert env("--network", "team") == {"CAPDEX_HOME": str(home), "CAPDEX_NETWORK": "team"}
    own.write_text(f'default-network = "team"\n{own.read_text()}')
    assert env() == {"CAPDEX_HOME": str(home)}


def test_a_key_in_a_url_is_not_shown_and_a_new_file_is_for_its_user(
    capdex: Any, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"https://rpc.example.org/v2/{'k' * 32}"
    monkeypatch.setenv("CAPDEX_RPC_URL", url)
    done = capdex("add-to", "cursor", "--yes")
    assert "https://rpc.example.org/v2/kkkk…" in done.stderr
    assert url not in done.stderr + done.stdout
    file = clean_environment / ".cursor" / "mcp.json"
    assert read(file)["mcpServers"]["capdex"]["env"]["CAPDEX_RPC_URL"] == url
    assert file.stat().st_mode & 0o777 == 0o600


def test_variables_of_the_person_in_an_entry_stay_and_those_of_an_older_network_go(
    capdex: Any, network: Any, claude: Path, folder: Path
) -> None:
    capdex("add-to", "claude", "--yes")
    value = json.loads(claude.read_text())
    value["mcpServers"]["capdex"]["env"]["CAPDEX_SEMANTIC"] = "0"
    claude.write_text(json.dumps(value))
    (folder / ".capdex" / "up.json").unlink()
    assert capdex.json("add-to", "claude", "--yes")["action"] == "replaced"
    assert json.loads(claude.read_text())["mcpServers"]["capdex"]["env"] == {
        "CAPDEX_SEMANTIC": "0",
        "CAPDEX_HOME": os.environ["CAPDEX_HOME"],
    }
