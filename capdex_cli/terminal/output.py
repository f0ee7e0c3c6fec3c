"""Output: results on stdout, everything else on stderr.

A result has four formats: `human`, `json` (one document), `jsonl` (one object a line; the default
if stdout is not a terminal) and `plain` (the values alone, one a line). Every JSON object has
`schema: "capdex.<what>/1"`; within one major version fields are only added.

An agent that calls through a CMP router gets `json` (CMP, Faceted Tools), without colours and
questions, whatever the streams are.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TextIO

import click

from capdex_cli.terminal.text import COLORS, MARKS, json_safe, lines_of, safe


class Format(StrEnum):
    """Format of a result."""

    HUMAN = "human"
    JSON = "json"
    JSONL = "jsonl"
    PLAIN = "plain"


def for_agent(environ: Mapping[str, str]) -> bool:
    """Return True if an agent reads: CMP_ROUTER or CMP_AGENT (CMP v0.2.0) is set, and not 0."""
    return any(environ.get(name, "0") not in ("", "0") for name in ("CMP_ROUTER", "CMP_AGENT"))


def wants_color(choice: str, tty: bool, environ: Mapping[str, str]) -> bool:
    """Decide by --color > an agent, NO_COLOR > FORCE_COLOR, CLICOLOR_FORCE > TERM=dumb > tty."""
    if choice in ("always", "never"):
        return choice == "always"
    if environ.get("NO_COLOR") or for_agent(environ):
        return False
    forced = environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE")
    if forced and forced != "0":
        return True
    return environ.get("TERM") != "dumb" and tty


class LossyStream:
    """A stream that drops what it cannot write: a full disk must stop no node and no payment."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write `text`, or drop it."""
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        """Flush the stream, or leave it."""
        with suppress(OSError, ValueError):
            self._stream.flush()


@dataclass(slots=True)
class Stream:
    """Stdout or stderr, and its capabilities."""

    file: TextIO
    tty: bool
    color: bool
    unicode: bool

    @classmethod
    def of(cls, file: TextIO, color: str) -> Stream:
        """Detect the capabilities of `file`."""
        tty = file.isatty() and not for_agent(os.environ)
        encoding = (getattr(file, "encoding", None) or "ascii").lower().replace("-", "")
        unicode = encoding in ("utf8", "cp65001")
        return cls(file, tty, wants_color(color, tty, os.environ), unicode)

    def style(self, text: str, color: str | None = None, *, bold: bool = False) -> str:
        """Return `text` in colour if the stream shows colour."""
        return click.style(text, fg=color, bold=bold or None) if self.color else text

    def dim(self, text: str) -> str:
        """Return `text` dimmed if the stream shows colour."""
        return click.style(text, dim=True) if self.color else text

    def mark(self, kind: str) -> str:
        """Return a mark (ok, warn, fail, plan), as ASCII if the locale is not UTF-8."""
        return self.style(MARKS[kind][0 if self.unicode else 1], COLORS[kind])

    def write(self, text: str) -> None:
        """Write one line; escape characters that the encoding lacks."""
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        line = text.encode(encoding, "backslashreplace").decode(encoding)
        self.file.write(line + "\n")

    def json(self, value: Mapping[str, Any], indent: int | None = None) -> str:
        """Return `value` as JSON: in ASCII where the stream is not UTF-8, as JSON has to be."""
        return json_safe(json.dumps(value, ensure_ascii=not self.unicode, indent=indent))


@dataclass(slots=True)
class Output:
    """Both streams, the format, and the verbosity (-1 quiet, 1 -v, 2 -vv)."""

    out: Stream
    err: Stream
    format: Format
    verbosity: int = 0
    explicit: bool = False  # the format was typed, not chosen because of a pipe
    _warned: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, chosen: Format | None = None, color: str = "auto", verbosity: int = 0) -> Output:
        """Open the output of this process by its options, environment and streams."""
        out, err = Stream.of(sys.stdout, color), Stream.of(sys.stderr, color)
        if chosen is None and for_agent(os.environ):
            chosen = Format.JSON
        form = chosen or (Format.HUMAN if out.tty else Format.JSONL)
        return cls(out, err, form, verbosity, explicit=chosen is not None)

    # stdout ---------------------------------------------------------------------------------

    def result(
        self,
        what: str,
        value: Mapping[str, Any],
        *,
        human: Iterable[Sequence[str]] = (),
        plain: Sequence[object],
    ) -> None:
        """Write the result: `human` are lines or rows of cells, `plain` the values for scripts."""
        if self.format is Format.HUMAN:
            for line in lines_of(human):
                self.out.write(line)
        elif self.format is Format.PLAIN:
            for item in plain:
                self.out.write(safe(item))
        else:
            self._json({"schema": f"capdex.{what}/1", **value})
        self.out.file.flush()

    def results(
        self,
        what: str,
        values: Sequence[Mapping[str, Any]],
        *,
        human: Iterable[Sequence[str]] = (),
        plain: Sequence[object],
        **envelope: object,
    ) -> None:
        """Write a list: as json `{results: […], **envelope}`, as jsonl one object a line."""
        if self.format is Format.JSONL:
            for value in values:
                self._json({"schema": f"capdex.{what}/1", **value})
            self.out.file.flush()
        else:
            self.result(what, {"results": list(values), **envelope}, human=human, plain=plain)

    def _json(self, value: Mapping[str, Any]) -> None:
        indent = 2 if self.format is Format.JSON else None
        self.out.write(self.out.json(value, indent))

    # stderr ---------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Write a line to stderr, unless quiet (`-q`)."""
        if self.verbosity >= 0:
            self.err.write(text)
            self.err.file.flush()

    def step(self, kind: str, label: str, text: str) -> None:
        """Write one line of a list of steps: mark, label, result."""
        self.say(f"  {self.err.mark(kind)} {label.ljust(11)} {text}")

    def detail(self, text: str) -> None:
        """Write a line to stderr if verbose (`-v`)."""
        if self.verbosity > 0:
            self.say(self.err.dim(text))

    def warn(self, text: str) -> None:
        """Write a warning once, also if quiet."""
        if text not in self._warned:
            self._warned.add(text)
            self.err.write(f"{self.err.style('warning', 'yellow', bold=True)}: {text}")
            self.err.file.flush()
