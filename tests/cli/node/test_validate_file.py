"""The check of files that visitors send: turns of clients, and what a busy machine is told."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex_cli.node import validate_file
from capdex_cli.node.validate_file import FileValidation
from tests.indexer import making

GOOD = making.package_bytes("tea", description="Steeps a tea.")


@pytest.fixture
async def check() -> AsyncIterator[FileValidation]:
    made = FileValidation()
    yield made
    await made.close()


async def test_clients_who_send_many_files_keep_no_other_from_a_check(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)  # also on a busy machine
    refused = []

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


async def test_a_visitor_learns_nothing_of_the_files_of_the_node(
    check: FileValidation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.txt").write_text("of the node")
    named = {"here.txt": b"of the node", "there.txt": b"of nobody"}
    found = await check(making.package_bytes("tea", files=named), "192.0.2.1")
    assert found["verdict"] == "verified"
    assert [x for x in found["problems"] if "resource" in x["code"].lower()] == []
    guessed = await check(
        making.package_bytes("tea", files=named | {"here.txt": b"?"}), "192.0.2.1"
    )
    assert found["problems"] == guessed["problems"]


async def test_a_long_text_of_what_tokens_begin_with_is_checked(check: FileValidation) -> None:
    found = await check(making.package_bytes("tea", prompt="xoxa-" * 13_000), "192.0.2.1")
    assert found["verdict"] == "verified"


async def test_a_valid_file_on_a_machine_that_is_too_busy_is_not_called_too_large(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 0.0)
    with pytest.raises(Unavailable) as caught:
        await check(GOOD, "192.0.2.1")
    assert caught.value.kind.http == 503


async def test_a_client_whose_time_is_over_gives_its_turn_back(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 0.0)
    with pytest.raises(Unavailable):
        await check(GOOD, "192.0.2.1")
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    assert (await check(GOOD, "192.0.2.2"))["verdict"] == "verified"


async def process_of(check: FileValidation) -> int:
    assert check._worker is not None
    return (await check._worker)._process.pid


async def test_files_are_checked_in_one_warm_process(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    assert (await check(b"no package", "192.0.2.1"))["verdict"] == "invalid"
    first = await process_of(check)
    assert (await check(GOOD, "192.0.2.2"))["verdict"] == "verified"
    assert await process_of(check) == first


async def test_a_process_that_is_killed_is_the_nodes_fault_and_replaced(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    await check(GOOD, "192.0.2.1")
    os.kill(await process_of(check), signal.SIGKILL)
    with pytest.raises(Unavailable) as caught:
        await check(GOOD, "192.0.2.1")
    assert caught.value.code is Code.SERVICE_UNAVAILABLE
    assert (await check(GOOD, "192.0.2.1"))["verdict"] == "verified"


async def test_a_file_that_takes_too_long_ends_the_process_and_the_next_one_has_another(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    slow = making.package_bytes("slow").replace(b'"type": "object"', b'"pattern": "(a*)*b"')
    deep = b"metadata: " + b"[" * 100_000
    for data in (slow, deep):
        with suppress(InvalidInput):  # a faster machine may come to the end of it
            await check(data, "192.0.2.1")
    assert (await check(GOOD, "192.0.2.1"))["verdict"] == "verified"


async def test_a_start_that_outlasts_a_file_is_for_the_next_one(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 0.001)
    with pytest.raises(Unavailable):
        await check(GOOD, "192.0.2.1")
    first = await process_of(check)
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    assert (await check(GOOD, "192.0.2.1"))["verdict"] == "verified"
    assert await process_of(check) == first


async def test_the_process_ends_some_time_after_the_last_file(
    check: FileValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate_file, "WAIT_S", 600.0)
    monkeypatch.setattr(validate_file, "IDLE_S", 0.05)
    await check(GOOD, "192.0.2.1")
    while check._worker is not None:  # noqa: ASYNC110 - a timer of the loop ends it
        await asyncio.sleep(0.05)
    assert (await check(GOOD, "192.0.2.1"))["verdict"] == "verified"
