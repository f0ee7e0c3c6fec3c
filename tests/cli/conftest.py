"""The command line run in this process, and a node that answers what a test tells it to."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import click
import pexpect
import pytest
import structlog
from click.testing import CliRunner, Result

from capdex.codes import error_codes
from capdex.errors import Code
from capdex_cli.main import program
from capdex_publisher.keys import keystore

ROOT = Path(__file__).parents[2]
MAKING = ROOT / "tests" / "indexer" / "making.py"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test's own, outside every repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPDEX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(keystore, "LIGHT_SCRYPT_N", 1024)  # keys that guard nothing
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The logs as they were: a command sets them up for its whole process, which is this one."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture(scope="session")
def ctrl_c() -> Callable[[pexpect.spawn[str]], None]:
    """Press Ctrl-C at a question until the program ends.

    The first one can come after Python's last look for signals and before it waits for the answer.
    Then Python sees it together with the next key, as any program in Python does.
    """

    def press(process: pexpect.spawn[str]) -> None:
        for _ in range(10):
            process.sendintr()
            if process.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=6) == 0:
                return

    return press


@pytest.fixture(scope="session")
def making() -> Any:
    """The builders of chains and signed packages beside the indexer's tests."""
    name = "indexer_tests_making"
    if name not in sys.modules:
        spec = spec_from_file_location(name, MAKING)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class Capdex:
    """Calls the command; its streams are no terminals."""

    def __call__(self, *args: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(program, list(args), input=stdin)

    def json(self, *args: str, stdin: str | bytes | None = None) -> Any:
        """The one JSON document on stdout of a call that succeeded."""
        result = self(*args, "--json", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def capdex() -> Capdex:
    """`capdex("cid", "x")` runs `capdex cid x`."""
    return Capdex()


def all_commands() -> dict[str, click.Command]:
    """Every command by its path, groups included."""
    found: dict[str, click.Command] = {}

    def walk(path: str, command: click.Command, parent: click.Context | None) -> None:
        found[path] = command
        if isinstance(command, click.Group):
            context = click.Context(command, parent, path)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                walk(f"{path} {name}", inner, context)

    walk("capdex", program, None)
    return found


@pytest.fixture(scope="session")
def commands() -> dict[str, click.Command]:
    """As `all_commands`."""
    return all_commands()


@pytest.fixture
def package() -> Path:
    """An example package, unsigned."""
    return ROOT / "examples" / "note.acp.yaml"


@dataclass
class SimulatedNode:
    """A node of canned answers: `answers[tool]` over MCP, `pages[name]` over HTTP."""

    port: int = 0
    answers: dict[str, tuple[dict[str, Any], bool]] = field(default_factory=dict)
    pages: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    blocks: dict[str, bytes] = field(default_factory=dict)  # by CID: a gateway, too
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    block: int | None = None  # the newest block it has indexed
    status: dict[str, Any] = field(default_factory=dict)  # what else /status says

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, tool: str, content: dict[str, Any], *, failed: bool = False) -> None:
        self.answers[tool] = (content, failed)

    def page(self, name: str, content: Any, status: int = 200) -> None:
        self.pages[name] = (status, json.dumps(content).encode())


@pytest.fixture(scope="session")
def node_server() -> Iterator[SimulatedNode]:
    """The one server of the session, on a free port of loopback."""
    import uvicorn
    from mcp import types
    from mcp.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    state = SimulatedNode()

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name=n, input_schema={"type": "object"}) for n in state.answers]
        )

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        state.calls.append((params.name, dict(params.arguments or {})))
        content, failed = state.answers[params.name]
        return types.CallToolResult(content=[], structured_content=content, is_error=failed)

    async def resolve(request: Request) -> Response:
        state.calls.append(("/v1/resolve", {"cap_uri": request.query_params["uri"]}))
        content, failed = state.answers["resolve_capability"]
        return Response(
            json.dumps(content), error_codes()[Code(content["code"])].http if failed else 200
        )

    async def page(request: Request) -> Response:
        status, body = state.pages.get(request.path_params["name"], (404, b"nothing here"))
        return Response(body, status)

    async def block(request: Request) -> Response:
        body = state.blocks.get(request.path_params["cid"])
        headers = {"Content-Type": "application/vnd.ipld.raw"}
        return Response(body or b"", 404 if body is None else 200, headers)

    async def status(_: Request) -> Response:
        return Response(json.dumps({"chain": {"block_number": state.block}} | state.status))

    manager = StreamableHTTPSessionManager(
        Server("simulated", on_list_tools=list_tools, on_call_tool=call_tool),
        json_response=True,
        stateless=True,
    )
    app = Starlette(
        routes=[
            Route("/c/{name}.json", page),
            Route("/v1/resolve", resolve),
            Route("/ipfs/{cid}", block),
            Route("/status", status, methods=["GET", "POST"]),
            Route("/mcp", manager.asgi_app),
        ],
        lifespan=lambda _: manager.run(),
    )
    sock = socket.create_server(("127.0.0.1", 0))
    state.port = sock.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    yield state
    server.should_exit = True
    thread.join()
    sock.close()


@pytest.fixture
def node(node_server: SimulatedNode, monkeypatch: pytest.MonkeyPatch) -> SimulatedNode:
    """An empty node, configured as the one to ask."""
    node_server.answers.clear()
    node_server.pages.clear()
    node_server.calls.clear()
    node_server.blocks.clear()
    node_server.block = None
    node_server.status.clear()
    monkeypatch.setenv("CAPDEX_MCP_URL", f"{node_server.url}/mcp")
    monkeypatch.setenv("CAPDEX_NODE_URL", node_server.url)
    monkeypatch.setenv("CAPDEX_GATEWAY_URL", node_server.url)
    return node_server


@pytest.fixture
def release() -> dict[str, Any]:
    """A release as a node answers it."""
    return {
        "acp_metadata": {"name": "Weather", "summary": "Tells the weather of a city."},
        "ipfs_cid": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "cap_uri": "did:nuwa:cap:weather@1.2.0",
        "semver": "1.2.0",
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "status": {"yanked": False, "reason": None},
        "verification": {
            "verdict": "verified",
            "signer": "did:key:z6Mk#z6Mk",
            "checks": [{"name": "sha256", "ok": True, "detail": "e3b0"}],
            "lint": {"score": 0, "label": None, "codes": []},
        },
        "chain": {
            "chain_id": 31337,
            "contract": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
            "publisher": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            "block_number": 7,
            "block_hash": "0x" + "11" * 32,
            "tx_hash": "0x" + "22" * 32,
            "log_index": 0,
            "sequence": 1,
            "timestamp": 1,
            "finality": "head",
        },
        "first_claimed_by": {"schema_uri": None, "memory_scope": None},
        "warnings": [],
        "as_of": {"block_number": 7, "block_hash": "0x", "head_number": 9, "finalized_number": 5},
    }
