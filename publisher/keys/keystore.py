"""Encrypted key files: the publishing account and the author's DID key.

The account's file is a Web3 Secret Storage keystore (version 3), which other wallets open too. The
DID key's file is `{"kind": "capdex-did-key/1", "did": "did:key:z…", "crypto": {…}}`: the crypto
section of a keystore with the 32-byte Ed25519 seed.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from capdex import did
from capdex.encoding.abi import checksum_address
from capdex.errors import Code, InvalidInput, Refused, UsageError
from publisher.files import read_private_file, taken, write_private_file
from publisher.keys.keystore_crypto import decrypt, encrypt
from publisher.keys.secret import Secret
from publisher.keys.signer import LocalSigner

DID_KEY_KIND: Final = "capdex-did-key/1"

SCRYPT_N: Final = 262_144  # what wallets use: 256 MiB and about a second a try
LIGHT_SCRYPT_N: Final = 16_384  # 16 MiB and a twentieth of a second: tests and throw-away chains
MAX_KEY_FILE_BYTES: Final = 65_536  # a keystore is about 500 bytes


@dataclass(frozen=True, slots=True)
class DidKey:
    """An author's Ed25519 key and the did:key that names it."""

    did: str
    private: Ed25519PrivateKey = field(repr=False)


def check_free(path: Path) -> None:
    """Raise UsageError if a file stands where a key file is to go."""
    if path.exists():
        raise taken(path)


def create_account(path: Path, passphrase: Secret, *, light: bool = False) -> LocalSigner:
    """Make a new account and its keystore at `path`; raises UsageError if the file exists."""
    while True:
        try:
            account = LocalSigner(secrets.token_bytes(32))
        except ValueError:  # one number in 2**128 is no key
            continue
        return store_account(path, account, passphrase, light=light)


def store_account(
    path: Path, account: LocalSigner, passphrase: Secret, *, light: bool = False
) -> LocalSigner:
    """Write the keystore of an account at `path`; raises UsageError if the file exists."""
    crypto = _encrypt(account.key, passphrase, light=light)
    keystore = {"address": account.address[2:], "crypto": crypto, "id": str(uuid4()), "version": 3}
    write_private_file(path, _to_json(keystore))
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
            fix="copy it again, whole",
        ) from None


def load_account(path: Path, passphrase: Secret) -> LocalSigner:
    """Open a keystore; raises UsageError UNREADABLE, Refused WRONG_PASSPHRASE or KEY_EXPOSED."""
    # Old wallets write some keys, such as "Crypto", with a capital letter.
    keystore = {key.lower(): value for key, value in _read_json(path).items()}
    if keystore.get("version") != 3:
        raise _malformed(path, "it is not a version 3 keystore")
    key = _decrypt(path, keystore.get("crypto"), passphrase)
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
    crypto = _encrypt(seed, passphrase, light=light)
    write_private_file(path, _to_json({"kind": DID_KEY_KIND, "did": key.did, "crypto": crypto}))
    return key


def load_did_key(path: Path, passphrase: Secret) -> DidKey:
    """Open a DID key file; raises UsageError UNREADABLE, Refused WRONG_PASSPHRASE, KEY_EXPOSED."""
    document = _read_json(path)
    if document.get("kind") != DID_KEY_KIND:
        raise _malformed(path, f"its kind is not {DID_KEY_KIND}")
    seed = _decrypt(path, document.get("crypto"), passphrase)
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
    rounds = LIGHT_SCRYPT_N if light else SCRYPT_N
    return encrypt(key, passphrase.reveal().encode("utf-8"), scrypt_n=rounds)


def _decrypt(path: Path, crypto: object, passphrase: Secret) -> bytes:
    try:
        key = decrypt(crypto, passphrase.reveal().encode("utf-8"))
    except ValueError as error:
        raise _malformed(path, str(error)) from None
    if key is None:
        raise Refused(
            f"the passphrase does not open {path}",
            Code.WRONG_PASSPHRASE,
            why="the file's checksum (its MAC) comes out only with the right one",
            fix="try again; nobody can recover a forgotten passphrase",
        )
    return key


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_private_file(path, MAX_KEY_FILE_BYTES))
    except (ValueError, RecursionError):
        raise _malformed(path, "it is not JSON") from None
    if not isinstance(document, dict):
        raise _malformed(path, "it is not a JSON object")
    return document


def _to_json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode("utf-8")


def _plain(address: object) -> str:
    return str(address).lower().removeprefix("0x")


def _malformed(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} is not a key file", Code.UNREADABLE, why=why)
