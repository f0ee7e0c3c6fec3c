"""The settings of one call (made by `capdex_cli.config.load`), public chains, the user's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from capdex.errors import Code, UsageError

DEFAULT_FEE_CAP_WEI: Final = 10**16  # 0.01 ETH: far above the cost of any publication

# As `capdex deploy --address` and `capdex deploy --address --votes` compute them from the code:
# the contracts have the same address on every public chain (CREATE2).
REGISTRY: Final = "0x622D9635044afa47502c16a33cb6E57927F6E3e9"
VOTES: Final = "0x8aF3eBBdf2e039E1169A3A7703B50e0c20778C4a"

TYPED: Final = "an option"  # the origin of what was typed, as `capdex config` shows it


class ChainTemplate(NamedTuple):
    """A public chain known by name. The user chooses its endpoint; no file changes its chain id."""

    chain_id: int
    currency: str  # what fees are paid in
    explorer_url: str
    confirmations: int  # about thirty seconds of its blocks

    def values(self) -> dict[str, str]:
        """Return the settings of this network as a file would have them."""
        return {
            "chain-id": str(self.chain_id),
            "registry": REGISTRY,
            "votes": VOTES,
            "confirmations": str(self.confirmations),
        }


TEMPLATES: Final = {
    "ethereum": ChainTemplate(1, "ETH", "https://etherscan.io", 3),
    "optimism": ChainTemplate(10, "ETH", "https://optimistic.etherscan.io", 15),
    "gnosis": ChainTemplate(100, "xDAI", "https://gnosisscan.io", 6),
    "polygon": ChainTemplate(137, "POL", "https://polygonscan.com", 15),
    "base": ChainTemplate(8453, "ETH", "https://basescan.org", 15),
    "arbitrum": ChainTemplate(42161, "ETH", "https://arbiscan.io", 120),
    "sepolia": ChainTemplate(11155111, "ETH", "https://sepolia.etherscan.io", 3),
    "base-sepolia": ChainTemplate(84532, "ETH", "https://sepolia.basescan.org", 15),
    "optimism-sepolia": ChainTemplate(11155420, "ETH", "https://sepolia-optimism.etherscan.io", 15),
    "arbitrum-sepolia": ChainTemplate(421614, "ETH", "https://sepolia.arbiscan.io", 120),
}


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
    nodes: str = ""  # URLs of further nodes, with which install compares the answers
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
        from capdex.encoding.abi import raw_address

        return raw_address(str(getattr(self, field)))


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one call; `origins` has the source of each value by key."""

    network: Network | None = None
    keystore: Path | None = None
    author_key: Path | None = None
    passphrase_file: Path | None = None
    author_passphrase_file: Path | None = None
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
                why="no --network, no configuration, and no `capdex up` is ready in this directory",
                fix="run `capdex up` here, or choose one with --network",
            )
        return self.network.require(*fields)


class Directories(NamedTuple):
    """The directories of this user. Each is created when a file is first written to it."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def config_file(self) -> Path:
        """The user's configuration file."""
        return self.config / "config.toml"

    @property
    def keys(self) -> Path:
        """The directory for new keys."""
        return self.data / "keys"


def wrong(message: str, origin: str, fix: str) -> UsageError:
    """Return the error for a setting that is wrong, with the source that set it."""
    return UsageError(message, Code.CONFIG, why=f"set by {origin}", fix=fix)


def path_of(text: str, key: str, origin: str) -> Path:
    """Return the path of a setting; raises UsageError if it is in the home of no user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        fix = "write the path out: no user of this machine has that name"
        raise wrong(f"{key} is not a path: {text!r}", origin, fix) from None


def user_directories(environ: Mapping[str, str] = os.environ) -> Directories:
    """Return the directories below `CAPDEX_HOME`, else those of XDG, on Linux and macOS alike."""
    home = environ.get("CAPDEX_HOME")
    if home:
        root = path_of(home, "CAPDEX_HOME", "environment").absolute()
        return Directories(*(root / name for name in Directories._fields))
    from platformdirs.unix import Unix

    unix = Unix("capdex")
    return Directories(
        unix.user_config_path, unix.user_data_path, unix.user_state_path, unix.user_cache_path
    )
