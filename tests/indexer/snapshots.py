"""An index to make snapshots of, an endpoint that vouches for it, and snapshots that lie."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from capdex.ipld.car import write_block, write_header
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex.proof.document import LogProof, Slot
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.db.engine import reading
from capdex_indexer.db.models import REGISTRY
from capdex_indexer.query.digest import Digest, read_digest
from capdex_indexer.snapshot import archive, export
from capdex_indexer.store import Store

TESTS = Path(__file__).parents[1]
Json = dict[str, Any]


def load(name: str) -> ModuleType:
    """A module beside the tests, which are no packages; the same one that a conftest has loaded."""
    full = name.replace("/", "_tests_")
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, TESTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


making, proving = load("indexer/making"), load("capdex/proving")
simulator, soak = load("indexer/simulator"), load("soak/contents")
DEPLOYMENT = replace(making.DEPLOYMENT, genesis=bytes(32))  # as of a development chain


def seal(chain: Any) -> Any:
    """Mine a block whose header is real and leads to the contract's log slot; the world it is of.

    Its parent is not a block of the chain: whoever follows the chain to it takes one step.
    """
    log = LogHead()
    for raw in chain.logs:
        log = log.fold(raw)
    number = len(chain.blocks)
    world = proving.World(raw={bytes(32): log.word}, number=number)
    ref = BlockRef(number, world.hash, b"\x11" * 32, 1_700_000_000 + 12 * number)
    chain.blocks.append(making.Block(ref))
    return world


def prove(world: Any) -> LogProof:
    """The proof of the log slot in a sealed block."""
    return LogProof(
        world.chain_id,
        proving.CONTRACT,
        world.number,
        world.hash,
        world.header,
        proving.proof_of(world.state, proving.CONTRACT),
        Slot(
            bytes(32),
            world.slots[bytes(32)],
            proving.proof_of(world.storage, bytes(32)),
        ),
    )


@dataclass
class Original:
    """An index of a chain that ends in a sealed block, with its packages."""

    url: str
    chain: Any
    world: Any
    blocks: BlockDirectory

    @property
    def proof(self) -> LogProof:
        return prove(self.world)

    def export(self, out: Path, block: int | None = None, *, proven: bool = True) -> Path:
        """Write a snapshot; `proven`, when it is of the sealed block."""
        number = export.plan_export(self.url, block).block_number
        proofs = {REGISTRY: self.proof} if proven and number == self.world.number else {}
        export.export_snapshot(self.url, self.blocks, out, number, proofs=proofs)
        return out

    def digest(self) -> Digest:
        return digest_of(self.url)


def build(folder: Path, chain: Any, url: str = "") -> Original:
    """Index a chain (sealed here) and judge what it announces, keeping what is verified."""
    world = seal(chain)
    url, blocks = url or f"sqlite:///{folder / 'original.db'}", BlockDirectory(folder / "kept")
    store = Store.open(url, DEPLOYMENT)
    try:
        making.append(store, chain)
        judge(store, chain, blocks)
    finally:
        store.close()
    return Original(url, chain, world, blocks)


def judge(store: Store, chain: Any, blocks: BlockDirectory) -> None:
    """As a node does: judge what is due, keep what is verified."""
    for job in store.due(1e12, 1000):
        if job.announcement.sha256 not in chain.packages:
            continue
        report = making.judge(chain, job)
        store.record_many([(job.release_id, report)])
        if report.verdict is Verdict.VERIFIED:
            blocks.write(chain.packages[job.announcement.sha256])


def digest_of(url: str) -> Digest:
    with reading(url) as connection:
        return read_digest(connection)


# lies ---------------------------------------------------------------------------------------


@dataclass
class Parts:
    """A snapshot taken apart, to be changed and put together with CIDs that fit again."""

    manifest: Json
    chunks: list[bytes]
    packages: list[bytes]

    @classmethod
    def read(cls, path: Path) -> Parts:
        with path.open("rb") as file:
            archive.read_root(file)
            (_, first), *blocks = archive.read_blocks(file)
        manifest = orjson.loads(first)
        count = len(manifest["registry"]["chunks"])
        data = [block for _, block in blocks]
        return cls(manifest, data[:count], data[count:])

    def write(self, path: Path, *, list_chunks: bool = True, count_packages: bool = True) -> Path:
        if list_chunks:
            self.manifest["registry"]["chunks"] = [Cid.of(x).text for x in self.chunks]
        if count_packages:
            self.manifest["packages"] = len(self.packages)
        first = orjson.dumps(self.manifest)
        blocks = [first, *self.chunks, *self.packages]
        path.write_bytes(
            write_header(Cid.of(first).to_bytes())
            + b"".join(write_block(Cid.of(x), x) for x in blocks)
        )
        return path


def change(data: bytes, at: int, by: int = 1) -> bytes:
    """The bytes with one of them changed."""
    at %= len(data)
    return data[:at] + bytes([(data[at] + by) % 256]) + data[at + 1 :]


# the endpoint -------------------------------------------------------------------------------


class Sealed(simulator.SimBlock):  # type: ignore[name-defined,misc]
    """The sealed block as an endpoint gives it, with every field of its header."""

    def to_json(self) -> Json:
        root = ENDPOINTS[self.hash].world.state.root_hash
        block: Json = proving.block_json(self.number, root)
        return block | {"hash": f"0x{self.hash.hex()}"}


ENDPOINTS: dict[bytes, Endpoint] = {}


class Endpoint(simulator.SimulatedChain):  # type: ignore[name-defined,misc]
    """What an endpoint says of an original's chain, with `eth_getProof` at its sealed block."""

    def __init__(self, original: Original) -> None:
        self.world = original.world
        super().__init__(chain_id=making.CHAIN_ID)
        ENDPOINTS[self.world.hash] = self
        self.blocks, slot = [], LogHead()
        for block in original.chain.blocks:
            for raw in block.logs:
                slot = slot.fold(raw)
            kind: Callable[..., Any] = simulator.SimBlock
            if block.ref.hash == self.world.hash:
                kind = Sealed
            ref = block.ref
            self.blocks.append(kind(ref.number, ref.hash, ref.parent, block.logs, slot))

    def _eth_getProof(self, address: str, keys: list[str], at: Json) -> Json:  # noqa: N802
        if not self.serves_state:
            raise simulator.Refusal(-32000, "missing trie node")
        proof = prove(self.world).to_json()
        return {
            "accountProof": proof["account_proof"],
            "storageProof": [{**proof["slot"], "key": "0x0"}],
        }
