"""The settings of one call: the network and the keys chosen, and where each value came from.

`cli.config.load` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from capdex.errors import Code, UsageError

DEFAULT_FEE_CAP_WEI = 10**16  # 0.01 ETH: far above the cost of any publication


@dataclass(frozen=True, slots=True)
class Network:
    """A chain, its registry, and the node and IPFS used with it. Empty means not configured."""

    name: str
    chain_id: int | None = None
    rpc_url: str = ""
    registry: str = ""
    start_block: int = 0
    node_url: str = ""
    mcp_url: str = ""
    gateway_url: str = ""
    ipfs: str = ""
    votes: str = ""  # the CapabilityVotes of this registry
    trust_rpc_url: str = ""  # second endpoint: proofs are checked against its block hashes
    confirmations: int | None = None  # of a transaction; None: the default of the chain

    def require(self, *fields: str) -> Network:
        """Return this network; raises UsageError with the way to set a field that is not set."""
        for name in fields:
            if getattr(self, name) in ("", None):
                key = name.replace("_", "-")
                raise UsageError(
                    f"the network {self.name!r} has no {key}",
                    Code.CONFIG,
                    why="no option, environment variable or file sets it",
                    fix=f"set CAPDEX_{name.upper()}, or {key} in [networks.{self.name}]",
                )
        return self

    @property
    def chain(self) -> int:
        """The chain id; raises UsageError if it is not set."""
        self.require("chain_id")
        return self.chain_id or 0

    @property
    def has_chain(self) -> bool:
        """True if the settings are enough to read the registry from the chain."""
        return bool(self.rpc_url and self.chain_id and self.registry)

    def address(self, field: str) -> bytes:
        """Return the address in `field` (20 bytes); raises UsageError if it is none."""
        text = str(getattr(self, field))
        digits = text.removeprefix("0x")
        try:
            address = bytes.fromhex(digits)
        except ValueError:
            address = b""
        if len(digits) != 40 or len(address) != 20:
            raise UsageError(
                f"the {field} {text[:80]!r} is not an address",
                Code.CONFIG,
                fix="write it as 0x and 40 hexadecimal digits",
            )
        return address


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one call; `origins` has the source of each value by key."""

    network: Network | None = None
    keystore: Path | None = None
    author_key: Path | None = None
    passphrase_file: Path | None = None
    signer: str = ""  # URL or command of an external signer, instead of a key file
    signer_address: str = ""  # account that the signer signs for
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI
    up: Path | None = None  # .capdex/up.json of the running local network, if it is used
    origins: Mapping[str, str] = field(default_factory=dict)

    def need_network(self, *fields: str) -> Network:
        """Return the network with `fields` set; raises UsageError if none is chosen."""
        if self.network is None:
            raise UsageError(
                "no network is chosen",
                Code.CONFIG,
                why="no --network, no configuration, and no `capdex up` runs in this directory",
                fix="run `capdex up` here, or choose one with --network",
            )
        return self.network.require(*fields)
