"""Frames that have a worker read an `eth_getLogs` reply: the reply in, columns of drafts out.

An answer is the length of a JSON header (4 bytes, big-endian), the header, and all byte columns
joined: block hashes, transaction hashes, entries (32 bytes each), topics, data, and digests of
packages. Numbers, lengths and texts are in the header, by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from operator import lt
from struct import Struct
from typing import Any, Final

import orjson

from capdex.net.rpc.replies import Answer, read_one
from capdex.registry.logs import LogColumns
from indexer.projection.block_range import LogReader, LogRows
from indexer.projection.event_rows import MAX_TEXT_CHARS, Announced
from indexer.workers.frames import Frame, Work, make_request

MAX_REPLY_BYTES: Final = 8 * 1024 * 1024  # larger replies are read in a thread of the node
_LENGTH: Final = Struct(">I")
# Types of the texts and flags of a release (`Announced`), without its digest.
_RELEASE: Final = (str, str, str, bool, str, str, str)
_DIGEST: Final = 6  # its place in `Announced`


def read_request(label: str, answer: Answer, id_: int, reader: LogReader) -> Frame:
    """Return the request to read a reply of `eth_getLogs`."""
    header = [label, answer.status, answer.retry_after_s, id_]
    blocks = [reader.address.hex(), reader.first, reader.last]
    return make_request(Work.READ_LOGS, header + blocks, answer.data)


def read_logs(header: list[Any], data: bytes) -> bytes:
    """Read the reply of a request; raise RpcError as `read_one` does. The worker's side."""
    label, status, retry_after_s, id_, address, first, last = header
    reader = LogReader(bytes.fromhex(address), first, last)
    drafts, times = read_one(label, Answer(status, retry_after_s, data), id_, reader)
    logs = drafts.logs
    announced = [(at, one) for at, one in enumerate(drafts.releases) if one is not None]
    texts = [(*one[:_DIGEST], *one[_DIGEST + 1 :]) for _, one in announced]
    fields = {
        "numbers": logs.block_numbers,
        "indexes": logs.log_indexes,
        "topics": [*map(len, logs.topics)],
        "data": [*map(len, logs.data)],
        "announced": [at for at, _ in announced],
        "releases": list(zip(*texts, strict=True)),
        "times": [list(times), list(times.values())],
    }
    text = orjson.dumps(fields)
    digests = [one[_DIGEST] for _, one in announced]
    hashes = (logs.block_hashes, logs.tx_hashes, drafts.entries)
    columns = [b"".join(column) for column in (*hashes, logs.topics, logs.data, digests)]
    return b"".join([_LENGTH.pack(len(text)), text, *columns])


def read_columns(answer: bytes, reader: LogReader) -> tuple[LogRows, dict[int, int]]:
    """Return what `LogReader` makes of the reply, from a worker's answer.

    Raises ValueError unless each column has its type and length, and the logs are in canonical
    order and in the blocks of the request.
    """
    size = int.from_bytes(answer[: _LENGTH.size], "big")
    fields = orjson.loads(answer[_LENGTH.size : _LENGTH.size + size])
    numbers, indexes = _ints(fields["numbers"]), _ints(fields["indexes"], below=1 << 32)
    topics, data = _ints(fields["topics"], below=129), _ints(fields["data"])
    announced, (blocks, times) = _ints(fields["announced"]), map(_ints, fields["times"])
    count, releases = len(numbers), fields["releases"]
    places = list(zip(numbers, indexes, strict=True))
    if count and not reader.first <= numbers[0] <= numbers[-1] <= reader.last:
        raise ValueError("a log is of a block that was not asked for")
    if not _ascends(places) or not _ascends(announced) or any(size % 32 for size in topics):
        raise ValueError("the logs are out of order, or a topic is cut")
    if announced and announced[-1] >= count:
        raise ValueError("a release is of no log")
    sizes = ([32] * count, [32] * count, [32] * count, topics, data, [32] * len(announced))
    if len(answer) != _LENGTH.size + size + sum(map(sum, sizes)):
        raise ValueError("the columns have another length than their header says")
    byte_columns = _cut(answer, _LENGTH.size + size, sizes)
    block_hashes, tx_hashes, entries, topic_column, data_column, digests = byte_columns
    if len(topics) != count or len(data) != count:
        raise ValueError("the columns differ in length")
    logs = LogColumns(
        [reader.address] * count,
        numbers,
        block_hashes,
        tx_hashes,
        indexes,
        topic_column,
        data_column,
    )
    found: list[Announced | None] = [None] * count
    for at, release in zip(announced, _releases(releases, digests), strict=True):
        found[at] = release
    return LogRows(logs, entries, found), dict(zip(blocks, times, strict=True))


def _releases(columns: list[list[Any]], digests: list[bytes]) -> Iterator[Announced]:
    if not digests:
        return iter(())
    for kind, column in zip(_RELEASE, columns, strict=True):
        if {*map(type, column)} != {kind}:
            raise ValueError("a column of releases has another type")
        if kind is str and max(map(len, column)) > MAX_TEXT_CHARS:
            raise ValueError("a text of a release is too long")
    return zip(*columns[:_DIGEST], digests, *columns[_DIGEST:], strict=True)


def _ints(column: Any, below: int = 1 << 63) -> list[int]:
    if type(column) is not list or {*map(type, column)} - {int}:
        raise ValueError("a column is not one of whole numbers")
    if column and not 0 <= min(column) <= max(column) < below:
        raise ValueError("a number is out of its range")
    return column


def _ascends(values: Sequence[Any]) -> bool:
    return all(map(lt, values, islice(values, 1, None)))


def _cut(joined: bytes, at: int, columns: Sequence[list[int]]) -> Iterator[list[bytes]]:
    """Yield the byte columns that begin at `at`, by the sizes of their values."""
    for sizes in columns:
        ends = [*accumulate(sizes, initial=at)]
        yield [joined[start:end] for start, end in pairwise(ends)]
        at = ends[-1]
