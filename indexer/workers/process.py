"""A worker process (`indexer.workers.main`) as its parent has it: frames to it and from it, its
end.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from capdex.errors import Unavailable
from indexer.workers.main import LENGTH, Frame

START_S: Final = 60.0  # about 0.5 s on an idle machine
END_S: Final = 2.0
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024  # a judged package is its bytes a few times over
PIPE_BYTES: Final = 1024 * 1024


class Child:
    """A worker that was started; `alive` until its parent gives up on it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.alive = True

    @classmethod
    async def start(cls, command: Sequence[str]) -> Child:
        """A worker that has imported everything; raises Unavailable when none starts."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the node, which ends its workers in order
                limit=PIPE_BYTES,
            )
            worker = cls(process)
            try:
                async with asyncio.timeout(START_S):
                    await worker.answer()
            except BaseException:
                worker.kill()
                await worker.end()
                raise
        except (TimeoutError, EOFError, OSError) as error:
            raise Unavailable(
                "no process to judge packages in could be started",
                why=str(error) or type(error).__name__,
                fix="check the machine's memory and its limit of processes",
            ) from None
        return worker

    def ask(self, frames: Iterable[Frame]) -> None:
        """Hand over questions, without waiting until they are read."""
        pipe = self._process.stdin
        if pipe is not None:
            pipe.writelines(chain.from_iterable(frames))  # in one call of the system, if it can

    async def answer(self) -> Any:
        """The next answer; raises EOFError or OSError where the worker has ended."""
        pipe = self._process.stdout
        if pipe is None:
            raise EOFError
        (length,) = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise EOFError
        return pickle.loads(await pipe.readexactly(length))  # noqa: S301 - our own worker

    def kill(self) -> None:
        """End it now, whatever it does."""
        self.alive = False
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> int:
        """Close its stdin, so that it ends by itself, and wait for that; its exit status."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(END_S):
                return await self._process.wait()
        except TimeoutError:
            self.kill()
            return await self._process.wait()
