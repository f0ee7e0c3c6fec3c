"""The states of a transaction: priced, sent, mined."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Final, NamedTuple

from capdex.errors import Code, Refused
from capdex.registry.logs import RawLog

DEFAULT_FEE_CAP_WEI: Final = 10**16  # 0.01 ether: a hundred times what a publication costs
GAS_MARGIN_PERCENT: Final = 120  # an estimate is of one state; the next block may have another
# A node takes another transaction of the same nonce when both its fees are a tenth higher (Geth),
# or an eighth (what the strictest ask): an eighth satisfies all.
REPLACEMENT_EIGHTHS: Final = 9


class Fees(NamedTuple):
    """Current price of a unit of gas in wei: the base fee of the next block, and a usual tip."""

    base: int
    tip: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """An unsigned EIP-1559 transaction; once `priced`, another signer could send it as it stands.

    Fees are in wei per gas; `data` is 0x hex. `fee_cap_wei` is the most that the user agreed to,
    for this transaction and its replacements.
    """

    chain_id: int
    sender: str
    to: str
    data: str
    gas: int
    max_fee_per_gas: int = 0
    max_priority_fee_per_gas: int = 0
    expected_fee_wei: int = 0
    value: int = 0
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI

    @property
    def max_fee_wei(self) -> int:
        """The most that this transaction can cost."""
        return self.gas * self.max_fee_per_gas

    def priced(self, fees: Fees) -> Transaction:
        """Return this transaction at the current fees; raises Refused FEE_OVER_CAP.

        There is room for the base fee to double before it is mined, but never past the cap.
        """
        priced = self._at(fees.base, fees.tip, 2 * fees.base + fees.tip)
        if priced is None:
            now = sum(fees)
            raise Refused(
                f"the fee would be {ether(self.gas * now)}, over the cap of "
                f"{ether(self.fee_cap_wei)}",
                Code.FEE_OVER_CAP,
                why=f"{self.gas} gas at {four_digits(now / 10**9)} gwei",
                fix="wait for a quieter hour, or raise the cap with --fee-cap",
            )
        return priced

    def raised(self, fees: Fees, *, funds_wei: int) -> Transaction | None:
        """Return the replacement of this transaction, both fees at least an eighth higher.

        None when that would be over the cap, or more than the account holds.
        """
        tip = max(fees.tip, _an_eighth_more(self.max_priority_fee_per_gas))
        least = max(_an_eighth_more(self.max_fee_per_gas), fees.base + tip)
        raised = self._at(fees.base, tip, max(least, 2 * fees.base + tip), funds_wei=funds_wei)
        return raised if raised is not None and raised.max_fee_per_gas >= least else None

    def _at(
        self, base: int, tip: int, wanted: int, *, funds_wei: int | None = None
    ) -> Transaction | None:
        funds = self.fee_cap_wei if funds_wei is None else min(self.fee_cap_wei, funds_wei)
        most = min(wanted, funds // self.gas)
        if most < base + tip:
            return None
        return replace(
            self,
            max_fee_per_gas=most,
            max_priority_fee_per_gas=tip,
            expected_fee_wei=self.gas * 100 // GAS_MARGIN_PERCENT * (base + tip),
        )

    def fields(self, nonce: int) -> dict[str, Any]:
        """Return the fields to sign, named as in `eth_signTransaction`; numbers are integers."""
        return {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": nonce,
            "gas": self.gas,
            "maxFeePerGas": self.max_fee_per_gas,
            "maxPriorityFeePerGas": self.max_priority_fee_per_gas,
            "to": self.to,
            "value": self.value,
            "data": self.data,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the transaction as a dry run prints it."""
        return asdict(self) | {"max_fee_wei": self.max_fee_wei}


@dataclass(frozen=True, slots=True)
class Sent:
    """A transaction handed to the chain: its 0x hash and the account's nonce.

    `earlier` holds the hashes it had before, each at lower fees or under a nonce that was lost:
    any of them may be mined. `signed_at` is in seconds since the epoch.
    """

    tx_hash: str
    nonce: int
    transaction: Transaction | None = None
    signed_at: float = 0.0
    earlier: tuple[str, ...] = ()

    @property
    def hashes(self) -> tuple[str, ...]:
        """Every hash, the newest first, each once."""
        return tuple(dict.fromkeys((self.tx_hash, *self.earlier)))


@dataclass(frozen=True, slots=True)
class Leaving:
    """A transaction is signed and being sent: from now on the chain may have it."""

    tx_hash: str


@dataclass(frozen=True, slots=True)
class Mined:
    """A transaction in a block; hashes are 0x hex."""

    tx_hash: str
    block_number: int
    block_hash: str
    gas_used: int
    fee_wei: int
    logs: tuple[RawLog, ...]


@dataclass(frozen=True, slots=True)
class Shallow:
    """A transaction is in a block, and counts when the chain has `missing` more of them."""

    block_number: int
    missing: int


@dataclass(frozen=True, slots=True)
class Reverted:
    """A transaction is in a block and has changed nothing; its fee (wei) was paid."""

    tx_hash: str
    fee_wei: int


def ether(wei: int) -> str:
    """Return an amount of wei in ether, such as `0.000093 ether`."""
    return f"{four_digits(wei / 10**18)} ether"


def four_digits(amount: float) -> str:
    """Return an amount with four significant digits, and never with an exponent."""
    return f"{Decimal(f'{amount:.4g}'):f}"


def _an_eighth_more(fee: int) -> int:
    return -(-fee * REPLACEMENT_EIGHTHS // 8)
