"""Signing a package file as its author: with a DID key, or with the publishing account itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capdex.encoding.abi import parse_address
from capdex.errors import InvalidInput, UsageError
from capdex.manifest.manifest import read
from capdex.signature import did
from capdex.signature import signature as signing
from capdex.yaml.reader import read_yaml
from publisher.authoring.source import read_manifest, read_source
from publisher.files import write_atomically
from publisher.keys.keystore import DidKey, check_account
from publisher.keys.signer import Signer

Author = DidKey | Signer


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed file; `changed` is false when it was signed so already."""

    path: Path
    cap_uri: str
    author: str
    publisher: str | None
    changed: bool


async def sign(
    data: bytes, author: Author, *, chain_id: int, publisher: str | None = None
) -> bytes:
    """The package signed by its author, everything else byte for byte as it was (CRLF become LF).

    A DID key names the account that will publish (`publisher`, an address on `chain_id`); an
    account signs for itself as did:pkh. Signing is deterministic, so that signing again changes
    nothing. Raises InvalidInput with all problems of a file that is not valid, UsageError without
    an account to name, and Refused KEY_EXPOSED for a test account on a real chain.
    """
    reading = read_yaml(data.replace(b"\r\n", b"\n"))
    named, account = _parties(author, chain_id, publisher)
    try:
        prepared = signing.prepare(reading, author=named, publisher=account)
    except InvalidInput:
        read(reading).require()  # names all problems; if there is none, the refusal stands
        raise
    manifest = read(prepared).require()
    if isinstance(author, DidKey) and manifest.publisher is None:
        raise UsageError(
            "the package does not name the account that will publish it",
            why="nobody could tell who vouches for the author's key (P6)",
            fix="name it with --publisher 0x…, or configure a keystore",
        )
    message = signing.signing_input(prepared, str(manifest.uri))
    if isinstance(author, DidKey):
        signature = signing.sign_ed25519(author.private, message)
    else:
        signature = await author.sign_message(message)
    return signing.attach(prepared, signature)


async def sign_file(
    path: Path, author: Author, *, chain_id: int, publisher: str | None = None
) -> Signed:
    """Sign a file in place, whole or not at all, its mode kept; raises like `sign`."""
    data = read_source(path)
    signed = await sign(data, author, chain_id=chain_id, publisher=publisher)
    if signed != data:
        write_atomically(path, signed)
    manifest = read_manifest(signed)
    return Signed(
        path=path,
        cap_uri=str(manifest.uri),
        author=manifest.author or "",
        publisher=manifest.publisher,
        changed=signed != data,
    )


def _parties(author: Author, chain_id: int, publisher: str | None) -> tuple[str, str | None]:
    """The author's DID URL, and the publishing account as CAIP-10 where it must be named."""
    if not isinstance(author, DidKey):
        check_account(author.address, chain_id)
        return did.did_url(did.pkh(chain_id, author.address)), None
    if publisher is None:
        return did.did_url(author.did), None
    address = parse_address(publisher)
    check_account(address, chain_id)
    return did.did_url(author.did), did.caip10(chain_id, address)
