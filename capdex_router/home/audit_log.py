"""The audit log: one JSON line for each decision and call, chained by hash.

Each line carries the sha256 of the line before, so a changed or removed line breaks the chain. The
end of the file is not protected: whoever may write it may cut it off.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import orjson

from capdex.net.files import saying, unusable

FIRST: Final = "0" * 64  # `previous` of the first line
MAX_LINE_BYTES: Final = 64 * 1024
# No event has more than 24 fields. Those that name a call and its capability are always shorter.
MAX_FIELD_BYTES: Final = 2 * 1024
_UNWRITABLE: Final = ("the audit log cannot be written", "see that the disk is not full")


class _Chained(msgspec.Struct):
    previous: str


_previous: Final = msgspec.json.Decoder(_Chained).decode


@dataclass(frozen=True, slots=True)
class Report:
    """The check of a log: how many lines it has, and the number of the first that does not fit."""

    lines: int
    broken: int | None = None


class AuditLog:
    """Appends to a log that several processes share; the file is for its user alone.

    It is opened by the first line or check, so that what only reads needs no writable directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def _follow(self) -> None:
        """Open the log if it is not, or was moved away or removed: no one would find the line."""
        with suppress(FileNotFoundError):
            if self._file >= 0 and os.path.samestat(self._path.stat(), os.fstat(self._file)):
                return
        self.close()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fix = f"see who owns {self._path}, and its mode"
        with saying("the audit log cannot be opened", fix):
            self._file = os.open(self._path, flags, 0o600)
        self._end = 0
        self._last = FIRST

    def check(self) -> None:
        """Raise UsageError UNREADABLE if the log cannot be opened: no call may run then."""
        with saying(*_UNWRITABLE):
            self._follow()

    def write(self, event: str, **fields: object) -> None:
        """Append one line: time, event and fields, which are JSON values.

        In a line over MAX_LINE_BYTES a field over MAX_FIELD_BYTES, such as the list of accesses, is
        `{sha256, bytes, items, start}` of its JSON.

        Raises UsageError UNREADABLE if it cannot be written whole; nothing of it stays then.
        """
        with saying(*_UNWRITABLE):
            self._follow()
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                self._catch_up()
                at = datetime.now(UTC).isoformat(timespec="milliseconds")
                entry = {"previous": self._last, "at": at, "event": event, **fields}
                line = orjson.dumps(entry)
                if len(line) > MAX_LINE_BYTES:
                    line = orjson.dumps({name: _short(value) for name, value in entry.items()})
                written = os.write(self._file, line + b"\n")
                if written != len(line) + 1:
                    os.ftruncate(self._file, self._end)
                    raise OSError("there is no room for the line")
                self._end += written
                self._last = _digest(line)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        """Take note of the lines that other processes wrote."""
        end = os.fstat(self._file).st_size
        if end == self._end:
            return
        start = max(0, end - 2 * MAX_LINE_BYTES)
        tail = os.pread(self._file, end - start, start)
        if not tail.endswith(b"\n"):  # a process died while it wrote: its line stays, ended
            os.write(self._file, b"\n")
            tail, end = tail + b"\n", end + 1
        self._last = _digest(tail[:-1].rpartition(b"\n")[2]) if end else FIRST
        self._end = end

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verify(path: Path) -> Report:
    """Check the chain of a log; a log that does not exist has no lines.

    A line that a crash cut short is not a break: the next one carries the hash of what is left.
    """
    expected = FIRST
    number = 0
    for number, line in enumerate(_lines(path), 1):
        text = line.removesuffix(b"\n")
        if not _follows(text, expected):
            return Report(number, number)
        expected = _digest(text)
    return Report(number)


def tail(path: Path, count: int) -> list[dict[str, Any]]:
    """Return the last lines of a log; what is not a JSON object is left out."""
    entries = []
    for line in deque(_lines(path), maxlen=count):
        with suppress(orjson.JSONDecodeError):
            value = orjson.loads(line)
            if isinstance(value, dict):
                entries.append(value)
    return entries


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as lines:
            yield from lines
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(f"{path} cannot be read", error, "see who owns it, and its mode") from None


def _follows(line: bytes, expected: str) -> bool:
    try:
        return len(line) <= MAX_LINE_BYTES and _previous(line).previous == expected
    except (msgspec.DecodeError, RecursionError):
        # What a crash left of a line begins as each line does.
        return line.startswith(f'{{"previous":"{expected}"'.encode()[: len(line)])


def _short(value: Any) -> Any:
    data = orjson.dumps(value)
    if len(data) <= MAX_FIELD_BYTES:
        return value
    start = data[: MAX_FIELD_BYTES // 4].decode("utf-8", "ignore")
    return {"sha256": _digest(data), "bytes": len(data), "items": len(value), "start": start}


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
