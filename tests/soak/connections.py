"""connections.py COUNT [--seed N]: COUNT hostile connections to a node with 1 024 descriptors.

The hard limit is 1 024, too. A fifth each is silent, sends half a head or half a body, does not
read, or sends 200 requests at once; a client that is cut comes back, and a proxy names all of them
by one address. Meanwhile releases are
published; the node must fetch and verify all of them from a gateway, and answer `/health` and
`/v1/resolve` each time it is asked. `N passed, N failed` counts these answers; the slowest is said.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO, Any

from attempts import arguments, conclude
from author import Author
from gateway import Gateway
from hostile import Hostile
from nodes import TIED, Stuck, anvil, wait_until

DESCRIPTORS = 1024
RELEASES = 200
ASKED = 200
CHAIN_ID = 4242
# Limits of its own, soft and hard, then the node.
LIMITED = (
    "import os, resource, sys\n"
    f"resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def get(port: int, path: str) -> tuple[int, Any]:
    """The status and the JSON of a page, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def listening(log: IO[bytes]) -> int:
    """The port of a node, once its log says it."""
    for line in os.pread(log.fileno(), 1 << 24, 0).splitlines():
        if b'"event":"listening"' in line.replace(b'": "', b'":"'):
            return int(json.loads(line)["url"].rpartition(":")[2])
    return 0


def run(count: int, seed: int) -> tuple[int, list[str]]:
    """How many answers were right, and what was not."""
    with ExitStack() as stack:
        enter = stack.enter_context
        folder = Path(enter(TemporaryDirectory(prefix="connections-")))
        url = enter(anvil("--chain-id", str(CHAIN_ID), "--gas-limit", "1000000000"))
        author = Author.begin(url, folder / "published", Random(f"connections/{seed}"))
        author.send([author.publication("note", f"1.{i}.0") for i in range(8)])  # some are refused
        gateway = enter(Gateway.open(author.blocks))
        log = enter((folder / "log").open("w+b"))
        command = [
            sys.executable, "-m", "capdex", "node", "--port", "0", "--log-format", "json",
            "--rpc-url", url, "--chain-id", str(CHAIN_ID), "--registry", author.registry.address,
            "--start-block", "1", "--db", f"sqlite:///{folder / 'index.db'}",
            "--blocks", str(folder / "blocks"), "--ipfs", f"gateway:{gateway.url}",
            "--poll-interval", "0.2", "--trusted-proxy", "127.0.0.1",
        ]  # fmt: skip
        tied = [sys.executable, "-I", "-S", "-c", TIED, sys.executable, "-I", "-S", "-c", LIMITED]
        env = os.environ | {"CAPDEX_HOME": str(folder / "home")}
        node = subprocess.Popen([*tied, *command], stdout=log, stderr=log, cwd=folder, env=env)
        stack.callback(node.wait)
        stack.callback(node.kill)
        port = wait_until(lambda: listening(log), "the node listens")
        page = "/v1/resolve?uri=did:nuwa:cap:note"
        wait_until(lambda: get(port, page)[0] == 200, "the first release is there")
        hostile = enter(Hostile(port, count))
        hostile.pressing()
        author.send([author.publication(f"late-{i}", "1.0.0") for i in range(RELEASES)])
        passed, slowest, wrong = 0, 0.0, list[str]()
        for path in ("/health", page) * (ASKED // 2):
            began = time.monotonic()
            try:
                status, _ = get(port, path)
            except OSError as error:
                wrong.append(f"{path}: {error!r}")
                continue
            slowest = max(slowest, time.monotonic() - began)
            passed += status == 200
            wrong += [] if status == 200 else [f"{path}: {status}"]
        wait_until(lambda: fetched(port), "all releases were fetched")
        held = len(list(Path(f"/proc/{node.pid}/fd").iterdir()))
        opened = hostile.end()
        print(
            f"{opened} hostile connections opened; the slowest answer took {slowest:.2f} s;"
            f" {held} descriptors open; log of {os.fstat(log.fileno()).st_size} bytes"
        )
        if b"Traceback" in os.pread(log.fileno(), 1 << 24, 0):
            wrong.append("a traceback in the log")
        return passed, wrong


def fetched(port: int) -> bool:
    """True once the node has judged all releases."""
    releases = get(port, "/status")[1]["releases"]
    return releases["total"] > RELEASES and not releases["by_availability"].get("pending", 0)


def main() -> int:
    given = arguments(__doc__).parse_args()
    try:
        passed, wrong = run(given.count, given.seed)
    except (Stuck, AssertionError) as stuck:
        passed, wrong = 0, [str(stuck)]
    for one in wrong:
        print(f"FAILED {one}")
    return conclude(passed + len(wrong), len(wrong))


if __name__ == "__main__":
    sys.exit(main())
