"""python benchmarks/service: what an answer costs, beside the official MCP registry.

All servers run at once and take turns. ROUNDS (5), SECONDS (1: of each load), CONNECTIONS (1,8,32),
NODES (which of the nodes below, by number; all by default), BESIDE (registry,typescript), NAMES
(20000) and MORE (100000) are read from the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sys
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import filled
from client import Client, Found, Load, client
from filled import KEPT, Made
from questions import LEGACY, OURS, REGISTRY_RESOLVE, REGISTRYS, TYPESCRIPTS, Question, call
from servers import (
    Server,
    beating,
    create,
    node,
    postgres,
    postmaster,
    registry,
    scratch,
    settle,
    typescript,
)

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "1"))
CONNECTIONS = [int(x) for x in os.environ.get("CONNECTIONS", "1,8,32").split(",")]
NAMES = int(os.environ.get("NAMES", "20000"))
MORE = int(os.environ.get("MORE", "100000"))
KINDS = [  # database, names, workers
    ("SQLite", NAMES, 1),
    ("SQLite", NAMES, 2),
    ("PostgreSQL", NAMES, 1),
    ("PostgreSQL", NAMES, 2),
    ("SQLite", MORE, 1),
    ("PostgreSQL", MORE, 1),
]
CHOSEN = [KINDS[int(x)] for x in os.environ.get("NODES", "0,1,2,3,4,5").split(",")]
BESIDE = os.environ.get("BESIDE", "registry,typescript").split(",")
REFERENCE_CONNECTIONS = 8  # in the pass in which everything is asked for the first time
PATIENCE_S = 3600.0
REGISTRY = "official registry"
TYPESCRIPT = {True: "TypeScript SDK 1.x, sessions", False: "TypeScript SDK 1.x, stateless"}


def indexes(folder: Path, parts: ExitStack) -> dict[tuple[str, int], str]:
    """Fill what the chosen nodes read; return the URL of each by database and number of names."""
    wanted = {(database, names) for database, names, _ in CHOSEN}
    cluster = None
    if any(database == "PostgreSQL" for database, _ in wanted):
        cluster = parts.enter_context(postgres(folder / "ours"))
    urls = {}
    for database, names in sorted(wanted):
        if database == "SQLite":
            urls[database, names] = f"sqlite:///{folder}/index-{names}.db"
        else:
            urls[database, names] = create(cluster, f"index_{names}")
    for names in sorted({names for _, names in wanted}):
        made: Made = asyncio.run(filled.make(names))
        filled.fill(
            [url for (_, n), url in urls.items() if n == names], made, blocks(folder, names)
        )
    for (database, _), url in urls.items():
        if database == "PostgreSQL":
            settle(url)
    return urls


def blocks(folder: Path, names: int) -> Path:
    return folder / f"blocks-{names}"


def questions_of(server: Server) -> tuple[Question, ...]:
    if server.name.startswith("capdex"):
        return OURS
    return REGISTRYS if server.name == REGISTRY else TYPESCRIPTS


def answers_for_typescript(server: Server, folder: Path) -> Path:
    """Write the answers of a node that the server on the TypeScript SDK gives as its own."""
    answers = {}
    with closing(HTTPConnection("127.0.0.1", server.port)) as connection:
        for number in range(NAMES):
            uri = f"did:nuwa:cap:{filled.words_of(number)[0]}"
            head, _, body = call(server, LEGACY, "resolve_capability", {"cap_uri": uri}).partition(
                b"\r\n\r\n"
            )
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
            connection.request("POST", "/mcp", body, headers)
            result = json.loads(connection.getresponse().read())["result"]
            answers[uri] = {
                "text": result["content"][0]["text"],
                "body": result["structuredContent"],
            }
    path = folder / "answers.json"
    path.write_text(json.dumps(answers))
    return path


class Table:
    """What was found: by server, question and number of connections, one entry a round."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], list[Found]] = defaultdict(list)
        self._first: dict[tuple[str, str], Found] = {}

    def first(self, server: Server, question: Question, found: Found) -> None:
        """Keep what it cost to answer everything for the first time, and print it."""
        self._first[server.name, question.name] = found
        spent = " + ".join(f"{x * 1000 / len(found.times_ms):.3f}" for x in found.processor_s)
        said = f"first {len(found.times_ms):6d}: {server.name:34s} {question.name:26s} {spent}"
        print(said, "ms of processor", file=sys.stderr)

    def add(self, server: Server, question: Question, connections: int, found: Found) -> None:
        found.times_ms.sort()
        self._found[server.name, question.name, connections].append(found)

    def processor_ms(self, key: tuple[str, str, int], *, whole: bool) -> list[float]:
        """Milliseconds of the server alone, or of its database's processes, too."""
        return [
            sum(x.processor_s if whole else x.processor_s[:1]) * 1000 / len(x.times_ms)
            for x in self._found[key]
        ]

    def show(self, servers: list[Server]) -> None:
        for connections in CONNECTIONS:
            print(f"\n### {connections} connection{'s' * (connections > 1)}\n")
            head = ["server", "question", "bytes", "ms of processor", "with its database"]
            head += [
                "of the registry's resolve",
                "with databases",
                "requests/s",
                "p50 ms",
                "p99 ms",
            ]
            print("| " + " | ".join(head) + " |")
            print("| --- | --- |" + " ---: |" * (len(head) - 2))
            reference = (REGISTRY, REGISTRY_RESOLVE.name, connections)
            for server in servers:
                for question in questions_of(server):
                    key = (server.name, question.name, connections)
                    loads = self._found[key]
                    if not loads:
                        continue
                    own, whole = (self.processor_ms(key, whole=x) for x in (False, True))
                    cells = [server.name, question.name, str(self._first[key[:2]].answer_bytes)]
                    cells += [spread(own), spread(whole) if server.database else ""]
                    for ours, is_whole in ((own, False), (whole, True)):
                        theirs = self.processor_ms(reference, whole=is_whole)
                        quotients = [a / b for a, b in zip(ours, theirs, strict=False)]
                        cells.append(f"{median(quotients):.2f}" if quotients else "")
                    cells.append(f"{median(len(x.times_ms) / x.seconds for x in loads):,.0f}")
                    for share in (0.5, 0.99):
                        times = [x.times_ms[int(len(x.times_ms) * share)] for x in loads]
                        cells.append(f"{median(times):.2f}")
                    print("| " + " | ".join(cells) + " |")
        sys.stdout.flush()


