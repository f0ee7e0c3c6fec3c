"""What an endpoint can do: learned from probes and answers, never from the words of a refusal.

A probe is one small call. An ability is missing if it is refused, or answered with null, TRIES
times in a row while a call that every endpoint answers is answered behind it. A probe without an
answer tells nothing, and is made again later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import untrusted_text
from capdex.net.rpc.errors import RpcError
from capdex.net.rpc.transport import Call
from capdex.net.rpc.types import Header, read_header

TRIES: Final = 4  # an endpoint that refuses three calls in ten at random fails one in a hundred

# What follows where an ability is missing: a way round, or what cannot be had.
MISSING: Final = {
    "genesis": "no block 0: the chain is told by the parent of block 1",
    "finalized": "no tag finalized: a block is final by its depth",
    "newest_logs": "no logs of the newest block: where they are read by number, the index "
    "stays one block behind",
    "logs_by_hash": "no logs by block hash: they are read by number, and the hash is read "
    "again behind them",
    "calls_by_hash": "no calls by block hash (EIP-1898): they are made by number, and the hash is "
    "read again behind them",
    "cancun": "no instructions of Cancun (MCOPY): the contracts cannot be deployed on this chain",
    "proofs": "no eth_getProof: answers cannot be proven through this endpoint",
    "gzip": "no compression: replies take several times the traffic",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What an endpoint can do; None while that is not known.

    `blocks` is the widest range of eth_getLogs and `batch` the longest batch of calls answered so
    far. `client` is its web3_clientVersion: the endpoint's own words, for the operator alone.
    """

    genesis: bool | None = None
    finalized: bool | None = None
    newest_logs: bool | None = None
    logs_by_hash: bool | None = None
    calls_by_hash: bool | None = None
    cancun: bool | None = None
    proofs: bool | None = None
    gzip: bool | None = None
    blocks: int = 0
    batch: int = 0
    client: str = ""

    def known(self) -> dict[str, bool]:
        """Return the abilities that are known, by name."""
        abilities = {name: getattr(self, name) for name in MISSING}
        return {name: able for name, able in abilities.items() if able is not None}

    def to_json(self) -> dict[str, bool | int]:
        """Return what `/status` shows: not the client's version, which could say too much."""
        return {**self.known(), "blocks": self.blocks, "batch": self.batch}

    def missing(self) -> list[str]:
        """Return one sentence for each ability that is missing."""
        return [MISSING[name] for name, able in self.known().items() if not able]

    def seen(self, calls: Sequence[Call]) -> Abilities:
        """Return the abilities after these calls were answered in one batch."""
        method, params = calls[0]
        if len(calls) > max(self.batch, 1):
            return replace(self, batch=len(calls))
        if method == "eth_getLogs" and "fromBlock" in params[0]:
            query = params[0]
            blocks = int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1
            return replace(self, blocks=blocks) if blocks > self.blocks else self
        return self


# Calls one endpoint: by a method, parameters and what reads the result. Raises RpcError.
Ask = Callable[[str, Sequence[Any], Callable[[Any], Any]], Awaitable[Any]]


def as_is(result: object) -> Any:
    """Return a result that is not read further."""
    return result


async def first_block(ask: Ask) -> bytes | None:
    """Return the hash of block 0, if need be as the parent of block 1; None if it keeps neither.

    Raises RpcError.
    """
    first: Header | None = await _answer(ask, _block(0), _LATEST, read_header)
    if first:
        return first.hash
    second: Header | None = await _answer(ask, _block(1), _LATEST, read_header)
    return second.parent if second else None


async def client_version(ask: Ask) -> str:
    """Return the endpoint's web3_clientVersion, empty if it gives none; raises RpcError."""
    version = await _answer(ask, ("web3_clientVersion", []), _LATEST)
    return untrusted_text(version)[:100] if isinstance(version, str) else ""


async def newest(ask: Ask) -> Header:
    """Return the newest block, which `has` probes against; raises RpcError."""
    head: Header = await ask(*_LATEST, lambda answer: read_header(_not_null(answer)))
    return head


async def has(ask: Ask, name: str, head: Header) -> bool:
    """Probe the ability of this name; raises RpcError if that tells nothing."""
    if name == "cancun":
        return await runs_cancun(ask)
    # The newest block but one is seldom reorganised.
    at = {"blockHash": to_hex(head.parent if head.number else head.hash)}
    call: Call = {
        "genesis": _block(0),
        "finalized": _block("finalized"),
        "newest_logs": logs_of_nobody(head.number, head.number),
        "logs_by_hash": ("eth_getLogs", [{"address": _NOBODY, **at}]),
        "calls_by_hash": ("eth_call", [{"to": _NOBODY, "data": "0x"}, at]),
        "proofs": ("eth_getProof", [_NOBODY, [], "latest"]),
    }[name]
    return await _answer(ask, call, _LATEST) is not None


async def runs_cancun(ask: Ask) -> bool:
    """True if the chain has the instructions of Cancun; raises RpcError if that is not known."""
    return await _answer(ask, _CANCUN, _CALL) is not None


def logs_of_nobody(first: int, last: int) -> Call:
    """Return a call for logs of a range of blocks, of an address that has none."""
    return "eth_getLogs", [{"address": _NOBODY, "fromBlock": hex(first), "toBlock": hex(last)}]


async def _answer(ask: Ask, call: Call, control: Call, read: Callable[[Any], Any] = as_is) -> Any:
    """Return the result of a probe, None if the ability is missing; raises RpcError."""
    for _ in range(TRIES):
        try:
            answer = await ask(*call, read)
        except RpcError as error:
            if not error.is_refusal:
                raise
        else:
            if answer is not None or call[0] == "eth_getLogs":  # null is no logs
                return answer or []
    await ask(*control, _not_null)
    return None


def _block(number: int | str) -> Call:
    return "eth_getBlockByNumber", [number if isinstance(number, str) else hex(number), False]


def _not_null(result: object) -> Any:
    if result is None:
        raise ValueError("the result is null")
    return result


PROBED: Final = tuple(name for name in MISSING if name != "gzip")
_NOBODY: Final = "0x" + "00" * 20
_LATEST: Final = _block("latest")
_CALL: Final[Call] = "eth_call", [{"data": "0x00"}, "latest"]  # STOP
_CANCUN: Final[Call] = "eth_call", [{"data": "0x5f5f5f5e00"}, "latest"]  # PUSH0 ×3, MCOPY, STOP
