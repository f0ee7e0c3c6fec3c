"""ABI encoding of calls and decoding of replies, by the parameter types of a contract's artifact.

Covers the types that our contracts use: `string`, `bytes`, `bytesN`, `address`, `bool`, `uintN`,
`intN`, tuples, and arrays of unknown length. The tests compare it with eth-abi, whose import alone
takes as long as a command may.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from capdex.encoding.abi import checksum_address, raw_address
from capdex.encoding.hexadecimal import to_hex
from capdex.encoding.keccak import keccak

CONTRACTS: Final = ("CapabilityRegistry", "CapabilityVotes")
WORD: Final = 32

Parameter = Mapping[str, Any]  # as in an artifact: `type`, and `components` of a tuple
Parameters = Sequence[Parameter]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a contract: its selector and the types of its arguments and results."""

    selector: bytes
    inputs: Parameters
    outputs: Parameters

    def encode(self, arguments: Sequence[Any]) -> str:
        """Return the calldata (0x hex); raises ValueError for arguments of other types."""
        return to_hex(self.selector + encode(self.inputs, arguments))

    def decode(self, reply: bytes) -> Any:
        """Return the result, or a tuple of several results; raises ValueError."""
        values = decode(self.outputs, reply)
        return values[0] if len(values) == 1 else values


@cache
def artifact(contract: str = CONTRACTS[0]) -> dict[str, Any]:
    """Return the checked-in artifact of a contract: `abi` and `bytecode` (0x hex) are in it."""
    text = files("capdex").joinpath(f"abi/{contract}.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def functions(contract: str) -> dict[str, Function]:
    """Return the functions of a contract by their names; none is overloaded."""
    return {
        entry["name"]: Function(selector(entry), entry["inputs"], entry["outputs"])
        for entry in artifact(contract)["abi"]
        if entry["type"] == "function"
    }


@cache
def by_selector(kind: str) -> dict[bytes, Mapping[str, Any]]:
    """Return each `function` or each custom `error` of all contracts by its selector."""
    entries = [entry for contract in CONTRACTS for entry in artifact(contract)["abi"]]
    return {selector(entry): entry for entry in entries if entry["type"] == kind}


def selector(entry: Mapping[str, Any]) -> bytes:
    """Return the 4-byte selector of a function or custom error of an artifact."""
    return keccak(signature(entry).encode("ascii"))[:4]


def signature(entry: Mapping[str, Any]) -> str:
    """Return name and types of a function or custom error: `yank(string,string)`."""
    return f"{entry['name']}({','.join(map(_canonical, entry['inputs']))})"


def encode(parameters: Parameters, values: Sequence[Any]) -> bytes:
    """Return the ABI encoding of values; raises ValueError for values of other types."""
    parts = [_encode(parameter, value) for parameter, value in zip(parameters, values, strict=True)]
    dynamic = list(map(_is_dynamic, parameters))
    offset = sum(WORD if moved else len(part) for part, moved in zip(parts, dynamic, strict=True))
    head, tail = bytearray(), bytearray()
    for part, moved in zip(parts, dynamic, strict=True):
        head += _number(offset + len(tail), 256, signed=False) if moved else part
        tail += part if moved else b""
    return bytes(head + tail)


def decode(parameters: Parameters, data: bytes) -> tuple[Any, ...]:
    """Return the values of ABI-encoded data; raises ValueError for data that is not well formed.

    A string, array or tuple may not overlap another one: no reply takes more memory than its size.
    """
    return _Decoder(data).values(parameters, 0)


def _canonical(parameter: Parameter) -> str:
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(map(_canonical, parameter['components']))}){kind[5:]}"


def _is_dynamic(parameter: Parameter) -> bool:
    kind: str = parameter["type"]
    if kind == "tuple":
        return any(map(_is_dynamic, parameter["components"]))
    return kind in ("string", "bytes") or kind.endswith("[]")


def _element(parameter: Parameter) -> Parameter:
    return {**parameter, "type": parameter["type"][:-2]}


def _head_size(parameter: Parameter) -> int:
    if parameter["type"] != "tuple" or _is_dynamic(parameter):
        return WORD
    return sum(map(_head_size, parameter["components"]))


def _encode(parameter: Parameter, value: Any) -> bytes:
    kind: str = parameter["type"]
    if kind.endswith("[]"):
        return _number(len(value), 256, signed=False) + encode(
            [_element(parameter)] * len(value), value
        )
    if kind == "tuple":
        return encode(parameter["components"], value)
    if kind in ("string", "bytes"):
        raw = value.encode("utf-8") if kind == "string" else bytes(value)
        return _number(len(raw), 256, signed=False) + raw + bytes(-len(raw) % WORD)
    if kind.startswith("bytes"):
        if len(value) != int(kind[5:]):
            raise ValueError(f"{kind} does not have {len(value)} bytes")
        return bytes(value).ljust(WORD, b"\0")
    if kind == "address":
        return raw_address(value).rjust(WORD, b"\0")
    if kind == "bool":
        return _number(int(value), 1, signed=False)
    return _number(value, int(kind.lstrip("uint")), signed=kind.startswith("int"))


def _number(value: int, bits: int, *, signed: bool) -> bytes:
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    if not low <= value < high:
        raise ValueError(f"{value} does not fit in {bits} bits")
    return value.to_bytes(WORD, "big", signed=signed)


class _Decoder:
    """Reads values out of one reply; `_left` is how many bytes are not read yet."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = len(data)

    def values(self, parameters: Parameters, start: int) -> tuple[Any, ...]:
        """Read the values of a tuple or array whose first head is at `start`."""
        values, at = [], start
        for parameter in parameters:
            if _is_dynamic(parameter):
                values.append(self._value(parameter, start + self._size(at)))
                at += WORD
            else:
                values.append(self._value(parameter, at))
                at += _head_size(parameter)
        return tuple(values)

    def _value(self, parameter: Parameter, at: int) -> Any:
        kind: str = parameter["type"]
        if kind.endswith("[]"):
            count = self._size(at)
            return self.values([_element(parameter)] * count, at + WORD)
        if kind == "tuple":
            return self.values(parameter["components"], at)
        if kind in ("string", "bytes"):
            size = self._size(at)
            raw = self._read(at + WORD, size)
            return raw.decode("utf-8") if kind == "string" else raw
        word = self._read(at, WORD)
        if kind == "address":
            if any(word[:12]):
                raise ValueError("an address has more than 20 bytes")
            return checksum_address(word[12:])
        if kind.startswith("bytes"):
            size = int(kind[5:])
            if any(word[size:]):
                raise ValueError(f"{kind} has more than {size} bytes")
            return word[:size]
        signed = kind.startswith("int")
        number = int.from_bytes(word, "big", signed=signed)
        bits = 1 if kind == "bool" else int(kind.lstrip("uint"))
        _number(number, bits, signed=signed)
        return bool(number) if kind == "bool" else number

    def _size(self, at: int) -> int:
        """Read a length or an offset: no valid one is larger than the data."""
        number = int.from_bytes(self._read(at, WORD), "big")
        if number > len(self._data):
            raise ValueError("a length or an offset is larger than the data")
        return number

    def _read(self, at: int, size: int) -> bytes:
        self._left -= size
        if self._left < 0 or at + size > len(self._data):
            raise ValueError("the data is too short")
        return self._data[at : at + size]
