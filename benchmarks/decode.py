"""decode.py [COUNT] [ROUNDS]: what an event of a backfill costs before it is stored, by stage.

Makes the reply of `eth_getLogs` that Anvil would give to COUNT publications, 100 in a block, and
takes it through the stages of a backfill: what a worker does with it, and JSON, logs by column and
drafts of rows in it by themselves; the worker's answer read by the node; the log head. Prints
microseconds of processor time an event, on one core.
"""

from __future__ import annotations

import gc
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import orjson
from eth_abi import encode

from capdex.encoding.keccak import keccak
from capdex.ipld.cid import Cid
from capdex.net.rpc.types import read_logs
from capdex.registry.events import PUBLISHED
from capdex.registry.logs import LogHead
from capdex.uri import name_id
from capdex_indexer.projection.block_range import LogReader, LogRows
from capdex_indexer.workers import frames

T = TypeVar("T")
ACCOUNT = bytes(12) + keccak(b"account")[:20]
REGISTRY = keccak(b"registry")[:20]
VERSIONS = 10  # releases a name
PER_BLOCK = 100
TYPES = ["uint64", "string", "string", "string", "bytes32"]


def reply(count: int, prefix: str) -> bytes:
    """`count` publications as Anvil shows them, of names that begin with `prefix`."""
    logs = []
    for n in range(count):
        name, version = f"{prefix}-{n // VERSIONS}", f"1.{n % VERSIONS}.0"
        sha256 = keccak(f"{name}@{version}".encode())
        uri, block = f"did:nuwa:cap:{name}@{version}", 7 + n // PER_BLOCK
        body = encode(TYPES, [n + 1, uri, version, Cid.raw(sha256).text, sha256])
        logs.append(
            {
                "address": "0x" + REGISTRY.hex(),
                "topics": ["0x" + x.hex() for x in (PUBLISHED, name_id(name), ACCOUNT)],
                "data": "0x" + body.hex(),
                "blockHash": "0x" + keccak(b"block %d" % block).hex(),
                "blockNumber": hex(block),
                "blockTimestamp": hex(1_800_000_000 + block),
                "transactionHash": "0x" + keccak(b"transaction %d" % n).hex(),
                "transactionIndex": hex(n % PER_BLOCK),
                "logIndex": hex(n % PER_BLOCK),
                "removed": False,
            }
        )
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": logs})


def main(count: int, rounds: int) -> None:
    """Take turns, and print the medians."""
    times: dict[str, list[float]] = {}

    def timed(stage: str, call: Callable[[], T]) -> T:
        started = time.process_time()
        made = call()
        times.setdefault(stage, []).append((time.process_time() - started) * 1e6 / count)
        return made

    last = 7 + count // PER_BLOCK
    reader, header = LogReader(REGISTRY, 7, last), ["", 200, None, 1, REGISTRY.hex(), 7, last]
    for number in range(rounds + 1):  # the first one warms up
        body = reply(count, f"round-{number}")  # names that nothing remembers yet
        gc.collect()
        asked = timed("  JSON", partial(orjson.loads, body))["result"]
        logs = timed("  logs", partial(read_logs, asked, REGISTRY, 7, last))
        assert None not in timed("  rows", partial(LogRows.of, logs)).releases
        other = reply(count, f"other-{number}")
        answer = timed("a worker, with its answer", partial(frames.read_logs, header, other))
        log_rows, _ = timed("the answer read", partial(frames.read_columns, answer, reader))
        assert timed("log head", partial(LogHead().through, log_rows.entries))[-1].count == count
        del asked, logs, answer, log_rows

    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    print(f"{count} events of {len(body) // count} bytes, {rounds} rounds, medians")
    middle = {stage: statistics.median(took[1:]) for stage, took in times.items()}
    middle["all of it"] = sum(us for stage, us in middle.items() if stage[0] != " ")
    for stage, us in middle.items():
        print(f"{stage:28s} {us:8.2f} µs an event  {1e6 / us:11,.0f}/s")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [3_000, 9][len(given) :]))
