"""The contract's own log slot: what tells whether an endpoint's logs are all there, and true.

Many nodes keep the state of the newest blocks alone, so a refusal may be for good; or it is a whim,
and must not let pass what nothing else can check. So it is believed only once it was heard often
enough in a row, and then until the slot is served again.
"""

from __future__ import annotations

from capdex.encoding.keccak import keccak
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header
from capdex.registry.events import LogHead
from indexer.projection.block_range import Moved

RECENT = 100  # blocks: those that keep little state keep that of 128
MAX_DOUBTS = 6  # refusals in a row: seldom all by chance

_LOG = keccak(b"log()")[:4]
_GONE = (RpcFault.UNKNOWN_BLOCK, RpcFault.BEYOND_HEAD)
_TRIED = (RpcFault.TRANSIENT, RpcFault.TIMEOUT)  # often by then, and of all endpoints


class LogSlot:
    """The slot of the registry with a 20-byte address, after any block."""

    def __init__(self, rpc: Rpc, registry: bytes) -> None:
        self._rpc, self._registry = rpc, registry
        self._served = False  # that of a recent block, ever
        self._recent = self._old = MAX_DOUBTS  # refusals that are not believed

    async def at(self, block: Header, head: int) -> LogHead | None:
        """After a block, seen from `head`; None where its state is not served.

        Raises Moved where a recent block is no longer known.
        """
        recent = block.number > head - RECENT
        return await (self.recent(block.hash) if recent else self.old(block.hash))

    async def recent(self, block_hash: bytes) -> LogHead | None:
        """After a block whose state every node has, as far as is known; raises Moved."""
        while True:
            slot, fault = await self._read(block_hash)
            if slot:
                self._served, self._recent = True, MAX_DOUBTS
                return slot
            if not self._recent or (fault in _TRIED and not self._served):
                return None
            self._recent -= 1
            if self._served and fault in _GONE:
                raise Moved("it no longer knows a block it has just shown")
            if self._served or not self._rpc.alone:
                self._rpc.blame("it does not serve the contract's log slot after a recent block")

    async def old(self, block_hash: bytes) -> LogHead | None:
        """After a block whose state few nodes keep."""
        while True:
            slot, fault = await self._read(block_hash)
            if slot:
                self._old = MAX_DOUBTS
                return slot
            if not self._old or fault in _TRIED:
                return None
            self._old -= 1

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
