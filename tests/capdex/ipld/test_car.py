"""Files out of CARs and dag-pb blocks: ones made here."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.multiformats import read_varint
from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.car import MAX_CAR_BYTES, read_car, write_car
from capdex.ipld.cid import DAG_PB, Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES, MAX_BLOCKS, Assembly


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(
    *children: tuple[Cid, int], data: bytes = b"", size: int | None = None, kind: int = 2
) -> bytes:
    """A dag-pb block of a UnixFS file."""
    links = b"".join(field(2, field(1, cid.to_bytes()) + field(3, size)) for cid, size in children)
    total = len(data) + sum(size for _, size in children) if size is None else size
    inner = field(1, kind) + (field(2, data) if data else b"") + field(3, total)
    return links + field(1, inner + b"".join(field(4, size) for _, size in children))


def pb_cid(block: bytes) -> Cid:
    return Cid.from_bytes(b"\x01\x70\x12\x20" + Cid.of(block).digest)


def car(*blocks: tuple[Cid, bytes]) -> bytes:
    header = b"\xa2\x65roots\x80\x67version\x01"
    sections = (cid.to_bytes() + block for cid, block in blocks)
    return b"".join(varint(len(x)) + x for x in (header, *sections))


def assemble(root: bytes, *blocks: bytes) -> bytes:
    store = {Cid.of(block).digest: block for block in (root, *blocks)}
    assembly = Assembly(pb_cid(root))
    while (cid := assembly.wanted) is not None:
        assembly.give(store[cid.digest])
    return assembly.data


def test_a_file_in_one_dag_pb_block_is_its_data() -> None:
    assert assemble(node(data=b"all of it")) == b"all of it"
    assert assemble(node(data=b"an old leaf", kind=0)) == b"an old leaf"
    assert assemble(node()) == b""


def test_a_file_in_two_levels_is_read_in_order() -> None:
    leaves = [b"one ", b"two ", b"three"]
    left = node(*((Cid.of(x), len(x)) for x in leaves[:2]))
    root = node((pb_cid(left), 8), (Cid.of(leaves[2]), 5))
    assert assemble(root, left, *leaves) == b"one two three"


def test_a_version_0_root_is_read_like_a_version_1_root() -> None:
    block = node(data=b"old")
    root = Cid.from_bytes(b"\x12\x20" + Cid.of(block).digest)
    assert (root.version, root.codec, Cid.parse(root.text)) == (0, DAG_PB, root)
    assert read_car(car((root, block)), root) == b"old"


@pytest.mark.parametrize(
    "root",
    [
        node(data=b"abc", size=4),  # declares more than it holds
        node((Cid.of(b"abc"), 4)),  # the child is shorter
        node((Cid.of(b"abc"), 3), kind=1),
        node(data=b"x", kind=3),
        node(data=b"x", kind=5),
        node(data=b"x", kind=99),
        field(1, b""),
        b"",
        field(1, field(1, 2)) * 2,
        field(1, field(1, 2)) + field(2, field(1, Cid.of(b"abc").to_bytes())),
        field(3, b"x") + node(data=b"x"),
        field(2, field(1, Cid.of(b"abc").to_bytes())) + field(1, b"\x08\x02"),
        field(2, field(1, Cid.of(b"abc").to_bytes()) + field(2, b"name")) + field(1, b"\x08\x02"),
        field(2, field(3, 1) + field(1, Cid.of(b"abc").to_bytes())) + field(1, b"\x08\x02"),
        field(2, b"") + field(1, b"\x08\x02"),
        field(2, field(1, b"\x01\x55\x00\x03abc")) + field(1, b"\x08\x02"),  # identity
        node(data=b"abc")[:-1],
        field(1, field(1, 2) * 2),
        field(1, field(1, b"2")),
        b"\x0d1234",
    ],
)
def test_what_is_not_a_file_is_refused_for_good(root: bytes) -> None:
    with pytest.raises(InvalidInput):
        assemble(root, b"abc")


def test_depth_blocks_and_size_are_bounded() -> None:
    chain = [node(data=b"x")]
    while len(chain) < 5:
        chain.append(node((pb_cid(chain[-1]), 1)))
    assert assemble(*reversed(chain[:4])) == b"x"
    with pytest.raises(InvalidInput, match="larger"):
        assemble(*reversed(chain))
    many = node(*[(Cid.of(b"x"), 1)] * MAX_BLOCKS)
    with pytest.raises(InvalidInput) as caught:
        assemble(many, b"x")
    assert caught.value.code is Code.TOO_LARGE
    most = node(*[(Cid.of(b"x"), 1)] * (MAX_BLOCKS - 1))
    assert assemble(most, b"x") == b"x" * (MAX_BLOCKS - 1)


def test_wrong_bytes_blame_the_source_and_leave_the_file_as_it_was() -> None:
    block = node(data=b"right")
    assembly = Assembly(pb_cid(block))
    with pytest.raises(Unavailable):
        assembly.give(block + b"\0")
    assembly.give(block)
    assert (assembly.wanted, assembly.data) == (None, b"right")


def test_a_block_that_nobody_exchanges_is_refused_unread() -> None:
    with pytest.raises(InvalidInput, match="larger") as caught:
        Assembly(pb_cid(b"")).give(bytes(MAX_BLOCK_BYTES + 1))
    assert caught.value.code is Code.TOO_LARGE


@pytest.mark.parametrize("section", [b"\x01\x55\x12\x20short", b"\x01\x55\x00\x7f" + bytes(200)])
def test_a_cid_that_is_cut_off_or_too_long_is_refused(section: bytes) -> None:
    head = b"\xa2\x65roots\x80\x67version\x01"
    data = b"".join(varint(len(x)) + x for x in (head, section))
    with pytest.raises(Unavailable, match="does not hold") as caught:
        read_car(data, Cid.of(b"file"))
    assert "cut off or too long" in caught.value.why


def test_a_car_over_its_limit_is_refused_unread() -> None:
    with pytest.raises(Unavailable, match="does not hold"):
        read_car(bytes(MAX_CAR_BYTES + 1), Cid.of(b""))


def test_a_car_that_is_cut_off_or_has_other_bytes_of_a_block_does_not_hold_the_file() -> None:
    file, other = (Cid.of(b"file"), b"file"), (Cid.of(b"other"), b"other")
    whole = car(file)
    for data, why in (
        (whole[:-1], "it is cut off"),
        (whole[:-1] + b"x", "are wrong"),
        (car(file, other)[:-1] + b"x", "are wrong"),  # of a block that the file does not take
    ):
        with pytest.raises(Unavailable) as caught:
            read_car(data, Cid.of(b"file"))
        assert why in caught.value.why


def test_a_car_of_version_2_is_refused() -> None:
    with pytest.raises(Unavailable):
        read_car(bytes.fromhex("0aa16776657273696f6e02") + bytes(40), Cid.of(b""))


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused_with_a_typed_error(data: bytes) -> None:
    header = b"\xa2\x65roots\x80\x67version\x01"
    for text in (data, varint(len(header)) + header + data):
        with pytest.raises(Unavailable):
            read_car(text, Cid.of(b"not in there"))


@given(st.binary(max_size=200))
def test_arbitrary_blocks_are_pieces_or_refused(block: bytes) -> None:
    with suppress(InvalidInput, KeyError):
        assert len(assemble(block)) <= len(block)


@given(st.integers(min_value=0, max_value=2**64 - 1), st.binary(max_size=3))
def test_varints_are_read_back(number: int, behind: bytes) -> None:
    text = varint(number)
    assert read_varint(text + behind, 0) == (number, len(text))


@pytest.mark.parametrize("text", ["", "80", "8000", "ff" * 10 + "01", "ffffffffffffffffff02"])
def test_varints_have_one_spelling_of_64_bits(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_varint(bytes.fromhex(text), 0)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_any_file_survives_being_cut_into_leaves(leaves: list[bytes]) -> None:
    root = node(*((Cid.of(x), len(x)) for x in leaves))
    blocks = {pb_cid(root): root} | {Cid.of(x): x for x in leaves}
    assert read_car(car(*blocks.items()), pb_cid(root)) == b"".join(leaves)


def test_a_car_that_was_written_is_read_by_its_root() -> None:
    leaf = b"one block of a file"
    root = node((Cid.of(leaf), len(leaf)))
    blocks = [(pb_cid(root), root), (Cid.of(leaf), leaf)]
    assert read_car(write_car(pb_cid(root).to_bytes(), blocks), pb_cid(root)) == leaf
