"""A real chain and accounts with money on it, for the publisher's tests."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from publisher.chain import Chain
from publisher.deploy import Deployment, deploy
from publisher.registry import Registry

ROOT = Path(__file__).parents[2]
ANVIL = ROOT / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
RICH = 10**20


@dataclass
class LocalChain:
    """One Anvil process."""

    url: str
    chain_id: int

    def call(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        request = urllib.request.Request(  # noqa: S310
            self.url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
            return json.load(reply)["result"]

    def account(self, *, wei: int = RICH) -> LocalAccount:
        account: LocalAccount = Account.create()
        if wei:
            self.call("anvil_setBalance", account.address, hex(wei))
        return account


@asynccontextmanager
async def start_chain(chain_id: int = 31337) -> AsyncIterator[LocalChain]:
    if not ANVIL.exists():
        pytest.skip("Anvil is not installed: npm ci")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        str(ANVIL),
        *("--port", str(port), "--chain-id", str(chain_id), "--no-cors"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        while b"Listening on" not in (line := await process.stdout.readline()):
            assert line, "anvil ended before it listened"
        drain = asyncio.create_task(process.stdout.read())
        yield LocalChain(f"http://127.0.0.1:{port}", chain_id)
        process.terminate()
        await drain
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def local_chain() -> AsyncIterator[LocalChain]:
    async with start_chain() as chain:
        yield chain


@pytest.fixture
def start_chain_with() -> Callable[[int], Any]:
    return start_chain


@pytest.fixture
async def chain(local_chain: LocalChain, tmp_path: Path) -> AsyncIterator[Chain]:
    async with Chain.connect(local_chain.url, 31337, state_dir=tmp_path / "state") as chain:
        yield chain


@pytest.fixture
async def deployment(chain: Chain, local_chain: LocalChain, tmp_path: Path) -> Deployment:
    found, _ = await deploy(chain, local_chain.account(), tmp_path / "deployments")
    return found


@pytest.fixture
def registry(chain: Chain, deployment: Deployment) -> Registry:
    return Registry(chain, deployment.registry, start_block=deployment.block_number)


@pytest.fixture
def account(local_chain: LocalChain) -> LocalAccount:
    return local_chain.account()
