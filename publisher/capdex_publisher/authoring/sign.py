"""Sign package files as their author: with a DID key, or with the publishing account itself."""

from __future__ import annotations

from dataclasses import replace

from capdex import did, signing
from capdex.encoding.abi import parse_address
from capdex.errors import InvalidInput, UsageError
from capdex.manifest.manifest import read
from capdex.net.files import write_atomically
from capdex.yaml.reader import read_yaml
from capdex_publisher.authoring.files import renew
from capdex_publisher.authoring.validate import PackageFile
from capdex_publisher.keys.keystore import DidKey
from capdex_publisher.keys.public_accounts import check_account
from capdex_publisher.keys.signer import Signer

Author = DidKey | Signer


async def sign(
    data: bytes, author: Author, *, chain_id: int, publisher: str | None = None
) -> bytes:
    """Return the package signed by its author; other bytes stay as they are (CRLF becomes LF).

    A DID key names the account that will publish (`publisher`, an address on `chain_id`); an
    account signs for itself as did:pkh. Signing is deterministic, so that signing again changes
    nothing. Raises InvalidInput with all problems of a file that is not valid, UsageError without
    an account to name, and Refused KEY_EXPOSED for a test account on a real chain.
    """
    reading = read_yaml(data.replace(b"\r\n", b"\n"))
    account = _publisher_to_name(author, chain_id, publisher)
    try:
        prepared = signing.prepare(reading, author=author_url(author, chain_id), publisher=account)
    except InvalidInput:
        read(reading).require()  # names all problems; if there is none, the refusal stands
        raise
    manifest = read(prepared).require()
    if isinstance(author, DidKey) and manifest.publisher is None:
        raise UsageError(
            "the package does not name the account that will publish it",
            why="without it, no account vouches for the author's key (P6)",
            fix="name it with --publisher 0x…, or configure a keystore",
        )
    message = signing.signing_input(prepared, str(manifest.uri))
    if isinstance(author, DidKey):
        signature = signing.sign_ed25519(author.private, message)
    else:
        signature = await author.sign_message(message)
    return signing.attach(prepared, signature)


async def sign_file(
    file: PackageFile,
    author: Author,
    *,
    chain_id: int,
    publisher: str | None = None,
    write: bool = True,
) -> PackageFile:
    """Sign a file like `sign`; if `write`, replace it at its path atomically, its mode kept.

    The files that the package names are described as they are now, if their folder is here.
    """
    data = renew(file.data, file.folder) if file.folder.is_dir() else file.data
    data = await sign(data, author, chain_id=chain_id, publisher=publisher)
    if write and file.path is not None and data != file.data:
        write_atomically(file.path, data)
    return replace(file, data=data)


def author_url(author: Author, chain_id: int) -> str:
    """Return the DID URL of an author's key, as metadata.author has it."""
    if isinstance(author, DidKey):
        return did.did_url(author.did)
    return did.did_url(did.pkh(chain_id, author.address))


def _publisher_to_name(author: Author, chain_id: int, publisher: str | None) -> str | None:
    """Return the account that publishes (CAIP-10) where the file has to name it."""
    if not isinstance(author, DidKey):
        check_account(author.address, chain_id)
        return None
    if publisher is None:
        return None
    address = parse_address(publisher)
    check_account(address, chain_id)
    return did.caip10(chain_id, address)
