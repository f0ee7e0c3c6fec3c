"""Who signs: one small protocol, whether the key is here or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from eth_account.signers.local import LocalAccount
from typing_extensions import override

from capdex.signature import signature as signing


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed transaction: its raw bytes and its hash (0x hex). Nobody has seen it yet."""

    raw: bytes
    tx_hash: str


class Signer(Protocol):
    """An account that signs."""

    @property
    def address(self) -> str:
        """The account's address (EIP-55)."""

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign the EIP-1559 transaction of `Transaction.fields`, exactly as it is asked.

        Raises Refused SIGNER_REFUSED and Unavailable SIGNER_UNAVAILABLE.
        """

    async def sign_message(self, message: bytes) -> bytes:
        """Sign a message as EIP-191 says (personal_sign): 65 bytes, r‖s‖v; raises as above."""


class LocalSigner:
    """A key in this process's memory."""

    def __init__(self, account: LocalAccount) -> None:
        self._account = account

    @override
    def __repr__(self) -> str:
        return f"LocalSigner({self.address})"

    @property
    def address(self) -> str:
        """The account's address (EIP-55)."""
        return str(self._account.address)

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign at once."""
        signed = self._account.sign_transaction(fields)
        return Signed(bytes(signed.raw_transaction), "0x" + bytes(signed.hash).hex())

    async def sign_message(self, message: bytes) -> bytes:
        """Sign at once."""
        return signing.sign_eip191(self._account, message)
