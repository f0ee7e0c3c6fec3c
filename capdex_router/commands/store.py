"""Learned tools in files, `<directory>/<tool>/tool.json`, which several processes share."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from capdex.errors import CapdexError, Code, InvalidInput, UsageError
from capdex.net.files import read_bounded, write_whole
from capdex_router.commands.learned import MAX_LEARNED_BYTES, Learned

FILE: Final = "tool.json"
MAX_TOOLS: Final = 256

log = structlog.get_logger(part="router")


class LearnedStore:
    """The learned tools of an installation."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[tuple[str, int, int, int], ...] | None = None
        self._tools: dict[str, Learned] = {}

    @property
    def revision(self) -> tuple[tuple[str, int, int, int], ...]:
        """A value that is equal as long as no tool is learned, learned again or forgotten."""
        entries = []
        with suppress(FileNotFoundError), os.scandir(self._directory) as folders:
            for folder in folders:
                with suppress(OSError):
                    stat = (Path(folder) / FILE).stat()
                    entries.append((folder.name, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return tuple(sorted(entries)[:MAX_TOOLS])

    def all(self) -> dict[str, Learned]:
        """Return the tools by name, in order; one whose file is damaged is left out, and logged."""
        revision = self.revision
        if revision != self._seen:
            pairs = ((name, self._read(name)) for name, *_ in revision)
            self._tools = {name: learned for name, learned in pairs if learned is not None}
            self._seen = revision
        return self._tools

    def put(self, learned: Learned) -> None:
        """Keep a tool; one of the same name goes. Raises UsageError for more than MAX_TOOLS."""
        name = learned.tool.manifest.name
        if name not in self.all() and len(self.all()) >= MAX_TOOLS:
            raise UsageError(
                f"over {MAX_TOOLS} tools are learned", Code.TOO_LARGE, fix="remove some"
            )
        folder = self._directory / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / FILE, learned.to_bytes())

    def remove(self, name: str) -> None:
        """Forget a tool, if it is there."""
        if name in self.all():
            shutil.rmtree(self._directory / name)

    def _read(self, name: str) -> Learned | None:
        path = self._directory / name / FILE
        try:
            learned = Learned.from_json(read_bounded(path, MAX_LEARNED_BYTES) or b"")
            if learned.tool.manifest.name != name:
                raise InvalidInput("it has the name of another tool", fix="learn the program again")
        except CapdexError as error:
            log.warning("a learned tool is left out", file=str(path), why=str(error)[:200])
            return None
        return learned
