"""Registry events against eth_abi, and the log head against its definition (P13)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_hash.auto import keccak
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding import abi as abidata
from capdex.encoding.abi import MAX_STRING_BYTES, checksum_address
from capdex.errors import InvalidInput
from capdex.registry.events import (
    PUBLISHED,
    TOPICS,
    Announcement,
    Claimed,
    Committed,
    DeprecationChanged,
    MaintainerChanged,
    NameDeprecationChanged,
    Published,
    Renounced,
    Sponsored,
    TransferCancelled,
    TransferOffered,
    Transferred,
    Voted,
    YankChanged,
    decode,
)
from capdex.registry.logs import LogColumns, LogHead, LogPosition, RawLog

REPOSITORY = Path(__file__).resolve().parents[3]
POSITION = LogPosition(7, bytes([1]) * 32, bytes([2]) * 32, 3)
NAME_ID = keccak(b"note")
ACCOUNT = bytes(range(1, 21))
CHAIN_ID = 31337


def raw_log(topic: bytes, data: bytes) -> RawLog:
    return RawLog(bytes(20), (topic, NAME_ID, bytes(12) + ACCOUNT), data, POSITION)


texts = st.text(max_size=70).filter(lambda text: text.isprintable())


@given(st.integers(0, 2**64 - 1), texts, texts, texts, st.binary(min_size=32, max_size=32))
def test_a_publication_is_decoded_as_the_abi_encodes_it(
    sequence: int, cap_uri: str, semver: str, cid: str, sha256: bytes
) -> None:
    types = ["uint64", "string", "string", "string", "bytes32"]
    data = encode(types, [sequence, cap_uri, semver, cid, sha256])
    account = to_checksum_address(ACCOUNT)
    assert decode(raw_log(PUBLISHED, data), CHAIN_ID) == Published(
        sequence,
        NAME_ID,
        Announcement(CHAIN_ID, account, cap_uri, semver, cid, sha256),
        POSITION,
    )


def account_text(raw: bytes) -> str:
    return to_checksum_address(raw)


SEQUENCES = st.integers(0, 2**64 - 1)
ADDRESSES = st.binary(min_size=20, max_size=20).map(account_text)
BIG = st.integers(0, 2**256 - 1)

# By signature: what follows the sequence, the class it is decoded to, and its own fields in order.
CASES: dict[str, tuple[list[st.SearchStrategy[Any]], Any, Callable[..., tuple[Any, ...]]]] = {
    "Yanked(string,string,string)": (
        [texts, texts, texts],
        YankChanged,
        lambda name, semver, reason: (name, semver, True, reason),
    ),
    "Unyanked(string,string)": (
        [texts, texts],
        YankChanged,
        lambda name, semver: (name, semver, False, ""),
    ),
    "Deprecated(string,string,string)": (
        [texts, texts, texts],
        DeprecationChanged,
        lambda name, semver, message: (name, semver, True, message),
    ),
    "Undeprecated(string,string)": (
        [texts, texts],
        DeprecationChanged,
        lambda name, semver: (name, semver, False, ""),
    ),
    "NameDeprecated(string,string,string)": (
        [texts, texts, texts],
        NameDeprecationChanged,
        lambda name, message, replaced_by: (name, True, message, replaced_by),
    ),
    "NameUndeprecated(string)": (
        [texts],
        NameDeprecationChanged,
        lambda name: (name, False, "", ""),
    ),
    "Claimed(string)": ([texts], Claimed, lambda name: (name,)),
    "MaintainerAdded(string,address)": (
        [texts, ADDRESSES],
        MaintainerChanged,
        lambda name, account: (name, account, True),
    ),
    "MaintainerRemoved(string,address)": (
        [texts, ADDRESSES],
        MaintainerChanged,
        lambda name, account: (name, account, False),
    ),
    "TransferOffered(string,address)": ([texts, ADDRESSES], TransferOffered, lambda *both: both),
    "TransferCancelled(string)": ([texts], TransferCancelled, lambda name: (name,)),
    "Transferred(string,address)": ([texts, ADDRESSES], Transferred, lambda *both: both),
    "Renounced(string)": ([texts], Renounced, lambda name: (name,)),
    "Sponsored(string,address,uint256)": ([texts, ADDRESSES, BIG], Sponsored, lambda *all_: all_),
    "Committed(uint64)": ([SEQUENCES], Committed, lambda made_at: (made_at,)),
    "Voted(string,int8,uint256)": (
        [texts, st.integers(-128, 127), BIG],
        Voted,
        lambda *all_: all_,
    ),
}


def split(signature: str) -> tuple[str, list[str]]:
    """The event's name, and the types of its data, the sequence first."""
    name, _, types = signature.rstrip(")").partition("(")
    return name, ["uint64", *types.split(",")]


