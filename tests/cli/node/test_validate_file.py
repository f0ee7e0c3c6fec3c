"""The check of files that visitors send: turns of clients, and what a busy machine is told."""

from __future__ import annotations

import asyncio

import pytest

from capdex.errors import CapdexError, Code, Unavailable
from cli.node import validate_file
from cli.node.validate_file import FileValidation
from tests.indexer import making

GOOD = making.package_bytes("tea", description="Steeps a tea.")


async def test_clients_who_send_many_files_keep_no_other_from_a_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)  # also on a busy machine
    check, refused = FileValidation(), []

    async def send(client: str) -> None:
        try:
            await check(b"no package", client)
        except CapdexError as error:
            refused.append((client, error.code))

    sent = [
        asyncio.create_task(send(client)) for _ in range(6) for client in ("192.0.2.1", "192.0.2.2")
    ]
    await asyncio.sleep(0)
    found = await check(GOOD, "192.0.2.3")
    await asyncio.gather(*sent)
    assert found["verdict"] == "verified"
    assert ("192.0.2.1", Code.RATE_LIMITED) in refused


async def test_a_valid_file_on_a_machine_that_is_too_busy_is_not_called_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 0.0)
    with pytest.raises(Unavailable) as caught:
        await FileValidation()(GOOD, "192.0.2.1")
    assert caught.value.kind.http == 503


async def test_a_client_whose_time_is_over_gives_its_turn_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = FileValidation()
    monkeypatch.setattr(validate_file, "WAIT_S", 0.0)
    with pytest.raises(Unavailable):
        await check(GOOD, "192.0.2.1")
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    assert (await check(GOOD, "192.0.2.2"))["verdict"] == "verified"
