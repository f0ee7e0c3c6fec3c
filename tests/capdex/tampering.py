"""Every way to tamper with a proof document, as JSON patches (RFC 6902: add, remove, replace)."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rlp
from eth_hash.auto import keccak

Json = dict[str, Any]
Patch = list[Json]
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Case:
    """An honest document, and what a liar could take pieces from."""

    document: Json
    older: Json  # the same claim at an older block
    other_contract: Json  # the same chain and block, another contract
    other_name: str
    random: random.Random

    @property
    def slots(self) -> list[Json]:
        found: list[Json] = self.document["slots"]
        return found

    def node(self) -> Path:
        """Where a node of a slot's proof is."""
        slot = self.random.choice([i for i, x in enumerate(self.slots) if x["proof"]])
        return ("slots", slot, "proof", self.random.randrange(len(self.slots[slot]["proof"])))

    def slot(self) -> int:
        return self.random.randrange(len(self.slots))


Tamper = Callable[[Case], Patch]
KINDS: dict[str, Tamper] = {}
OF_LISTS = (  # that make sense only where releases are listed
    "flags_flipped",
    "list_shortened",
    "newest_left_out",
    "list_lengthened",
    "list_emptied",
)


def kind(function: Tamper) -> Tamper:
    """Name a way to tamper after its function."""
    KINDS[function.__name__] = function
    return function


def kinds_for(document: Json) -> list[str]:
    """The ways that fit a document."""
    listing = document["kind"] == "list" and len(document["slots"]) > 2
    return [name for name in KINDS if listing or name not in OF_LISTS]


def tampered(name: str, case: Case) -> Json:
    """The document after one way to tamper with it, never the same one."""
    while True:
        found = apply(case.document, KINDS[name](case))
        if found != case.document:
            return found


def apply(document: Json, patch: Patch) -> Json:
    """A patched copy."""
    patched = copy.deepcopy(document)
    for step in patch:
        *above, last = [int(x) if x.isdigit() else x for x in step["path"].split("/")[1:]]
        place: Any = patched
        for key in above:
            place = place[key]
        if step["op"] == "remove":
            del place[last]
        elif step["op"] == "add" and isinstance(place, list):
            place.insert(last, copy.deepcopy(step["value"]))
        else:
            place[last] = copy.deepcopy(step["value"])
    return patched


def replace(path: Path, value: Any) -> Json:
    return {"op": "replace", "path": _pointer(path), "value": value}


def add(path: Path, value: Any) -> Json:
    return {"op": "add", "path": _pointer(path), "value": value}


def remove(path: Path) -> Json:
    return {"op": "remove", "path": _pointer(path)}


def at(document: Json, path: Path) -> Any:
    """The value at a path."""
    value: Any = document
    for key in path:
        value = value[key]
    return value


def _pointer(path: Path) -> str:
    return "".join(f"/{key}" for key in path)


def flipped(case: Case, data: str) -> str:
    """`data` (0x…) with one bit the other way round."""
    raw = bytearray.fromhex(data[2:])
    raw[case.random.randrange(len(raw))] ^= 1 << case.random.randrange(8)
    return "0x" + raw.hex()


# nodes --------------------------------------------------------------------------------------


@kind
def bit_of_a_node(case: Case) -> Patch:
    path = case.node()
    return [replace(path, flipped(case, at(case.document, path)))]


@kind
def bit_of_the_account(case: Case) -> Patch:
    path = ("account_proof", case.random.randrange(len(case.document["account_proof"])))
    return [replace(path, flipped(case, at(case.document, path)))]


@kind
def node_removed(case: Case) -> Patch:
    return [remove(case.node())]


@kind
def node_added(case: Case) -> Patch:
    path, other = case.node(), case.node()
    return [add(path, at(case.document, other))]


@kind
def node_appended(case: Case) -> Patch:
    path = case.node()[:3]
    end = len(at(case.document, path))
    return [add((*path, end), case.document["account_proof"][-1])]


@kind
def nodes_in_another_order(case: Case) -> Patch:
    path = case.node()[:3]
    nodes = at(case.document, path)
    if len(nodes) < 2:
        return [replace(path, [*nodes, *nodes])]
    return [replace(path, nodes[::-1])]


