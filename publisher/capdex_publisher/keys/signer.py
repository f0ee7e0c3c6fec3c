"""Signers: one protocol for a key in this process and for a key that another program holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from typing_extensions import override

from capdex import signing
from capdex.encoding.hexadecimal import to_hex


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed transaction that has not been sent: its raw bytes and its hash (0x hex)."""

    raw: bytes
    tx_hash: str


class Signer(Protocol):
    """An account that signs."""

    @property
    def address(self) -> str:
        """The account's address (EIP-55)."""

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign the EIP-1559 transaction of `Transaction.fields` without changing any field.

        Raises Refused SIGNER_REFUSED and Unavailable SIGNER_UNAVAILABLE.
        """

    async def sign_message(self, message: bytes) -> bytes:
        """Sign a message by EIP-191 (personal_sign): 65 bytes, r‖s‖v; raises as above."""

    async def sign_typed_data(self, document: dict[str, Any]) -> bytes:
        """Sign a document of `eth_signTypedData_v4` (EIP-712); returns and raises as above."""


class LocalSigner:
    """An account whose private key is in this process's memory.

    Raises ValueError for bytes that are no private key of secp256k1.
    """

    def __init__(self, key: bytes) -> None:
        from eth_account import Account  # a second that only signing pays

        try:
            self._account = Account.from_key(key)
        except Exception:  # noqa: BLE001 - the library's own message could show the key
            raise ValueError("not a private key") from None

    @override
    def __repr__(self) -> str:
        return f"LocalSigner({self.address})"

    @property
    def address(self) -> str:
        """The account's address (EIP-55)."""
        return str(self._account.address)

    @property
    def key(self) -> bytes:
        """The private key: read it only to encrypt it into a key file."""
        return bytes(self._account.key)

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign at once."""
        signed = self._account.sign_transaction(fields)
        return Signed(bytes(signed.raw_transaction), to_hex(bytes(signed.hash)))

    async def sign_message(self, message: bytes) -> bytes:
        """Sign at once."""
        return signing.sign_eip191(self._account, message)

    async def sign_typed_data(self, document: dict[str, Any]) -> bytes:
        """Sign at once."""
        return bytes(self._account.sign_typed_data(full_message=document).signature)


def recover_typed_data(document: dict[str, Any], signature: bytes) -> str | None:
    """Return the account (EIP-55) whose key signed a document of EIP-712; None if no key did."""
    from eth_account import Account
    from eth_account.messages import encode_typed_data

    try:
        signable = encode_typed_data(full_message=document)
        return str(Account.recover_message(signable, signature=signature))
    except Exception:  # noqa: BLE001 - the library raises whatever the signature provokes
        return None
