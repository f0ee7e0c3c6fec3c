from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.hexadecimal import unhex
from capdex.errors import Code, UsageError
from capdex.net.rpc import aiohttp_transport, failover, replies, transport
from capdex.net.rpc import client as rpc
from capdex.net.rpc import errors as faults
from capdex.net.rpc import types as wire
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.endpoint import redact, split_schemes
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.transport import PlainTransport
from capdex.registry.logs import LogColumns, RawLog

HASH = "0x" + "ab" * 32
LOG: dict[str, Any] = {
    "address": "0x" + "11" * 20,
    "topics": [HASH],
    "data": "0x",
    "blockNumber": "0x5",
    "blockHash": HASH,
    "transactionHash": HASH,
    "logIndex": "0x0",
}


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(rpc, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(rpc, "BACKOFF_CAP_S", 0.001)


@pytest.fixture
async def endpoint():
    """Serve JSON-RPC by a function from (call, how many requests before it) to a reply."""
    servers = []

    async def start(reply):
        seen = []

        async def serve(request):
            body = orjson.loads(await request.read())
            seen.append(body)
            answer = reply(body, len(seen) - 1)
            if isinstance(answer, web.StreamResponse):
                return answer
            return web.Response(body=orjson.dumps(answer), content_type="application/json")

        app = web.Application()
        app.router.add_post("/{tail:.*}", serve)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/")), seen

    yield start
    for server in servers:
        await server.close()


def answer(body, result):
    return {"jsonrpc": "2.0", "id": body["id"], "result": result}


def refusal(body, code, message):
    return {"jsonrpc": "2.0", "id": body["id"], "error": {"code": code, "message": message}}


@pytest.mark.parametrize(
    "first",
    [
        web.Response(body=b"<html>", content_type="text/html"),
        web.Response(body=b'{"jsonrpc":"2.0","id":1,"resu'),
        web.Response(status=503),
        web.Response(status=429, headers={"Retry-After": "0"}),
        {"jsonrpc": "2.0", "id": 999, "result": "0x7"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": "seven"},
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "internal error"}},
        {"jsonrpc": "2.0", "id": 1, "error": "a string"},
        [],
        7,
    ],
)
async def test_a_reply_that_is_none_is_asked_for_again(endpoint, first):
    url, seen = await endpoint(lambda body, n: answer(body, "0x1") if n else first)
    async with Rpc([url]) as chain:
        assert await chain.chain_id() == 1
    assert len(seen) == 2


async def test_the_next_endpoint_is_asked_when_the_first_refuses_for_good(endpoint):
    bad, _ = await endpoint(lambda body, n: web.Response(status=401))
    good, seen = await endpoint(lambda body, n: answer(body, "0x1"))
    async with Rpc([bad, good]) as chain:
        assert await chain.chain_id() == 1
    assert len(seen) == 1


async def test_a_method_that_an_endpoint_lacks_is_named(endpoint):
    lacks = {"error": {"code": -32601, "message": "Method not found"}}
    url, _ = await endpoint(lambda body, n: {"jsonrpc": "2.0", "id": body["id"], **lacks})
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.chain_id()
    assert caught.value.why == "eth_chainId: Method not found"
    assert caught.value.fix == "name another endpoint with --rpc-url"


async def test_an_endpoint_that_asks_for_patience_is_left_alone_meanwhile(endpoint):
    slow = web.Response(status=429, headers={"Retry-After": "60"})
    busy, asked = await endpoint(lambda body, n: slow)
    good, _ = await endpoint(lambda body, n: answer(body, "0x1"))
    async with Rpc([busy, good]) as chain:
        for _ in range(5):
            await chain.chain_id()
    assert len(asked) == 1


async def test_a_call_fails_when_every_endpoint_has_failed(endpoint):
    url, seen = await endpoint(lambda body, n: web.Response(status=502))
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.chain_id()
    assert caught.value.code == Code.RPC_UNAVAILABLE
    assert len(seen) == failover.MAX_ATTEMPTS


async def test_nobody_listening_is_unavailable(unused_tcp_port):
    async with Rpc([f"http://127.0.0.1:{unused_tcp_port}/v3/secret"]) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.chain_id()
    assert caught.value.code == Code.RPC_UNAVAILABLE
    assert "secret" not in str(caught.value.to_json())


