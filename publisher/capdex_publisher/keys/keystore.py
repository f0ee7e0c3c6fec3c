"""Encrypted key files: the publishing account and the author's DID key.

The account's file is a Web3 Secret Storage keystore (version 3), which other wallets open too. The
DID key's file is `{"kind": "capdex-did-key/1", "did": "did:key:z…", "crypto": {…}}`: the crypto
section of a keystore with the 32-byte Ed25519 seed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from capdex import did
from capdex.encoding.abi import checksum_address
from capdex.errors import Code, InvalidInput, Refused, UsageError
from capdex.net.files import read_private_file, taken, write_private_file
from capdex_publisher.keys.secret import Secret
from capdex_publisher.keys.signer import LocalSigner, Signed

DID_KEY_KIND: Final = "capdex-did-key/1"

SCRYPT_N: Final = 262_144  # what wallets use: 256 MiB and about a second a try
LIGHT_SCRYPT_N: Final = 16_384  # 16 MiB and a twentieth of a second: tests and throw-away chains
# A key file is untrusted input: without bounds it could use up the memory and time of the machine.
MAX_SCRYPT_MEMORY_BYTES: Final = 1 << 30
MAX_PBKDF2_ROUNDS: Final = 10_000_000
MAX_DERIVED_BYTES: Final = 64  # wallets derive 32; each 32 more take all rounds again
MAX_KEY_FILE_BYTES: Final = 65_536  # a keystore is about 500 bytes


@dataclass(frozen=True, slots=True)
class DidKey:
    """An author's Ed25519 key and the did:key that names it."""

    did: str
    private: Ed25519PrivateKey = field(repr=False)


