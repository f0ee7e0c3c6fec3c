"""One line of the terminal that is overwritten while something runs; logs are written above it."""

from __future__ import annotations

import os
import shutil
import time
from typing import Final, Self

from capdex_cli.terminal.output import Output
from capdex_cli.terminal.text import clip

ERASE: Final = "\r\x1b[2K"
LOG_EVERY_S: Final = 10.0  # where stderr is not a terminal, so that no line can be overwritten


class StatusLine:
    """The line. Where stderr is not a terminal, the text is logged every `LOG_EVERY_S` instead.

    It is a stream, too: what is written to it appears above the line.
    """

    def __init__(self, output: Output) -> None:
        self._output, self._stream = output, output.err
        self._overwrites = output.err.tty and os.environ.get("TERM") != "dumb"
        self._shown = ""
        self._logged_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str, *, log_now: bool = False) -> None:
        """Replace the line by `text`, without colours; `log_now` logs it whatever the time."""
        if self._output.verbosity < 0 or text == self._shown:
            return
        line = f"  {self._stream.mark('plan')} "
        if self._overwrites:
            self._shown = text
            room = shutil.get_terminal_size().columns - 5  # a wrapped line could not be erased
            self._stream.file.write(ERASE + (line + clip(text, room) if text else ""))
            self._stream.file.flush()
        elif text and (log_now or time.monotonic() - self._logged_at >= LOG_EVERY_S):
            self._logged_at = time.monotonic()
            self._output.say(line + text)

    def count(self, what: str, done: int, total: int) -> None:
        """Show how many of something are done."""
        self.show(f"{done} of {total} {what}")

    def clear(self) -> None:
        """Erase the line."""
        self.show("")

    def write(self, text: str) -> int:
        """Write log lines above the line."""
        shown, self._shown = self._shown, ""
        if shown:
            self._stream.file.write(ERASE)
        self._stream.file.write(text)
        if text.endswith("\n"):
            self.show(shown)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.file.flush()
