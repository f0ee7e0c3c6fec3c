"""A file that several processes change: read again when it changed, and written as a whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Generic, TypeVar

import orjson
from filelock import FileLock

from capdex.errors import Code, UsageError
from capdex.net.files import read_bounded, write_whole

MAX_BYTES: Final = 64 * 1024 * 1024

Value = TypeVar("Value")


class SharedFile(Generic[Value]):
    """A value in a file for its user alone, and the lock beside it; no file holds `empty`.

    `parse` and `dump` make the value of bytes, and bytes of the value. What `parse` raises passes
    upward, with the path of the file, which stays as it is.
    """

    def __init__(
        self,
        path: Path,
        empty: Value,
        parse: Callable[[bytes], Value],
        dump: Callable[[Value], bytes],
    ) -> None:
        self._path = path
        self._value = self._empty = empty
        self._parse = parse
        self._dump = dump
        lock = path.with_name(path.name + ".lock")
        self._lock = FileLock(lock, mode=0o600, poll_interval=0.005)  # a change takes about as long
        self._seen: object = None

    @property
    def stamp(self) -> object:
        """A value that is equal as long as the file is the same; None if there is none."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_ctime_ns, status.st_size

    def read(self) -> Value:
        """Return the value, which is not to be changed; read again if the file is another one."""
        stamp = self.stamp
        if stamp is None:
            return self._load()
        if stamp != self._seen:
            self._value, self._seen = self._load(), stamp
        return self._value

    def change(self, to: Callable[[Value], Value]) -> Value:
        """Write what `to` makes of the value, if that is another; return the value before.

        No other process changes the file meanwhile.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock:
            before = self._load()
            after = to(before)
            if after != before:
                write_whole(self._path, self._dump(after))
        return before

    def _load(self) -> Value:
        data = read_bounded(self._path, MAX_BYTES)
        try:
            return self._empty if data is None else self._parse(data)
        except UsageError as error:
            raise replace(error, why=f"{self._path}: {error.why}") from None


def texts_file(path: Path, fix: str) -> SharedFile[dict[str, str]]:
    """Return a file of a JSON object of texts; others raise UsageError UNREADABLE, with `fix`."""

    def parse(data: bytes) -> dict[str, str]:
        with suppress(ValueError):
            content = orjson.loads(data)
            if isinstance(content, dict) and all(isinstance(x, str) for x in content.values()):
                return content
        why = "it does not hold an object of texts"
        raise UsageError(f"{path.name} cannot be read", Code.UNREADABLE, why=why, fix=fix)

    options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2
    return SharedFile(path, {}, parse, lambda kept: orjson.dumps(kept, option=options))
