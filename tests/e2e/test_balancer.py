"""The balancer of docker-compose.yml in front of two readers: clients see no end of one of them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def balance(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """`balance(reader, reader)` starts the balancer for two addresses and gives its own."""
    binary = shutil.which("caddy")
    if binary is None:
        pytest.skip("Caddy is missing: run `make dev`")
    started: list[subprocess.Popen[bytes]] = []

    def start(first: str, second: str) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        text = (REPOSITORY / "compose" / "Caddyfile").read_text("utf-8")
        text = text.replace("reader-a:8765 reader-b:8765", f"{first} {second}")
        text = text.replace("http://:8765", f"http://127.0.0.1:{port}")
        (tmp_path / "Caddyfile").write_text(text)
        with (tmp_path / "caddy.log").open("wb") as log:
            process = subprocess.Popen(
                [binary, "run", "--adapter", "caddyfile", "--config", "Caddyfile"],
                cwd=tmp_path,
                env=os.environ | {"HOME": str(tmp_path)},
                stdout=log,
                stderr=log,
            )
            started.append(process)
        return f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        process.terminate()
        process.wait()


def test_clients_see_no_end_of_a_reader(
    shell: Any,
    anvil: Any,
    chains: Any,
    http: Callable[..., tuple[int, bytes]],
    eventually: Callable[..., Any],
    balance: Callable[..., str],
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    db = f"sqlite:///{shell / 'index.db'}"
    common = ("--db", db, "--blocks", str(shell / "blocks"), "--port", "0", "--log-format", "json")
    writer = shell.start(
        "node", "--role", "writer", "--rpc-url", anvil.url, "--chain-id", "31337",
        "--registry", registry.address, *common,
    )  # fmt: skip
    at = writer.url()
    writer.wait_for(lambda: http(f"{at}/ready")[0] == 200, "the writer was ready")
    readers = [shell.start("node", "--role", "reader", *common) for _ in range(2)]
    for reader in readers:
        url = reader.url()
        reader.wait_for(lambda url=url: http(f"{url}/ready")[0] == 200, "a reader was ready")
    url = balance(*(re.sub("^http://", "", reader.url()) for reader in readers))

    def answered() -> bool:
        try:
            return http(f"{url}/ready")[0] == 200
        except OSError:
            return False

    eventually(answered, "the balancer")
    readers[0].popen.send_signal(signal.SIGKILL)
    assert [http(f"{url}/v1/search?q=note")[0] for _ in range(20)] == [200] * 20
    readers[1].popen.send_signal(signal.SIGKILL)
    readers[1].popen.wait()
    assert http(f"{url}/v1/search?q=note")[0] in (502, 503)
