"""MCP servers are found in the files of the hosts that start them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from capdex.errors import InvalidInput, UsageError
from capdex_publisher.authoring.imports.detect import import_option_for
from capdex_publisher.authoring.imports.mcp import import_mcp
from capdex_publisher.authoring.imports.servers import public_address, server_of
from capdex_publisher.authoring.validate import PackageFile, validate

STUB = Path(__file__).parent / "mcp_stub.py"
# Each has one server: a command with an argument, a variable and a folder, or a URL with a header.
FILES = {
    ".mcp.json": '{"mcpServers": {"x": {"command": "c", "args": ["${RAIN}"], "env": {"K": "1"}}}}',
    ".vscode/mcp.json": """{
        // VS Code
        "inputs": [{"type": "promptString", "id": "rain", "default": "7"}],
        "servers": {"x": {"type": "stdio", "command": "c", "args": ["${input:rain}"],
            "env": {"K": "1",},},},
    }""",
    "settings.json": """{"a.b": 1,
        "mcp": {"servers": {"x": {"command": "c", "args": ["7"], "env": {"K": "1"}}}}}""",
    ".gemini/settings.json": """{"mcp": {"allowed": ["x"]},
        "mcpServers": {"x": {"command": "c", "args": ["7"], "env": {"K": "$ONE"}}}}""",
    ".codex/config.toml": """
        model = "m"
        [mcp_servers.x]
        command = "c"
        args = ["7"]
        startup_timeout_sec = 20
        [mcp_servers.x.env]
        K = "1"
        """.replace("        ", ""),
    ".cursor/mcp.json": """{"mcpServers": {"x": {
        "command": "c", "args": ["${env:RAIN}"], "env": {"K": "${ONE:-2}"}}}}""",
    "zed.jsonc": """{"context_servers": {"x": {
        "source": "custom", "command": "c", "args": ["${NO:-7}"], "env": {"K": "1"}}}}""",
    "older zed.json": """{"context_servers": {"x": {
        "command": {"path": "c", "args": ["${RAIN}"], "env": {"K": "1"}}}}}""",
    "manifest.json": """{"manifest_version": "0.3", "name": "x", "tools": [{"name": "find"}],
        "user_config": {"rain": {"type": "number", "default": 7}}, "server": {"type": "node",
            "mcp_config": {"command": "c", "args": ["${user_config.rain}"], "env": {"K": "1"}}}
    }""",
    "opencode.jsonc": """{"mcp": {"x": {"type": "local", "enabled": true,
        "command": ["c", "{env:RAIN}"], "environment": {"K": "{env:ONE}"}}}} // OpenCode""",
    "goose.yaml": """
extensions:
  developer: {type: builtin, name: developer, enabled: true}
  x: {type: stdio, cmd: c, args: ["7"], envs: {K: "1"}, enabled: true, timeout: 300}
""",
    "plugin/.mcp.json": '{"x": {"command": "c", "args": ["${RAIN}"], "env": {"K": "1"}}}',
    "continue.yaml": """
mcpServers:
  - {name: x, command: c, args: ["7"], env: {K: "1"}}
""",
    "of windows.toml": """\ufeffmodel = "m"
[mcp_servers.x]
command = "c"
args = ["7"]
env = {K = "1"}
""",
    "amp.json": """{"amp.mcpServers": {"x": {"command": "c", "args": ["7"], "env": {"K": "1"}}}}""",
}


@pytest.mark.parametrize("name", FILES)
def test_the_file_of_each_host_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAIN", "7")
    monkeypatch.setenv("ONE", "1")
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(FILES[name])
    assert import_option_for(file.read_bytes()) == "--from-mcp"
    server = server_of(str(file))
    assert (server.command, server.env, server.unread) == (["c", "7"], {"K": "1"}, [])


@pytest.mark.parametrize("name", FILES)
def test_validate_says_how_the_file_of_a_host_is_imported(name: str) -> None:
    validation = validate(PackageFile(f"my {name}", FILES[name].encode()))
    assert not validation.valid
    assert f"capdex init --from-mcp 'my {name}'" in validation.problems[0].hint


async def test_a_server_is_started_in_the_folder_that_its_file_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "stub.py").write_text(STUB.read_text())
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    one = {"command": sys.executable, "args": ["stub.py", "empty"]}
    for cwd in ("sub", "${workspaceFolder}/sub", str(tmp_path / "sub")):
        file.write_text(json.dumps({"servers": {"x": {**one, "cwd": cwd}}}))
        draft = await import_mcp(str(file), service="https://mcp.rain.dev/m")
        assert {x.source for x in draft.tools} == {"good", "odd"}
    file.write_text(json.dumps({"servers": {"x": {**one, "cwd": "none"}}}))
    with pytest.raises(UsageError, match="cannot be started"):
        await import_mcp(str(file))


def test_a_bundle_of_an_mcp_server_is_no_command() -> None:
    with pytest.raises(UsageError) as error:
        server_of("rain.mcpb")
    assert error.value.fix == "unpack it, and give the manifest.json in it"


