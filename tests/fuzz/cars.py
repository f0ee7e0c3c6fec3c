"""CARs: files cut into blocks, and all that may be wrong with the blocks on their way."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from random import Random

from identifiers import varint
from mutation import mutate_bytes, size
from target import VECTORS, Target

from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.car import read_car
from capdex.ipld.cid import Cid
from capdex.limits import MAX_PACKAGE_BYTES

HEADER = b"\xa2\x65roots\x80\x67version\x01"

Block = tuple[bytes, bytes]  # a CID in its binary form, and the bytes it stands before


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def pb(block: bytes) -> Block:
    return b"\x01\x70\x12\x20" + Cid.of(block).digest, block


def node(random: Random, children: list[tuple[Block, int]], lies: bool) -> tuple[Block, int]:
    """A UnixFS file of these parts; where it `lies`, some number or part of it is another."""
    sizes = [size for _, size in children]
    total, kind = sum(sizes), 2
    links = [child[0] for child, _ in children]
    if lies:
        match random.randrange(6):
            case 0:
                total = random.choice([0, total + 1, 2**40, 2**63])
            case 1:
                kind = random.randrange(8)
            case 2 if sizes:
                sizes[random.randrange(len(sizes))] = random.choice([0, 1, 2**40, 2**64])
            case 3:
                links.append(random.choice(links or [b""])[: size(random, 40)])
            case 4:
                sizes.append(5)
            case _:
                links = links * size(random, 40)
    link = b"".join(field(2, field(1, cid) + field(2, b"") + field(3, 9)) for cid in links)
    inner = field(1, kind) + field(3, total) + b"".join(field(4, size) for size in sizes)
    block = link + field(1, inner)
    if lies and not random.randrange(3):
        block = mutate_bytes(random, block, times=1)
    return pb(block), sum(sizes)


def make_dag(random: Random, lies: bool) -> list[Block]:
    """The blocks of a file of up to four levels, its root last."""
    leaf_bytes = random.choice([1, 100, 4096, 65536])
    level: list[tuple[Block, int]] = []
    for _ in range(size(random, 12)):
        leaf = random.randbytes(size(random, leaf_bytes))
        block = (Cid.of(leaf).to_bytes(), leaf)
        level.append((block, len(leaf)))
    blocks = [block for block, _ in level]
    for _ in range(random.randrange(5)):
        width = size(random, 6)
        parts = [level[i : i + width] for i in range(0, len(level), width)]
        level = [node(random, part, lies) for part in parts]
        blocks += [block for block, _ in level]
    return blocks


def make(random: Random) -> bytes:
    """The root's CID (36 bytes), then a CAR: its blocks left out, doubled, moved or wrong."""
    if not random.randrange(6):
        return mutate_bytes(random, random.choice(hostile()), times=size(random, 4))
    blocks = make_dag(random, lies=bool(random.randrange(2)))
    root = blocks[-1][0]
    for _ in range(random.randrange(3)):
        at = random.randrange(len(blocks))
        match random.randrange(5):
            case 0:
                random.shuffle(blocks)
            case 1:
                blocks.append(blocks[at])
            case 2 if len(blocks) > 1:
                del blocks[at]
            case 3:
                blocks[at] = (blocks[at][0], mutate_bytes(random, blocks[at][1], times=1))
            case _:
                blocks[at] = (mutate_bytes(random, blocks[at][0], times=1), blocks[at][1])
    sections = [HEADER, *(cid + block for cid, block in blocks)]
    car = b"".join(varint(len(x)) + x for x in sections)
    if not random.randrange(4):
        car = mutate_bytes(random, car, times=size(random, 4))
    return root + car


@cache
def hostile() -> list[bytes]:
    folder = VECTORS / "hostile" / "car"
    found = []
    for case in json.loads((folder / "index.json").read_text("utf-8")):
        with suppress(InvalidInput):
            root = Cid.parse(case["root"]).to_bytes().rjust(36, b"\0")
            found.append(root + (folder / case["file"]).read_bytes())
    return found


def check(data: bytes) -> str:
    """The file within its limits, or one of two errors; a raw root's file is its block."""
    try:
        root = Cid.from_bytes(data[:36])
    except InvalidInput:
        return "no root"
    try:
        file = read_car(data[36:], root)
    except Unavailable:
        return "broken"
    except InvalidInput:
        return "no file"
    assert len(file) <= MAX_PACKAGE_BYTES
    assert root.codec != "raw" or root.matches(file)
    return "file"


TARGETS = [Target("car", 2, make, check)]
