"""The entries of servers that are kept, while several threads ask for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from capdex_indexer.query.catalog import BoundReleases
from capdex_service.queries import servers
from capdex_service.queries.reader import Reader
from capdex_service.queries.servers import Servers


@pytest.fixture
def switching() -> Iterator[None]:
    """Let threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_threads_that_ask_at_once_take_no_entry_from_one_another(
    tools_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MAX_CACHED", 2)
    kept = Servers(tools_reader)
    wanted = BoundReleases("mcp_service")
    with tools_reader.index.read() as connection:
        denials = tools_reader.index.denial_cache.read(connection)
        found = servers.read_bound(connection, wanted, tools_reader.serve, denials, ("", ""), 3)
    assert len(found) == 3

    def ask(number: int) -> int:
        choices = Random(number).choices(found, k=4000)  # noqa: S311
        return sum(kept._entry(one)[0] is not None for one in choices)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [4000] * 8
