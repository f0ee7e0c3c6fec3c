"""Transactions as the publisher sees them: priced, sent, mined."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

DEFAULT_FEE_CAP_WEI: Final = 10**16  # 0.01 ether: a hundred times what a publication costs


@dataclass(frozen=True, slots=True)
class Transaction:
    """An unsigned EIP-1559 transaction, priced; another signer could send it as it stands.

    Fees are in wei per gas; `to` None creates a contract; `data` is 0x hex. `fee_cap_wei` is the
    most that a person agreed to, whatever happens to the transaction later.
    """

    chain_id: int
    sender: str
    to: str | None
    data: str
    gas: int
    max_fee_per_gas: int
    max_priority_fee_per_gas: int
    expected_fee_wei: int
    value: int = 0
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI

    @property
    def max_fee_wei(self) -> int:
        """The most that this transaction can cost."""
        return self.gas * self.max_fee_per_gas

    def fields(self, nonce: int) -> dict[str, Any]:
        """What a signer signs, by the names of `eth_signTransaction`; numbers are integers."""
        fields: dict[str, Any] = {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": nonce,
            "gas": self.gas,
            "maxFeePerGas": self.max_fee_per_gas,
            "maxPriorityFeePerGas": self.max_priority_fee_per_gas,
            "value": self.value,
            "data": self.data,
        }
        return fields if self.to is None else fields | {"to": self.to}

    def to_json(self) -> dict[str, Any]:
        """The transaction for a dry run's answer."""
        return asdict(self) | {"max_fee_wei": self.max_fee_wei}


@dataclass(frozen=True, slots=True)
class Sent:
    """A transaction handed to the chain: 0x transaction hash and the account's nonce."""

    tx_hash: str
    nonce: int


@dataclass(frozen=True, slots=True)
class Mined:
    """A transaction in a block, not reverted; hashes are 0x hex, logs are web3's."""

    tx_hash: str
    block_number: int
    block_hash: str
    gas_used: int
    fee_wei: int
    contract_address: str | None
    logs: tuple[Any, ...]


def ether(wei: int) -> str:
    """An amount of wei for people: four significant digits of ether."""
    return f"{wei / 10**18:.4g} ether"