@pytest.mark.parametrize("signature", CASES)
@given(data=st.data(), sequence=SEQUENCES)
def test_every_other_event_is_decoded_as_the_abi_encodes_it(
    signature: str, data: st.DataObject, sequence: int
) -> None:
    name, types = split(signature)
    strategies, kind, fields = CASES[signature]
    values = [data.draw(one) for one in strategies]
    encoded = encode(types, [sequence, *values])
    own = fields(*values)
    own = (*own, POSITION) if kind is Committed else (own[0], POSITION, *own[1:])
    expected = kind(sequence, NAME_ID, account_text(ACCOUNT), *own)
    assert decode(raw_log(TOPICS[name], encoded), CHAIN_ID) == expected


def test_the_topics_are_those_of_both_contracts() -> None:
    emitted = {}
    for contract in ("CapabilityRegistry", "CapabilityVotes"):
        abi = json.loads((REPOSITORY / f"capdex/abi/{contract}.json").read_text())["abi"]
        for entry in abi:
            if entry["type"] == "event":
                signature = ",".join(one["type"] for one in entry["inputs"])
                emitted[entry["name"]] = keccak(f"{entry['name']}({signature})".encode())
    del emitted["EIP712DomainChanged"]  # declared by ERC-5267, never emitted: our domain is fixed
    assert emitted == TOPICS
    assert len(set(TOPICS.values())) == len(TOPICS)
    assert {split(signature)[0] for signature in CASES} | {"Published"} == set(TOPICS)


@pytest.mark.parametrize("name", ["Yanked", "Deprecated"])
def test_a_reason_that_is_not_utf8_does_not_hide_the_event(name: str) -> None:
    types = ["uint64", "string", "string", "bytes"]  # encoded as a string is
    data = encode(types, [1, "note", "1.0.0", b"broken \xff\xc3"])
    event = decode(raw_log(TOPICS[name], data), CHAIN_ID)
    assert isinstance(event, YankChanged | DeprecationChanged)
    assert "broken \N{REPLACEMENT CHARACTER}" in repr(event)


@pytest.mark.parametrize(
    ("signature", "slot", "hostile"),
    [
        ("MaintainerAdded(string,address)", 2, 2**160),
        ("Transferred(string,address)", 2, 2**255),
        ("Committed(uint64)", 1, 2**64),
        ("Voted(string,int8,uint256)", 2, 128),
        ("Voted(string,int8,uint256)", 2, 2**256 - 129),
    ],
)
def test_a_value_outside_its_type_is_refused(signature: str, slot: int, hostile: int) -> None:
    name, types = split(signature)
    zero = {"string": "note", "address": account_text(ACCOUNT)}
    data = encode(types, [zero.get(one, 0) for one in types])
    data = data[: slot * 32] + hostile.to_bytes(32, "big") + data[slot * 32 + 32 :]
    with pytest.raises(InvalidInput):
        decode(raw_log(TOPICS[name], data), CHAIN_ID)


def published(cap_uri: str = "did:nuwa:cap:note@1.0.0") -> bytes:
    types = ["uint64", "string", "string", "string", "bytes32"]
    return encode(types, [1, cap_uri, "1.0.0", "bafk", bytes(32)])


def test_a_publication_tells_who_published_what() -> None:
    event = decode(raw_log(PUBLISHED, published()), CHAIN_ID)
    uri, publisher = "did:nuwa:cap:note@1.0.0", to_checksum_address(ACCOUNT)
    said = Announcement(CHAIN_ID, publisher, uri, "1.0.0", "bafk", bytes(32))
    assert event == Published(1, NAME_ID, said, POSITION)


@given(st.integers(0, len(published()) - 1))
def test_cut_off_data_is_refused_or_loses_padding_only(size: int) -> None:
    try:
        event = decode(raw_log(PUBLISHED, published()[:size]), CHAIN_ID)
    except InvalidInput:
        return
    assert event == decode(raw_log(PUBLISHED, published()), CHAIN_ID)


@given(
    st.sampled_from([*TOPICS.values(), bytes(32)]),
    st.binary(max_size=400),
    st.integers(0, 400),
)
def test_hostile_data_raises_nothing_but_invalid_input(
    topic: bytes, junk: bytes, index: int
) -> None:
    whole = published()
    for data in (junk, whole[:index] + junk + whole[index:], whole[:index] + junk):
        try:
            decode(raw_log(topic, data), CHAIN_ID)
        except InvalidInput:
            continue