def spread(values: list[float]) -> str:
    return f"{median(values):.3f} ({min(values):.3f}–{max(values):.3f})"


def main() -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{ROUNDS} rounds in turn, {SECONDS:g} s each, {machine}")
    with ExitStack() as parts:
        folder = scratch()
        urls = indexes(folder, parts)
        parts.enter_context(beating(list(urls.values())))
        turns = Turns(parts.enter_context(client()))
        nodes = []
        for database, names, workers in CHOSEN:
            name = f"capdex, {database}, {names // 1000}k, {workers} worker{'s' * (workers > 1)}"
            url, kept = urls[database, names], blocks(folder, names)
            server = parts.enter_context(node(name, url, kept, folder, workers=workers))
            server.names, server.workers = names, workers
            server.database = postmaster(folder / "ours") if database == "PostgreSQL" else None
            nodes.append(server)
            turns.add(server)
        if "registry" in BESIDE:
            server = parts.enter_context(registry(REGISTRY, KEPT / "registry", NAMES, folder))
            server.names = NAMES
            turns.add(server)
        if "typescript" in BESIDE:
            answers = answers_for_typescript(nodes[0], folder)
            for sessions in (True, False):
                server = parts.enter_context(
                    typescript(TYPESCRIPT[sessions], answers, folder, sessions)
                )
                server.names = NAMES
                turns.add(server)
        turns.take()


class Turns:
    """Servers that take turns, and the requests that each is asked."""

    def __init__(self, asker: Client) -> None:
        self._asker, self._luck = asker, random.Random(1)  # noqa: S311 - the same in every run
        self._servers: list[Server] = []
        self._requests: dict[tuple[str, str], list[bytes]] = {}
        self._table = Table()

    def add(self, server: Server) -> None:
        """Ask a server everything once, so that what it keeps is kept; print what that costs."""
        self._servers.append(server)
        for question in questions_of(server):
            requests = question.requests(server, self._luck)
            self._requests[server.name, question.name] = requests
            load = Load(server.port, requests, REFERENCE_CONNECTIONS, PATIENCE_S, server.counted())
            found = self._put(server, question, replace(load, count=len(requests)))
            self._table.first(server, question, found)
            if question.kept:  # by each worker for itself: ask until most is kept by each
                for _ in range(4 * (server.workers - 1)):
                    self._put(server, question, replace(load, count=len(requests)))

    def take(self) -> None:
        """Let them take turns, and print what was found."""
        for number in range(ROUNDS):
            for connections in CONNECTIONS:
                for server in self._servers:
                    for question in questions_of(server):
                        found = self._ask(server, question, connections)
                        self._table.add(server, question, connections, found)
            print(f"round {number + 1} of {ROUNDS} done", file=sys.stderr)
        self._table.show(self._servers)

    def _ask(self, server: Server, question: Question, connections: int) -> Found:
        requests = self._requests[server.name, question.name]
        first = self._luck.randrange(len(requests))
        load = Load(server.port, requests, connections, SECONDS, server.counted(), first=first)
        return self._put(server, question, load)

    def _put(self, server: Server, question: Question, load: Load) -> Found:
        try:
            return self._asker.put(load)
        except (AssertionError, OSError) as error:
            log = server.log.read_text()[-2000:]
            raise SystemExit(f"{server.name}, {question.name}: {error}\n{log}") from error


if __name__ == "__main__":
    main()
