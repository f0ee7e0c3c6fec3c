"""Processes beside a reader, which build segments and encode texts while it goes on answering.

A helper (`python -m capdex_indexer.query.search`) answers requests on a socket that it shares with
the reader alone, as MessagePack, and ends when the reader closes it or is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import LifoQueue
from typing import Final, Self

import msgspec

from capdex.errors import Unavailable

# -P: never a module of the directory that the reader was started in
COMMAND: Final = (sys.executable, "-P", "-m", "capdex_indexer.query.search")
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # of each helper
LOOK_S: Final = 0.5  # between two calls of `progress`, by which a reader that is closed ends
MOST: Final = 4  # at once, if there are as many processors: each holds 130 to 190 MB
NICENESS: Final = 10  # the reader's answers come first


class BuildRequest(msgspec.Struct, tag="build", frozen=True):
    """Build the segments of words and of triggers of the names from the first to the last."""

    database: str
    first: str
    last: str
    copies: Mapping[str, str | None]  # of `read_copies`


class SaveRequest(msgspec.Struct, tag="save", frozen=True):
    """Build search and routes by helpers of the helper's, and save them in a directory."""

    database: str
    directory: str


class EncodeRequest(msgspec.Struct, tag="encode", frozen=True):
    """Encode texts by the weights in a directory; the answer is the vectors as 32-bit floats."""

    directory: str
    texts: Sequence[str]


Request = BuildRequest | SaveRequest | EncodeRequest
Progress = Callable[[int, int], None]  # packages done, and all


class ProcessAnswer(msgspec.Struct, frozen=True):
    """What a helper made, or why it could not; before it, any number of answers with `progress`."""

    made: tuple[bytes, ...] = ()
    error: str | None = None
    progress: tuple[int, int] | None = None


class SearchProcesses:
    """At most so many helpers; each starts when there is work for it, and ends with the block."""

    def __init__(self, most: int = min(MOST, os.cpu_count() or 1)) -> None:
        self._free: LifoQueue[_Process] = LifoQueue()
        for _ in range(most):
            self._free.put(_Process())
        self._helpers = list(self._free.queue)
        self._threads = ThreadPoolExecutor(most, "search-helper")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for helper in self._helpers:
            helper.close()
        self._threads.shutdown(cancel_futures=True)

    def map(self, requests: Iterable[Request]) -> Iterator[tuple[bytes, ...]]:
        """Return the answers in the order of the requests; raise Unavailable if one fails."""
        return self._threads.map(self.ask, requests)

    def ask(self, request: Request, progress: Progress | None = None) -> tuple[bytes, ...]:
        """Return the answer; `progress` is called every LOOK_S at least, and may raise."""
        helper = self._free.get()
        try:
            answer = helper.ask(request, progress)
        finally:
            self._free.put(helper)
        if answer.error is not None:
            raise Unavailable("a process of the search failed", why=answer.error)
        return answer.made


class _Process:
    """A process, which starts with its first request."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._closed = False

    def ask(self, request: Request, progress: Progress | None) -> ProcessAnswer:
        """Return the answer to one request at a time."""
        done = (0, 0)
        try:
            if self._connection is None:
                self._connection = self._start()
            self._connection.send_bytes(msgspec.msgpack.encode(request))
            while True:
                while progress is not None and not self._connection.poll(LOOK_S):
                    progress(*done)
                answer = msgspec.msgpack.decode(self._connection.recv_bytes(), type=ProcessAnswer)
                if answer.progress is None or progress is None:
                    return answer
                done = answer.progress
                progress(*done)
        except (EOFError, OSError) as error:
            raise Unavailable(
                "a process of the search ended",
                why=str(error) or "it was killed",
                fix="check the machine's memory",
            ) from None

    def close(self) -> None:
        """End the process now; any thread may call it."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                (*COMMAND, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # of the reader it may be a transport
                env=os.environ | ONE_THREAD,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the reader, which ends its helpers
            )
        if self._closed:
            self.close()
        return ours
