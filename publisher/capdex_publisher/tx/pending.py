"""Keep each sent transaction in a file until it is mined, so that a killed command pays once.

The chain decides what happened; a lost file costs at most the fee of a transaction that reverts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from capdex.net.files import write_atomically
from capdex_publisher.ethereum.contract import Contract
from capdex_publisher.ethereum.transaction import Leaving, Sent
from capdex_publisher.tx.submit import OnSigned

_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")


class PendingTransaction:
    """The file, in the user's state directory, of one action on one subject of one contract.

    `fingerprint` tells transactions of different purposes apart that would have one file.
    """

    def __init__(
        self, contract: Contract, action: str, name: str, rest: str, fingerprint: str
    ) -> None:
        directory: Path = contract.chain.state_dir / "sent"
        where = f"{contract.chain_id}-{contract.address.lower()}"
        self._path = directory / f"{where}-{action}-{name}-{rest}.json"
        self._contract = contract
        self._fingerprint = fingerprint

    def save(self, sent: Sent) -> None:
        """Store a transaction atomically, before it is sent."""
        entry = asdict(sent) | {"fingerprint": self._fingerprint}
        write_atomically(self._path, json.dumps(entry).encode("utf-8"))

    async def load(self, *, fee_cap_wei: int | None = None) -> Sent | None:
        """Return the transaction sent for the same purpose, if the chain knows any hash of it.

        `fee_cap_wei` is the cap for replacing it from now on. A transaction that the chain no
        longer knows is planned again: its nonce is then the next one.
        """
        sent = self._read()
        if sent is None:
            return None
        if sent.transaction is not None and fee_cap_wei is not None:
            sent = replace(sent, transaction=replace(sent.transaction, fee_cap_wei=fee_cap_wei))
        return sent if await self._contract.chain.knows(*sent.hashes) else None

    def remove(self) -> None:
        """Remove the file: the transaction is mined."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> Sent | None:
        try:
            entry = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        import msgspec  # 12 ms that only what was sent before costs

        try:
            sent = msgspec.convert(entry, Sent)
        except msgspec.ValidationError:
            return None
        same = entry.get("fingerprint") == self._fingerprint
        if not same or not all(map(_HASH.fullmatch, sent.hashes)):
            return None
        # A replacement is signed without asking again: it must be a call of this contract.
        called, contract = sent.transaction, (self._contract.chain_id, self._contract.address)
        if called is not None and (called.gas < 1 or (called.chain_id, called.to) != contract):
            return None
        return sent


def remembering(
    files: Iterable[PendingTransaction], on_step: Callable[[Leaving | Sent], None]
) -> OnSigned:
    """Return a callback that stores a transaction in its files before it is sent, and tells it."""

    def remember(signed: Sent) -> None:
        for file in files:
            file.save(signed)
        on_step(Leaving(signed.tx_hash))
        if signed.earlier:  # it is sent again while it is waited for
            on_step(signed)

    return remember
