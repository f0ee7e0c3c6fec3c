"""A real chain and accounts with money on it, for the publisher's tests."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from eth_account import Account

from capdex.net.ipfs.block_store import BlockDirectory
from capdex_publisher.deploy.deploy import DeployedContract, deploy
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.registry.registry import Registry

RICH = 10**20


@dataclass
class LocalChain:
    """One Anvil process, and what only a development chain does."""

    url: str

    def call(self, method: str, *params: Any) -> Any:
        return self.raw(method, *params)["result"]

    def raw(self, method: str, *params: Any) -> Any:
        """The whole reply, an error included."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        request = urllib.request.Request(  # noqa: S310
            self.url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
            return json.load(reply)

    def signer(self, *, wei: int = RICH) -> LocalSigner:
        signer = LocalSigner(Account.create().key)
        if wei:
            self.call("anvil_setBalance", signer.address, hex(wei))
        return signer


@pytest.fixture
def local_chain(anvil: Any) -> LocalChain:
    return LocalChain(anvil.url)


@pytest.fixture
async def chain(local_chain: LocalChain, tmp_path: Path) -> AsyncIterator[Chain]:
    async with Chain.connect(local_chain.url, 31337, state_dir=tmp_path / "state") as chain:
        yield chain


@pytest.fixture
def blocks(tmp_path: Path) -> BlockDirectory:
    return BlockDirectory(tmp_path / "blocks")


@pytest.fixture
async def deployment(chain: Chain, local_chain: LocalChain, tmp_path: Path) -> DeployedContract:
    found, _ = await deploy(chain, local_chain.signer(), tmp_path / "deployments")
    return found


@pytest.fixture
def registry(chain: Chain, deployment: DeployedContract) -> Registry:
    return Registry(chain, deployment.registry, start_block=deployment.block_number)


@pytest.fixture
def signer(local_chain: LocalChain) -> LocalSigner:
    return local_chain.signer()


@pytest.fixture
def endpoint_before(local_chain: LocalChain) -> Callable[..., Any]:
    """An endpoint before the chain: what `answer` gives, else what the chain says."""

    @asynccontextmanager
    async def make(answer: Callable[..., Any]) -> AsyncIterator[str]:
        async def reply(request: web.Request) -> web.Response:
            call = await request.json()
            said = await asyncio.to_thread(answer, call["method"], call["params"])
            if isinstance(said, web.Response):
                return said
            if said is None:
                said = await asyncio.to_thread(local_chain.raw, call["method"], *call["params"])
            return web.json_response(said | {"id": call["id"]})

        app = web.Application()
        app.router.add_post("/", reply)
        async with TestServer(app) as server:
            yield str(server.make_url("/"))

    return make
