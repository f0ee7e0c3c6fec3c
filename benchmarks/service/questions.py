"""The questions that are asked, as raw HTTP requests."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from filled import NOUNS, VERBS, words_of
from servers import NAMESPACE, Server

LEGACY, MODERN = "2025-11-25", "2026-07-28"
SEARCHES = 300
PAGE = 10


@dataclass(frozen=True)
class Question:
    """A question: its name, the request about a package of a number, and how many there are."""

    name: str
    ask: Callable[[Server, int], bytes]
    search: bool = False
    kept: bool = False  # the answer is kept by a node, and no question before asked for it

    def requests(self, server: Server, luck: random.Random) -> list[bytes]:
        """Return one request about each name, or SEARCHES of them, in random order."""
        numbers = list(range(server.names))
        luck.shuffle(numbers)
        return [self.ask(server, number) for number in numbers[: SEARCHES if self.search else None]]


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n".encode()


def _post(path: str, body: object, headers: dict[str, str]) -> bytes:
    data = json.dumps(body, separators=(",", ":")).encode()
    given = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **headers,
        "Content-Length": str(len(data)),
    }
    lines = "".join(f"{key}: {value}\r\n" for key, value in given.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + data


def call(server: Server, version: str, tool: str, arguments: object) -> bytes:
    """Return a call of a tool in one of the two eras of MCP."""
    params: dict[str, object] = {"name": tool, "arguments": arguments}
    headers = {"MCP-Protocol-Version": version}
    if server.session:
        headers["Mcp-Session-Id"] = server.session
    if version == MODERN:
        prefix = "io.modelcontextprotocol/"
        params["_meta"] = {
            f"{prefix}protocolVersion": version,
            f"{prefix}clientInfo": {"name": "bench", "version": "1"},
            f"{prefix}clientCapabilities": {},
        }
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return _post("/mcp", body, headers)


def _uri(number: int) -> str:
    return f"did:nuwa:cap:{words_of(number)[0]}"


def _wish(number: int) -> str:
    luck = random.Random(number)  # noqa: S311 - the same questions in every run
    verb, one, two, three = luck.choice(VERBS), *luck.sample(NOUNS, 3)
    return f"{verb} {one} {two} with {three}"


def _resolve(version: str) -> Callable[[Server, int], bytes]:
    return lambda server, number: call(
        server, version, "resolve_capability", {"cap_uri": _uri(number)}
    )


def _search(words: Callable[[int], str]) -> Callable[[Server, int], bytes]:
    return lambda server, number: call(
        server, MODERN, "search_capabilities", {"query_string": words(number), "limit": PAGE}
    )


def _noun(number: int) -> str:
    return words_of(number)[2]


def _of_registry(number: int) -> bytes:
    name = quote(f"{NAMESPACE}/{words_of(number)[0]}", safe="")
    return _get(f"/v0.1/servers/{name}/versions/latest")


V1 = Question("/v1/resolve", lambda _, number: _get(f"/v1/resolve?uri={_uri(number)}"), kept=True)
PAGE_OF_NAME = Question(
    "/c/<name>.json", lambda _, number: _get(f"/c/{words_of(number)[0]}.json"), kept=True
)
RESOLVE_MODERN = Question("MCP resolve, 2026-07-28", _resolve(MODERN))
RESOLVE_LEGACY = Question("MCP resolve, 2025-11-25", _resolve(LEGACY))
SEARCH_ONE = Question("MCP search, one word", _search(_noun), search=True)
SEARCH_FIVE = Question("MCP search, five words", _search(_wish), search=True)
OURS = (V1, PAGE_OF_NAME, RESOLVE_MODERN, RESOLVE_LEGACY, SEARCH_ONE, SEARCH_FIVE)
REGISTRY_RESOLVE = Question("resolve", lambda _, number: _of_registry(number))
REGISTRY_SEARCH = Question(
    "search, part of a name",
    lambda _, number: _get(f"/v0.1/servers?search={_noun(number)}&version=latest&limit={PAGE}"),
    search=True,
)
REGISTRYS = (REGISTRY_RESOLVE, REGISTRY_SEARCH)
TYPESCRIPTS = (RESOLVE_LEGACY,)
