"""The feed as Server-Sent Events: changes as they come, resumption, bounds and shutdown."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from capdex.problems import Verdict
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_service.http import change_stream
from capdex_service.http.change_stream import ChangeStream
from capdex_service.limits.streams import StreamPlaces
from capdex_service.queries.reader import Reader

Serve = Callable[..., AbstractAsyncContextManager[aiohttp.ClientSession]]


class Live:
    """An index that is written to while it is read."""

    def __init__(self, making: Any, url: str) -> None:
        self.making, self.chain = making, making.Chain()
        self.store = Store.open(url, making.DEPLOYMENT)
        self.index = Index(url)
        self.reader = Reader(self.index, serve=frozenset({Verdict.VERIFIED}))

    def publish(self, name: str, version: str = "1.0.0") -> None:
        self.chain.publish(name, version)
        self.making.follow(self.store, self.chain)

    def yank(self, name: str) -> None:
        self.chain.mine(self.making.yanked(name))
        self.making.follow(self.store, self.chain)


@pytest.fixture
def live(making: Any, tmp_path: Path) -> Iterator[Live]:
    """An index with one name, which its test writes to."""
    it = Live(making, f"sqlite:///{tmp_path / 'index.db'}")
    it.publish("note")
    yield it
    it.reader.close()
    it.index.close()
    it.store.close()


@pytest.fixture
def serve_stream(live: Live, listen_with: Any) -> Serve:
    """Serve the stream alone, with fewer places."""

    @asynccontextmanager
    async def serve(places: int = 9) -> AsyncIterator[aiohttp.ClientSession]:
        stream = ChangeStream(live.reader)
        stream._places = StreamPlaces(places)
        app = Starlette(routes=[Route("/", stream, methods=["GET"])])
        async with listen_with(app) as url, aiohttp.ClientSession(url) as http:
            http.close_stream = stream.close  # type: ignore[attr-defined]
            yield http
            await stream.close()

    return serve


async def event(answer: aiohttp.ClientResponse) -> dict[str, str]:
    """The next event, or comment, as its fields."""
    fields: dict[str, str] = {}
    while line := (await answer.content.readline()).decode().rstrip("\n"):
        key, _, value = line.partition(":")
        fields[key] = value.strip()
    return fields


async def test_changes_are_sent_as_they_come(live: Live, serve_stream: Serve) -> None:
    async with serve_stream() as http, http.get("/") as answer:
        assert answer.content_type == "text/event-stream"
        assert await event(answer) == {"retry": "2000"}
        live.publish("weather")
        while (change := await event(answer))["event"] == "change":
            data = json.loads(change["data"])
            assert data["name"] == "weather"
            if not data["deleted"]:
                break
        assert data["cap_uri"] == "did:nuwa:cap:weather@1.0.0"
        live.yank("weather")
        data = json.loads((await event(answer))["data"])
        assert (data["name"], data["deleted"]) == ("weather", True)


async def test_a_client_that_reconnects_misses_nothing(live: Live, serve_stream: Serve) -> None:
    async with serve_stream() as http:
        async with http.get("/?since=0") as answer:
            await event(answer)
            first = await event(answer)
        live.publish("weather")
        live.publish("maps")
        headers = {"Last-Event-ID": first["id"]}
        async with http.get("/?since=0", headers=headers) as answer:
            await event(answer)
            names = [json.loads((await event(answer))["data"])["name"] for _ in range(2)]
    assert json.loads(first["data"])["name"] == "note"
    assert names == ["weather", "maps"]


@pytest.mark.parametrize("given", ["query", "header"])
async def test_a_client_of_a_later_index_is_told_to_start_anew(
    live: Live, serve_stream: Serve, given: str
) -> None:
    query, headers = ("?since=999", {}) if given == "query" else ("", {"Last-Event-ID": "999:note"})
    async with serve_stream() as http, http.get(f"/{query}", headers=headers) as answer:
        assert answer.status == 200
        assert await event(answer) == {"retry": "2000"}
        reset = await event(answer)
        assert (reset["event"], reset["id"]) == ("reset", "0")
        assert "beyond this index" in json.loads(reset["data"])["message"]
        assert json.loads((await event(answer))["data"])["name"] == "note"


async def test_an_older_index_that_takes_the_place_resets_an_open_stream(
    live: Live, serve_stream: Serve, tmp_path: Path
) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "index.db")) as source,
        closing(sqlite3.connect(":memory:")) as backup,
    ):
        source.backup(backup)
        live.publish("weather")
        async with serve_stream() as http, http.get("/") as answer:
            await event(answer)
            backup.backup(source)
            assert (await event(answer))["event"] == "reset"
            assert json.loads((await event(answer))["data"])["name"] == "note"


async def test_a_quiet_stream_says_that_it_lives(
    live: Live, serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_stream, "HEARTBEAT_S", 0.02)
    async with serve_stream() as http, http.get("/") as answer:
        await event(answer)
        beat = await event(answer)
        assert beat[""] == "nothing new"
        again = await http.get("/", headers={"Last-Event-ID": beat["id"]})
        assert again.status == 200
        again.close()


async def test_a_stream_ends_after_its_lifetime(
    live: Live, serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_stream, "LIFETIME_S", 0.02)
    async with serve_stream() as http, http.get("/") as answer:
        assert (await answer.read()).startswith(b"retry: 2000\n\n")


async def test_one_stream_too_many_is_refused(live: Live, serve_stream: Serve) -> None:
    async with serve_stream(2) as http:
        held = [await http.get("/") for _ in range(2)]
        for answer in held:
            await event(answer)
        async with http.get("/") as answer:
            assert answer.status == 429
            assert answer.headers["Retry-After"] == "1"
            assert (await answer.json())["code"] == "RATE_LIMITED"
        held[0].close()
        while True:  # the server learns of it a moment later
            async with http.get("/") as answer:
                if answer.status == 200:
                    break
        held[1].close()


async def test_streams_end_when_the_node_stops(live: Live, serve_stream: Serve) -> None:
    async with serve_stream() as http, http.get("/") as answer:
        await event(answer)
        await http.close_stream()  # type: ignore[attr-defined]
        assert await answer.read() == b""
        async with http.get("/") as refused:
            assert refused.status == 504


async def test_head_opens_no_stream(live: Live, serve_stream: Serve) -> None:
    async with serve_stream(1) as http:
        for _ in range(3):
            async with asyncio.timeout(30), http.head("/") as answer:
                assert answer.status == 200
                assert answer.content_type == "text/event-stream"
