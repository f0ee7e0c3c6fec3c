"""The agent's side: an MCP client over stdio installs, routes, calls, switches and upgrades."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

WEATHER, TEA = "did:nuwa:cap:local-weather", "did:nuwa:cap:tea-timer"
ORIGIN = "https://api.weather.example"
PACKAGE = """
metadata:
  id: {uri}@{version}
  name: {title}
  description: {description}
  triggers:
    - {{type: regex, value: "{trigger}"}}
  permissions:
    require: {permissions}
schema: |
  {{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "did:nuwa:state:{title}#v1",
    "type": "object"}}
prompt: |
  Answer in one sentence.
tools:
  - type: function
    function:
      name: current
      description: {tool}
      parameters:
        type: object
        properties:
          subject: {{type: string}}
        required: [subject]
tool_bindings:
  current:
    type: http_get
    url: {url}
"""


class Service(BaseHTTPRequestHandler):
    """Tells what was asked for; about the end it says that all is done."""

    def do_GET(self) -> None:
        """Answer with JSON."""
        subject = parse_qs(urlsplit(self.path).query)["subject"][0]
        done = {"done": True} if subject == "the end" else {}
        body = json.dumps({"subject": subject, "degrees": 12.5, **done}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def service() -> Iterator[str]:
    """The URL of the service that packages name by ORIGIN."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Person:
    """The user of an agent's host: answers each question as told, and keeps its text."""

    agrees: bool = True
    asked: list[str] = field(default_factory=list)

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        """Answer one question."""
        self.asked.append(params.message)
        action = {"action": "accept"}
        return types.ElicitResult.model_validate(action if self.agrees else {"action": "decline"})


@dataclass
class Agent:
    """An MCP client of `capdex router`."""

    client: Client

    async def ask(self, tool: str, **arguments: Any) -> tuple[bool, Any]:
        """Return whether a tool failed, and its error or text, read as JSON if it is."""
        result = await self.client.call_tool(tool, arguments)
        if result.is_error:
            return True, result.structured_content
        (content,) = result.content
        assert isinstance(content, types.TextContent)
        try:
            return False, json.loads(content.text)
        except ValueError:
            return False, content.text

    async def routed(self, message: str) -> Any:
        """Return the answer to a message."""
        failed, answer = await self.ask("route", message=message)
        assert not failed, answer
        return answer


@asynccontextmanager
async def agent(shell: Any, service: str, person: Person | None, era: str) -> AsyncIterator[Agent]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "capdex", "router", "--at", f"{ORIGIN}={service}"],
        env={**os.environ, **shell.env},
    )
    async with Client(server, mode=era, elicitation_callback=person) as client:
        yield Agent(client)


@pytest.fixture
def publish(shell: Any) -> Callable[..., None]:
    """Sign and publish a version of one of the two packages."""

    def go(uri: str, version: str, **changes: str) -> None:
        values = {
            "uri": uri,
            "version": version,
            "title": uri.rpartition(":")[2],
            "description": "Tells the weather of a city.",
            "trigger": "weather|forecast",
            "permissions": "[]",
            "tool": "Tell the weather.",
            "url": f"{ORIGIN}/now",
            **changes,
        }
        path: Path = shell / f"{values['title']}.acp.yaml"
        path.write_text(PACKAGE.format(**values), "utf-8")
        shell("publish", path.name, "--yes")

    return go