async def test_redirects_are_not_followed(endpoint):
    target, seen = await endpoint(lambda body, n: answer(body, "0x1"))
    url, _ = await endpoint(lambda body, n: web.Response(status=307, headers={"Location": target}))
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError):
            await chain.chain_id()
    assert not seen


@pytest.mark.parametrize("kind", [PlainTransport, AiohttpTransport])
@pytest.mark.parametrize(("hints", "heard"), [(3, True), (10_000, False)])
async def test_an_endpoint_that_sends_informational_responses_only_has_failed(kind, hints, heard):
    async def soon(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:"))
        call = orjson.loads(await reader.readexactly(int(length.split(b":")[1])))
        body = orjson.dumps(answer(call, "0x1"))
        reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * hints + reply)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(soon, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Rpc([url], transport=kind()) as chain:
        if heard:
            assert await chain.chain_id() == 1
        else:
            with pytest.raises(RpcError) as caught:
                await chain.chain_id()
            assert caught.value.code == Code.RPC_UNAVAILABLE


@pytest.mark.parametrize(
    ("kind", "zipped"),
    [(PlainTransport, False), (AiohttpTransport, False), (AiohttpTransport, True)],
)
async def test_a_reply_over_the_limit_is_a_range_too_large(endpoint, monkeypatch, kind, zipped):
    monkeypatch.setattr(transport, "MAX_REPLY_BYTES", 1000)
    monkeypatch.setattr(aiohttp_transport, "MAX_REPLY_BYTES", 1000)
    body = b'"' + b"0" * 100_000 + b'"'
    headers = {"Content-Encoding": "gzip"} if zipped else {}
    huge = gzip.compress(body) if zipped else body
    url, _ = await endpoint(lambda call, n: web.Response(body=huge, headers=headers))
    async with Rpc([url], transport=kind()) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.call("eth_getLogs", [{}])
    assert caught.value.fault is RpcFault.TOO_LARGE_RANGE


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1.5", b'"ab"', b'{"address":"0x"}'])
async def test_megabytes_of_next_to_nothing_are_no_reply(endpoint, monkeypatch, value):
    monkeypatch.setattr(replies, "LONG_BYTES", 10_000)
    body = b'{"id":1,"result":[' + b",".join([value] * 10_000) + b"]}"
    url, _ = await endpoint(lambda call, n: web.Response(body=body))
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError, match="did not answer") as caught:
            await chain.call("eth_getLogs", [{}])
    assert "next to nothing" in caught.value.why


def test_a_long_reply_of_logs_is_one(monkeypatch):
    monkeypatch.setattr(replies, "LONG_BYTES", 10_000)
    body = orjson.dumps({"id": 1, "result": [LOG] * 100})
    assert replies.read_one("here", replies.RpcReply(200, None, body), 1, len) == 100


async def test_batches_are_answered_in_the_order_asked(endpoint):
    url, seen = await endpoint(lambda body, n: [answer(c, c["params"][0]) for c in body][::-1])
    async with Rpc([url]) as chain:
        assert await chain.batch([("echo", [n]) for n in range(250)]) == list(range(250))
    # They are sent side by side, so an endpoint may see them in another order.
    assert sorted(len(body) for body in seen) == [50, 100, 100]


async def test_an_endpoint_without_batches_is_asked_one_by_one(endpoint):
    def reply(body, n):
        if isinstance(body, list):
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
        return answer(body, body["params"][0])

    url, _ = await endpoint(reply)
    async with Rpc([url]) as chain:
        assert await chain.batch([("echo", [n]) for n in range(3)]) == [0, 1, 2]


async def test_batches_are_as_long_as_an_endpoint_takes(endpoint):
    def reply(body, n):
        if isinstance(body, list) and len(body) > 20:
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
        calls = body if isinstance(body, list) else [body]
        answers = [answer(call, call["params"][0]) for call in calls]
        return answers if isinstance(body, list) else answers[0]

    url, seen = await endpoint(reply)
    async with Rpc([url]) as chain:
        for _ in range(2):
            assert await chain.batch([("echo", [n]) for n in range(90)]) == list(range(90))
    assert [len(body) for body in seen[:3]] == [90, 45, 22]
    assert max(len(body) for body in seen[3:]) == 11


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (31, "Batch of more than 3 requests are not allowed on free tier"),
        (-32000, "batch limit 3 exceeded. Requested batch of size: 4"),
        (-32005, "Batched requests are not supported by this server"),
        (-32005, "Number of requests in batch exceeds --rpc-max-batch-size"),
        (-32005, "Batch size limit exceeded"),
        (-32010, "The batch request was too large"),
        (-32600, "batch too large"),
    ],
)
async def test_every_way_to_refuse_a_long_batch_is_understood(
    endpoint, code, words, listed, status
):
    def reply(body, n):
        if isinstance(body, dict):
            return answer(body, body["params"][0])
        if len(body) <= 3:
            return [answer(call, call["params"][0]) for call in body]
        refused = refusal({"id": None}, code, words)
        return web.Response(body=orjson.dumps([refused] if listed else refused), status=status)

    url, seen = await endpoint(reply)
    async with Rpc([url]) as chain:
        assert await chain.batch([("echo", [n]) for n in range(6)]) == list(range(6))
    assert [len(body) for body in seen] == [6, 3, 3]


