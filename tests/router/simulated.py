"""Nodes that answer what a test tells them, over real HTTP; a person who answers; packages."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.package import VerifiedPackage
from capdex.uri import PREFIX, CapabilityURI
from capdex.version import Version
from capdex_router.catalog.packages import Executors, offered, owner_of, skill, tool_of
from capdex_router.home.config import NodeAddress
from capdex_router.home.directory import Home
from capdex_router.install.facts import accesses
from capdex_router.install.installer import Installer
from capdex_router.model.capability import Capability
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.grants import EVERY_TOOL, Grant
from capdex_router.policy.proposal import Proposal
from tests.indexer import making

CONTRACT = checksum_address(making.REGISTRY)
PUBLISHER = checksum_address(making.PUBLISHER)

Json = dict[str, Any]


def answer(data: bytes, **changed: Any) -> Json:
    """What an honest node answers about a package; `changed` are its lies."""
    uri = read(data).require().uri
    return {
        "acp_metadata": {"name": uri.name.title(), "summary": f"What {uri.name} does."},
        "cap_uri": str(uri),
        "semver": str(uri.version),
        "ipfs_cid": str(Cid.of(data)),
        "sha256": hashlib.sha256(data).hexdigest(),
        "status": {"yanked": False, "deprecated": False, "name_deprecated": False},
        "chain": {
            "chain_id": making.CHAIN_ID,
            "contract": CONTRACT,
            "publisher": PUBLISHER,
            "block_number": 7,
            "sequence": 1,
        },
    } | changed


@dataclass
class SimulatedNode:
    """A node and gateway; `releases` are what it tells of, `blocks` what it gives.

    `lie` takes the URI or the words that are asked for and may return another answer, or an error
    to raise.
    """

    port: int = 0
    releases: list[Json] = field(default_factory=list)
    blocks: dict[str, bytes] = field(default_factory=dict)
    lie: Callable[[str], Json | CapdexError | None] | None = None
    requests: list[str] = field(default_factory=list)
    down: bool = False
    silent: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> NodeAddress:
        return NodeAddress(f"{self.url}/mcp", self.url)

    def publish(self, data: bytes, **changed: Any) -> Json:
        """Serve a package."""
        told = answer(data, **changed)
        self.releases.append(told)
        self.blocks[str(Cid.of(data))] = data
        return told

    def resolve(self, cap_uri: str) -> tuple[Json, bool]:
        lie = self.lie(cap_uri) if self.lie is not None else None
        if isinstance(lie, CapdexError):
            return lie.to_json(), True
        if lie is not None:
            return lie, False
        wanted = CapabilityURI.parse(cap_uri)
        found = [x for x in self.releases if wanted.admits(CapabilityURI.exact(x["cap_uri"]))]
        if not found:
            known = [x["semver"] for x in self.releases if f"{wanted.name}@" in x["cap_uri"]]
            details = (
                {"versions": known, "fix": f"choose one, the best first: {known[0]}"}
                if known
                else {}
            )
            return {"code": "NOT_FOUND", "message": f"no {cap_uri}", "details": details}, True
        return max(found, key=lambda x: Version.parse(x["semver"])), False

    def search(self, words: str) -> tuple[Json, bool]:
        lie = self.lie(words) if self.lie is not None else None
        if isinstance(lie, CapdexError):
            return lie.to_json(), True
        hits = [x for x in self.releases if any(w in str(x).casefold() for w in words.split())]
        return {"list_of_results": hits, "total": len(hits)}, False

    async def mcp(self, request: web.Request) -> web.Response:
        params = (await request.json())["params"]
        self.requests.append(params["name"])
        if self.silent:
            await asyncio.sleep(2)  # longer than a test waits
        if self.down:
            return web.Response(status=503, text="down")
        arguments = params["arguments"]
        if params["name"] == "resolve_capability":
            content, failed = self.resolve(arguments["cap_uri"])
        else:
            content, failed = self.search(arguments["query_string"].casefold())
        result = {"content": [], "structuredContent": content, "isError": failed}
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": result})

    async def block(self, request: web.Request) -> web.Response:
        self.requests.append("block")
        data = self.blocks.get(request.match_info["cid"])
        return web.Response(status=404) if data is None else web.Response(body=data)


@dataclass
class Person:
    """Answers questions, and keeps them."""

    agrees: bool = True
    asked: list[Proposal] = field(default_factory=list)

    async def ask(self, question: Proposal) -> bool:
        self.asked.append(question)
        return self.agrees

    @property
    def lines(self) -> str:
        """All that the last question says."""
        return "\n".join((self.asked[-1].summary, *self.asked[-1].lines))


@dataclass
class Machine:
    """A home with its installer and rights; `seen` are the packages that were verified."""

    home: Home
    rights: GrantFile
    installer: Installer
    seen: list[VerifiedPackage]


def uri(text: str) -> CapabilityURI:
    """The URI that a person types."""
    return CapabilityURI.loose(text)


def weather(
    version: str = "1.0.0", *, tools: int = 1, words: str = "It does something.", **options: Any
) -> bytes:
    """A package with tools bound to https://tools.example.org; `words` describe each."""
    named = [making.tool(name, words, city="A city.") for name in ("now", "later", "past")[:tools]]
    return making.package_bytes("weather", version, tools=named, **options)


def capabilities_of(package: VerifiedPackage, executors: Executors) -> Iterator[Capability]:
    """The skill of a package, then its tools in their order."""
    yield skill(package)
    for tool in offered(package.manifest):
        runs = executors(package, tool.name)
        yield tool_of(package.manifest, owner_of(package), tool, runs)


def all_grants(package: VerifiedPackage) -> list[Grant]:
    """What a yes to the installation of a package grants."""
    name, digest = f"{PREFIX}{package.manifest.uri.name}", package.announcement.sha256.hex()
    targets = dict.fromkeys(access.target for access in accesses(package) if access.target)
    return [Grant(name, digest, EVERY_TOOL, target) for target in targets]
