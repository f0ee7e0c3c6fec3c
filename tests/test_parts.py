"""The real parts that other tests stand on are really there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import aiohttp
import psycopg


async def test_anvil_answers_for_the_development_chain(anvil: Any) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    async with aiohttp.ClientSession() as session, session.post(anvil.url, json=call) as response:
        assert (await response.json())["result"] == hex(31337)


async def test_kubo_is_the_release_that_the_client_was_tested_with(kubo: Any) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{kubo.api}/api/v0/version") as response,
    ):
        assert (await response.json())["Version"] == "0.39.0"


def test_every_test_has_an_empty_postgresql_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert found.fetchone() == (0,)


def test_nothing_of_the_persons_own_settings_is_seen(clean_environment: Path) -> None:
    assert Path.home() == clean_environment
    ours = {"CAPDEX_SEMANTIC"}  # the same for every test, see `clean_environment`
    assert not [name for name in os.environ if name.startswith("CAPDEX_") and name not in ours]
