"""Read the registry's own log head, which proves that an endpoint's logs are complete and true.

Pruned nodes refuse old state permanently; flaky ones refuse at random. The log head counts as
unavailable only after MAX_REFUSALS consecutive refusals; any success resets the count.
"""

from __future__ import annotations

from capdex.encoding.keccak import keccak
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.projection.block_range import ChainChanged

RECENT = 100  # blocks: nodes that keep little state keep that of 128
MAX_REFUSALS = 6  # in a row: seldom all by chance

_LOG = keccak(b"log()")[:4]
_GONE = (RpcFault.UNKNOWN_BLOCK, RpcFault.BEYOND_HEAD)
_RETRIED = (RpcFault.TRANSIENT, RpcFault.TIMEOUT)  # by the RPC client, at all endpoints


class LogHeadReader:
    """Reads the log head of the registry with a 20-byte address, after any block."""

    def __init__(self, rpc: Rpc, registry: bytes) -> None:
        self._rpc, self._registry = rpc, registry
        self._served = False  # after a recent block, ever
        self._refusals = {True: 0, False: 0}  # after recent blocks, and after old ones

    async def at(self, block: Header, head: int) -> LogHead | None:
        """Return the log head after a block, seen from `head`; None if its state is not served.

        Raises ChainChanged if a recent block is no longer known.
        """
        return await self.read(block, recent=block.number > head - RECENT)

    async def read(self, block: BlockRef, *, recent: bool = False) -> LogHead | None:
        """Return it after a block; every node should have the state of a `recent` one."""
        while True:
            log_head, fault = await self._read(block)
            if log_head:
                self._served = self._served or recent
                self._refusals[recent] = 0
                return log_head
            insists = recent and self._served
            gave_up = self._refusals[recent] == MAX_REFUSALS
            if gave_up or (fault in _RETRIED and not insists):
                return None
            self._refusals[recent] += 1
            if insists and fault in _GONE:
                raise ChainChanged("it no longer knows a block it has just shown")
            if insists or (recent and not self._rpc.alone):
                self._rpc.blame("it does not serve the contract's log head after a recent block")

    async def _read(self, block: BlockRef) -> tuple[LogHead | None, RpcFault | None]:
        try:
            data = await self._rpc.view(self._registry, _LOG, block)
        except RpcError as error:
            if error.fault is RpcFault.RATE:
                raise
            return None, error.fault
        if len(data) != 64:
            return None, None
        return LogHead(data[:24], int.from_bytes(data[32:64], "big")), None
