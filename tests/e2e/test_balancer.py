"""The balancer of docker-compose.yml in front of two readers: clients see no end of one of them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def balance(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """`balance(reader, reader, **variables)` starts the balancer for them and gives its address."""
    binary = shutil.which("caddy")
    if binary is None:
        pytest.skip("Caddy is missing: run `make dev`")
    started: list[subprocess.Popen[bytes]] = []

    def start(first: str, second: str, **variables: str) -> str:
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
                env=os.environ | {"HOME": str(tmp_path)} | variables,
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


@pytest.mark.parametrize(
    ("believed", "told"),
    [({"BALANCER_TRUSTED_PROXY": "127.0.0.1"}, ("203.0.113.7", "https")), ({}, None)],
)
def test_a_reader_is_told_the_client_and_the_scheme_by_the_proxy_that_is_named(
    balance: Callable[..., str],
    eventually: Callable[..., Any],
    believed: dict[str, str],
    told: tuple[str, str] | None,
) -> None:
    seen: list[tuple[str | None, str | None]] = []

    class Reader(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/ready":
                seen.append((self.headers["X-Forwarded-For"], self.headers["X-Forwarded-Proto"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None: ...

    # The proxy adds its client behind what the client itself has sent.
    sent = {"X-Forwarded-For": "192.0.2.1, 203.0.113.7", "X-Forwarded-Proto": "https"}
    with HTTPServer(("127.0.0.1", 0), Reader) as reader:
        Thread(target=reader.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{reader.server_port}"
        # What stands in the compose file for nobody.
        url = balance(at, at, **({"BALANCER_TRUSTED_PROXY": "127.0.0.2"} | believed))

        def answered() -> bool:
            try:
                request = Request(f"{url}/c/note", headers=sent)  # noqa: S310
                with urlopen(request) as answer:  # noqa: S310
                    return bool(answer.status == 200)
            except OSError:
                return False

        eventually(answered, "the balancer")
        reader.shutdown()
    assert set(seen) == {told or ("127.0.0.1", "http")}
