"""The commitment that reserves a new name (P12), and its secret, which is never lost.

    secret      keccak256(EIP-191 signature of `secret_text`, 65 bytes, by the claiming account)
    commitment  keccak256(name id ‖ claimer, left-padded to 32 bytes ‖ secret)

A key signs the same text the same way every time (RFC 6979), so the secret can be made again from
the key alone. It is written down nevertheless, before the commitment leaves: a signer may be asked
only once, may sign another way tomorrow, or may refuse to sign messages at all.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from capdex.encoding.keccak import keccak
from capdex.errors import Code, Refused, UsageError
from capdex.uri import name_id
from publisher.files import read_private_file, write_private_file
from publisher.keys.signer import Signer
from publisher.registry.registry import Registry

SECRET_BYTES: Final = 32
NO_SECRET: Final = bytes(SECRET_BYTES)  # of a publication that claims nothing


def commitment_of(name: str, claimer: str, secret: bytes) -> bytes:
    """The commitment of `claimer` (0x address) for a name, as the contract's `commitmentOf`."""
    return keccak(name_id(name) + bytes.fromhex(claimer[2:]).rjust(32, b"\0") + secret)


def secret_text(chain_id: int, registry: str, name: str) -> bytes:
    """The text whose signature gives the secret; `registry` is an EIP-55 address."""
    return (
        "capdex: reserve a name\n"
        f"chain id: {chain_id}\n"
        f"registry: {registry}\n"
        f"name: {name}\n"
        "\n"
        "This signature is the secret of the reservation. It spends nothing; show it to nobody."
    ).encode()


class SecretFile:
    """The file of one name's secret, mode 0600, in the state directory."""

    def __init__(self, registry: Registry, claimer: str, name: str) -> None:
        where = f"{registry.chain_id}-{registry.address.lower()}-{claimer.lower()}-{name}"
        self._path: Path = registry.chain.state_dir / "secrets" / f"{where}.secret"
        self._text = secret_text(registry.chain_id, registry.address, name)

    async def secret(self, signer: Signer) -> bytes:
        """The secret of an earlier call, or a new one, written down before it is given.

        Raises Unavailable SIGNER_UNAVAILABLE, and Refused KEY_EXPOSED if others can read the file.
        """
        if (kept := self._read()) is not None:
            return kept
        made = await self._make(signer)
        if (kept := self._read()) is not None:  # another process of ours was first
            return kept
        draft = self._path.with_suffix(f".{secrets.token_hex(4)}")
        write_private_file(draft, made.hex().encode("ascii"))
        draft.replace(self._path)  # whole or not at all
        return made

    def forget(self) -> None:
        """Drop it: the name is claimed."""
        self._path.unlink(missing_ok=True)

    async def _make(self, signer: Signer) -> bytes:
        try:
            return keccak(await signer.sign_message(self._text))
        except Refused as error:
            if error.code is not Code.SIGNER_REFUSED:
                raise
            return secrets.token_bytes(SECRET_BYTES)

    def _read(self) -> bytes | None:
        if not self._path.exists():
            return None
        try:
            kept = bytes.fromhex(read_private_file(self._path, 2 * SECRET_BYTES).decode("ascii"))
        except (ValueError, UsageError):
            return None
        return kept if len(kept) == SECRET_BYTES else None
