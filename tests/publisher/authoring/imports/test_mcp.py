"""Real MCP servers become packages: the reference servers from npm, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from capdex.errors import Unavailable, UsageError
from capdex.manifest.manifest import Manifest
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.mcp import import_mcp
from capdex_publisher.authoring.imports.report import Note

ROOT = Path(__file__).parents[4]
BIN = ROOT / "node_modules" / ".bin"
SERVICE = "https://mcp.rain.dev/mcp"

ManifestOf = Callable[[Imported], Manifest]


@pytest.fixture
def command(node_binary: str) -> Callable[..., list[str]]:
    """Return the command of a reference server, run by the Node.js of the tests."""

    def command(server: str, *args: str) -> list[str]:
        return [node_binary, str((BIN / f"mcp-server-{server}").resolve()), *args]

    return command


@pytest.mark.real
async def test_the_tools_of_the_reference_server_come_over_with_schemas_and_effects(
    command: Callable[..., list[str]], manifest_of: ManifestOf
) -> None:
    source = shlex.join(command("everything", "stdio"))
    draft = await import_mcp(source, service=SERVICE, name="everything")
    package = write_package(draft)
    manifest = manifest_of(package)
    tools = {tool.name: tool for tool in manifest.tools}
    assert {"echo", "get-sum", "get-structured-content"} <= set(tools)
    assert tools["echo"].parameters["required"] == ["message"]
    assert tools["echo"].annotations.read_only is True
    assert tools["get-structured-content"].output_schema is not None
    assert manifest.bindings["echo"] == {
        "type": "mcp_service",
        "service_uri": SERVICE,
        "mcp_action": "echo",
    }
    assert manifest.prompt is not None
    assert "Everything Server" in manifest.prompt
    assert (
        Note(*("document", "prompts", "left out", "", "a package has tools and one prompt"))
        in package.notes
    )
    assert [line.partition(": ")[2] for line in package.to_edit] == [
        'description: "What Everything Reference Server does, in a sentence or two, '
        'for people and models."'
    ]


@pytest.mark.real
async def test_without_a_service_each_address_is_a_line_to_edit(
    command: Callable[..., list[str]], manifest_of: ManifestOf
) -> None:
    package = write_package(await import_mcp(shlex.join(command("memory"))))
    manifest = manifest_of(package)
    assert manifest.uri.name == "memory-server"
    addresses = [x for x in package.to_edit if x.endswith('"https://api.example.com/mcp"')]
    assert len(addresses) == len(manifest.tools) >= 9


@pytest.fixture
async def url(command: Callable[..., list[str]]) -> AsyncIterator[str]:
    """The reference server over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *command("everything", "streamableHttp"),
        env={"PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                assert process.returncode is None, "the server ended"
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.real
async def test_a_url_is_asked_over_http(url: str, manifest_of: ManifestOf, tmp_path: Path) -> None:
    manifest = manifest_of(write_package(await import_mcp(url, service=SERVICE)))
    assert manifest.bindings["echo"]["service_uri"] == SERVICE
    with pytest.raises(Unavailable, match="did not list its tools") as error:
        await import_mcp(url.replace("/mcp", "/nothing?api_key=hunter2").replace("//", "//me:pw@"))
    said = f"{error.value} {error.value.why}"
    assert not [x for x in ("hunter2", "me:pw") if x in said]
    file = tmp_path / "mcp.json"
    server = {"url": url, "headers": {"X-Tide-Key": "s3cr3t-of-nobody"}}
    file.write_text(json.dumps({"mcpServers": {"tide": server}}))
    package = write_package(await import_mcp(str(file)))
    [note] = [x for x in package.notes if x.subject == "header X-Tide-Key"]
    assert note.fate == "left out"
    assert "s3cr3t" not in package.text + str(package.notes)


async def test_the_first_and_the_last_lines_of_a_server_that_fails_are_told() -> None:
    script = "import sys; [print(f'line {x} of stderr\\n', file=sys.stderr) for x in range(1, 10)]"
    with pytest.raises(Unavailable) as error:
        await import_mcp(shlex.join([sys.executable, "-c", script]))
    assert "line 1 of stderr; line 2 of stderr; line 3 of stderr; …; line 7" in error.value.why
    assert error.value.why.endswith("line 9 of stderr")


@pytest.mark.real
async def test_the_error_of_a_program_is_told_before_the_lines_that_lead_to_it(
    node_binary: str,
) -> None:
    with pytest.raises(Unavailable) as error:
        await import_mcp(shlex.join([node_binary, "./no-such-server.js"]))
    assert "Cannot find module" in error.value.why
    assert "no-such-server.js" in error.value.why


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("", "--from-mcp is empty"),
        ("'open", "cannot be read"),
        ("no-such-program-here", "cannot be started"),
    ],
)
async def test_a_command_that_cannot_be_started_is_named(source: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        await import_mcp(source)


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("import sys; sys.exit('the licence is missing')", "the licence is missing"),
        ("print('hello')", ""),
        ("print('{' * 100_000)", ""),
        ('print(\'{"jsonrpc": "2.0", "id": 1, "result": 7}\')', ""),
    ],
)
async def test_a_program_that_is_no_mcp_server_is_unavailable(program: str, word: str) -> None:
    with pytest.raises(Unavailable) as told:
        await import_mcp(shlex.join([sys.executable, "-c", program]))
    assert word in told.value.why
    assert told.value.fix.startswith("start it by hand")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "socks://127.0.0.1:9"])
async def test_a_server_is_asked_without_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(Unavailable) as told:
        await import_mcp(f"http://127.0.0.1:{unused_tcp_port}/mcp")
    assert told.value.why == "ConnectError: All connection attempts failed"


async def test_a_program_has_the_environment_of_the_shell_without_capdex_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAIN_API_KEY", "for-the-server")
    monkeypatch.setenv("CAPDEX_PASSPHRASE", "for-capdex")
    program = (
        "import os, sys;"
        "sys.exit(' '.join(f'{k}={x}' for k, x in os.environ.items() if 'for-' in x))"
    )
    with pytest.raises(Unavailable) as told:
        await import_mcp(shlex.join([sys.executable, "-c", program]))
    assert told.value.why == "RAIN_API_KEY=for-the-server"
