"""Commands beside a node that answers with gigabytes, or with JSON that is made to hurt."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from capdex.codes import error_codes
from capdex.errors import Code

GIGABYTES = 2_000_000_000
MIB = 1 << 20
OWN_BYTES = 64 * MIB  # the most that these commands use beside a node that behaves
CALL = b'{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"x":"'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SIXTY_FOUR_K = b"x" * (64 << 10)

# Head of the reply, and the piece that follows again and again.
ENDLESS = {
    "a length of 2 GB": (HEAD + b"Content-Length: 2000000000\r\n\r\n" + CALL, SIXTY_FOUR_K),
    "no length": (HEAD + b"Connection: close\r\n\r\n" + CALL, SIXTY_FOUR_K),
    "chunks": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + SIXTY_FOUR_K + b"\r\n",
    ),
    "tiny chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\n[]\r\n" * 8192),
    "headers": (HEAD, b"X: " + SIXTY_FOUR_K[:1000] + b"\r\n"),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 1000),
    "events": (
        HEAD.replace(b"application/json", b"text/event-stream") + b"\r\n",
        b"data: x\n" * 8192,
    ),
}
COMMANDS = {
    "resolve": ("resolve", "weather"),
    "search": ("search", "weather"),
    "show": ("show", "weather"),
    "list": ("list", "--owner", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
    "get": ("get", "weather"),
    "index digest": ("index", "digest"),
    "doctor": ("doctor",),
}


class Server:
    """Answers each connection with the same bytes, up to 2 GB or until the client hangs up."""

    def __init__(self) -> None:
        self.reply = (b"", b"")
        self.sent_bytes = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.recv(1 << 16)
        head, piece = self.reply
        connection.sendall(head)
        sent = 0
        while piece and sent < GIGABYTES:
            connection.sendall(piece)
            sent += len(piece)
            self.sent_bytes = max(self.sent_bytes, sent)


@pytest.fixture
def server() -> Iterator[Server]:
    opened = Server()
    yield opened
    opened.close()


# Not getrusage: a child starts with the peak of the process that forked it.
MEASURED = """
import atexit, pathlib, runpy
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: pathlib.Path("status").write_text(status.read_text()))
runpy.run_module("capdex", run_name="__main__", alter_sys=True)
"""
CHAIN = {
    "CAPDEX_RPC_URL": "http://127.0.0.1:1",
    "CAPDEX_CHAIN_ID": "31337",
    "CAPDEX_REGISTRY": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
}
NEED_CHAIN = ("get", "doctor", "index")  # the others ask the node alone where no endpoint is set


def settings(server: Server, command: str) -> dict[str, str]:
    urls = {"MCP": f"{server.url}/mcp", "NODE": server.url, "GATEWAY": server.url}
    of_node = {f"CAPDEX_{key}_URL": url for key, url in urls.items()}
    return of_node | (CHAIN if command in NEED_CHAIN else {})


def run(server: Server, folder: Path, *command: str) -> tuple[int, str, int]:
    """Exit code, stderr, and the most memory the command held at once, in bytes."""
    environ = {**os.environ, **settings(server, command[0])}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    status = dict(x.split(":", 1) for x in (folder / "status").read_text().splitlines())
    return done.returncode, done.stderr, int(status["VmHWM"].split()[0]) * 1024


@pytest.mark.load
@pytest.mark.parametrize("framing", ENDLESS)
def test_a_reply_without_end_costs_megabytes_and_one_clear_error(
    server: Server, folder: Path, framing: str
) -> None:
    server.reply = ENDLESS[framing]
    code, said, peak_bytes = run(server, folder, *COMMANDS["resolve"])
    assert code == error_codes()[Code.NODE_UNAVAILABLE].exit, said
    assert said.count("error[NODE_UNAVAILABLE]") == 1
    assert "Traceback" not in said
    assert peak_bytes < OWN_BYTES + 16 * MIB
    assert server.sent_bytes < 16 * MIB


@pytest.mark.load
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_reads_from_a_node_is_bounded(
    server: Server, folder: Path, name: str
) -> None:
    server.reply = ENDLESS["chunks"]
    code, said, peak_bytes = run(server, folder, *COMMANDS[name])
    assert code in (1, 3), said
    assert "Traceback" not in said
    assert "INTERNAL" not in said
    assert peak_bytes < OWN_BYTES + 48 * MIB
    assert server.sent_bytes < 48 * MIB


DEPTH = 900  # Python's json gives up at a thousand


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"[]" + b"}" * depth


@pytest.mark.parametrize("output", [(), ("--json",)])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("depth", [DEPTH, 20_000])
def test_a_deeply_nested_answer_is_an_error_of_one_line(
    server: Server, folder: Path, capdex: Any, monkeypatch: pytest.MonkeyPatch,
    name: str, depth: int, output: tuple[str, ...],
) -> None:  # fmt: skip
    deep = nested(depth)
    answer = b'"cap_uri":"did:nuwa:cap:weather@1.0.0","x":%b,"acp_metadata":%b' % (deep, deep)
    content = b'{"list_of_results":[{%b}],%b}' % (answer, answer)
    body = b'{"releases":[{%b}],"chain":%b,"result":{"structuredContent":%b}}'
    body %= answer, deep, content
    server.reply = (HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, b"")
    for key, value in settings(server, COMMANDS[name][0]).items():
        monkeypatch.setenv(key, value)
    result = capdex(*COMMANDS[name], *output)
    assert "INTERNAL" not in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    if name == "doctor":
        assert "nested" in result.stdout
    else:
        assert result.exit_code == error_codes()[Code.NODE_UNAVAILABLE].exit, result.stderr
        assert "nested too deep" in result.stderr


@pytest.mark.parametrize("said", [None, "did:nuwa:cap:weather", "\x1b[1m"])
def test_an_answer_without_a_version_of_the_name_is_a_fault_of_the_node(
    capdex: Any, node: Any, said: str | None
) -> None:
    node.answer("resolve_capability", {"cap_uri": said})
    result = capdex("get", "weather", "--config", "rpc-url=http://127.0.0.1:1")
    assert result.exit_code == 3
    assert "error[NODE_UNAVAILABLE]: the node answered" in result.stderr


@pytest.mark.parametrize(
    ("listed", "shown"),
    [(5, 0), (True, 0), ([{"cap_uri": f"did:nuwa:cap:n{n}@1.0.0"} for n in range(99)], 10)],
    ids=["number", "true", "more than were asked for"],
)
def test_a_list_of_hits_of_any_shape_is_shown_within_the_limit(
    capdex: Any, node: Any, listed: object, shown: int
) -> None:
    node.answer("search_capabilities", {"list_of_results": listed})
    result = capdex("search", "rain", "--plain")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, shown)
