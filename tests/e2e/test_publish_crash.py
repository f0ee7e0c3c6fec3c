"""`capdex publish` killed by SIGKILL at every step: run again, it ends with one event of each kind.

Each kill falls where it is meant to, because what would come next cannot: the chain is held, or an
RPC call is, or no block is made. Nobody waits a real minute: the chain's clock is moved.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from capdex.encoding.keccak import keccak
from capdex.registry.events import PUBLISHED

AGE_S = 60
COMMITTED = keccak(b"Committed(bytes32,address,uint64,uint64)")
RAW = "eth_sendRawTransaction"


class Endpoint:
    """The chain through a proxy that can keep calls of one method, before or after the chain."""

    def __init__(self, chain: str) -> None:
        self.chain = chain
        self.held = threading.Event()
        self._hold: tuple[str, bool] | None = None
        self._let_go = threading.Event()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                reply = proxy.answer(json.loads(body)["method"], body)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: Any) -> None:
                pass

            def handle(self) -> None:
                with suppress(ConnectionError):  # whoever asked was killed
                    super().handle()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def hold(self, method: str, *, after: bool) -> None:
        """Keep the next call of a method: the chain never sees it, or its answer never comes."""
        self._hold = (method, after)

    def answer(self, method: str, body: bytes) -> bytes:
        if self._hold == (method, False):
            return self._keep()
        request = urllib.request.Request(  # noqa: S310 - the chain of this test
            self.chain, body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
            answer: bytes = reply.read()
        return self._keep() if self._hold == (method, True) else answer

    def _keep(self) -> bytes:
        self.held.set()
        self._let_go.wait()
        raise ConnectionError

    def close(self) -> None:
        self._let_go.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint(anvil: Any) -> Iterator[Endpoint]:
    proxy = Endpoint(anvil.url)
    thread = threading.Thread(target=proxy.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield proxy
    proxy.close()
    thread.join()


@pytest.fixture
def closed() -> Iterator[str]:
    """The URL of a port of ours where nobody listens."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}"


class Scene:
    """An author with a package, a registry that wants commitments, and a chain to hold."""

    def __init__(self, shell: Any, author: Any, anvil: Any, rpc: Callable[..., Any]) -> None:
        self.shell = shell
        self.anvil = anvil
        self._rpc = rpc
        ages = ("--min-commitment-age", str(AGE_S), "--max-commitment-age", "86400")
        self.registry = shell.json("deploy", "--yes", "--dir", "guarded", *ages)["registry"]
        shell.env |= {"CAPDEX_REGISTRY": self.registry, "CAPDEX_START_BLOCK": "0"}
        self.path: Path = author.write("weather")
        self.address = author.address
        self.nonce = self.count("latest")

    def call(self, method: str, *params: Any) -> Any:
        return self._rpc(self.anvil.url, method, *params)

    def count(self, block: str) -> int:
        return int(self.call("eth_getTransactionCount", self.address, block), 16)

    def start(self, **env: str) -> Any:
        return self.shell.start("publish", self.path.name, "--yes", "--json", **env)

    def mempool(self) -> list[Any]:
        pending = self.call("txpool_content")["pending"]
        return [tx for waiting in pending.values() for tx in waiting.values()]

    def logs(self, topic: bytes) -> list[Any]:
        wanted = {"address": self.registry, "fromBlock": "0x0", "topics": ["0x" + topic.hex()]}
        found: list[Any] = self.call("eth_getLogs", wanted)
        return found

    def let_a_minute_pass(self) -> None:
        latest = self.call("eth_getBlockByNumber", "latest", False)
        # Time and block in one call: between two, what waits for the time could enter the block.
        self.call("evm_mine", int(latest["timestamp"], 16) + AGE_S)

    def reserve(self) -> Any:
        """A process whose commitment is in a block, and which waits."""
        process = self.start()
        process.wait_for(lambda: self.logs(COMMITTED), "the commitment was in a block")
        return process

    def finish(self) -> dict[str, Any]:
        """Run the command again, to its end, with a minute passing while it waits for one."""
        self.call("evm_setAutomine", True)
        self.call("evm_mine")
        process, passed = self.start(), False

        def ended() -> bool:
            nonlocal passed
            if not passed and "reserving weather" in process.stderr:
                passed = True
                self.let_a_minute_pass()
            return process.popen.poll() is not None

        process.wait_for(ended, "it ended")
        assert process.popen.returncode == 0, process.stderr
        value: dict[str, Any] = json.loads(process.stdout)
        return value

    def check(self, value: dict[str, Any]) -> None:
        """One event of each kind, and no transaction but the two."""
        assert len(self.logs(COMMITTED)) == 1
        (published,) = self.logs(PUBLISHED)
        assert value["tx_hash"] == published["transactionHash"]
        assert self.count("latest") == self.count("pending") == self.nonce + 2
        assert self.mempool() == []