@pytest.mark.parametrize("value", ["${input:rain-key}", "${env:RAIN_KEY}", "${RAIN_KEY}"])
def test_a_value_that_is_not_set_is_named_and_no_other_is_shown(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDE_KEY", "s3cr3t-of-the-shell")
    file = tmp_path / "mcp.json"
    args = ["--key", "${TIDE_KEY}", "--root", value]
    one = {"command": "c", "args": args, "env": {"A": value, "B": "s3cr3t-of-the-file"}}
    file.write_text(json.dumps({"servers": {"x": one}, "inputs": [{"id": "rain-key"}]}))
    with pytest.raises(UsageError, match="takes values from elsewhere") as error:
        server_of(str(file))
    assert error.value.why == value
    assert "--from-mcp 'A=VALUE B=VALUE c --key VALUE --root VALUE'" in error.value.fix
    assert "s3cr3t" not in json.dumps(error.value.to_json())


def test_an_error_does_not_show_what_stands_for_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDE_KEY", "s3cr3t")
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"x": {"url": "https://t.dev/${TIDE_KEY}"}}}))
    server = server_of(str(file))
    assert (server.shown, server.url) == ("https://t.dev/${TIDE_KEY}", "https://t.dev/s3cr3t")
    file.write_text(json.dumps({"mcpServers": {"x": {"command": "c", "args": ["${TIDE_KEY}"]}}}))
    server = server_of(str(file))
    assert (server.shown, server.command) == ("c '${TIDE_KEY}'", ["c", "s3cr3t"])


async def test_a_word_of_an_entry_that_is_not_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        f"""[mcp_servers.x]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(STUB))}, "empty"]
enabled_tools = ["good"]
bearer_token_env_var = "RAIN_KEY"
http_headers = {{"X-Rain" = "1"}}
tool_timeout_sec = 5
""",
    )
    draft = await import_mcp(str(file), service="https://mcp.rain.dev/m")
    said = {x.subject for x in draft.notes if x.fate == "left out"}
    assert {"server enabled_tools", "header X-Rain", "header Authorization"} <= said
    assert "server tool_timeout_sec" not in said


def test_values_that_are_no_text_are_written_as_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    env = {"A": True, "B": 8080, "C": None}
    one = {"command": "c", "args": ["--debug", False, 3], "env": env}
    file.write_text(json.dumps({"mcpServers": {"x": one}}))
    server = server_of(str(file))
    assert server.command == ["c", "--debug", "false", "3"]
    assert server.env == {"A": "true", "B": "8080"}


def test_toml_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[mcp_servers.x]\ncommand = c\n")
    with pytest.raises(InvalidInput, match="cannot be read") as error:
        server_of(str(file))
    assert "it is not TOML" in error.value.why


@pytest.mark.parametrize("file", ["package.json", "openapi.json"])
def test_a_file_whose_parts_have_an_address_has_no_server(file: str, tmp_path: Path) -> None:
    other = {"url": "https://rain.dev"}
    value = {"name": "rain", "repository": other, "servers": [other]}
    (tmp_path / file).write_text(json.dumps(value))
    with pytest.raises(UsageError, match="lists 0 MCP servers"):
        server_of(str(tmp_path / file))


def test_arguments_that_are_one_text_are_one_argument(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"x": {"command": "c", "args": "a b"}}}')
    assert list(server_of(str(tmp_path / "mcp.json")).command) == ["c", "a b"]


@pytest.mark.parametrize(
    ("file", "command"),
    [
        (".mcp.json", "${CLAUDE_PLUGIN_ROOT}/run"),
        ("gemini-extension.json", "${extensionPath}${/}run"),
    ],
)
def test_the_folder_of_a_plugin_is_that_of_its_file(
    file: str, command: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(json.dumps({"mcpServers": {"x": {"command": command}}}))
    assert list(server_of(str(tmp_path / file)).command) == [f"{tmp_path}/run"]


def test_a_file_that_is_not_there_is_no_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        server_of(str(tmp_path / "mcp.json"))
    assert caught.value.code == "UNREADABLE"


@pytest.mark.parametrize("server", [None, {"args": ["x"]}])
def test_a_file_whose_server_has_no_address_is_told_what_it_lacks(
    server: object, tmp_path: Path
) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"x": server}}))
    with pytest.raises(UsageError, match="lists 0 MCP servers") as error:
        server_of(str(file))
    assert error.value.why == "none in it has a command or a URL"


@pytest.mark.parametrize(
    ("url", "is_public"),
    [
        ("https://mcp.rain.dev/mcp", True),
        ("https://mcp.rain.dev/mcp?version=2", True),
        ("https://mcp.rain.dev/mcp?api_key=Zk3xQ9vL0pTr7u", False),
        ("https://me:pw@mcp.rain.dev/mcp", False),
        ("http://127.0.0.1:3000/mcp", False),
    ],
)
def test_a_server_with_a_key_in_its_url_has_an_address_to_edit(url: str, is_public: bool) -> None:
    assert public_address(url) == (url if is_public else "https://api.example.com/mcp")