@pytest.mark.parametrize("status", [200, 500, 502])
async def test_batches_that_only_fail_are_tried_shorter(endpoint, monkeypatch, status):
    monkeypatch.setattr(rpc, "BACKOFF_BASE_S", 0.001)

    def reply(body, n):
        if isinstance(body, dict):
            return answer(body, "0x1" if body["method"] == "eth_chainId" else body["params"][0])
        if len(body) > 3:
            return web.Response(status=status)
        return [answer(call, call["params"][0]) for call in body]

    url, seen = await endpoint(reply)
    async with Rpc([url]) as chain:
        chain.expect(1)
        for _ in range(20):
            with suppress(RpcError):
                assert await chain.batch([("echo", [n]) for n in range(90)]) == list(range(90))
                break
        assert len(seen[-1]) == 2  # 90, 45, 22, 11, 5: each more than once
        seen.clear()
        assert await chain.batch([("echo", [n]) for n in range(90)]) == list(range(90))
    assert {len(body) for body in seen} == {2}


async def test_batches_are_no_longer_than_the_rate_and_what_was_answered_is_kept(endpoint):
    def reply(body, n):
        return [
            answer(call, call["params"][0]) if at < 3 else refusal(call, 429, "compute units")
            for at, call in enumerate(body)
        ]

    url, seen = await endpoint(reply)
    async with Rpc([url]) as chain:
        assert await chain.batch([("echo", [n]) for n in range(7)]) == list(range(7))
    assert [len(body) for body in seen[:2]] == [7, 3]
    assert [call["params"][0] for call in seen[-1]][-1] == 6
    assert sum(call["params"] == [0] for body in seen for call in body) == 2


async def test_a_batch_that_lacks_an_answer_is_asked_again(endpoint):
    def reply(body, n):
        answers = [answer(call, "0x1") for call in body]
        return answers if n else answers[:-1]

    url, seen = await endpoint(reply)
    async with Rpc([url]) as chain:
        assert await chain.batch([("echo", [])] * 3) == ["0x1"] * 3
    assert len(seen) == 2


async def test_logs_of_another_contract_or_block_are_the_endpoints_fault(endpoint):
    url, _ = await endpoint(lambda body, n: answer(body, [LOG]))
    async with Rpc([url]) as chain:
        assert len(await chain.logs(b"\x11" * 20, 5, 5)) == 1
        with pytest.raises(RpcError, match="did not answer"):
            await chain.logs(b"\x22" * 20, 5, 5)
        with pytest.raises(RpcError, match="did not answer"):
            await chain.logs(b"\x11" * 20, 6, 9)


