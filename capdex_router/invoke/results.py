"""Long results: stored for a while, answered in slices.

A result over 16 KiB would fill the context of a model. Its start is answered, with a handle under
which the rest is read. What is stored is capped in size and expires.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex.net.files import read_bounded
from capdex_router.model.refs import InvokeResult

PREFIX: Final = "result:"
_HANDLE: Final = re.compile(r"result:([A-Za-z0-9_-]{16})")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of stored results, in bytes and seconds."""

    slice_bytes: int = 16 * 1024
    all_bytes: int = 64 * 1024 * 1024
    expiry_s: float = 3_600.0


class Results:
    """Stored results in a directory that is for its user alone; several routers share it."""

    def __init__(
        self, directory: Path, bounds: Bounds = Bounds(), clock: Callable[[], float] = time.time
    ) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._bounds = bounds
        self._clock = clock

    def shorten(self, result: InvokeResult) -> InvokeResult:
        """Return a result whose output fits a slice; a longer output is stored.

        Where it cannot be, such as on a full disk, its first slice is answered, and why: what made
        the output has run, so that an error would have it run again.
        """
        if result.output is None:
            return result
        text = orjson.dumps(result.output)
        if len(text) <= self._bounds.slice_bytes:
            return result
        try:
            output = self._slice(self._store(text), text, 0)
        except OSError as error:
            why = f"the rest is lost, since it could not be stored: {error.strerror}"
            output = self._slice("", text, 0) | {"result": None, "next": None, "why": why}
        return replace(result, output=output)

    def read(self, handle: str, offset: int = 0) -> Json:
        """Return a slice of a stored output: `{part, bytes, result, next}`.

        `part` is text of the output's JSON from the byte `offset` on; `next` is the call for the
        next slice, or null. Raises InvalidInput NOT_FOUND for an unknown or expired handle.
        """
        if type(offset) is not int or offset < 0:
            raise InvalidInput("offset is not a number from 0 on", fix="make the call in next")
        match = _HANDLE.fullmatch(handle)
        with suppress(OSError):  # what cannot be removed can be read
            self._expire()
        file = None if match is None else self._directory / match[1]
        text = None if file is None else read_bounded(file, self._bounds.all_bytes)
        if text is None:
            raise InvalidInput(
                "there is no such stored result", Code.NOT_FOUND, fix="call the tool again"
            )
        return self._slice(handle, text, offset)

    def _slice(self, handle: str, text: bytes, offset: int) -> Json:
        end = offset + self._bounds.slice_bytes
        while offset < end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1  # the slice ends where a character does
        part = text[offset:end].decode("utf-8", "replace")
        read_on = orjson.dumps({"uri": handle, "input": {"offset": end}}).decode()
        following = f"call {read_on}" if end < len(text) else None
        return {"part": part, "bytes": len(text), "result": handle, "next": following}

    def _store(self, text: bytes) -> str:
        name = secrets.token_urlsafe(12)
        path = self._directory / name
        self._expire(len(text))
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(text)
                stream.flush()  # which sets the time, too
                os.utime(file, (self._clock(), self._clock()))
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return PREFIX + name

    def _expire(self, coming: int = 0) -> None:
        """Remove what has expired, then the oldest until there is room for `coming` bytes."""
        kept = []
        for entry in os.scandir(self._directory):
            try:
                status = entry.stat()
            except FileNotFoundError:  # another router removed it
                continue
            if status.st_mtime + self._bounds.expiry_s <= self._clock():
                Path(entry.path).unlink(missing_ok=True)
            else:
                kept.append((status.st_mtime, status.st_size, entry.path))
        total = coming + sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= self._bounds.all_bytes:
                break
            Path(path).unlink(missing_ok=True)
            total -= size
