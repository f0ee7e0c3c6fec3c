"""A node ends by itself when it is asked to, whatever it waits for."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.real


@pytest.fixture
def silent() -> Iterator[str]:
    """A gateway that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_node_ends_in_time_though_chain_gateway_and_client_hang(
    shell: Any,
    anvil: Any,
    chains: Any,
    silent: str,
    http: Callable[..., tuple[int, bytes]],
    number: int,
    code: int,
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    registry.publish([("nobody-has-it", "1.0.0", b"bytes that the gateway never gives")])
    node = shell.start(
        "node", "--rpc-url", anvil.url, "--chain-id", "31337", "--registry", registry.address,
        "--db", f"sqlite:///{shell / 'index.db'}", "--ipfs", f"gateway:{silent}",
        "--blocks", str(shell / "kept"), "--port", "0", "--poll-interval", "0.1",
    )  # fmt: skip
    url = node.url()
    node.wait_for(lambda: http(f"{url}/ready")[0] == 200, "it was ready")
    os.kill(anvil.pid, signal.SIGSTOP)
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        try:
            assert node.stop(number) == code
        finally:
            os.kill(anvil.pid, signal.SIGCONT)
    assert '"event": "stopping"' in node.stderr
    assert '"event": "stopped"' in node.stderr
    assert "cut off" not in node.stderr
