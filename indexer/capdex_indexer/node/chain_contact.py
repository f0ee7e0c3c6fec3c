"""The first contact with the chain: is an endpoint of the index's chain, and where is the registry?

A node starts from its database. Only what the database does not know yet is asked for: the genesis
and the first block of a new index, the first block of one that has no event so far.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

from capdex.encoding.abi import raw_address
from capdex.errors import Refused, Unavailable, UsageError
from capdex.net.rpc.client import Rpc
from capdex.net.tasks import run_to_completion
from capdex_indexer.chain.start_block import locate_registry
from capdex_indexer.store.store import Store
from capdex_indexer.sync.loop import SyncProgress
from capdex_indexer.sync.recovery import Recovery


async def meet_chain(
    rpc: Rpc, store: Store, start_block: int | None, report: Callable[[SyncProgress], None]
) -> None:
    """Wait until an endpoint of the store's chain answers; store what it tells of the registry.

    Errors are reported as trouble and tried again. A new index raises Refused WRONG_CHAIN and
    UsageError NO_CONTRACT instead: it cannot serve anything.
    """
    recovery = Recovery()
    while True:
        at = SyncProgress()
        try:
            if cursor := await asyncio.to_thread(store.cursor):
                at = SyncProgress(cursor.block, 0, cursor.finalized, cursor.log_head)
            await _meet_once(rpc, store, start_block, has_events=at.log_head.count > 0)
            return
        except Unavailable as error:
            trouble = error
        except (Refused, UsageError) as error:
            if not store.deployment.genesis:
                raise
            trouble = Unavailable(error.message, error.code, why=error.why, fix=error.fix)
        report(replace(at, trouble=trouble))
        recovery, action = recovery.failed(
            trouble,
            has_other_endpoints=not rpc.alone,
            jitter=random.random(),  # noqa: S311
        )
        await asyncio.sleep(action.pause_s)


async def _meet_once(rpc: Rpc, store: Store, start_block: int | None, has_events: bool) -> None:
    known = store.deployment
    if known.genesis:
        rpc.expect(known.chain_id, known.genesis)
        await rpc.chain_id()
        if has_events or start_block is not None:
            return
    contract = raw_address(known.registry)
    place = await locate_registry(
        rpc, chain_id=known.chain_id, registry=contract, start_block=start_block
    )
    located = replace(known, start_block=place.start_block, genesis=place.genesis)
    await run_to_completion(store.locate, located, keep_start_block=start_block is None)
