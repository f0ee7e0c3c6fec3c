"""two_nodes.py COUNT [--seed N]: two unlike nodes index the same COUNT releases, and must agree.

One writes SQLite; its first endpoint answers short ranges only and takes no batches, its packages
come from one gateway. The other writes PostgreSQL, and asks the endpoints in the other order, and
another gateway. Most of the chain is there when they start; the last part is mined, and partly
replaced by other blocks, while they read. Then, at every block that has events, the root of what
one has must be that of what the other has; so must be the digests of the index and of its verdicts
at some of them, and all rows. `N passed, N failed` counts the blocks.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from random import Random

from attempts import arguments, conclude
from author import Author
from contents import Watch, contents, differences, digest, rows
from databases import databases
from gateway import Gateway
from nodes import Nodes, Running, Stuck, anvil
from proxy import Proxy

from capdex.ipld.cid import Cid
from capdex.proof.index_digest import Frontier
from capdex_indexer.db.engine import open_reader
from capdex_indexer.db.models import REGISTRY
from capdex_indexer.query.digest import read_digest, read_leaves

CHAIN_ID = 4242
ANVIL = ("--chain-id", str(CHAIN_ID), "--gas-limit", "1000000000")
PER_BLOCK = 25
LATE = 0.1  # so much of the chain is mined while they read
REORGS = 5
SAMPLES = 20  # blocks at which the whole digests are computed: each reads every event
PACE = 30  # releases a second that any machine manages: patience follows from it


class Memory:
    """Blocks that a gateway serves, kept in memory: writing 20 000 files takes a minute."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def write(self, data: bytes) -> None:
        self._held[Cid.of(data).text] = data

    async def get(self, cid: Cid) -> bytes:
        return self._held[cid.text]


def fill(author: Author, releases: int) -> None:
    """Publish, and say things of what is published, PER_BLOCK calls a block."""
    until = len(author.published) + releases
    while len(author.published) < until:
        author.mine(min(PER_BLOCK, until - len(author.published)))


def disturb(author: Author, random: Random, releases: int) -> None:
    """The last part of the chain, some of it replaced again."""
    for _ in range(REORGS):
        fill(author, releases // REORGS)
        depth = random.randint(1, min(16, author.height - 1))
        offsets = [0, *(random.randrange(depth) for _ in range(20))]
        author.replace(depth, [(author.compose(), at) for at in offsets])
    author.mine(1)


def tree(db: str) -> Iterator[tuple[int, bytes]]:
    """The number of each block that has events, and the root of all leaves up to its end."""
    engine = open_reader(db)
    try:
        with engine.begin() as connection:
            whole = read_digest(connection)
            numbers = rows(connection, "SELECT block_number FROM event ORDER BY sequence")
            leaves = [leaf for leaf, _ in read_leaves(connection, whole, REGISTRY)]
    finally:
        engine.dispose()
    assert len(leaves) == len(numbers) == whole.log.count
    frontier, following = Frontier(), [*numbers[1:], (0,)]
    for leaf, (number,), (after,) in zip(leaves, numbers, following, strict=True):
        frontier.append(leaf)
        if after != number:
            yield number, frontier.root()


def compare(first: str, second: str, random: Random) -> tuple[int, list[str]]:
    """How many blocks agree, and what does not."""
    ours, theirs = list(tree(first)), list(tree(second))
    print(f"{digest(first).log.count} events in {len(ours)} blocks", flush=True)
    wrong = [f"block {a[0]}" for a, b in zip(ours, theirs, strict=False) if a != b]
    if len(ours) != len(theirs):
        wrong.append(f"{len(ours)} and {len(theirs)} blocks with events")
    for number, _ in random.sample(ours, min(SAMPLES, len(ours))):
        pair = digest(first, number), digest(second, number)
        for what in ("index", "content", "log"):
            one, other = (getattr(x, what) for x in pair)
            if one is None or one != other:
                wrong.append(f"the {what} digest at block {number}")
    return len(ours), wrong + differences(contents(first), contents(second))


def run(count: int, seed: int) -> tuple[int, list[str]]:
    """How many blocks the two were compared at, and what was not the same."""
    random = Random(f"two nodes/{seed}")
    with ExitStack() as stack:
        enter = stack.enter_context
        url, nodes = enter(anvil(*ANVIL)), enter(Nodes.open())
        author = Author.begin(url, nodes.folder / "unused", random)
        author.blocks, author.names, author.versions = Memory(), count // 10 + 10, 1000
        started = time.monotonic()
        fill(author, round(count * (1 - LATE)))
        print(
            f"seed {seed}: {author.height} blocks in {time.monotonic() - started:.0f} s", flush=True
        )
        short = enter(Proxy.open(url, max_blocks=7, batches=False))
        long = enter(Proxy.open(url, delay_s=0.002))
        gateways = enter(Gateway.open(author.blocks)), enter(Gateway.open(author.blocks))
        gateways[1].delay_s = 0.01

        def start(
            name: str, db: str, endpoints: list[str], gateway: Gateway, *more: str
        ) -> Running:
            chosen = [word for one in endpoints for word in ("--rpc-url", one)]
            return nodes.start(
                *chosen, "--chain-id", str(CHAIN_ID), "--registry", author.registry.address,
                "--start-block", "1", "--db", db, "--ipfs", f"gateway:{gateway.url}",
                "--blocks", str(nodes.folder / name), "--poll-interval", "0.2", *more,
            )  # fmt: skip

        first = enter(databases("sqlite", nodes.folder / "first"))()
        second = enter(databases("postgres", nodes.folder))()
        running = {
            first: start("one", first, [short.url, long.url], gateways[0]),
            second: start("two", second, [long.url, short.url], gateways[1]),
        }
        disturb(author, random, round(count * LATE))
        head = author.head
        for db, node in running.items():
            watch = Watch(db)
            complete = partial(lambda watch: watch.judged_at() == head, watch)
            node.wait_for(complete, "the index was complete", 90 + count / PACE)
        for node in running.values():
            node.kill()
        print(f"both complete after {time.monotonic() - started:.0f} s", flush=True)
        return compare(first, second, random)


def main() -> int:
    given = arguments(__doc__).parse_args()
    try:
        blocks, wrong = run(given.count, given.seed)
    except (Stuck, AssertionError) as stuck:
        blocks, wrong = 0, [str(stuck)]
    for one in wrong:
        print(f"FAILED {one}")
    return conclude(blocks, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
