"""A helper of a reader's search: `python -m capdex_indexer.query.search DESCRIPTOR`."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from sqlalchemy import Engine

from capdex.errors import CapdexError
from capdex_indexer.db.engine import open_reader, transaction
from capdex_indexer.query.search.documents import read_range
from capdex_indexer.query.search.live import LiveSearch
from capdex_indexer.query.search.mapped_encoder import MappedEncoder
from capdex_indexer.query.search.processes import (
    NICENESS,
    BuildRequest,
    EncodeRequest,
    ProcessAnswer,
    Request,
    SaveRequest,
)
from capdex_indexer.query.search.snapshots import Snapshots
from capdex_indexer.query.search.state import Segments


def main() -> None:
    """Answer the requests of the reader until it closes its end."""
    os.nice(NICENESS)
    with closing(Connection(int(sys.argv[1]))) as reader:
        while True:
            try:
                request = msgspec.msgpack.decode(reader.recv_bytes(), type=Request)
            except EOFError:
                return
            _send(reader, _answer(request, reader))


def _answer(request: Request, reader: Connection) -> ProcessAnswer:
    try:
        match request:
            case BuildRequest():
                with transaction(_database(request.database)) as connection:
                    read = read_range(connection, request.first, request.last, request.copies)
                    return ProcessAnswer(Segments.build(list(read)).to_bytes())
            case SaveRequest():
                with transaction(_database(request.database)) as connection:
                    state = LiveSearch(request.database).catch_up(
                        connection, lambda *done: _send(reader, ProcessAnswer(progress=done))
                    )
                Snapshots(Path(request.directory)).save(state)
                return ProcessAnswer()
            case EncodeRequest():
                vectors = _encoder(request.directory).encode(request.texts)
                return ProcessAnswer((vectors.astype("<f4").tobytes(),))
    except (CapdexError, OSError) as error:
        return ProcessAnswer(error=str(error))


def _send(reader: Connection, answer: ProcessAnswer) -> None:
    reader.send_bytes(msgspec.msgpack.encode(answer))


@cache
def _database(url: str) -> Engine:
    return open_reader(url)


@cache
def _encoder(directory: str) -> MappedEncoder:
    return MappedEncoder(Path(directory))


if __name__ == "__main__":
    main()
