"""Blocks of a file's DAG, and CARs of them: what is written is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.multiformats import read_varint, write_varint
from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.car import read_car, write_car
from capdex.ipld.cid import RAW, Cid
from capdex.ipld.dag_pb import MAX_FIELDS
from capdex.ipld.unixfs import (
    LEAF_BYTES,
    MAX_BLOCK_BYTES,
    MAX_BLOCKS,
    Assembly,
    divide,
    size_of,
    walk,
)
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.net.ipfs.block_store import BlockDirectory

Blocks = dict[Cid, bytes]


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return write_varint(number << 3) + write_varint(value)
    return write_varint(number << 3 | 2) + write_varint(len(value)) + value


def node(children: list[tuple[Cid, int]], data: bytes = b"") -> bytes:
    """A dag-pb block of a UnixFS file."""
    links = b"".join(field(2, field(1, cid.to_bytes()) + field(3, size)) for cid, size in children)
    sizes = b"".join(field(4, size) for _, size in children)
    total = len(data) + sum(size for _, size in children)
    return links + field(
        1, field(1, 2) + (field(2, data) if data else b"") + field(3, total) + sizes
    )


def dag_pb(block: bytes, version: int = 1) -> Cid:
    prefix = b"\x12\x20" if version == 0 else b"\x01\x70\x12\x20"
    return Cid.from_bytes(prefix + Cid.of(block).digest)


def chunked(data: bytes, chunk: int, fan: int = 3) -> tuple[Cid, Blocks]:
    """A file in raw leaves of `chunk` bytes under nodes of `fan` children."""
    parts = [data[i : i + chunk] for i in range(0, len(data), chunk)] or [b""]
    blocks = {Cid.of(part): part for part in parts}
    level = [(Cid.of(part), len(part)) for part in parts]
    while len(level) > 1:
        above = []
        for i in range(0, len(level), fan):
            block = node(level[i : i + fan])
            cid = dag_pb(block)
            blocks[cid] = block
            above.append((cid, sum(size for _, size in level[i : i + fan])))
        level = above
    return level[0][0], blocks


def test_the_size_of_a_file_is_told_by_its_root_alone() -> None:
    data = bytes(range(100))
    root, blocks = chunked(data, 8)
    assert size_of(root, blocks[root]) == 100
    assert size_of(Cid.of(data), data) == 100


@given(number=st.integers(0, 2**64 - 1))
def test_a_varint_is_read_as_it_was_written(number: int) -> None:
    text = write_varint(number)
    assert read_varint(text + b"x", 0) == (number, len(text))


@given(data=st.binary(max_size=60), chunk=st.integers(3, 30))
def test_a_car_of_a_whole_walk_holds_the_file(data: bytes, chunk: int) -> None:
    root, blocks = chunked(data, chunk)
    car = write_car(root.to_bytes(), walk(root, blocks.get))
    assert read_car(car, root) == data
    assert size_of(root, blocks[root]) == len(data)


@given(data=st.binary(min_size=1, max_size=60), chunk=st.integers(3, 30), span=st.data())
def test_a_part_comes_with_the_blocks_that_verify_it_and_no_others(
    data: bytes, chunk: int, span: st.DataObject
) -> None:
    root, blocks = chunked(data, chunk)
    start = span.draw(st.integers(0, len(data) - 1))
    stop = span.draw(st.integers(start + 1, len(data)))
    part = list(walk(root, blocks.get, range(start, stop)))
    leaves = [block for cid, block in part if cid.codec == RAW]
    first, last = start // chunk, (stop - 1) // chunk
    assert b"".join(leaves) == data[first * chunk : (last + 1) * chunk]
    whole = list(walk(root, blocks.get))
    assert part[0] == whole[0]
    order = iter(whole)
    assert all(block in order for block in part)  # in the order of the whole walk


def test_a_block_that_repeats_is_walked_each_time() -> None:
    root, blocks = chunked(b"abc" * 3, 3)
    assert [cid for cid, _ in walk(root, blocks.get)] == [root, *[Cid.of(b"abc")] * 3]


def test_the_bytes_in_a_node_itself_count_before_those_of_its_children() -> None:
    block = node([(Cid.of(b"tail"), 4)], data=b"head")
    blocks = {dag_pb(block): block, Cid.of(b"tail"): b"tail"}
    root = dag_pb(block)
    assert len(list(walk(root, blocks.get, range(4)))) == 1
    assert len(list(walk(root, blocks.get, range(3, 5)))) == 2


def test_a_walk_tells_which_block_is_missing() -> None:
    root, blocks = chunked(b"one two three", 4)
    del blocks[Cid.of(b"two ")]
    with pytest.raises(Unavailable, match=Cid.of(b"two ").text):
        list(walk(root, blocks.get))
    assert len(list(walk(root, blocks.get, range(3)))) == 3


HASH, BYTE = field(1, Cid.of(b"x").to_bytes()), field(1, field(1, 2) + field(3, 1) + field(4, 1))


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (field(2, HASH + field(2, b"") + field(3, 1)) + BYTE, ""),
        (field(2, HASH + field(2, b"a.txt") + field(3, 1)) + BYTE, "has a name"),
        (field(2, field(3, 1) + HASH) + BYTE, "of a link is out of place"),
        (field(2, HASH + HASH) + BYTE, "of a link is out of place"),
        (field(2, HASH + field(4, b"")) + BYTE, "of a link is out of place"),
        (field(2, field(3, 1)) + BYTE, "has no CID"),
        (BYTE + field(2, HASH), "of the node is out of place"),
        (field(2, HASH) + BYTE + BYTE, "of the node is out of place"),
        (field(3, b"") + field(1, field(1, 2)), "unknown field 3"),
        (field(2, HASH), "holds no UnixFS data"),
        (field(2, HASH) + field(1, field(1, 2) + field(3, 0)), "1 links and 0 sizes"),
        (field(2, HASH) + field(1, field(1, 2) + field(4, b"\1")), "field 4 has the wrong type"),
        (field(1, field(1, b"\2")), "field 1 has the wrong type"),
        (field(1, field(1, 2) + field(2, 1)), "field 2 has the wrong type"),
        (field(1, field(1, 2) + field(3, b"\1")), "field 3 has the wrong type"),
        (b"\x0d" + field(1, field(1, 2))[1:], "of a kind that dag-pb does not have"),  # fixed32
        (field(1, field(1, 2) + field(2, b"a") + field(3, 2)), "declares 2 bytes"),
        (field(1, field(1, 2) + field(2, b"a") * 2), "field 2 occurs twice"),
        (field(1, field(1, 1)), "a directory"),
        (field(1, field(1, 2) + field(2, b"a"))[:-1], "cut off"),
    ],
)
def test_what_differs_from_the_one_form_of_a_piece_is_no_file(block: bytes, why: str) -> None:
    if not why:
        assert size_of(dag_pb(block), block) == 1
        return
    with pytest.raises(InvalidInput) as refused:
        size_of(dag_pb(block), block)
    assert why in refused.value.why


@pytest.mark.parametrize(
    "fields",
    [
        lambda: [field(4, 1)] * (MAX_BLOCK_BYTES // 2 - 16),
        lambda: (field(number, 0) for number in range(5, 400_000)),
    ],
    ids=["sizes", "unknown"],
)
def test_a_block_of_a_million_fields_is_refused_at_its_first_hundred(
    fields: Callable[[], Iterable[bytes]],
) -> None:
    block = field(1, field(1, 2) + b"".join(fields()))
    assert len(block) <= MAX_BLOCK_BYTES
    assembly = Assembly(dag_pb(block))
    with pytest.raises(InvalidInput) as caught:
        assembly.give(block)
    assert f"{MAX_FIELDS} fields" in caught.value.why


def test_a_walk_is_bounded_however_often_blocks_repeat() -> None:
    leaf = node([], data=b"x")
    level, blocks = (dag_pb(leaf), 1), {dag_pb(leaf): leaf}
    for _ in range(4):
        block = node([level] * 10)
        level = (dag_pb(block), level[1] * 10)
        blocks[level[0]] = block
    read: list[Cid] = []
    with pytest.raises(InvalidInput, match="blocks"):
        read.extend(cid for cid, _ in walk(level[0], blocks.get))
    assert len(read) == MAX_BLOCKS


def test_the_header_is_the_one_that_other_programs_write() -> None:
    root = Cid.of(b"hello world\n")
    header = "3aa265726f6f747381d82a582500" + root.to_bytes().hex() + "6776657273696f6e01"
    assert write_car(root.to_bytes(), []).hex() == header
    empty = bytes.fromhex("01550000")  # bafkqaaa
    assert write_car(empty, []).hex() == "19a265726f6f747381d82a4500015500006776657273696f6e01"


def test_an_assembly_keeps_its_blocks_unless_they_are_mostly_padding() -> None:
    root, blocks = chunked(b"one two three", 4)
    assembly = Assembly(root)
    while (cid := assembly.wanted) is not None:
        assembly.give(blocks[cid])
    assert assembly.blocks == blocks
    padded = field(1, field(1, 2) + field(9, bytes(1_900_000)))
    block = node([(dag_pb(padded), 0)] * 3)
    padding = Assembly(dag_pb(block))
    for one in (block, padded, padded, padded):
        padding.give(one)
    assert (padding.data, dict(padding.blocks)) == (b"", {})


def test_blocks_that_hold_twice_as_much_padding_as_a_package_may_have_bytes_are_not_kept() -> None:
    block = field(1, field(1, 2) + field(2, b"one") + field(9, bytes(2 * MAX_PACKAGE_BYTES)))
    assembly = Assembly(dag_pb(block))
    assembly.give(block)
    assert (assembly.data, dict(assembly.blocks)) == (b"one", {})


def test_a_directory_keeps_blocks_of_both_codecs_apart(block_directory: BlockDirectory) -> None:
    block = node([], data=b"text")
    first, second = dag_pb(block), dag_pb(block, version=0)
    block_directory.keep(second, block)
    assert block_directory.read(first) == block_directory.read(second) == block
    assert block_directory.read(Cid.of(block)) is None
    with pytest.raises(InvalidInput):
        block_directory.keep(Cid.of(b"other"), block)


# CIDs that `ipfs add --cid-version 1` of Kubo 0.39 gives for as many zero bytes.
KUBO = {
    0: "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
    262144: "bafkreiekhhjkxu4ztk3tyng3er3ijhg56mb44oe3gwbgquhzu4afrg2ksa",
    262145: "bafybeigllfqgfpqydppr6cmv56g7ax4wyhruzswvcefv6j5kj77nzttfki",
    4194304: "bafybeic525yklm6yv6yw3olwzmchmsnut4yoisxd6fb73kwc7kf6tvpouu",
}


@pytest.mark.parametrize("size", KUBO)
def test_a_file_is_divided_as_kubo_divides_it(size: int) -> None:
    assert str(divide(bytes(size))[0][0]) == KUBO[size]


@given(st.integers(0, 3 * LEAF_BYTES + 1), st.binary(min_size=1, max_size=64))
def test_a_divided_file_is_assembled_again(size: int, pattern: bytes) -> None:
    data = (pattern * (size // len(pattern) + 1))[:size]
    (root, _), *_ = blocks = divide(data)
    assembly = Assembly(root, len(data))
    while (wanted := assembly.wanted) is not None:
        assembly.give(dict(blocks)[wanted])
    assert assembly.data == data


def test_a_file_larger_than_its_limit_is_refused_at_its_root() -> None:
    (root, block), *_ = divide(bytes(LEAF_BYTES + 1))
    with pytest.raises(InvalidInput):
        Assembly(root, LEAF_BYTES).give(block)
