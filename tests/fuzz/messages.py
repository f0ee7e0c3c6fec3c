"""JSON-RPC messages to `/mcp` in both protocols, through every layer in front of the tools.

An answer is a result, a tool's typed error, a JSON-RPC error of a known code, or nothing for a
notification. No answer says that the node failed, and nothing is logged as an error.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import structlog
from mutation import mutate_bytes, mutate_text, mutate_value
from target import ROOT, Target

from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex_cli.node.serve import build_app
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_service.answers.errors import PUBLIC
from capdex_service.http.routes import build_reader_routes
from capdex_service.limits.hosts import LOOPBACK
from capdex_service.queries.reader import Reader

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
URI = "did:nuwa:cap:note"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("resolve_capability", {"cap_uri": f"{URI}@^1", "include": ["package", "tools", "history"]}),
    ("resolve_capability", {"cap_uri": URI, "proof": "list", "proof_block": 3}),
    (
        "search_capabilities",
        {"query_string": "takes notes", "filters": {"tag": "text"}, "limit": 3, "detail": "full"},
    ),
    ("search_capabilities", {"query_string": 'a"b NEAR( *', "facets": ["tag"], "cursor": "AAAA"}),
    ("get_capability", {"cap_uri": URI}),
    ("capability_list", {"limit": 2, "cursor": "note"}),
    ("capability_describe", {"id": URI}),
]
METHODS: list[tuple[str, dict[str, Any]]] = [
    *(("tools/call", {"name": name, "arguments": arguments}) for name, arguments in CALLS),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 1, "reason": "x"}),
    *((x, {"cursor": "AAAA"}) for x in ("tools/list", "resources/list", "prompts/list")),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "capdex://note/1.1.0/package"}),
    ("prompts/get", {"name": "note", "arguments": {"message": "hello"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "capdex://{name}/{version}/package"},
            "argument": {"name": "name", "value": "no"},
        },
    ),
    *((x, {"uri": "capdex://note"}) for x in ("resources/subscribe", "resources/unsubscribe")),
    ("subscriptions/listen", {"filter": {"resources": ["capdex://note"]}}),
    *((x, {}) for x in ("ping", "server/discover", "logging/setLevel", "tasks/get", "nobody")),
]
# JSON-RPC 2.0, and MCP's own: resource not found, header mismatch, unsupported version.
CODES = {-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022, -32001, -32004}


def make(random: Random) -> bytes:
    """The headers as a JSON object on the first line, then the body."""
    app()  # built before the bounds of memory are set
    method, params = random.choice(METHODS)
    params = dict(params)
    modern = random.random() < 0.5
    if modern:
        params["_meta"] = META
    message: Any = {"jsonrpc": "2.0", "id": random.choice([1, "a", 0]), "method": method}
    message["params"] = params
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if modern:
        named = str(params.get("name", params.get("uri", "")))
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": named}
    else:
        headers["mcp-protocol-version"] = random.choice(["2025-11-25", "2025-03-26"])
    others = [x for _, x in METHODS]
    if random.random() < 0.7:
        message = mutate_value(random, message, others)
    if random.random() < 0.1:
        key = random.choice(list(headers))
        headers[key] = mutate_text(random, headers[key])
    body = json.dumps(message).encode("utf-8", "surrogatepass")
    if random.random() < 0.15:
        body = mutate_bytes(random, body)
    return json.dumps(headers).encode() + b"\n" + body


class App:
    """The node's application over a small index, on an event loop of its own."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.runner = asyncio.Runner()
        structlog.configure(processors=[self._keep])
        logging.basicConfig(handlers=[_Errors(self.errors)], level=logging.ERROR, force=True)
        url = f"sqlite:///{Path(tempfile.mkdtemp(prefix='fuzz-messages-')) / 'index.db'}"
        making = _making()
        chain = making.Chain()
        for version in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
            chain.publish("note", version, description="Takes notes", tags=["text"])
        chain.publish("weather", description="Weather of any city", tags=["city"])
        chain.mine(making.published("soon", digest=b"\x33" * 32))
        store = Store.open(url, making.DEPLOYMENT)
        making.follow(store, chain)
        store.close()
        index, blocks = Index(url), BlockDirectory(Path(url).parent / "blocks")
        reader = Reader(index, serve=frozenset({Verdict.VERIFIED}), blocks=blocks)
        face = build_reader_routes(reader)
        surface = Surface(index, blocks, Health())
        self._app = build_app(surface, face, allowed=LOOPBACK)
        self._lifespan = face.lifespan
        self.runner.run(self._lifespan.__aenter__())

    def _keep(self, _: Any, level: str, event: Any) -> Any:
        if level in ("error", "exception", "critical"):
            self.errors.append(str(event))
        raise structlog.DropEvent

    async def post(self, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer."""
        given = {"host": "localhost", "content-length": str(len(body)), **headers}
        encoded = [(k.encode(), v.encode("utf-8", "replace")) for k, v in given.items()]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": encoded,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "root_path": "",
        }
        waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []
        enough = asyncio.Event()

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            stream = (b"content-type", b"text/event-stream") in message.get("headers", ())
            if stream or not message.get("more_body", message["type"].endswith("start")):
                enough.set()

        await self._app(scope, receive, send)
        kinds = [v for k, v in sent[0]["headers"] if k == b"content-type"]
        answer = b"".join(x.get("body", b"") for x in sent[1:])
        return sent[0]["status"], b"".join(kinds).decode(), answer


class _Errors(logging.Handler):
    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append(record.getMessage())


def _making() -> Any:
    """The builders of chains and signed packages beside the indexer's tests."""
    path = ROOT / "tests" / "indexer" / "making.py"
    spec = importlib.util.spec_from_file_location("indexer_tests_making", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def app() -> App:
    return App()


def check(data: bytes) -> str:
    """Post one message, and say what kind of answer it gets."""
    head, _, body = data.partition(b"\n")
    node = app()
    node.errors.clear()
    status, kind, answer = node.runner.run(node.post(json.loads(head), body))
    assert node.errors == [], node.errors
    assert status < 500, (status, answer[:500])
    if status == 202:
        assert answer == b""
        return "accepted"
    if kind == "text/event-stream":
        return "stream"
    if not kind.startswith("application/json"):
        assert status in (400, 406, 413, 415), (status, kind, answer[:500])
        return f"refused {status}"
    reply = json.loads(answer)
    assert set(reply) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), reply
    if "error" in reply:
        return f"error {_code(reply['error'])}"
    result = reply["result"]
    if not result.get("isError"):
        return "result"
    content = result.get("structuredContent")
    code = content["code"] if content else result["content"][0]["text"].partition(":")[0]
    assert code in PUBLIC, result
    return str(code)


def _code(error: Any) -> int:
    assert error["code"] in CODES, error
    assert isinstance(error["message"], str)
    if error["code"] == -32603:
        assert error["data"]["code"] in PUBLIC, error
    return int(error["code"])


TARGETS = [Target("mcp", 1, make, check)]
