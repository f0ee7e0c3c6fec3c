"""context.py [TASKS]: tokens (o200k) that the router takes of an agent's context.

A `capdex router` with 0, 10, 100 and 10 000 installed packages is asked by a real MCP client: its
tools and instructions, which must be the same bytes each time, beside those of a server that lists
the tools of all packages. Then TASKS tasks of find, describe and call: arguments and answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import mcp_types as types
import orjson
from install import ROOT, announced, put
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex.package import VerifiedPackage, verify
from capdex_router.home.directory import Home

sys.path += [str(ROOT / "benchmarks" / "service")]
import filled

SIZES = (0, 10, 100, 10_000)


class Count:
    """Counts tokens."""

    def __init__(self) -> None:
        with warnings.catch_warnings(action="ignore"):  # it reads its data in a deprecated way
            import bpe_openai

            self._encoding = bpe_openai.get_encoding("o200k_base")

    def __call__(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))


def naive(packages: list[VerifiedPackage]) -> list[str]:
    """The definitions of a server that lists the tools of all packages."""
    return [
        orjson.dumps(
            {
                "name": f"{package.manifest.uri.name}_{tool.name}",
                "description": tool.description,
                "inputSchema": tool.parameters,
            }
        ).decode()
        for package in packages
        for tool in package.manifest.tools
    ]


class Echo(BaseHTTPRequestHandler):
    """The service that all packages name."""

    def do_GET(self) -> None:
        body = orjson.dumps({"answer": self.path})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def started(home: Path, service: str = "http://127.0.0.1:9") -> StdioServerParameters:
    at = f"https://api.example.com={service}"
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", "from capdex_cli.main import main; main()", "router", "--at", at],
        cwd=ROOT,
        env={"CAPDEX_HOME": str(home), "PATH": os.environ["PATH"]},
    )


async def definitions(home: Path) -> bytes:
    async with Client(started(home)) as client:
        tools = (await client.list_tools()).tools
        shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        return orjson.dumps(shown) + (client.instructions or "").encode()


async def tasks(home: Path, count: int, tokens: Count, service: str) -> None:
    whole, finds = [], []
    async with Client(started(home, service)) as client:

        async def ask(tool: str, **arguments: Any) -> tuple[int, str]:
            result = await client.call_tool(tool, arguments)
            text = "".join(x.text for x in result.content if isinstance(x, types.TextContent))
            return tokens(json.dumps(arguments)) + tokens(text), text

        for number in range(count):
            name = filled.words_of(number * 97)[0]
            cost, hits = await ask("find", want=name.replace("-", " "), remote=False)
            finds.append(tokens(hits))
            uri = hits.split()[0]
            described, text = await ask("describe", uri=f"{uri}#get_answer")
            assert "question" in text, text
            call, text = await ask("call", uri=f"{uri}#get_answer", input={"question": "now"})
            assert json.loads(text)["ok"], text
            whole.append(cost + described + call)
    print(
        f"find, describe, call: median {median(whole):.0f} tokens, most {max(whole)}; "
        f"a find answer: median {median(finds):.0f}, most {max(finds)}; n = {count}"
    )


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    tokens = Count()
    made = await filled.make(max(SIZES))
    packages = [verify(announced(*package), package[2]) for package in made]
    seen = set()
    for size in SIZES:
        with TemporaryDirectory() as folder:
            home = Home.open(Path(folder) / "data" / "router")
            for at in range(0, size, 500):
                put(home, packages[at : min(at + 500, size)])
            listing = await definitions(Path(folder))
            seen.add(listing)
            print(
                f"{size} installed: {tokens(listing.decode())} tokens; "
                f"each tool listed: {sum(map(tokens, naive(packages[:size])))}"
            )
            if size == max(SIZES):
                server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
                threading.Thread(target=server.serve_forever, daemon=True).start()
                url = f"http://127.0.0.1:{server.server_port}"
                await tasks(Path(folder), count, tokens, url)
                server.shutdown()
    print("the same bytes each time" if len(seen) == 1 else "NOT the same bytes each time")


if __name__ == "__main__":
    asyncio.run(main())
