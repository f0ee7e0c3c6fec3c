"""CAP on a Unix socket: its requests and answers as JSON-RPC, for its user alone."""

from __future__ import annotations

import asyncio
import socket as sockets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import UsageError
from capdex.json import Json
from capdex_router.faces.cap import Cap
from capdex_router.faces.socket import MAX_CONNECTIONS, MAX_LINE_BYTES, serving
from capdex_router.invoke.invoke import Caller
from tests.router.faces.demo import actions

LISTING = b'{"jsonrpc": "2.0", "id": 7, "method": "capability.list"}'
ECHO = {"capability_id": "did:nuwa:cap:demo#echo", "version": "1.0.0"}


@asynccontextmanager
async def served(home: Path, count: int = 0) -> AsyncIterator[Path]:
    found = actions(home, count)
    path = home / "router.sock"
    async with serving(path, Cap(found.catalog, found.invoker).methods):
        yield path


async def test_a_client_that_is_connected_at_the_end_is_no_fault(tmp_path: Path) -> None:
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with served(tmp_path) as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b'{"jsonrpc": "2.0", "id": 1, "method": "capability.list"}\n')
        assert await reader.readline()
    assert await reader.read() == b""
    writer.close()
    assert faults == []


async def ask(path: Path, *lines: bytes) -> list[Any]:
    """Send lines, end, and return the answers."""
    reader, writer = await asyncio.open_unix_connection(path, limit=2 * MAX_LINE_BYTES)
    writer.write(b"".join(line + b"\n" for line in lines))
    writer.write_eof()
    answers = [orjson.loads(line) async for line in reader]
    writer.close()
    return answers


async def call(path: Path, method: str, **params: Any) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    (answer,) = await ask(path, orjson.dumps(request))
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    return answer.get("result", answer.get("error"))


async def test_capabilities_are_listed_described_and_invoked(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        listed = (await call(path, "capability.list"))["capabilities"]
        described = await call(path, "capability.describe", **ECHO)
        invoked = await call(path, "capability.invoke", ref=ECHO, input={"text": "hi"})
    assert described in listed
    assert (invoked["ok"], invoked["output"]) == (True, {"text": "hi"})


async def test_the_list_comes_in_pages_with_each_capability_once(tmp_path: Path) -> None:
    found, cursor = [], 0
    async with served(tmp_path, 250) as path:
        while cursor is not None:
            page = await call(path, "capability.list", cursor=cursor)
            found += [(x["capability_id"], x["version"]) for x in page["capabilities"]]
            cursor = page.get("next")
    assert len(found) == len(set(found)) == 254


async def test_a_cursor_that_is_null_begins_the_list(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        first = await call(path, "capability.list", cursor=None)
        assert first == await call(path, "capability.list")


async def test_an_unknown_pair_is_not_found(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        for other in ({"version": "2.0.0"}, {"capability_id": "did:nuwa:cap:demo#none"}):
            error = await call(path, "capability.describe", **(ECHO | other))
            assert (error["code"], error["data"]["code"]) == (-32001, "NOT_FOUND")
            result = await call(path, "capability.invoke", ref=ECHO | other, input={})
            assert result["error"]["code"] == "NOT_FOUND"


async def test_a_number_that_would_lose_digits_is_refused(tmp_path: Path) -> None:
    line = orjson.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "capability.invoke",
         "params": {"ref": ECHO, "input": {"text": "x", "more": 0}}}
    ).replace(b'"more":0', b'"more":18446744073709551617')  # fmt: skip
    async with served(tmp_path) as path:
        (answer,) = await ask(path, line)
    assert answer["result"]["error"]["code"] == "INVALID_INPUT"
    assert "numbers within 64 bits" in str(answer)


async def test_nobody_is_asked_on_the_socket(tmp_path: Path) -> None:
    ref = {"capability_id": "did:nuwa:cap:demo#destroy", "version": "1.0.0"}
    async with served(tmp_path) as path:
        result = await call(path, "capability.invoke", ref=ref, input={"text": "x"}, confirm=True)
    assert result["error"]["reason"] == "CONFIRM_NEEDED"


async def test_the_socket_is_for_its_user_alone_and_goes_at_the_end(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(UsageError, match="cannot be used"):
            async with served(tmp_path):
                pass
        assert (await call(path, "capability.list"))["capabilities"]
    assert not path.exists()


async def test_a_socket_that_a_crash_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "router.sock"
    with sockets.socket(sockets.AF_UNIX) as left:
        left.bind(str(path))
    async with served(tmp_path):
        assert (await call(path, "capability.list"))["capabilities"]


async def test_a_link_to_nothing_is_another_file(tmp_path: Path) -> None:
    (tmp_path / "router.sock").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError) as refused:
        async with served(tmp_path):
            pass
    assert refused.value.why == "another file is there"


async def test_a_path_in_no_directory_is_told_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        async with serving(tmp_path / "none" / "router.sock", {}):
            pass
    assert refused.value.why == "No such file or directory"
    assert "107 bytes, in a directory that is there" in (refused.value.fix or "")


async def test_another_file_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "router.sock").write_text("mine")
    with pytest.raises(UsageError):
        async with served(tmp_path):
            pass
    assert (tmp_path / "router.sock").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"id": 1, "method": "capability.list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 3}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "capability.list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "explode"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "capability.describe"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"capability.list","params":{"cursor":-1}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"capability.list","params":{"cursor":true}}', -32602),
        (b"a" * (MAX_LINE_BYTES + 1), -32600),
        (b'{"jsonrpc": "2.0", "id": 18446744073709551617, "method": "capability.list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"capability.list","params":{"timeout_s":"5"}}', -32602),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_bad_request_has_its_code(tmp_path: Path, line: bytes, code: int) -> None:
    async with served(tmp_path) as path:
        (answer,) = await ask(path, line)
    assert answer["error"]["code"] == code


