"""The process that works aside, bounded by the kernel: frames in on stdin, out on stdout.

A call comes as `frame` makes it; what it gave goes back as a 4-byte big-endian length and a pickle.
The parent trusts it as it trusts itself: it is a bound on time and memory, not a sandbox.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import BinaryIO, Final, TypeVar

CPU_S: Final = 1.0  # a package of full size takes 50 ms
MEMORY_BYTES: Final = 256 * 1024 * 1024  # on top of what the warm process holds
GARBAGE: Final = 100_000  # objects before cycles are looked for: a package leaves next to none
LENGTH: Final = struct.Struct(">I")
WARM: Final = (
    "capdex.net.rpc.replies",
    "indexer.projection.log_rows",
    "indexer.projection.package_rows",
)  # what work is made of

T = TypeVar("T")
Frame = list[bytes | memoryview]


def frame(work: Callable[[], object]) -> Frame:
    """A call on its way to a worker: how many parts, how long each, and the parts.

    The first is a pickle, the others are what that has left out of band (PEP 574), not copied.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(work, protocol=5, buffer_callback=buffers.append)
    parts: Frame = [pickled, *(buffer.raw() for buffer in buffers)]
    return [b"".join(map(LENGTH.pack, (len(parts), *map(len, parts)))), *parts]


def main() -> None:
    """Do what comes until stdin closes."""
    frames, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not break a frame
    for module in WARM:
        import_module(module)
    _bound_memory()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    _send(answers, None)  # warm: everything is imported
    while parts := _receive(frames):
        work = pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - from our own parent
        # It counts from here: a limit of the whole process (RLIMIT_CPU) is held against a clock of
        # the kernel's that runs ahead of the one we can read, by seconds in the end.
        signal.setitimer(signal.ITIMER_PROF, CPU_S)  # SIGPROF ends the process
        try:
            answer = work()
        except MemoryError:
            _send(answers, "it took more memory than it may")
            return  # what is left of the memory is not the next one's affair
        signal.setitimer(signal.ITIMER_PROF, 0)
        _send(answers, answer)


def attempt(work: Callable[[], T]) -> list[T]:
    """What the work gives, alone in a list; an empty one where it raises."""
    try:
        return [work()]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whoever asked does it again, and meets the fault there
        return []


def _bound_memory() -> None:
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


def _receive(stream: BinaryIO) -> list[bytes]:
    """The parts of a frame; none where the stream has ended."""
    try:
        (count,) = LENGTH.unpack(stream.read(LENGTH.size))
        lengths = [LENGTH.unpack(stream.read(LENGTH.size))[0] for _ in range(count)]
    except struct.error:
        return []
    parts = [stream.read(length) for length in lengths]
    return parts if [*map(len, parts)] == lengths else []


def _send(stream: BinaryIO, value: object) -> None:
    body = pickle.dumps(value)
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


if __name__ == "__main__":
    main()