class KeystoreSigner:
    """The account of a key file; `passphrase` is called when it first signs."""

    def __init__(self, path: Path, passphrase: Callable[[], Secret]) -> None:
        self.address = read_address(path)
        self._path, self._passphrase = path, passphrase
        self._signer: LocalSigner | None = None

    def unlock(self) -> LocalSigner:
        """Open the key file, once; raise Refused WRONG_PASSPHRASE."""
        if self._signer is None:
            self._signer = load_account(self._path, self._passphrase())
        return self._signer

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign a transaction; see `Signer`."""
        return await self.unlock().sign_transaction(fields)

    async def sign_message(self, message: bytes) -> bytes:
        """Sign a message; see `Signer`."""
        return await self.unlock().sign_message(message)

    async def sign_typed_data(self, document: dict[str, Any]) -> bytes:
        """Sign a document of EIP-712; see `Signer`."""
        return await self.unlock().sign_typed_data(document)


def check_free(path: Path) -> None:
    """Raise UsageError if a file stands where a key file is to go."""
    if path.exists():
        raise taken(path)


def check_key_file(path: Path) -> None:
    """Raise UsageError UNREADABLE or Refused KEY_EXPOSED for what can be no key file."""
    _read_json(path)


def create_account(path: Path, passphrase: Secret, *, light: bool = False) -> LocalSigner:
    """Make a new account and its keystore at `path`; raises UsageError if the file exists."""
    from eth_account import Account

    return store_account(path, LocalSigner(bytes(Account.create().key)), passphrase, light=light)


def store_account(
    path: Path, account: LocalSigner, passphrase: Secret, *, light: bool = False
) -> LocalSigner:
    """Write the keystore of an account at `path`; raises UsageError if the file exists."""
    write_private_file(path, _to_json(_encrypt(account.key, passphrase, light=light)))
    return account


def parse_private_key(key: Secret, source: str) -> LocalSigner:
    """Return the account of a private key in hex; raises UsageError, which never shows the key."""
    try:
        return LocalSigner(bytes.fromhex(key.reveal().strip().removeprefix("0x")))
    except ValueError:
        raise UsageError(
            f"{source} holds no private key",
            Code.UNREADABLE,
            why="that is 64 hexadecimal digits, with or without 0x",
            fix="copy it again, whole; of a wallet's words, have it show the key of one account",
        ) from None


def load_account(path: Path, passphrase: Secret) -> LocalSigner:
    """Open a keystore; raises UsageError UNREADABLE, Refused WRONG_PASSPHRASE or KEY_EXPOSED."""
    # Old wallets write some keys, such as "Crypto", with a capital letter.
    keystore = {key.lower(): value for key, value in _read_json(path).items()}
    key = _decrypt(path, keystore, passphrase)
    try:
        account = LocalSigner(key)
    except ValueError:
        raise _malformed(path, "what it holds is not the key of an account") from None
    named = keystore.get("address")
    if named is not None and _plain(named) != _plain(account.address):
        raise _malformed(path, "the key inside is not that of the address it names")
    return account


def read_address(path: Path) -> str:
    """Return the address that a keystore names, which only its key proves; raises UsageError."""
    named = _read_json(path).get("address")
    try:
        address: str = checksum_address(bytes.fromhex(_plain(named)))
    except (ValueError, InvalidInput):
        raise _malformed(path, "it names no address") from None
    return address


def create_did_key(path: Path, passphrase: Secret, *, light: bool = False) -> DidKey:
    """Make a new Ed25519 key and its file at `path`; raises UsageError if a file stands there."""
    seed = secrets.token_bytes(32)
    key = _did_key(seed)
    crypto = _encrypt(seed, passphrase, light=light)["crypto"]
    write_private_file(path, _to_json({"kind": DID_KEY_KIND, "did": key.did, "crypto": crypto}))
    return key


def load_did_key(path: Path, passphrase: Secret) -> DidKey:
    """Open a DID key file; raises UsageError UNREADABLE, Refused WRONG_PASSPHRASE, KEY_EXPOSED."""
    document = _read_json(path)
    if document.get("kind") != DID_KEY_KIND:
        raise _malformed(path, f"its kind is not {DID_KEY_KIND}")
    seed = _decrypt(path, {"version": 3, "crypto": document.get("crypto")}, passphrase)
    if len(seed) != 32:
        raise _malformed(path, "an Ed25519 seed has 32 bytes")
    key = _did_key(seed)
    if key.did != document.get("did"):
        raise _malformed(path, "the key inside is not that of the DID it names")
    return key


def _did_key(seed: bytes) -> DidKey:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return DidKey(did.did_key(public), private)


def _encrypt(key: bytes, passphrase: Secret, *, light: bool) -> dict[str, Any]:
    if not passphrase:
        raise UsageError("the passphrase is empty", fix="choose one that nobody guesses")
    from eth_keyfile.keyfile import create_keyfile_json  # a second that only key files pay

    rounds = LIGHT_SCRYPT_N if light else SCRYPT_N
    keystore: dict[str, Any] = create_keyfile_json(
        key, passphrase.reveal().encode("utf-8", "surrogateescape"), kdf="scrypt", iterations=rounds
    )
    return keystore


def _decrypt(path: Path, keystore: dict[str, Any], passphrase: Secret) -> bytes:
    _check_work(path, keystore)
    from eth_keyfile.keyfile import decode_keyfile_json

    words = passphrase.reveal().encode("utf-8", "surrogateescape")
    try:
        key: bytes = decode_keyfile_json(keystore, words)
    except Exception as error:  # noqa: BLE001 - the library raises whatever the file provokes
        if "MAC mismatch" not in str(error):
            raise _malformed(path, "it is not a version 3 keystore") from None
        why = "the file's checksum (its MAC) comes out only with the right one"
        if not words:
            why = "the passphrase is empty, as of a secret that a job of CI does not get"
        raise Refused(
            f"the passphrase does not open {path}",
            Code.WRONG_PASSPHRASE,
            why=why,
            fix="try again, or correct its file; nobody can recover a forgotten passphrase",
        ) from None
    return key


def _check_work(path: Path, keystore: dict[str, Any]) -> None:
    """Refuse a key file whose parameters ask for too much memory or time."""
    try:
        params = keystore["crypto"]["kdfparams"]
        memory = 128 * int(params.get("n", 0)) * int(params.get("r", 1)) * int(params.get("p", 1))
        rounds, length = int(params.get("c", 0)), int(params.get("dklen", 32))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise _malformed(path, "it has no readable crypto section") from None
    too_long = rounds > MAX_PBKDF2_ROUNDS or length > MAX_DERIVED_BYTES
    if memory > MAX_SCRYPT_MEMORY_BYTES or too_long:
        raise _malformed(path, "opening it would take more work than any wallet asks for")


def _read_json(path: Path) -> dict[str, Any]:
    data = read_private_file(path, MAX_KEY_FILE_BYTES)
    with suppress(ValueError, RecursionError):
        if isinstance(document := json.loads(data), dict):
            return document
    raise _malformed(path, "it is not a JSON object" if data.strip() else "it is empty")


def _to_json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode("utf-8")


def _plain(address: object) -> str:
    return str(address).lower().removeprefix("0x")


def _malformed(path: Path, why: str) -> UsageError:
    fix = "name another file, or restore this one from a copy"
    return UsageError(f"{path} is not a key file", Code.UNREADABLE, why=why, fix=fix)
