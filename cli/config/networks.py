"""Public chains known by name: chain id, currency, explorer, and the contracts' one address.

No endpoint is built in: the user chooses it. The chain id is fixed, so no file can make a name mean
another chain. The contracts have the same address on every chain (CREATE2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# As `capdex deploy --address` and `capdex deploy --address --votes` compute them from the code.
REGISTRY: Final = "0x622D9635044afa47502c16a33cb6E57927F6E3e9"
VOTES: Final = "0x8aF3eBBdf2e039E1169A3A7703B50e0c20778C4a"


@dataclass(frozen=True, slots=True)
class Template:
    """A public chain; `confirmations` are about thirty seconds of its blocks."""

    chain_id: int
    currency: str  # what fees are paid in
    explorer_url: str
    confirmations: int

    def values(self) -> dict[str, str]:
        """Return the settings of this network as a file would have them."""
        return {
            "chain-id": str(self.chain_id),
            "registry": REGISTRY,
            "votes": VOTES,
            "confirmations": str(self.confirmations),
        }


TEMPLATES: Final = {
    "ethereum": Template(1, "ETH", "https://etherscan.io", 3),
    "optimism": Template(10, "ETH", "https://optimistic.etherscan.io", 15),
    "gnosis": Template(100, "xDAI", "https://gnosisscan.io", 6),
    "polygon": Template(137, "POL", "https://polygonscan.com", 15),
    "base": Template(8453, "ETH", "https://basescan.org", 15),
    "arbitrum": Template(42161, "ETH", "https://arbiscan.io", 120),
    "sepolia": Template(11155111, "ETH", "https://sepolia.etherscan.io", 3),
    "base-sepolia": Template(84532, "ETH", "https://sepolia.basescan.org", 15),
    "optimism-sepolia": Template(11155420, "ETH", "https://sepolia-optimism.etherscan.io", 15),
    "arbitrum-sepolia": Template(421614, "ETH", "https://sepolia.arbiscan.io", 120),
}