@given(
    st.lists(texts | st.text(max_size=3), min_size=3, max_size=3),
    st.integers(0, 4),
    st.sampled_from([0, 1, 32, 160, 161, 192, 2**63, 2**64 - 32, 2**64, 2**256 - 32])
    | st.integers(0, 2**256 - 1),
    st.integers(0, 600),
)
def test_a_publication_is_read_at_once_as_it_is_value_by_value(
    strings: list[str], slot: int, value: int, end: int
) -> None:
    data = encode(["uint64", "string", "string", "string", "bytes32"], [5, *strings, bytes(32)])
    data = (data[: slot * 32] + value.to_bytes(32, "big") + data[slot * 32 + 32 :])[:end]

    def one_by_one(data: bytes) -> Any:
        sequence = abidata.unsigned(data, 0, 64)
        return (sequence, *(abidata.string(data, i) for i in (1, 2, 3)), abidata.word(data, 4))

    def outcome(read: Callable[[bytes], Any]) -> Any:
        try:
            return read(data)
        except InvalidInput as error:
            return error.message

    assert outcome(abidata.publication) == outcome(one_by_one)


@pytest.mark.parametrize("slot", [1, 2, 3])
@pytest.mark.parametrize("offset", [2**256 - 1, 2**256 - 32, 2**64, 2**64 - 32, 33, 10**6])
def test_an_offset_outside_the_data_is_refused(slot: int, offset: int) -> None:
    data = published()
    hostile = data[: slot * 32] + offset.to_bytes(32, "big") + data[slot * 32 + 32 :]
    with pytest.raises(InvalidInput):
        decode(raw_log(PUBLISHED, hostile), CHAIN_ID)


def test_a_string_over_the_limit_is_refused() -> None:
    with pytest.raises(InvalidInput):
        decode(raw_log(PUBLISHED, published("x" * (MAX_STRING_BYTES + 1))), CHAIN_ID)


def test_a_string_that_is_not_utf8_is_refused() -> None:
    data = published("\x00" * 4).replace(b"1.0.0", b"1.\xff.0")
    with pytest.raises(InvalidInput):
        decode(raw_log(PUBLISHED, data), CHAIN_ID)


def test_a_sequence_number_over_64_bits_is_refused() -> None:
    with pytest.raises(InvalidInput):
        decode(raw_log(PUBLISHED, (2**64).to_bytes(32, "big") + published()[32:]), CHAIN_ID)


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_a_log_with_another_number_of_topics_is_refused(count: int) -> None:
    log = raw_log(PUBLISHED, published())._replace(topics=(PUBLISHED,) * count)
    with pytest.raises(InvalidInput):
        decode(log, CHAIN_ID)


def test_another_topic_is_refused() -> None:
    with pytest.raises(InvalidInput):
        decode(raw_log(keccak(b"Other()"), published()), CHAIN_ID)


@given(st.binary(min_size=20, max_size=20))
def test_addresses_are_written_with_their_checksum(raw: bytes) -> None:
    assert checksum_address(raw) == to_checksum_address(raw)


@pytest.mark.parametrize("size", [0, 19, 21, 32])
def test_an_address_has_twenty_bytes(size: int) -> None:
    with pytest.raises(InvalidInput):
        checksum_address(bytes(size))


@pytest.mark.parametrize("index", [1, 2])
@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_topic_that_is_not_a_word_is_refused(index: int, size: int) -> None:
    topics = list(raw_log(PUBLISHED, published()).topics)
    topics[index] = bytes(size)
    with pytest.raises(InvalidInput):
        decode(raw_log(PUBLISHED, published())._replace(topics=tuple(topics)), CHAIN_ID)


def test_an_account_topic_with_anything_before_the_address_is_refused() -> None:
    topics = (PUBLISHED, NAME_ID, b"\x01" + bytes(11) + ACCOUNT)
    with pytest.raises(InvalidInput):
        decode(raw_log(PUBLISHED, published())._replace(topics=topics), CHAIN_ID)


def test_the_log_head_folds_topics_and_data_in_order() -> None:
    first, second = raw_log(PUBLISHED, published()), raw_log(TOPICS["Yanked"], b"reason")
    one = LogHead().fold(first)
    entry = keccak(b"".join(first.topics) + keccak(first.data))
    assert one.head == keccak(bytes(32) + entry)[:24]
    assert (one.count, len(one.word)) == (1, 32)
    assert LogHead().fold(first).fold(second) != LogHead().fold(second).fold(first)
    assert one.fold(second).count == 2


def test_logs_by_column_are_the_logs() -> None:
    one, other = raw_log(PUBLISHED, b"one"), RawLog(b"\x22" * 20, (), b"", POSITION)
    both = LogColumns.of([one]) + LogColumns.of([other])
    assert list(both) == [one, other]
    assert both == LogColumns.of([one, other])
    assert (len(both), len(LogColumns.of([]))) == (2, 0)
    assert both.blocks() == {(POSITION.block_number, POSITION.block_hash)}
    assert LogHead().through(both.entries()) == [
        LogHead().fold(one),
        LogHead().fold(one).fold(other),
    ]