@kind
def node_truncated(case: Case) -> Patch:
    path = case.node()
    data = at(case.document, path)
    return [replace(path, data[: -2 * case.random.randint(1, len(data) // 2 - 1)])]


@kind
def node_padded(case: Case) -> Patch:
    path = case.node()
    return [replace(path, at(case.document, path) + "00")]


@kind
def node_oversized(case: Case) -> Patch:
    return [replace(case.node(), "0xb90400" + "00" * 1024)]


@kind
def node_without_end(case: Case) -> Patch:
    return [replace(case.node(), "0xbfffffffffffffffff")]


@kind
def node_nested(case: Case) -> Patch:
    """As many lists within lists as a node may have bytes."""
    node = b"\xc0"
    while len(node) < 1000:
        node = rlp.codec.length_prefix(len(node), 0xC0) + node
    return [replace(case.node(), "0x" + node.hex())]


@kind
def node_in_upper_case(case: Case) -> Patch:
    path = case.node()
    return [replace(path, "0x" + at(case.document, path)[2:].upper() + " ")]


@kind
def proofs_of_two_slots_swapped(case: Case) -> Patch:
    if len(case.slots) < 2:
        return node_removed(case)
    first, second = case.random.sample(range(len(case.slots)), 2)
    if case.slots[first]["proof"] == case.slots[second]["proof"]:
        return node_removed(case)
    return [
        replace(("slots", first, "proof"), case.slots[second]["proof"]),
        replace(("slots", second, "proof"), case.slots[first]["proof"]),
    ]


# slots --------------------------------------------------------------------------------------


@kind
def value_changed(case: Case) -> Patch:
    path = ("slots", case.slot(), "value")
    return [replace(path, flipped(case, at(case.document, path)))]


@kind
def value_zeroed_and_proof_cut(case: Case) -> Patch:
    """What exists is said not to."""
    slot = case.random.choice([i for i, x in enumerate(case.slots) if x["proof"]])
    return [
        replace(("slots", slot, "value"), "0x" + "00" * 32),
        remove(("slots", slot, "proof", len(case.slots[slot]["proof"]) - 1)),
    ]


@kind
def key_changed(case: Case) -> Patch:
    path = ("slots", case.slot(), "key")
    return [replace(path, flipped(case, at(case.document, path)))]


@kind
def slot_removed(case: Case) -> Patch:
    return [remove(("slots", case.slot()))]


@kind
def slot_doubled(case: Case) -> Patch:
    slot = case.slot()
    return [add(("slots", case.random.randint(0, len(case.slots))), case.slots[slot])]


@kind
def slots_in_another_order(case: Case) -> Patch:
    if len(case.slots) < 2:
        return slot_doubled(case)
    return [replace(("slots",), case.slots[::-1])]


@kind
def slot_of_another_block(case: Case) -> Patch:
    slot = case.slot()
    others = case.older["slots"]
    other = others[min(slot, len(others) - 1)]
    if other == case.slots[slot]:
        return slot_removed(case)
    return [replace(("slots", slot), other)]


# what is claimed ----------------------------------------------------------------------------


@kind
def flags_flipped(case: Case) -> Patch:
    """Yanked or deprecated, or not, in the word of a release."""
    slot = min(case.random.randint(1, 2), len(case.slots) - 1)
    value = bytearray.fromhex(case.slots[slot]["value"][2:])
    value[0] ^= case.random.choice((1, 2, 3))
    return [replace(("slots", slot, "value"), "0x" + value.hex())]


@kind
def list_shortened(case: Case) -> Patch:
    """The newest release is left out, and the count says so."""
    return [*_counted(case, -1), *[remove(("slots", len(case.slots) - 1 - i)) for i in range(2)]]


@kind
def newest_left_out(case: Case) -> Patch:
    return [remove(("slots", len(case.slots) - 1 - i)) for i in range(2)]


@kind
def list_lengthened(case: Case) -> Patch:
    """The last release once more, and the count says so."""
    end = len(case.slots)
    last = case.slots[-2:]
    return [*_counted(case, +1), *[add(("slots", end + i), x) for i, x in enumerate(last)]]


@kind
def list_emptied(case: Case) -> Patch:
    return [replace(("slots",), [{**case.slots[0], "value": "0x" + "00" * 32}])]


def _counted(case: Case, step: int) -> Patch:
    value = bytearray.fromhex(case.slots[0]["value"][2:])
    count = (int.from_bytes(value[8:12], "big") + step) % 2**32
    return [
        replace(
            ("slots", 0, "value"), f"0x{(value[:8] + count.to_bytes(4, 'big') + value[12:]).hex()}"
        )
    ]


@kind
def index_shifted(case: Case) -> Patch:
    index = case.document["index"]
    return [replace(("index",), 0 if index is None else index + case.random.choice((1, 2, 2**20)))]


@kind
def version_changed(case: Case) -> Patch:
    return [replace(("semver",), "9.9.9" if case.document["semver"] else "1.0.0")]


@kind
def name_changed(case: Case) -> Patch:
    return [replace(("name",), case.other_name)]


@kind
def kind_changed(case: Case) -> Patch:
    other = "list" if case.document["kind"] == "exact" else "exact"
    return [replace(("kind",), other), replace(("semver",), None if other == "list" else "1.0.0")]


@kind
def schema_changed(case: Case) -> Patch:
    return [replace(("schema",), "capdex.proof/2")]


@kind
def member_missing(case: Case) -> Patch:
    return [remove((case.random.choice(sorted(case.document)),))]


@kind
def member_unknown(case: Case) -> Patch:
    return [add(("trusted",), True)]


@kind
def member_of_another_type(case: Case) -> Patch:
    wrong: Any = case.random.choice([None, True, -1, 1.5, "x", [], {}, [[]], "0x", 2**64])
    key = case.random.choice(sorted(case.document))
    if wrong == case.document[key] and type(wrong) is type(case.document[key]):
        return member_missing(case)
    return [replace((key,), wrong)]


# block and contract -------------------------------------------------------------------------


def _header(case: Case) -> list[bytes]:
    fields: list[bytes] = rlp.decode(bytes.fromhex(case.document["header"][2:]))
    return list(fields)


@kind
def header_field_changed(case: Case) -> Patch:
    fields = _header(case)
    at_ = case.random.randrange(len(fields))
    fields[at_] = bytes([fields[at_][0] ^ 1]) + fields[at_][1:] if fields[at_] else b"\1"
    return [replace(("header",), "0x" + rlp.encode(fields).hex())]


@kind
def header_field_removed(case: Case) -> Patch:
    return [replace(("header",), "0x" + rlp.encode(_header(case)[:-1]).hex())]


@kind
def header_bit(case: Case) -> Patch:
    return [replace(("header",), flipped(case, case.document["header"]))]


@kind
def header_cut(case: Case) -> Patch:
    return [replace(("header",), case.document["header"][:-2])]


@kind
def header_oversized(case: Case) -> Patch:
    return [replace(("header",), case.document["header"] + "00" * 8192)]


@kind
def header_of_an_older_block(case: Case) -> Patch:
    return [replace(("header",), case.older["header"])]


@kind
def block_of_an_older_block(case: Case) -> Patch:
    keys = ("header", "block_number", "block_hash")
    return [replace((key,), case.older[key]) for key in keys]


@kind
def everything_of_an_older_block(case: Case) -> Patch:
    return [replace((key,), case.older[key]) for key in sorted(case.older)]


@kind
def block_number_changed(case: Case) -> Patch:
    step = case.random.choice((-1, 1, 2**32))
    return [replace(("block_number",), case.document["block_number"] + step)]


@kind
def block_hash_changed(case: Case) -> Patch:
    return [replace(("block_hash",), flipped(case, case.document["block_hash"]))]


@kind
def account_of_another_contract(case: Case) -> Patch:
    return [replace(("account_proof",), case.other_contract["account_proof"])]


@kind
def another_contract(case: Case) -> Patch:
    keys = ("contract", "account_proof")
    return [replace((key,), case.other_contract[key]) for key in keys]


@kind
def account_proof_emptied(case: Case) -> Patch:
    return [replace(("account_proof",), [])]


@kind
def chain_changed(case: Case) -> Patch:
    return [replace(("chain_id",), case.document["chain_id"] + 1)]


# forgeries: what is written is consistent from the leaf up to some point ---------------------


def forge(case: Case, upto: str) -> Patch:
    """Another digest in the last slot, and every hash above it mended up to `upto`."""
    last = len(case.slots) - 1
    slot = case.slots[last]
    nodes = [bytes.fromhex(x[2:]) for x in slot["proof"]]
    if not nodes or slot["value"] == "0x" + "00" * 32:
        return value_changed(case)
    value = bytes.fromhex(slot["value"][2:])
    forged = bytes([value[0] or 1]) + bytes([value[1] ^ 1]) + value[2:]
    old, new = value.lstrip(b"\0"), forged.lstrip(b"\0")
    patch = [replace(("slots", last, "value"), "0x" + forged.hex())]
    if len(old) != len(new) or old not in nodes[-1]:
        return value_changed(case)
    nodes[-1], before = nodes[-1].replace(old, new), keccak(nodes[-1])
    if upto != "leaf":
        before, root = _mend(nodes, before)
        patch += [replace(("slots", last, "proof", i), "0x" + x.hex()) for i, x in enumerate(nodes)]
    else:
        path = ("slots", last, "proof", len(nodes) - 1)
        return [*patch, replace(path, "0x" + nodes[-1].hex())]
    if upto == "storage":
        return patch
    accounts = [bytes.fromhex(x[2:]) for x in case.document["account_proof"]]
    accounts[-1], stale = accounts[-1].replace(before, root), keccak(accounts[-1])
    stale, state_root = _mend(accounts, stale)
    patch += [replace(("account_proof", i), "0x" + x.hex()) for i, x in enumerate(accounts)]
    if upto == "state":
        return patch
    header = bytes.fromhex(case.document["header"][2:]).replace(stale, state_root)
    patch.append(replace(("header",), "0x" + header.hex()))
    return [*patch, replace(("block_hash",), "0x" + keccak(header).hex())]


def _mend(nodes: list[bytes], stale: bytes) -> tuple[bytes, bytes]:
    """Let each node name the changed one below it; the old and the new root."""
    for i in range(len(nodes) - 2, -1, -1):
        before = keccak(nodes[i])
        nodes[i] = nodes[i].replace(stale, keccak(nodes[i + 1]))
        stale = before
    return stale, keccak(nodes[0])


@kind
def leaf_forged(case: Case) -> Patch:
    return forge(case, "leaf")


@kind
def storage_forged(case: Case) -> Patch:
    return forge(case, "storage")


@kind
def state_forged(case: Case) -> Patch:
    return forge(case, "state")


@kind
def block_forged(case: Case) -> Patch:
    return forge(case, "block")