@pytest.mark.parametrize(
    ("code", "message", "fault"),
    [
        (-32005, "query returned more than 10000 results", RpcFault.TOO_LARGE_RANGE),
        (-32602, "query exceeds max block range 100000", RpcFault.TOO_LARGE_RANGE),
        (
            -32602,
            "query exceeds max results 20000, retry with the range 1-2",
            RpcFault.TOO_LARGE_RANGE,
        ),
        (-32000, "block range is too wide", RpcFault.TOO_LARGE_RANGE),
        (-32614, "eth_getLogs is limited to a 10,000 range", RpcFault.TOO_LARGE_RANGE),
        (-32602, "Log response size exceeded. Try a smaller block range", RpcFault.TOO_LARGE_RANGE),
        (-32008, "Response is too big", RpcFault.TOO_LARGE_RANGE),
        (-32000, "exceed maximum block range: 5000", RpcFault.TOO_LARGE_RANGE),
        (
            -32000,
            "Query timeout exceeded. Consider reducing your block range",
            RpcFault.TOO_LARGE_RANGE,
        ),
        (-32005, "daily request count exceeded, request rate limited", RpcFault.RATE),
        (429, "Your app has exceeded its compute units per second capacity", RpcFault.RATE),
        (-32000, "unknown block", RpcFault.UNKNOWN_BLOCK),
        (-32000, "header not found", RpcFault.UNKNOWN_BLOCK),
        (-32000, "header for hash not found", RpcFault.UNKNOWN_BLOCK),
        (-32001, "Resource not found", RpcFault.UNKNOWN_BLOCK),
        (
            -32602,
            "BlockOutOfRangeError: block height is 5, requested was 48",
            RpcFault.BEYOND_HEAD,
        ),
        (-32000, "missing trie node abc (path )", RpcFault.NO_STATE),
        (-32000, "historical state 0xabc is not available", RpcFault.NO_STATE),
        (3, "execution reverted", RpcFault.REVERTED),
        (-32601, "Method not found", RpcFault.FATAL),
        (-32602, "invalid argument 0", RpcFault.FATAL),
        (-32603, "internal error", RpcFault.TRANSIENT),
    ],
)
def test_the_words_of_vendors_are_understood(code, message, fault):
    assert faults.of_error({"code": code, "message": message}) is fault


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["code", "message", "id"]), x),
    )
)
def test_any_error_object_has_a_fault(value):
    assert isinstance(faults.of_error(value), RpcFault)


@given(st.text())
def test_any_retry_after_is_seconds_within_bounds_or_none(text):
    wait_s = faults.retry_after(text)
    assert wait_s is None or 0 <= wait_s <= faults.MAX_RETRY_AFTER_S


@pytest.mark.parametrize("year", ["99999", "9" * 20, "9" * 5000])
def test_a_retry_after_in_a_year_that_no_calendar_has_is_none(year):
    assert faults.retry_after(f"Wed, 21 Oct {year} 07:28:00 GMT") is None


def test_retry_after_reads_seconds_and_dates():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert faults.retry_after("7") == 7
    assert faults.retry_after("Thu, 01 Jan 2026 00:00:09 GMT", now) == 9
    assert faults.retry_after("Wed, 31 Dec 2025 00:00:00 GMT", now) == 0
    assert faults.retry_after("999999") == faults.MAX_RETRY_AFTER_S


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([HASH, "0x5", "0x"]),
    lambda x: st.lists(x) | st.dictionaries(st.sampled_from([*LOG, "number", "hash"]), x),
    max_leaves=20,
)


def read_logs(value: Any) -> LogColumns:
    return wire.read_logs(value, b"\x11" * 20, 5, 6)


def read_log(value: Any) -> RawLog:
    (log,) = read_logs([value])
    return log


@given(_JSON)
def test_no_value_breaks_the_readers_of_the_wire(value):
    for read in (wire.quantity, unhex, wire.read_header, read_log, read_logs):
        try:
            read(value)
        except ValueError:
            continue


@given(st.dictionaries(st.sampled_from(list(LOG)), _JSON))
def test_a_log_with_any_field_replaced_is_read_or_refused(changes):
    try:
        log = read_log({**LOG, **changes})
    except ValueError:
        return
    assert all(len(topic) == 32 for topic in log.topics)


@pytest.mark.parametrize(
    "text", ["0x", "5", "0x-5", "0x+5", "0x1_0", "0x 5", "0x5 ", "0x5\n", "0X5", "0x" + "1" * 65]
)
def test_what_only_a_number_of_python_may_be_spelt_as_is_no_quantity(text):
    with pytest.raises(ValueError, match="quantity"):
        wire.quantity(text)


@pytest.mark.parametrize("text", ["0x5", "0xab cd", "0xabcd ", "0x\tab", "ab", "0xgg", "0xéé"])
def test_data_is_pairs_of_digits_and_nothing_else(text):
    with pytest.raises(ValueError):
        unhex(text)


@pytest.mark.parametrize("key", sorted(set(LOG) - {"removed"}))
@pytest.mark.parametrize("value", [None, 5, [], {}, "0x", "0x" + " " * 64])
def test_a_part_of_a_log_that_is_missing_or_of_another_kind_is_refused(key, value):
    if (key, value) in (("data", "0x"), ("address", "0x"), ("topics", [])):
        return
    with pytest.raises(ValueError):
        read_log({**LOG, key: value})
    with pytest.raises(ValueError, match="missing"):
        read_log({name: value for name, value in LOG.items() if name != key})


