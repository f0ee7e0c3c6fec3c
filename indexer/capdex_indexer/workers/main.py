"""Worker process, bounded by the kernel in time and memory: frames in on stdin, out on stdout.

The bounds protect the node from packages and replies that take too long or too much memory. They
are no sandbox; the parent checks every answer as it checks any input.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from capdex import package
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.workers.frames import (
    Work,
    WorkStatus,
    read_announcement,
    read_logs,
    receive_request,
    send_answer,
)

CPU_S: Final = 1.0  # a package of full size takes 50 ms
MEMORY_BYTES: Final = 256 * 1024 * 1024  # on top of what the warm process holds
GARBAGE: Final = 100_000  # objects before cycles are looked for: a package leaves next to none


def serve(answer: Callable[[Work, Any, bytes], tuple[WorkStatus, bytes]]) -> None:
    """Answer the requests that arrive until stdin closes."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not break a frame
    _bound_memory()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    send_answer(answers, WorkStatus.DONE)  # everything is imported
    while (request := receive_request(requests)) is not None:
        # An interval timer starts at each request: a limit of the whole process (RLIMIT_CPU) is
        # held against a clock of the kernel's that runs seconds ahead of the one we can read.
        signal.setitimer(signal.ITIMER_PROF, CPU_S)  # SIGPROF ends the process
        try:
            status, body = answer(*request)
        except MemoryError:
            send_answer(answers, WorkStatus.OUT_OF_MEMORY)
            return  # what is left of the memory might not do for the next request
        signal.setitimer(signal.ITIMER_PROF, 0)
        send_answer(answers, status, body)


def main() -> None:
    """Judge packages and read replies until stdin closes."""
    serve(_answer)


def _answer(work: Work, header: Any, body: bytes) -> tuple[WorkStatus, bytes]:
    if work is Work.JUDGE:
        judged = package.judge(read_announcement(header), body)
        return WorkStatus.DONE, Judgement.of(judged).to_json()
    try:
        return WorkStatus.DONE, read_logs(header, body)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the parent reads the reply again, and meets the error there
        return WorkStatus.FAILED, b""


def _bound_memory() -> None:
    """Bound the memory of this process to what it holds now and MEMORY_BYTES more, on Linux."""
    if sys.platform != "linux":
        return  # elsewhere the parent's clock alone bounds it
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - not a path of ours
        held = int(statm.read().split()[0]) * resource.getpagesize()
    _lower(resource.RLIMIT_AS, held + MEMORY_BYTES)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(what: int, limit: int) -> None:
    """Set a soft limit, within the hard one that the operator may have set."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (limit if hard < 0 else min(limit, hard), hard))


if __name__ == "__main__":
    main()
