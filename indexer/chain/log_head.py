"""Read the registry's own log head, which proves that an endpoint's logs are complete and true.

Pruned nodes refuse old state permanently; flaky ones refuse at random. The log head counts as
unavailable only after MAX_REFUSALS consecutive refusals; any success resets the count.
"""

from __future__ import annotations

from capdex.encoding.keccak import keccak
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header
from capdex.registry.logs import LogHead
from indexer.projection.block_range import ChainChanged

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
        self._recent_refusals = self._old_refusals = 0

    async def at(self, block: Header, head: int) -> LogHead | None:
        """Return the log head after a block, seen from `head`; None if its state is not served.

        Raises ChainChanged if a recent block is no longer known.
        """
        recent = block.number > head - RECENT
        return await (self.recent(block.hash) if recent else self.old(block.hash))

    async def recent(self, block_hash: bytes) -> LogHead | None:
        """Return it after a block whose state every node should have; raises ChainChanged."""
        while True:
            log_head, fault = await self._read(block_hash)
            if log_head:
                self._served, self._recent_refusals = True, 0
                return log_head
            gave_up = self._recent_refusals == MAX_REFUSALS
            if gave_up or (fault in _RETRIED and not self._served):
                return None
            self._recent_refusals += 1
            if self._served and fault in _GONE:
                raise ChainChanged("it no longer knows a block it has just shown")
            if self._served or not self._rpc.alone:
                self._rpc.blame("it does not serve the contract's log head after a recent block")

    async def old(self, block_hash: bytes) -> LogHead | None:
        """Return it after a block whose state few nodes keep."""
        while True:
            log_head, fault = await self._read(block_hash)
            if log_head:
                self._old_refusals = 0
                return log_head
            if self._old_refusals == MAX_REFUSALS or fault in _RETRIED:
                return None
            self._old_refusals += 1

    async def _read(self, block_hash: bytes) -> tuple[LogHead | None, RpcFault | None]:
        try:
            data = await self._rpc.view(self._registry, _LOG, block_hash)
        except RpcError as error:
            if error.fault is RpcFault.RATE:
                raise
            return None, error.fault
        if len(data) != 64:
            return None, None
        return LogHead(data[:24], int.from_bytes(data[32:64], "big")), None
