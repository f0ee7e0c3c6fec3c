"""What chains and nodes send: logs of the registry, and proof documents."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

from mutation import mutate_bytes, mutate_value, size
from target import VECTORS, Target

from capdex.errors import InvalidInput, VerificationFailure
from capdex.proof.document import Proof
from capdex.proof.verify import Anchor, verify
from capdex.registry.events import decode
from capdex.registry.logs import LogHead, LogPosition, RawLog

POSITION = LogPosition(1, bytes(32), bytes(32), 0)


# logs ---------------------------------------------------------------------------------------------


@cache
def events() -> list[list[bytes]]:
    """Three topics and the data of an event of each kind."""
    held = json.loads((VECTORS / "contract" / "log.json").read_text("utf-8"))["events"]
    keys = ("topic0", "topic1", "topic2", "data")
    return [[bytes.fromhex(event[key][2:]) for key in keys] for event in held]


def make_log(random: Random) -> bytes:
    """Three topics, then data: words replaced, offsets and lengths that lie, another's data."""
    one, other = list(random.choice(events())), random.choice(events())
    if not random.randrange(4):
        one[0] = other[0]
    words = [one[3][i : i + 32] for i in range(0, len(one[3]), 32)]
    for _ in range(random.randrange(4)):
        number = random.choice(
            [0, 1, 31, 32, 33, 4096, 4097, len(one[3]), 2**64, 2**255, 2**256 - 1]
        )
        words[random.randrange(len(words))] = number.to_bytes(32, "big")
    data = b"".join(words)
    if not random.randrange(3):
        data = mutate_bytes(random, data, other[3], times=size(random, 3))[: 64 * 1024]
    if not random.randrange(8):
        one[2] = mutate_bytes(random, one[2], times=1)
    return b"".join(one[:3]) + data


def check_log(data: bytes) -> str:
    topics = tuple(x for x in (data[:32], data[32:64], data[64:96]) if x)
    log = RawLog(bytes(20), topics, data[96:], POSITION)
    LogHead().fold(log)
    try:
        return type(decode(log, 1)).__name__
    except InvalidInput:
        return "refused"


# proofs -------------------------------------------------------------------------------------------


@cache
def held() -> tuple[Anchor, list[Any]]:
    vectors = json.loads((VECTORS / "proofs" / "documents.json").read_text("utf-8"))
    contract, block = (bytes.fromhex(vectors[x][2:]) for x in ("contract", "block_hash"))
    documents = [one["document"] for one in vectors["documents"].values()]
    return Anchor(vectors["chain_id"], contract, block), documents


@cache
def honest() -> frozenset[str]:
    """What the honest documents prove; a mutated one may prove that, and nothing else."""
    anchor, documents = held()
    found = set()
    for document in documents:
        with suppress(VerificationFailure):
            found.add(repr(verify(Proof.parse(document), anchor)))
    return frozenset(found)


def make_proof(random: Random) -> bytes:
    _, documents = held()
    document = random.choice(documents)
    if random.randrange(2):
        document = mutate_value(random, document, documents)
    else:
        document = copy.deepcopy(document)
        for _ in range(size(random, 3)):
            proofs = [document["account_proof"], *(slot["proof"] for slot in document["slots"])]
            nodes = random.choice(proofs)
            if nodes:
                at = random.randrange(len(nodes))
                data = mutate_bytes(random, bytes.fromhex(nodes[at][2:]), times=size(random, 2))
                nodes[at] = "0x" + data.hex()
            key = random.choice(["header", "block_hash", "contract"])
            if not random.randrange(6):
                data = mutate_bytes(random, bytes.fromhex(document[key][2:]), times=1)
                document[key] = "0x" + data.hex()
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def check_proof(data: bytes) -> str:
    anchor, _ = held()
    try:
        document = json.loads(data)
    except ValueError:
        return "no JSON"
    try:
        proof = Proof.parse(document)
    except VerificationFailure:
        return "no document"
    try:
        proven = verify(proof, anchor)
    except VerificationFailure:
        return "refused"
    assert repr(proven) in honest()
    return "proven"


TARGETS = [Target("log", 1, make_log, check_log), Target("proof", 1, make_proof, check_proof)]
