"""Read and check the next steps of the chain while the one before them is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from capdex.net.tasks import end, run_to_completion
from capdex.registry.logs import LogHead
from indexer.chain.reader import ChainReader
from indexer.projection.block_range import BlockRange, Reorg
from indexer.sync.log_completeness import check_logs

AHEAD = 4  # steps
MAX_JOINED_LOGS = 2_000  # a step with as many is joined with no more

CheckedStep = tuple[BlockRange | Reorg, list[LogHead]]  # a step, and the log head after each log


async def read_ahead(reader: ChainReader, log_head: LogHead) -> AsyncGenerator[CheckedStep, None]:
    """Iterate over the checked steps after `log_head`; end after a reorg.

    Block ranges that are at hand are joined: a transaction costs as much as hundreds of events.
    An error of the reader is raised after the steps that were read before it.
    """
    ready: asyncio.Queue[CheckedStep | Exception] = asyncio.Queue(AHEAD)
    reading = asyncio.create_task(_read(reader, log_head, ready))
    following: CheckedStep | Exception | None = None
    try:
        while True:
            current, following = following or await ready.get(), None
            if isinstance(current, Exception):
                raise current
            step, heads = current
            if isinstance(step, Reorg):
                yield step, heads
                return  # the log head after it is read from the store
            while len(heads) < MAX_JOINED_LOGS and not ready.empty():
                following = ready.get_nowait()
                if isinstance(following, Exception) or isinstance(following[0], Reorg):
                    break
                step, heads = step.then(following[0]), heads + following[1]
                following = None
            yield step, heads
    finally:
        await end([reading])


async def _read(
    reader: ChainReader, log_head: LogHead, ready: asyncio.Queue[CheckedStep | Exception]
) -> None:
    try:
        async with aclosing(reader.steps()) as steps:
            async for step in steps:
                heads: list[LogHead] = []
                if isinstance(step, BlockRange):
                    heads = await run_to_completion(check_logs, step, log_head)
                    log_head = heads[-1] if heads else log_head
                await ready.put((step, heads))
                if isinstance(step, Reorg):
                    return
    except Exception as error:  # noqa: BLE001 - raised by `read_ahead`
        await ready.put(error)
