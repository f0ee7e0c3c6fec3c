"""Compute the addresses of contracts deployed by CREATE2 through one factory (EIP-1014).

Needs no network: an address is the hash of the factory, a salt and
the creation code with its constructor's arguments, so code at that address is that contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from capdex.encoding.abi import checksum_address
from capdex.encoding.contract_abi import artifact
from capdex.encoding.hexadecimal import to_hex
from capdex.encoding.keccak import keccak
from capdex.errors import Code, UsageError
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID

# Deployed by a transaction whose key nobody can have, hence the same on every chain.
FACTORY: Final = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
FACTORY_CODE: Final = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0"
    "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
)
FACTORY_MAKER: Final = "0x3fAB184622Dc19b6109349B94811493BF2a45362"
SALT: Final = bytes(32)

DEV_AGES_S: Final = (0, 0)  # a claim needs no commitment: there is no public mempool
# A minute is several blocks of every common chain; after a day a forgotten claim is void (P12).
PUBLIC_AGES_S: Final = (60, 86_400)


@dataclass(frozen=True, slots=True)
class Creation:
    """A contract to be made, and the code that makes it.

    `arguments` are its constructor's, in order, by the names of the views that return them.
    """

    contract: str
    arguments: tuple[tuple[str, int | str], ...]
    init_code: bytes

    @property
    def address(self) -> str:
        """The contract's address on every chain (EIP-55)."""
        preimage = b"\xff" + _bytes(FACTORY) + SALT + keccak(self.init_code)
        return checksum_address(keccak(preimage)[12:])

    @property
    def calldata(self) -> str:
        """The calldata for the factory (0x hex)."""
        return to_hex(SALT + self.init_code)


def registry(
    chain_id: int, *, min_age_s: int | None = None, max_age_s: int | None = None
) -> Creation:
    """The registry of a chain; ages other than the chain's usual ones give another address.

    Raises UsageError when no commitment could ever be young and old enough.
    """
    usual = DEV_AGES_S if chain_id == DEV_CHAIN_ID else PUBLIC_AGES_S
    low = usual[0] if min_age_s is None else min_age_s
    high = usual[1] if max_age_s is None else max_age_s
    if low > high:
        raise UsageError(
            f"a commitment cannot be {low} s old at least and {high} s at most",
            why="no name could ever be claimed",
            fix="give a --max-commitment-age of at least --min-commitment-age",
        )
    arguments = (("MIN_COMMITMENT_AGE", low), ("MAX_COMMITMENT_AGE", high))
    return _creation("CapabilityRegistry", arguments)


def votes(registry_address: str, *, token: str | None = None, timepoint: int = 0) -> Creation:
    """The votes on the names of a registry, weighed by a token's past holdings where one is given.

    Raises UsageError for a timepoint without a token.
    """
    if timepoint and not token:
        raise UsageError(
            "a timepoint is of a token",
            why="without a token every vote weighs one",
            fix="name the token with --token, or leave --timepoint out",
        )
    arguments = (
        ("REGISTRY", registry_address),
        ("TOKEN", token or checksum_address(bytes(20))),
        ("TIMEPOINT", timepoint),
    )
    return _creation("CapabilityVotes", arguments)


def _creation(contract: str, arguments: tuple[tuple[str, int | str], ...]) -> Creation:
    from web3 import Web3  # two seconds that only deployments pay

    for name, value in arguments:
        if isinstance(value, int) and not 0 <= value < 1 << 256:
            raise UsageError(f"{name} must be a number from 0 to 2**256 - 1", Code.USAGE)
    made = artifact(contract)
    factory = Web3().eth.contract(abi=made["abi"], bytecode=made["bytecode"])
    constructor = factory.constructor(*(value for _, value in arguments))
    return Creation(contract, arguments, _bytes(constructor.data_in_transaction))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])
