"""The crypto section of a keystore (Web3 Secret Storage, version 3): scrypt or PBKDF2, AES-CTR.

    derived key   32 bytes of the passphrase and a salt
    ciphertext    AES-128-CTR of the secret under derived[:16]
    mac           keccak256(derived[16:32] ‖ ciphertext)

Made of `hashlib` and `cryptography`: importing eth-keyfile takes longer than opening a file.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from capdex.encoding.keccak import keccak

# A key file is untrusted input: without bounds it could use up the memory and time of the machine.
MAX_SCRYPT_MEMORY_BYTES: Final = 1 << 30
MAX_PBKDF2_ROUNDS: Final = 10_000_000
DERIVED_BYTES: Final = 32
MAX_SALT_BYTES: Final = 1024


def encrypt(secret: bytes, passphrase: bytes, *, scrypt_n: int) -> dict[str, Any]:
    """Encrypt a secret with scrypt's work factor `scrypt_n`."""
    salt, iv = secrets.token_bytes(16), secrets.token_bytes(16)
    params = {"dklen": DERIVED_BYTES, "n": scrypt_n, "r": 8, "p": 1, "salt": salt.hex()}
    derived = _derive("scrypt", params, passphrase)
    ciphertext = _aes_ctr(derived[:16], iv, secret)
    return {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": iv.hex()},
        "ciphertext": ciphertext.hex(),
        "kdf": "scrypt",
        "kdfparams": params,
        "mac": keccak(derived[16:32] + ciphertext).hex(),
    }


def decrypt(crypto: Any, passphrase: bytes) -> bytes | None:
    """Return the secret, or None for a wrong passphrase; raises ValueError for any other input."""
    try:
        derived = _derive(crypto["kdf"], crypto["kdfparams"], passphrase)
        if crypto["cipher"] != "aes-128-ctr":
            raise ValueError("its cipher is not aes-128-ctr")
        iv, ciphertext = _bytes(crypto["cipherparams"]["iv"]), _bytes(crypto["ciphertext"])
        mac = _bytes(crypto["mac"])
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError("it has no readable crypto section") from None
    if not hmac.compare_digest(mac, keccak(derived[16:32] + ciphertext)):
        return None
    return _aes_ctr(derived[:16], iv.rjust(16, b"\0"), ciphertext)


def _derive(kdf: str, params: Any, passphrase: bytes) -> bytes:
    salt, size = _bytes(params["salt"]), int(params["dklen"])
    if size != DERIVED_BYTES or len(salt) > MAX_SALT_BYTES:
        raise ValueError("its derived key does not have 32 bytes")
    if kdf == "scrypt":
        n, r, p = (int(params[name]) for name in "nrp")
        if not 0 < 128 * n * r * p <= MAX_SCRYPT_MEMORY_BYTES:
            raise ValueError("opening it would take more work than any wallet asks for")
        limit = 2 * MAX_SCRYPT_MEMORY_BYTES - 1
        return hashlib.scrypt(passphrase, salt=salt, n=n, r=r, p=p, maxmem=limit, dklen=size)
    if kdf == "pbkdf2" and params["prf"] == "hmac-sha256":
        rounds = int(params["c"])
        if rounds > MAX_PBKDF2_ROUNDS:
            raise ValueError("opening it would take more work than any wallet asks for")
        return hashlib.pbkdf2_hmac("sha256", passphrase, salt, rounds, size)
    raise ValueError("its key derivation is neither scrypt nor pbkdf2 with hmac-sha256")


def _aes_ctr(key: bytes, iv: bytes, data: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.CTR(iv)).encryptor()
    return cipher.update(data) + cipher.finalize()


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
