"""What was sent and not yet seen in a block: so that a killed command pays once, not twice.

The chain is the truth; a lost journal costs at most the fee of a transaction that reverts.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from publisher.contract import Contract
from publisher.files import write_atomically
from publisher.transaction import Sent


class Journal:
    """One entry: an action on one subject of one contract, in the user's state directory."""

    def __init__(self, contract: Contract, action: str, name: str, semver: str) -> None:
        directory: Path = contract.chain.state_dir / "sent"
        where = f"{contract.chain_id}-{contract.address.lower()}"
        self._path = directory / f"{where}-{action}-{name}-{semver}.json"
        self._chain = contract.chain

    def remember(self, sent: Sent, fingerprint: str) -> None:
        """Write down a transaction, before it leaves."""
        entry = asdict(sent) | {"fingerprint": fingerprint}
        write_atomically(self._path, json.dumps(entry).encode("utf-8"))

    async def recall(self, fingerprint: str) -> Sent | None:
        """The transaction sent for the same purpose, if the chain still knows it."""
        try:
            entry = json.loads(self._path.read_text("utf-8"))
            sent = Sent(str(entry["tx_hash"]), int(entry["nonce"]))
            same = (
                entry["fingerprint"] == fingerprint and len(bytes.fromhex(sent.tx_hash[2:])) == 32
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return sent if same and await self._chain.knows(sent.tx_hash) else None

    def forget(self) -> None:
        """Drop the entry: the transaction is in a block."""
        self._path.unlink(missing_ok=True)
