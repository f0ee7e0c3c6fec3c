"""From `capdex up` to a routed message: installed from a real node, proven by the chain, served."""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

pytestmark = pytest.mark.real


def publish(shell: Any, version: str) -> None:
    path = shell / "tea-timer.acp.yaml"
    if not path.exists():
        words = ("--description", "Says how long a tea should steep.", "--keyword", "tea")
        shell("init", "tea-timer", "--kind", "prompt", *words)
    said = path.read_text("utf-8")
    path.write_text(said.replace("tea-timer@0.1.0", f"tea-timer@{version}"), "utf-8")
    shell("publish", path.name, "--yes")


@contextmanager
def backward_node(mcp_url: str) -> Iterator[str]:
    """A node that answers every question about the name with its first version."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            arguments = request["params"]["arguments"]
            arguments["cap_uri"] = "did:nuwa:cap:tea-timer@0.1.0"
            names = ("Content-Type", "Accept", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
            headers = {name: self.headers[name] for name in names}
            forwarded = urllib.request.Request(  # noqa: S310 - loopback
                mcp_url, json.dumps(request).encode(), headers
            )
            with urllib.request.urlopen(forwarded, timeout=30) as reply:  # noqa: S310
                body = reply.read()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


async def test_what_was_published_a_moment_ago_is_installed_proven_routed_and_upgraded(
    shell: Any, network: dict[str, Any], eventually: Callable[..., Any]
) -> None:
    publish(shell, "0.1.0")
    proving = {"CAPDEX_TRUST_RPC_URL": network["rpc_url"]}
    (done,) = shell.json("install", "tea-timer", "--yes", **proving)["results"]
    assert done["status"] == "installed"
    assert done["proven"].startswith("did:nuwa:cap:tea-timer@0.1.0 is the latest of 1 release")
    (row,) = shell.json("installed")["results"]
    assert row["chain"]["proof"]["block_hash"] == row["chain"]["block_hash"]
    lock = Path(shell.env["CAPDEX_HOME"]) / "data/router/capdex.lock"
    written = lock.read_text("utf-8")
    lock.write_text(written.replace(row["chain"]["block_hash"], "0x" + "11" * 32), "utf-8")
    assert "the header is not that of" in shell.error("sync", "--check", code=1)["why"]
    lock.write_text(written, "utf-8")
    assert shell.json("sync", "--check")["packages"] == 1
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "capdex", "router"],
        cwd=shell.folder,
        env={**shell.env, "PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd())},
    )
    async with Client(server) as client:
        routed = await client.call_tool("route", {"message": "How long should my tea steep?"})
        assert json.loads(routed.content[0].text)["capability"] == "did:nuwa:cap:tea-timer"
        publish(shell, "0.2.0")
        (done,) = shell.json("upgrade", "--yes")["results"]
        assert (done["status"], done["was"], done["version"]) == ("upgraded", "0.1.0", "0.2.0")
        shown = await client.call_tool("describe", {"uri": "tea-timer", "level": 1})
        assert shown.content[0].text.startswith("did:nuwa:cap:tea-timer@0.2.0")
    assert shell.json("sync", "--check")["packages"] == 1
    assert shell.json("audit")["broken"] is None


@pytest.mark.parametrize("first", ["liar", "honest"])
def test_of_two_nodes_that_differ_the_chain_decides(
    shell: Any, network: dict[str, Any], first: str
) -> None:
    publish(shell, "0.1.0")
    publish(shell, "0.2.0")
    with backward_node(network["mcp_url"]) as liar:
        urls = [liar, network["http_url"]]
        one, other = urls if first == "liar" else reversed(urls)
        env = {"CAPDEX_MCP_URL": f"{one}/mcp", "CAPDEX_NODES": other}
        result = shell("install", "tea-timer", "--yes", "--json", **env)
        (done,) = json.loads(result.stdout)["results"]
        assert done["version"] == "0.2.0"
        assert done["proven"]
        assert liar in result.stderr
