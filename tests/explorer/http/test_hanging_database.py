"""A PostgreSQL that hangs: its connections live, and nothing answers on them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from capdex.problems import Verdict
from capdex_indexer.query import index
from capdex_service.queries import reader
from tests.explorer.conftest import Served
from tests.indexer import making


@contextmanager
def hanging(server: int) -> Iterator[None]:
    """Stops a PostgreSQL and the processes of its sessions until the block ends."""
    said = subprocess.run(["pgrep", "-P", str(server)], capture_output=True, check=True, text=True)
    processes = [server, *map(int, said.stdout.split())]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.fixture
def served(postgres_url: str, tmp_path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The address of a node, and what is asked of it: each kind of page."""
    chain = making.Chain()
    for version in ("1.0.0", "1.1.0"):
        chain.publish("note", version)
    making.fill(postgres_url, chain, tmp_path / "blocks")
    block = next(path.name for path in (tmp_path / "blocks").rglob("bafk*"))
    pages = ("/c/note.json", "/", "/c/note", "/c/note/^1", "/v1/resolve?uri=did:nuwa:cap:note@^1")
    files = ("/index/config.json", "/index/no/te/note", f"/ipfs/{block}?format=raw")
    with Served(postgres_url, tmp_path / "blocks", frozenset({Verdict.VERIFIED})) as base:
        yield base, (*pages, "/v0.1/servers", *files, "/status", "/recent", "/node")


async def test_each_answer_ends_while_the_database_hangs_and_comes_when_it_goes_on(
    served: tuple[str, tuple[str, ...]], postgres_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, paths = served
    monkeypatch.setattr(reader, "POLL_S", 0.0)  # look for commits at every request

    async def statuses(http: aiohttp.ClientSession) -> dict[str, int]:
        found = {}
        for path in paths:  # one after another: each finds a thread that waits for ever
            async with http.get(base + path) as reply:
                found[path] = reply.status
        return found

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http:
        assert set((await statuses(http)).values()) == {200}
        with hanging(postgres_server.get_pid()), monkeypatch.context() as patch:
            patch.setattr(index, "ANSWER_S", 0.2)
            assert await statuses(http) == dict.fromkeys(paths, 504)
            async with http.get(f"{base}/health") as reply:
                assert reply.status == 200
        assert set((await statuses(http)).values()) == {200}
