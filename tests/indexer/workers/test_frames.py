"""Replies read by workers: the columns are what the reader makes here, or are refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.hexadecimal import to_hex
from capdex.net.rpc.replies import RpcReply, read_one
from capdex_indexer.projection.block_range import LogReader
from capdex_indexer.workers.frames import REQUEST, read_columns, read_logs, read_request


def reply_of(chain: Any) -> bytes:
    """An `eth_getLogs` reply with every log of a chain."""
    logs = [
        {
            "address": to_hex(log.address),
            "blockNumber": hex(log.position.block_number),
            "blockHash": to_hex(log.position.block_hash),
            "transactionHash": to_hex(log.position.tx_hash),
            "logIndex": hex(log.position.log_index),
            "topics": [to_hex(topic) for topic in log.topics],
            "data": to_hex(log.data),
            "blockTimestamp": hex(1000 + log.position.block_number),
        }
        for log in chain.logs
    ]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": logs}).encode()


@pytest.fixture
def reader(making: Any) -> LogReader:
    return LogReader(making.REGISTRY, 1, 9)


@pytest.fixture
def data(making: Any, chain: Any) -> bytes:
    chain.mine(making.published(), making.published("weather"), making.yanked("note", "1.0.0"))
    chain.mine(making.committed(), making.published("note", "not a version"))
    return reply_of(chain)


def answered(reader: LogReader, data: bytes) -> bytes:
    """What a worker answers to the request for this reply."""
    head, body = read_request("endpoint", RpcReply(200, None, data), 1, reader)
    return read_logs(json.loads(head[REQUEST.size :]), body)


def test_the_columns_are_what_the_reader_makes_here(reader: LogReader, data: bytes) -> None:
    drafts, times = read_columns(answered(reader, data), reader)
    assert (drafts, times) == read_one("endpoint", RpcReply(200, None, data), 1, reader)
    assert len(drafts) == 5
    assert len(times) == 2
    assert sum(release is not None for release in drafts.releases) == 2


def test_a_reply_without_logs_has_empty_columns(reader: LogReader) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":[]}'
    drafts, times = read_columns(answered(reader, data), reader)
    assert (drafts, times) == read_one("endpoint", RpcReply(200, None, data), 1, reader)


FORGED: list[tuple[int, Any]] = [  # by the place of a column in an answer
    (0, [0, 1, 1, 2, 2]),
    (0, [1, 1, 1, 2, 99]),
    (0, [1, 1, 1, 2, "2"]),
    (0, [1, 1, 1, 2]),
    (0, [1, 1, 1, 2, 1 << 63]),
    (0, None),
    (1, [b"x" * 31] * 5),
    (2, [b"x" * 32] * 4),
    (3, [0, 1, 1, 0, 1]),
    (3, [0, 1, 1 << 32, 0, 1]),
    (3, [True, 1, 2, 0, 1]),
    (4, [b"x" * 31] * 5),
    (4, [b"x" * 160] * 5),
    (5, []),
    (6, ["x" * 32] * 5),
    (7, [None] * 4),
    (7, [1, None, None, None, None]),
    (7, [("x" * 300, "", "", True, "", "", b"x" * 32, ""), None, None, None, None]),
    (7, [("", "", "", 1, "", "", b"x" * 32, ""), None, None, None, None]),
    (7, [("", "", "", True, "", "", b"x" * 31, ""), None, None, None, None]),
    (8, {1: -1}),
    (8, []),
]


@pytest.mark.parametrize(("column", "value"), FORGED)
def test_columns_of_other_types_lengths_or_order_are_refused(
    reader: LogReader, data: bytes, column: int, value: Any
) -> None:
    fields = msgspec.msgpack.decode(answered(reader, data), strict=False)
    fields[column] = value
    with pytest.raises(ValueError):
        read_columns(msgspec.msgpack.encode(fields), reader)


@given(st.binary(max_size=64), st.integers(0, 2000), st.integers(0, 2000))
def test_any_other_bytes_are_refused_or_well_formed(more: bytes, start: int, end: int) -> None:
    reader = LogReader(b"\x22" * 20, 0, 9)
    answer = answered(reader, b'{"jsonrpc":"2.0","id":1,"result":[]}')
    spoilt = answer[:start] + more + answer[end:]
    try:
        drafts, _ = read_columns(spoilt, reader)
    except (ValueError, msgspec.DecodeError):
        return
    assert len(drafts) == len(drafts.releases) == len(drafts.logs)
