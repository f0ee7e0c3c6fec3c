"""The wheel of `make dist`, installed outside the checkout, as people have it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from mcp import Client, StdioServerParameters, types

from capdex import __version__

ROOT = Path(__file__).parents[2]
GOLDEN = {x.stem: x.read_text("utf-8") for x in (ROOT / "tests/cli/golden").glob("*.txt")}
EXAMPLES = len(list((ROOT / "examples").glob("*.acp.yaml")))
PATIENCE_S = 120.0
HELP = """
import json, click
from click.testing import CliRunner
from capdex_cli.main import program
from capdex_cli.terminal.click_commands import Group

def helps(command, words):
    result = CliRunner().invoke(program, [*words, "--help"])
    assert result.exit_code == 0, result.output
    found["-".join(["capdex", *words])] = result.stdout
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            helps(command.get_command(context, name), [*words, name])

found = {}
helps(program, [])
print(json.dumps(found))
"""
ARTIFACTS = """
import json
from importlib.resources import files
for name in ("CapabilityRegistry", "CapabilityVotes"):
    print(json.dumps(json.loads(files("capdex").joinpath("abi", f"{name}.json").read_text())))
"""


def get(url: str) -> tuple[str, bytes]:
    """The media type and the body of a page."""
    with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - loopback
        return reply.headers["Content-Type"], reply.read()


@pytest.fixture(params=["base", "whole"])
def either(request: pytest.FixtureRequest) -> Any:
    """Both installations in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def up(whole: Any) -> Iterator[dict[str, Any]]:
    """`capdex up` with its examples: what it says when it is ready."""
    [anvil] = ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil")
    command = [whole.python.parent / "capdex", "up", "--port", "0", "--rpc-port", "0"]
    with (whole.folder / "err").open("w") as err:
        process = subprocess.Popen(
            command, cwd=whole.folder, env={**whole.env, "CAPDEX_ANVIL": str(anvil)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not (whole.folder / ".capdex/up.json").exists():
            told = (whole.folder / "err").read_text()
            assert process.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.05)
        yield json.loads((whole.folder / ".capdex/up.json").read_text())
        assert process.poll() is None, (whole.folder / "err").read_text()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_every_command_has_the_help_that_its_page_of_the_tests_has(either: Any) -> None:
    assert json.loads(either.run_python(HELP)) == GOLDEN


def test_nothing_is_read_from_the_checkout(either: Any) -> None:
    where = either.run_python(
        "import capdex, capdex_cli, capdex_router, capdex_publisher, sys\n"
        "print(*(x.__file__ for x in (capdex, capdex_cli, capdex_router, capdex_publisher)))\n"
        "print(*sys.path)"
    )
    assert str(ROOT) not in where
    assert where.count("site-packages") == 5


def test_the_program_says_version_and_commit(either: Any, dist: Path) -> None:
    said = json.loads(either("version", "--json"))
    at = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    head = subprocess.run(at, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert (said["version"], said["commit"]) == (__version__, head)


def test_the_schema_for_editors_and_the_contracts_are_those_of_the_repository(either: Any) -> None:
    assert either("schema") == (ROOT / "docs/schema/acp-1.json").read_text("utf-8")
    artifacts = either.run_python(ARTIFACTS).splitlines()
    assert [json.loads(x) for x in artifacts] == [
        json.loads((ROOT / f"capdex/abi/{name}.json").read_text())
        for name in ("CapabilityRegistry", "CapabilityVotes")
    ]


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("up",), "local"),
        (("node", "--chain-id", "1", "--registry", "0x" + "1" * 40), "node"),
        (("mcp", "--db", "sqlite:///no.db"), "node"),
        (("index", "digest", "--db", "sqlite:///no.db"), "node"),
    ],
)
def test_a_command_without_its_extra_names_the_line_to_type(
    base: Any, command: tuple[str, ...], extra: str
) -> None:
    said = base(*command, "--rpc-url", "http://127.0.0.1:9", "--format", "human", code=2)
    assert f"fix: pip install 'capdex[{extra}]'\n" in said


async def test_up_publish_search_show_the_router_and_the_explorer(
    whole: Any, base: Any, up: dict[str, Any]
) -> None:
    made = ("--kind", "prompt", "--description", "Says how long a tea should steep.")
    whole("init", "tea-timer", *made, "--keyword", "tea")
    whole("validate", "tea-timer.acp.yaml")
    whole("sign", "tea-timer.acp.yaml")
    published = json.loads(whole("publish", "tea-timer.acp.yaml", "--yes", "--json"))
    assert published["already"] is False

    # The agent's tool, without a node beside it, asks the node of the other installation.
    node = {"CAPDEX_NODE_URL": up["http_url"], "CAPDEX_MCP_URL": up["mcp_url"]}
    for installation in (whole, base):
        listing = installation("search", "how long should tea steep", "--format", "human", **node)
        assert listing.startswith("tea-timer")
        assert "tea-timer" in installation("show", "tea-timer", **node)

    assert f"{EXAMPLES} packages, {EXAMPLES} published now" in (whole.folder / "err").read_text()
    status = json.loads(get(f"{up['http_url']}/status")[1])
    assert status["version"] == __version__
    start = up["http_url"] + "/"
    kind, page = get(start)
    assert kind.startswith("text/html")
    static = re.findall(r'(?:href|src)="([^"]*static[^"]*)"', page.decode())
    assert {Path(x.partition("?")[0]).suffix for x in static} >= {".css", ".js", ".svg"}
    assert all(get(urljoin(start, x))[1] for x in static)
    assert b"tea-timer" in get(f"{up['http_url']}/c/tea-timer")[1]

    server = StdioServerParameters(
        command=str(base.python.parent / "capdex"), args=["router"], env={**base.env, **node},
        cwd=base.folder,
    )  # fmt: skip
    async with Client(server) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"find", "describe", "call", "route", "manage"}
        result = await client.call_tool("find", {"want": "how long should tea steep"})
        [content] = result.content
        assert isinstance(content, types.TextContent)
        assert "tea-timer" in content.text
