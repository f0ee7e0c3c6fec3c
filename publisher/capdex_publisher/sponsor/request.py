"""A publication that its account has signed, as it travels to a sponsor (P12, EIP-712)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import orjson

from capdex.encoding.abi import parse_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import CapdexError, Code, InvalidInput
from capdex.ipld.cid import Cid
from capdex.json import object_of
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.package import VerifiedPackage, judge
from capdex.registry.events import Announcement
from capdex.uri import PREFIX, CapabilityURI
from capdex.yaml import read_yaml
from capdex_publisher.commit_reveal import NO_SECRET
from capdex_publisher.keys.signer import recover_typed_data

# JSON writes a line end or a quotation mark of the package as two bytes.
MAX_REQUEST_BYTES: Final = 2 * MAX_PACKAGE_BYTES + 8192
MAX_UINT256: Final = 2**256 - 1
PUBLICATION: Final = {
    "name": "string",
    "semver": "string",
    "cid": "string",
    "sha256": "bytes32",
    "secret": "bytes32",
    "publisher": "address",
    "nonce": "uint256",
    "deadline": "uint256",
}
DOMAIN: Final = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
}


@dataclass(frozen=True, slots=True)
class SponsorRequest:
    """A package and the account's signature that publishes it; nothing in it is checked yet.

    `nonce` is the registry's number of the account's next signature, `deadline` is in seconds of
    block time, and `secret` claims a new name where the registry asks for commitments.
    """

    chain_id: int
    registry: str
    publisher: str
    nonce: int
    deadline: int
    package: bytes
    secret: bytes = NO_SECRET
    signature: bytes = b""

    @classmethod
    def parse(cls, body: bytes) -> SponsorRequest:
        """Read a request; raises InvalidInput, TOO_LARGE where it is over the limit."""
        if len(body) > MAX_REQUEST_BYTES:
            raise InvalidInput(f"a request has at most {MAX_REQUEST_BYTES} bytes", Code.TOO_LARGE)
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise _malformed(str(error)) from None
        names = {field.name for field in fields(cls)}
        if not isinstance(document, dict) or document.keys() != names:
            raise _malformed(f"it needs exactly these members: {', '.join(sorted(names))}")
        try:
            return cls(
                chain_id=_number(document, "chain_id"),
                registry=parse_address(str(document["registry"])),
                publisher=parse_address(str(document["publisher"])),
                nonce=_number(document, "nonce"),
                deadline=_number(document, "deadline"),
                package=_text(document, "package").encode("utf-8"),
                secret=_hex(document, "secret", 32),
                signature=_hex(document, "signature"),
            )
        except CapdexError as error:
            if error.code is Code.INVALID_INPUT:
                raise
            raise _malformed(error.message) from None

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON; numbers that may exceed 53 bits are text."""
        return asdict(self) | {
            "nonce": str(self.nonce),
            "deadline": str(self.deadline),
            "package": self.package.decode("utf-8"),
            "secret": to_hex(self.secret),
            "signature": to_hex(self.signature),
        }

    def announcement(self) -> Announcement:
        """Return what the publication says on chain, of a package that is not checked yet.

        Raises InvalidInput for one without an id.
        """
        metadata = object_of(object_of(read_yaml(self.package).value).get("metadata"))
        uri, cid = CapabilityURI.exact(str(metadata.get("id"))), Cid.of(self.package)
        return Announcement(
            self.chain_id, self.publisher, str(uri), str(uri.version), str(cid), cid.digest
        )

    def document(self, said: Announcement) -> dict[str, Any]:
        """Return what the account signs: a document of `eth_signTypedData_v4`."""
        message = {
            "name": said.cap_uri.removeprefix(PREFIX).partition("@")[0],
            "semver": said.semver,
            "cid": said.cid,
            "sha256": to_hex(said.sha256),
            "secret": to_hex(self.secret),
            "publisher": self.publisher,
            "nonce": self.nonce,
            "deadline": self.deadline,
        }
        return {
            "types": {"EIP712Domain": _members(DOMAIN), "Publication": _members(PUBLICATION)},
            "primaryType": "Publication",
            "domain": {
                "name": "capdex",
                "version": "1",
                "chainId": self.chain_id,
                "verifyingContract": self.registry,
            },
            "message": message,
        }

    def verify(self) -> VerifiedPackage:
        """Return the package, judged as one that `publisher` announces; raises why it is not valid.

        Raises InvalidInput and VerificationFailure.
        """
        judged = judge(self.announcement(), self.package)
        if not isinstance(judged, VerifiedPackage):
            raise judged.failure()
        return judged

    def is_signed_by_key(self, said: Announcement) -> bool:
        """Return True if the publisher's own key made the signature.

        False for an account that is a contract: the registry asks it (ERC-1271).
        """
        return recover_typed_data(self.document(said), self.signature) == self.publisher

    def arguments(self, package: VerifiedPackage) -> tuple[Any, ...]:
        """Return the arguments of the contract's `publishWithSignature`."""
        said = package.announcement
        publication = (package.manifest.uri.name, said.semver, said.cid, said.sha256, self.secret)
        return publication, self.publisher, self.deadline, self.signature


def _members(types: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in types.items()]


def _number(document: dict[str, Any], key: str) -> int:
    """Return a whole number, written as one or as decimal text of at most 78 digits."""
    value = document[key]
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 78:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_UINT256:
        raise _malformed(f"{key} is not a whole number of 256 bits")
    return value


def _text(document: dict[str, Any], key: str) -> str:
    value = document[key]
    if not isinstance(value, str):
        raise _malformed(f"{key} is not text")
    return value


def _hex(document: dict[str, Any], key: str, size: int | None = None) -> bytes:
    text = _text(document, key)
    try:
        value = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise _malformed(f"{key} is not hex") from None
    if size is not None and len(value) != size:
        raise _malformed(f"{key} has {len(value)} bytes, not {size}")
    return value


def _malformed(why: str) -> InvalidInput:
    return InvalidInput(
        "this is not a signed publication",
        why=why,
        fix="make one with: capdex sponsor sign FILE",
    )
