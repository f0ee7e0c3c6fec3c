"""Somebody who fills a registry: releases of every kind, and what is said of them afterwards."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from capdex.net.ipfs.block_store import BlockDirectory

TESTS = Path(__file__).resolve().parents[1]
NAMES, VERSIONS = 40, 12  # few enough that names have histories
ONE = "0x0000000000000000000000000000000000000001"


def load(name: str) -> ModuleType:
    """A module of another folder of the tests: they are no packages."""
    full = f"tests_{name.replace('/', '_')}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, TESTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


chain = load("e2e/chain")
making = load("indexer/making")
S, B32, U, A = "string", "bytes32", "uint256", "address"


@dataclass
class Author:
    """Mines blocks of a registry; packages go to `blocks`. Calls may revert: they leave no log."""

    registry: Any
    blocks: Any  # what packages are written to
    random: Random
    published: list[tuple[str, str]] = field(default_factory=list)
    names: int = NAMES
    versions: int = VERSIONS

    @classmethod
    def begin(cls, url: str, blocks: Path, random: Random) -> Author:
        """Deploy a registry; from then on blocks are mined when the author says so."""
        registry = chain.Registry.deploy(url)
        registry.call("evm_setAutomine", False)
        chain_id = int(registry.call("eth_chainId"), 16)
        making.CHAIN_ID = chain_id  # type: ignore[attr-defined]  # what packages are bound to
        return cls(registry, BlockDirectory(blocks), random)

    def at(self, url: str) -> Author:
        """The same author at another endpoint."""
        twin = replace(self, registry=replace(self.registry, url=url))
        twin.call("evm_setAutomine", False)
        return twin

    def fill(self, releases: int) -> None:
        """Mine about so many releases, one to eight calls a block, with empty blocks between."""
        while len(self.published) < releases:
            self.mine(self.random.randint(1, 8))
            if self.random.random() < 0.3:
                self.call("anvil_mine", hex(self.random.randint(1, 4)))

    def mine(self, calls: int) -> None:
        """Mine one block with that many random calls."""
        self.send([self.compose() for _ in range(calls)])

    def send(self, calls: list[str]) -> None:
        """Mine one block with these calls."""
        if calls:
            # Anvil answers the calls of a batch side by side: each must say its own nonce.
            nonce = int(self.call("eth_getTransactionCount", self.registry.account, "latest"), 16)
            sent = [
                {**self._transaction(data), "nonce": hex(nonce + at)}
                for at, data in enumerate(calls)
            ]
            self.registry.batch([("eth_sendTransaction", [one]) for one in sent])
        self.call("evm_mine")

    def replace(self, depth: int, calls: list[tuple[str, int]]) -> None:
        """Replace the last blocks; each call goes to the block at its offset among the new ones."""
        placed = [[self._transaction(data), at] for data, at in sorted(calls, key=itemgetter(1))]
        self.call("anvil_reorg", depth, placed)

    def compose(self) -> str:
        """The input of one call: mostly a publication."""
        name = f"cap-{self.random.randrange(self.names)}"
        version = f"1.{self.random.randrange(self.versions)}.0"
        dice = self.random.random()
        if dice < 0.75 or not self.published:
            return self.publication(name, version)
        name, version = self.random.choice(self.published)  # though a reorg may have undone it
        if dice < 0.90:
            place = (S, S, U), (name, version, self.index_of(name, version))
            words = f"reason {self.random.randrange(100)}"
            kind = self.random.choice(["yank", "unyank", "deprecate", "undeprecate"])
            if kind in ("yank", "deprecate"):
                return encode_call(kind, (*place[0], S), (*place[1], words))
            return encode_call(kind, *place)
        other = f"cap-{self.random.randrange(self.names)}"
        return self.random.choice(
            [
                lambda: encode_call("deprecateName", (S, S, S), (name, "old", other)),
                lambda: encode_call("undeprecateName", (S,), (name,)),
                lambda: encode_call("claim", (S, B32), (f"own-{name}", bytes(32))),
                lambda: encode_call("addMaintainer", (S, A), (name, ONE)),
                lambda: encode_call("offerTransfer", (S, A), (name, ONE)),
                lambda: encode_call("cancelTransfer", (S,), (name,)),
            ]
        )()

    def news(self) -> str:
        """A release of a name that nobody has, with bytes that nobody has seen."""
        return self.publication(f"new-{self.random.randrange(1 << 32)}", "1.0.0")

    def publication(self, name: str, version: str) -> str:
        """A release; some are not bound to their publisher, some were tampered with."""
        self.published.append((name, version))
        number = self.random.randrange(1000)
        data = making.package_bytes(
            name,
            version,
            publisher=None if number % 7 == 5 else self.registry.publisher,
            summary=f"Edition {number} of {name}",
        )
        if number % 11 == 3:
            data = data.replace(b"Do it.", b"Do more than was signed.")
        self.blocks.write(data)
        release = chain.Registry._release(name, version, data)
        return encode_call("publish", (S, S, S, B32), release)

    def index_of(self, name: str, version: str) -> int:
        """Where the version stands among the releases of its name; 0 where it does not."""
        data = encode_call("indexOf", (S, S), (name, version))
        query = {"to": self.registry.address, "data": data}
        try:
            found = self.call("eth_call", query, "latest")
        except AssertionError:  # no such release: the call that follows reverts, too
            return 0
        return int(found, 16) if found != "0x" else 0

    def call(self, method: str, *params: Any) -> Any:
        return self.registry.call(method, *params)

    def _transaction(self, data: str) -> dict[str, str]:
        payer = {"from": self.registry.account, "gas": hex(600_000)}
        return {**payer, "to": self.registry.address, "data": data}

    @property
    def head(self) -> bytes:
        """The hash of the newest block."""
        return bytes.fromhex(self.call("eth_getBlockByNumber", "latest", False)["hash"][2:])

    @property
    def height(self) -> int:
        return int(self.call("eth_blockNumber"), 16)


def encode_call(name: str, types: tuple[str, ...], values: tuple[Any, ...]) -> str:
    data: str = chain.call_data(name, types, values)
    return data
