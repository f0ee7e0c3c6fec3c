"""Signatures of authors over packages (P5), and the DIDs and accounts that they name."""

from capdex.signature.did import Account, Algorithm, PublicKey, resolve_key
from capdex.signature.signature import (
    attach,
    decode_signature,
    encode_signature,
    prepare,
    sign_ed25519,
    sign_eip191,
    signing_input,
    verify_signature,
)

__all__ = [
    "Account",
    "Algorithm",
    "PublicKey",
    "attach",
    "decode_signature",
    "encode_signature",
    "prepare",
    "resolve_key",
    "sign_ed25519",
    "sign_eip191",
    "signing_input",
    "verify_signature",
]
