"""ABI encoding and decoding of our contracts' types, compared with eth-abi."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode as encode_abi
from eth_utils.abi import function_abi_to_4byte_selector
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.abi import checksum_address
from capdex.encoding.contract_abi import CONTRACTS, artifact, decode, encode, functions
from capdex.errors import UsageError

PARAMETERS = [
    entry[key]
    for contract in CONTRACTS
    for entry in artifact(contract)["abi"]
    for key in ("inputs", "outputs")
    if entry.get(key)
]


def canonical(parameter: Any) -> str:
    kind = parameter["type"]
    if not kind.startswith("tuple"):
        return str(kind)
    return f"({','.join(map(canonical, parameter['components']))}){kind[5:]}"


def values(parameter: Any) -> st.SearchStrategy[Any]:
    kind = parameter["type"]
    if kind.endswith("[]"):
        return st.lists(values(parameter | {"type": kind[:-2]}), max_size=3).map(tuple)
    if kind == "tuple":
        return st.tuples(*map(values, parameter["components"]))
    if kind == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
    if kind == "address":
        return st.binary(min_size=20, max_size=20).map(checksum_address)
    if kind == "bool":
        return st.booleans()
    if kind.startswith("bytes"):
        size = int(kind[5:] or 0)
        return st.binary(min_size=size, max_size=size or 80)
    bits = int(kind.removeprefix("u").removeprefix("int"))
    if kind.startswith("int"):
        return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return st.integers(0, (1 << bits) - 1)


@given(st.data())
def test_values_are_encoded_as_eth_abi_does_and_read_back(data: Any) -> None:
    parameters = data.draw(st.sampled_from(PARAMETERS))
    given_values = data.draw(st.tuples(*map(values, parameters)))
    raw = encode(parameters, given_values)
    assert raw == encode_abi([canonical(one) for one in parameters], given_values)
    assert decode(parameters, raw) == given_values


@given(st.data())
def test_any_reply_is_read_or_refused(data: Any) -> None:
    parameters = data.draw(st.sampled_from(PARAMETERS))
    raw = bytearray(encode(parameters, data.draw(st.tuples(*map(values, parameters)))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for reply in (bytes(raw), bytes(raw[: len(raw) // 2])):
        try:
            decode(parameters, reply)
        except ValueError:
            continue


def test_a_reply_takes_no_more_memory_than_its_size() -> None:
    """A thousand items that all point to the same long string."""
    count, word = 1000, 32
    offset = (count * word).to_bytes(word, "big")
    text = (3200).to_bytes(word, "big") + b"x" * 3200
    array = count.to_bytes(word, "big") + offset * count + text
    with pytest.raises(ValueError, match="too short"):
        decode([{"type": "string[]"}], word.to_bytes(word, "big") + array)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("uint8", 256),
        ("uint8", -1),
        ("int8", 128),
        ("bytes32", b"x"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(ValueError):
        encode([{"type": kind}], [value])


@pytest.mark.parametrize("value", ["", "0x12", "note", "0x" + "aB" * 20])
def test_a_text_that_is_no_address_is_refused_with_how_one_is_written(value: str) -> None:
    with pytest.raises(UsageError, match=r"is not an address|has a wrong checksum") as refusal:
        encode([{"type": "address"}], [value])
    assert refusal.value.fix


@pytest.mark.parametrize("contract", CONTRACTS)
def test_selectors_are_those_of_eth_utils(contract: str) -> None:
    for entry in artifact(contract)["abi"]:
        if entry["type"] == "function":
            assert functions(contract)[entry["name"]].selector == function_abi_to_4byte_selector(
                entry
            )