@pytest.fixture
def scene(shell: Any, begin: Callable[..., Any], anvil: Any, rpc: Callable[..., Any]) -> Scene:
    return Scene(shell, begin(shell, f"dir:{shell / 'blocks'}"), anvil, rpc)


def test_killed_when_the_file_is_signed(scene: Scene) -> None:
    os.kill(scene.anvil.pid, signal.SIGSTOP)  # signing asks no chain; all that follows does
    try:
        process = scene.start()
        process.wait_for(lambda: "signature: z" in scene.path.read_text("utf-8"), "it was signed")
        process.kill()
    finally:
        os.kill(scene.anvil.pid, signal.SIGCONT)
    assert not (scene.shell / "blocks").exists()
    assert scene.count("pending") == scene.nonce
    scene.check(scene.finish())


def test_killed_when_the_package_is_uploaded(scene: Scene, closed: str) -> None:
    process = scene.start(CAPDEX_GATEWAY_URL=closed)  # it never gives the bytes back

    def blocks() -> list[Path]:
        return list((scene.shell / "blocks").rglob("bafkrei*"))

    process.wait_for(blocks, "the block was in the directory")
    process.kill()
    assert scene.count("pending") == scene.nonce
    scene.check(scene.finish())


@pytest.mark.parametrize("after", [False, True], ids=["signed", "sent"])
def test_killed_when_the_commitment_is_signed_or_sent(
    scene: Scene, endpoint: Endpoint, after: bool
) -> None:
    scene.call("evm_setAutomine", False)
    endpoint.hold(RAW, after=after)
    process = scene.start(CAPDEX_RPC_URL=endpoint.url)
    process.wait_for(endpoint.held.is_set, "it sent the commitment")
    process.kill()
    assert len(scene.mempool()) == after
    scene.check(scene.finish())


def test_stopped_while_the_endpoint_keeps_its_answer(scene: Scene, endpoint: Endpoint) -> None:
    endpoint.hold(RAW, after=True)
    process = scene.start(CAPDEX_RPC_URL=endpoint.url)
    process.wait_for(endpoint.held.is_set, "it sent the commitment")
    assert process.stop() == 130
    (made,) = scene.logs(COMMITTED)
    assert f"stopped: transaction {made['transactionHash']} may have been sent" in process.stderr
    scene.check(scene.finish())


def test_killed_while_the_commitment_waits_for_its_block(scene: Scene) -> None:
    scene.call("evm_setAutomine", False)
    process = scene.start()
    process.wait_for(scene.mempool, "the commitment was in the mempool")
    process.kill()
    assert scene.logs(COMMITTED) == []
    scene.check(scene.finish())


def test_killed_when_the_commitment_is_in_a_block(scene: Scene) -> None:
    scene.reserve().kill()
    assert scene.logs(PUBLISHED) == []
    scene.check(scene.finish())


@pytest.mark.parametrize("after", [False, True], ids=["signed", "sent"])
def test_killed_when_the_claim_is_signed_or_sent(
    scene: Scene, endpoint: Endpoint, after: bool
) -> None:
    scene.reserve().kill()
    scene.let_a_minute_pass()
    scene.call("evm_setAutomine", False)
    endpoint.hold(RAW, after=after)
    process = scene.start(CAPDEX_RPC_URL=endpoint.url)
    process.wait_for(endpoint.held.is_set, "it sent the claim")
    process.kill()
    assert len(scene.mempool()) == after
    scene.check(scene.finish())


def test_killed_while_the_claim_waits_for_its_block(scene: Scene) -> None:
    process = scene.reserve()
    scene.call("evm_setAutomine", False)
    scene.let_a_minute_pass()
    process.wait_for(scene.mempool, "the claim was in the mempool")
    process.kill()
    assert scene.logs(PUBLISHED) == []
    scene.check(scene.finish())


def test_killed_when_the_claim_is_in_a_block_that_it_has_not_seen(scene: Scene) -> None:
    process = scene.reserve()
    scene.call("evm_setAutomine", False)
    scene.let_a_minute_pass()
    process.wait_for(scene.mempool, "the claim was in the mempool")
    process.popen.send_signal(signal.SIGSTOP)
    scene.call("evm_mine")
    process.kill()
    value = scene.finish()
    assert value["already"] is True
    scene.check(value)


def test_never_killed_and_killed_after_its_end(scene: Scene) -> None:
    value = scene.finish()
    assert value["already"] is False
    scene.check(value)
    scene.check(scene.finish())


def test_a_commitment_found_by_the_key_alone(scene: Scene) -> None:
    scene.reserve().kill()
    for kept in sorted((scene.shell / "home").rglob("*"), reverse=True):
        if "state" in kept.parts and kept.is_file():
            kept.unlink()  # all that is kept between runs; not the keys
    scene.check(scene.finish())