def test_logs_come_in_canonical_order_without_doubles():
    second = {**LOG, "logIndex": "0x1"}
    later = {**LOG, "blockNumber": "0x6"}
    logs = wire.read_logs([later, second, LOG, second], b"\x11" * 20, 5, 6)
    assert [(x.position.block_number, x.position.log_index) for x in logs] == [
        (5, 0),
        (5, 1),
        (6, 0),
    ]
    with pytest.raises(ValueError, match="two logs"):
        wire.read_logs([LOG, {**LOG, "data": "0x01"}], b"\x11" * 20, 5, 5)


@pytest.mark.parametrize(
    ("said", "times"),
    [
        ([("0x5", "0x10"), ("0x5", "0x10"), ("0x6", "0x20")], {5: 16, 6: 32}),
        ([("0x5", "0x10"), ("0x6", None)], {}),  # a vendor that has begun to say it
        ([("0x5", "0x10"), ("0x5", "0x11")], {}),
        ([("0x5", "0x10"), ("0x05", "0x10")], {}),
        ([("0x5", 16)], {}),
        ([("0x5", ["0x10"])], {}),
        ([], {}),
    ],
)
def test_the_times_that_logs_say_of_their_blocks_are_taken_where_all_agree(said, times):
    logs = [{**LOG, "blockNumber": number, "blockTimestamp": time} for number, time in said]
    assert wire.read_times(logs) == times


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("https://user:secret@rpc.example/", "https://rpc.example"),
        ("https://rpc.example/v3/secret", "https://rpc.example/…"),
        ("wss://rpc.example?key=secret", "wss://rpc.example/…"),
    ],
)
def test_credentials_in_an_endpoint_are_never_shown(url, shown):
    assert redact(url) == shown


@pytest.mark.parametrize("kind", [PlainTransport, AiohttpTransport])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, "Cannot POST /v3/0123456789abcdef"),
        (403, '{"error":{"code":-32002,"message":"rejected: project 0123456789abcdef"}}'),
        (200, '{"id":null,"error":{"code":-32002,"message":"no key 0123456789abcdef"}}'),
        (200, "no JSON for 0123456789abcdef"),
    ],
)
async def test_a_key_that_an_endpoint_repeats_is_not_shown(endpoint, kind, status, body):
    url, _ = await endpoint(lambda call, n: web.Response(status=status, text=body))
    for place in ("v3/0123456789abcdef", "rpc?key=0123456789abcdef"):
        async with Rpc([url + place], transport=kind()) as chain:
            with pytest.raises(RpcError) as caught:
                await chain.chain_id()
            assert "0123456789abcdef" not in str(caught.value.to_json())
            assert "…" in caught.value.why
            assert "0123456789abcdef" not in str(chain.endpoints_state())


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("me:p%40ss", "p@ss by Basic bWU6cEBzcw=="),
        ("me:x", "x by Basic bWU6eA=="),
        ("0123456789abcdef", "0123456789abcdef by Basic MDEyMzQ1Njc4OWFiY2RlZjo="),
    ],
)
async def test_a_password_that_an_endpoint_repeats_is_not_shown(endpoint, user, said):
    url, _ = await endpoint(lambda call, n: web.Response(status=401, text=f"no {said}"))
    async with Rpc([url.replace("//", f"//{user}@")]) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.chain_id()
    assert caught.value.why == 'HTTP status 401: "no … by Basic …"'


async def test_a_short_key_in_an_address_that_an_endpoint_repeats_is_not_shown(endpoint):
    url, _ = await endpoint(lambda call, n: web.Response(status=401, text="for a.example/k3y: no"))
    async with Rpc([url + "k3y"]) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.chain_id()
    assert caught.value.why == 'HTTP status 401: "for a.example/…: no"'