@pytest.fixture
def network(
    shell: Any, begin: Callable[..., Any], kubo: Any, publish: Callable[..., None], tmp_path: Path
) -> Any:
    """A chain, a registry, Kubo and a node, with two packages published."""
    author = begin(shell, kubo.api)
    author.start_node(f"sqlite:///{tmp_path / 'index.db'}")
    publish(WEATHER, "0.1.0")
    publish(TEA, "0.1.0", description="Says how long to steep a tea.", trigger="tea|steep")
    return shell


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_an_agent_installs_routes_calls_switches_and_upgrades(
    network: Any, service: str, publish: Callable[..., None], era: str
) -> None:
    person = Person()
    async with agent(network, service, person, era) as host:
        failed, listing = await host.ask("find", want="weather of a city")
        assert not failed
        assert listing.startswith("local-weather Tells the weather of a city. [registry 0.1.0, by ")
        assert "install it: manage" in listing

        for name in (WEATHER, TEA):
            failed, said = await host.ask("manage", action="install", target=name)
            assert not failed, said
        assert len(person.asked) == 2
        assert "api.weather.example" in person.asked[0]

        first = await host.routed("What will the weather be in Oslo?")
        assert (first["capability"], first["tools"]) == (WEATHER, [f"{WEATHER}#current"])
        assert "weather" in first["why"]
        assert "Answer in one sentence." in first["prompt_of_publisher"]
        assert (await host.routed("And tomorrow?"))["capability"] == WEATHER
        assert (await host.routed("How long shall I steep green tea?"))["capability"] == TEA
        assert (await host.routed("/switch local-weather"))["capability"] == WEATHER
        assert (await host.routed("/back"))["capability"] == TEA

        _, result = await host.ask("call", uri=f"{WEATHER}#current", input={"subject": "Oslo"})
        assert (result["ok"], "error" in result) == (True, False)
        assert result["output"] == {"subject": "Oslo", "degrees": 12.5}
        assert len(person.asked) == 2, "the installation was the consent to this host"

        _, result = await host.ask("call", uri=f"{TEA}#current", input={"subject": "the end"})
        assert result["output"]["done"] is True
        assert (await host.routed("Good."))["fallback"], "done takes it off the stack"

        # A version that may do more is asked about; without a yes the old one stays.
        publish(WEATHER, "0.2.0", permissions='["state.delete"]')
        person.agrees = False
        failed, said = await host.ask("manage", action="upgrade", target=WEATHER)
        assert (failed, said["error"]["code"]) == (True, "PERMISSION_DENIED")
        assert "state.delete" in person.asked[-1]
        assert (await host.ask("describe", uri=WEATHER, level=1))[1].startswith(f"{WEATHER}@0.1.0")
        person.agrees = True
        failed, said = await host.ask("manage", action="upgrade", target=WEATHER)
        assert not failed, said
        assert (await host.ask("describe", uri=WEATHER, level=1))[1].startswith(f"{WEATHER}@0.2.0")
    assert network.json("audit")["broken"] is None
    assert network.json("sync", "--check")["packages"] == 2


async def test_nothing_is_installed_without_a_person_who_agrees(network: Any, service: str) -> None:
    async with agent(network, service, None, "legacy") as one:
        failed, said = await one.ask("manage", action="install", target=WEATHER)
        assert (failed, said["error"]["code"]) == (True, "PERMISSION_DENIED")
        assert said["error"]["reason"] == "CONFIRM_NEEDED"
        assert "capdex install" in said["error"]["details"]["fix"]
        assert (await one.ask("manage", action="list"))[1] == "nothing is installed"
        failed, said = await one.ask("call", uri=f"{WEATHER}#current", input={"subject": "Oslo"})
        assert (failed, said["error"]["code"]) == (True, "NOT_FOUND")
    assert network.error("install", WEATHER, code=4)["code"] == "NO_CONSENT"


def test_the_commands_install_route_and_call(network: Any) -> None:
    assert network.json("install", WEATHER, "--yes")["results"][0]["status"] == "installed"
    found = network.json("route", "What will the weather be in Oslo?")
    assert (found["capability"], found["version"]) == (WEATHER, "0.1.0")
    told = network.error("call", "local-weather#current", '{"city": "Oslo"}', code=1)
    assert (told["code"], "subject" in told["why"]) == ("INVALID_INPUT", True)
    told = network.error("call", "no-such", code=1)
    assert told["code"] == "NOT_FOUND"
    removed = network.json("remove", "local-weather")["results"]
    assert removed == [{"name": "local-weather", "version": "0.1.0"}]