async def test_a_line_that_is_far_too_long_is_told_and_the_next_one_answered(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as path:
        refused, answered = await ask(path, b"a" * (20 * MAX_LINE_BYTES), LISTING)
    assert refused["error"]["message"] == "the request is too long"
    assert answered["id"] == 7


async def test_a_last_line_without_its_end_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        for line, found in ((b'{"jsonrpc": "2.0", "id": 1', "error"), (LISTING, "result")):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(line)
            writer.write_eof()
            assert found in orjson.loads(await reader.read())
            writer.close()


async def test_what_a_client_that_left_had_asked_for_besides_is_not_run(tmp_path: Path) -> None:
    ran: list[object] = []
    begun, left = asyncio.Event(), asyncio.Event()

    async def method(params: Json, _: Caller) -> Json:
        ran.append(params["number"])
        begun.set()
        await left.wait()
        return {}

    def request(number: int) -> bytes:
        return orjson.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "run", "params": {"number": number}}
        )

    path = tmp_path / "router.sock"
    async with serving(path, {"run": method}):
        _, writer = await asyncio.open_unix_connection(path)
        writer.writelines(request(number) + b"\n" for number in (1, 2, 3))
        await begun.wait()
        writer.close()
        await writer.wait_closed()
        left.set()
        await ask(path, *[request(4)] * 3)
    assert ran == [1, 4, 4, 4]


async def test_a_connection_too_many_is_told(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        held = [await asyncio.open_unix_connection(path) for _ in range(MAX_CONNECTIONS)]
        reader, writer = await asyncio.open_unix_connection(path)
        assert "open already" in orjson.loads(await reader.read())["error"]["message"]
        for _, one in (*held, (reader, writer)):
            one.close()


async def test_a_notification_is_not_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as path:
        assert await ask(path, b'{"jsonrpc": "2.0", "method": "capability.list"}') == []


@given(lines=st.lists(st.binary(max_size=200), max_size=3))
def test_any_line_is_answered_or_ignored(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    async def run() -> None:
        async with served(tmp_path_factory.mktemp("home")) as path:
            for answer in await ask(path, *lines):
                assert "error" in answer

    asyncio.run(run())