@pytest.mark.parametrize("kind", [PlainTransport, AiohttpTransport])
async def test_a_reply_that_is_not_http_shows_no_key(kind):
    async def garble(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 two hundred\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(garble, "127.0.0.1", 0)
    at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    url = f"http://user:pass@{at}/v3/0123456789abcdef"
    async with server, Rpc([url], transport=kind()) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.chain_id()
    assert "0123456789abcdef" not in caught.value.why
    assert "\n" not in caught.value.why


NO_URLS = ["", "file:///x", "127.0.0.1:8545", "http://", "http://[", "ipc", "http://a:99999/"]
NO_URLS += ["http://rpc..example", f"http://{'a' * 64}.example"]  # of no host name


@pytest.mark.parametrize("url", NO_URLS)
def test_an_endpoint_that_is_no_url_is_a_usage_error(url):
    with pytest.raises(UsageError):
        Rpc([url])


def test_a_websocket_endpoint_is_asked_over_http():
    chain = Rpc(["ws://127.0.0.1:8545", "https://rpc.example/v3/key"])
    assert chain.websockets == ("ws://127.0.0.1:8545", "wss://rpc.example/v3/key")


def test_the_index_of_a_log_has_32_bits():
    address = bytes.fromhex(LOG["address"][2:])
    number = int(LOG["blockNumber"], 16)
    most = wire.read_logs([LOG | {"logIndex": hex(2**32 - 1)}], address, number, number)
    assert most[0].position.log_index == 2**32 - 1
    with pytest.raises(ValueError, match="32 bits"):
        wire.read_logs([LOG | {"logIndex": hex(2**32)}], address, number, number)


@pytest.mark.parametrize("foreign", [2, "1", -1])
def test_an_error_with_a_foreign_id_is_discarded_as_a_result_with_one_is(foreign):
    error = {"jsonrpc": "2.0", "id": foreign, "error": {"code": 3, "message": "reverted"}}

    def one(data):
        return replies.read_one("here", replies.RpcReply(200, None, data), 1, len)

    def many(data):
        return replies.read_many("here", replies.RpcReply(200, None, data), [1], len)

    for body, read in ((error, one), ([error], many), (error, many)):
        with pytest.raises(RpcError) as failed:
            read(orjson.dumps(body))
        assert failed.value.fault is RpcFault.TRANSIENT
        assert not failed.value.answered
        own = orjson.dumps(body).replace(orjson.dumps(foreign), b"null")
        with pytest.raises(RpcError) as failed:
            read(own)
        assert failed.value.fault is RpcFault.REVERTED


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (301, b"", "HTTP status 301: it redirects; give the address that it redirects to, or one "
         "that does not"),
        (304, b"", "HTTP status 304"),
        (403, b"IP not on the allow list\n", 'HTTP status 403: "IP not on the allow list"'),
        (404, b"<!doctype html><html>", "HTTP status 404: it sends a page for a browser, as a "
         "website does; see that the address is right"),
        (200, b"  <html>hi", "the reply is not JSON: it sends a page for a browser, as a "
         "website does; see that the address is right"),
        (503, b"\x00\x1b[31m" + b"x" * 9000, f"HTTP status 503: \"[31m{'x' * 196}\""),
        (502, b"", "HTTP status 502"),
        (429, b"<html>slow down", "HTTP status 429, with a page for a browser"),
        (407, b"<html>who are you?", "HTTP status 407, with a page for a browser"),
        (200, b"null", 'the reply is not a JSON-RPC object: "null"'),
        (200, b'{"message": "Invalid API key"}', "the reply is not a JSON-RPC object: "
         r'"{\"message\": \"Invalid API key\"}"'),
    ],
)  # fmt: skip
def test_a_reply_that_is_no_rpc_is_named_as_what_it_seems(status, body, why):
    with pytest.raises(RpcError) as failed:
        replies.read_one("here", replies.RpcReply(status, None, body), 1, len)
    assert failed.value.why == why


def test_a_byte_order_mark_in_front_of_a_reply_is_left_out():
    body = b"\xef\xbb\xbf" + orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": "0x7"})
    assert replies.read_one("here", replies.RpcReply(200, None, body), 1, str) == "0x7"


def test_an_id_that_comes_back_as_text_is_named_so():
    body = orjson.dumps({"jsonrpc": "2.0", "id": "1", "result": "0x7"})
    with pytest.raises(RpcError) as caught:
        replies.read_one("here", replies.RpcReply(200, None, body), 1, str)
    assert "id as text" in caught.value.why


def test_two_urls_in_one_setting_are_not_answered_with_the_advice_to_write_them_so():
    with pytest.raises(UsageError) as refused:
        split_schemes("http://127.0.0.1:8545 http://127.0.0.1:8546")
    assert "only a node takes several" in refused.value.fix
