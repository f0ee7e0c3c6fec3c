"""reorg.py COUNT [--db KIND] [--seed N] [--only WAY]: reorganise the chain below a running node.

A node follows an Anvil with calls of every kind to its registry, through an endpoint and a gateway
that take their time. Each time the last 1 to 64 blocks are replaced, in one of these ways:

    plain      other transactions, or none, in blocks of the same heights
    twice      again, while the node undoes the first one
    fetching   while the gateway holds packages that the lost blocks announced
    back       by another branch of the same height, and then by the very blocks there were (A→B→A)
    again      the same signed transactions, in other blocks
    killed     and the node is killed with SIGKILL meanwhile, and started again

Then the index must be the one that another node builds from nothing: the same digests, the same
rows. At the end of each chain it is reorganised deeper than its finality, which no node may follow
by itself: it must say that it stalled, and keep what it has. The last line is `N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

from attempts import arguments, attempt, conclude
from author import Author
from contents import Watch, contents, differences, digest
from databases import Fresh, databases
from gateway import Gateway
from nodes import Nodes, Running, Stuck, anvil, wait_until
from proxy import Proxy

CHAIN_ID = 4242  # not Anvil's own: a development chain may be followed backwards at any depth
ANVIL = ("--chain-id", str(CHAIN_ID), "--gas-limit", "1000000000")
FINALITY = 64
ON_ONE_CHAIN = 25  # reorganisations: then another one, so that rebuilding stays cheap
TOO_DEEP = 70
FIRST_BLOCKS = 30


@dataclass
class Soak:
    """A chain, and a node that follows it."""

    author: Author
    proxy: Proxy
    gateway: Gateway
    nodes: Nodes
    fresh: Fresh
    rebuilt: Fresh
    random: Random
    only: str | None = None
    db: str = ""
    node: Running = field(init=False)
    seen: Counter[str] = field(default_factory=Counter)

    def start(self, db: str, url: str, blocks: str) -> Running:
        return self.nodes.start(
            "--rpc-url", url, "--chain-id", str(CHAIN_ID), "--registry",
            self.author.registry.address, "--start-block", "1", "--db", db, "--ipfs",
            f"gateway:{self.gateway.url}", "--blocks", str(self.nodes.folder / blocks),
            "--poll-interval", "0.05", "--finality-depth", str(FINALITY),
        )  # fmt: skip

    def follow(self) -> None:
        """Start the node whose index is to survive it all."""
        self.node = self.start(self.db, self.proxy.url, "kept")

    def begin(self) -> None:
        self.db = self.fresh()
        self.author.fill(FIRST_BLOCKS)
        self.author.call("anvil_mine", hex(FINALITY))
        self.follow()

    # -------------------------------------------------------------------- one reorganisation

    def once(self) -> tuple[str, list[str]]:
        """Reorganise in a way drawn by chance; what happened, and what is wrong then."""
        self.build_on()
        depth = self.draw_depth()
        ways: list[Callable[[int], None]] = [
            self.plain, self.twice, self.fetching, self.back, self.again, self.killed,
        ]  # fmt: skip
        way = self.random.choice([one for one in ways if self.only in (None, one.__name__)])
        self.proxy.delay_s = self.random.choice([0.0, 0.005, 0.02])
        self.gateway.delay_s = self.random.choice([0.0, 0.0, 0.05])
        way(depth)
        self.seen[way.__name__] += 1
        self.gateway.held, self.gateway.delay_s, self.proxy.delay_s = False, 0.0, 0.0
        return f"{way.__name__}, {depth} deep", self.compare()

    def build_on(self) -> None:
        """More blocks; the node may have seen them all, or be somewhere among them."""
        for _ in range(self.random.randint(1, 6)):
            self.author.mine(self.random.randint(0, 5))
        if self.random.random() < 0.7:
            self.catch_up()

    def draw_depth(self) -> int:
        """Shallow ones more often, as on real chains; never below what the node holds for final."""
        deepest = min(64, self.author.height - self.author.registry.start_block)
        return min(deepest, self.random.choice([1, 2, 3, self.random.randint(1, 64), 64]))

    def replace(self, depth: int) -> None:
        """Let Anvil replace the last blocks by others, and mine more on top."""
        offsets = [0, *(self.random.randrange(depth) for _ in range(self.random.randint(0, 4)))]
        # At least in the first one: a block that has nothing new would be the very same.
        self.author.replace(depth, [(self.author.compose(), offset) for offset in offsets])
        for _ in range(self.random.randint(0, 3)):
            self.author.mine(self.random.randint(1, 4))

    def catch_up(self, author: Author | None = None) -> None:
        head, watch = (author or self.author).head, Watch(self.db)
        try:
            self.node.wait_for(lambda: watch.judged_at() == head, "the index was at the head")
        except Stuck as stuck:
            raise Stuck(f"{head.hex()} is not reached: {watch.waiting()}; {stuck}") from None

    def pause(self, most_s: float) -> None:
        time.sleep(self.random.uniform(0, most_s))

    def plain(self, depth: int) -> None:
        self.replace(depth)

    def twice(self, depth: int) -> None:
        self.replace(depth)
        for _ in range(self.random.randint(1, 3)):
            self.pause(0.15)
            self.replace(self.draw_depth())

    def fetching(self, depth: int) -> None:
        self.gateway.held = True
        for _ in range(self.random.randint(1, 3)):
            self.author.send([self.author.news() for _ in range(self.random.randint(1, 3))])
        head, watch = self.author.head, Watch(self.db)
        self.node.wait_for(lambda: watch.block() == head, "the new blocks were stored")
        wait_until(lambda: self.gateway.waiting, "packages were asked for")
        self.replace(depth)
        if self.random.random() < 0.5:
            head = self.author.head
            self.node.wait_for(lambda: watch.block() == head, "the reorganisation was undone")

    def back(self, depth: int) -> None:
        """Anvil cannot return to blocks it has dropped: another one has the other branch."""
        here = self.author.call("anvil_dumpState")
        self.branch(self.author, depth)
        self.catch_up()
        with anvil(*ANVIL) as url:
            there = self.author.at(url)
            there.call("anvil_loadState", here)
            self.branch(there, depth)
            self.proxy.target = url
            if self.random.random() < 0.5:
                self.catch_up(there)
            else:
                self.pause(0.1)
            self.proxy.target = self.author.registry.url

    def branch(self, author: Author, blocks: int) -> None:
        author.send([author.news()])  # so that no other branch has the same blocks
        for _ in range(blocks - 1):
            author.mine(self.random.randint(1, 3) if self.random.random() < 0.3 else 0)

    def again(self, depth: int) -> None:
        sent = self.transactions(depth)
        heights = sorted(self.random.randrange(depth) for _ in sent)
        self.author.call("anvil_reorg", depth, [list(x) for x in zip(sent, heights, strict=True)])
        self.seen["transactions included again"] += len(self.transactions(depth))

    def transactions(self, depth: int) -> list[str]:
        """The signed transactions of the last blocks, in their order."""
        height, call = self.author.height, self.author.call
        return [
            call("eth_getRawTransactionByHash", hash_)
            for number in range(height - depth + 1, height + 1)
            for hash_ in call("eth_getBlockByNumber", hex(number), False)["transactions"]
        ]

    def killed(self, depth: int) -> None:
        self.replace(depth)
        for _ in range(self.random.randint(1, 3)):
            self.pause(0.5)
            self.node.kill()
            self.follow()

    # ----------------------------------------------------------------------------- comparing

    def compare(self) -> list[str]:
        """How the index differs from one built from nothing."""
        self.author.mine(0)  # Anvil's logs of a block are asked for by hash: one that all agree on
        self.catch_up()
        db, head = self.rebuilt(), self.author.head
        node, watch = self.start(db, self.author.registry.url, "rebuilt"), Watch(db)
        try:
            node.wait_for(lambda: watch.judged_at() == head, "the other index was complete")
        finally:
            node.kill()
        ours, theirs = digest(self.db), digest(db)
        wrong = differences(contents(self.db), contents(db))
        wrong += [
            f"the {what} digests differ"
            for what in ("index", "content")
            if getattr(ours, what) != getattr(theirs, what) or not getattr(ours, what)
        ]
        if not self.node.alive:
            wrong.append(f"the node ended: {self.node.said[-2000:]}")
        return wrong

    def too_deep(self) -> tuple[str, list[str]]:
        """Reorganise below what is final: it stalls, says so, and keeps what it has."""
        self.catch_up()
        before = contents(self.db)
        self.author.replace(TOO_DEEP, [(self.author.news(), 0)])
        self.node.wait_for(lambda: '"STALLED"' in self.node.said, "it said that it stalled")
        self.pause(0.3)
        wrong = differences(contents(self.db), before)
        return "deeper than the limit", wrong


def run(count: int, kind: str, seed: int, only: str | None, verbose: bool) -> int:
    """The number of reorganisations that went wrong."""
    random = Random(f"reorg/{seed}")
    failed = done = chains = 0
    seen: Counter[str] = Counter()
    with ExitStack() as shared:
        nodes = shared.enter_context(Nodes.open())
        fresh = shared.enter_context(databases(kind, nodes.folder / "followed"))
        rebuilt = shared.enter_context(databases("sqlite", nodes.folder / "rebuilt-from-nothing"))
        while done < count:
            chains += 1
            with ExitStack() as stack:
                url = stack.enter_context(anvil(*ANVIL))
                author = Author.begin(url, nodes.folder / f"blocks-{chains}", random)
                proxy = stack.enter_context(Proxy.open(url))
                gateway = stack.enter_context(Gateway.open(author.blocks))
                soak = Soak(author, proxy, gateway, nodes, fresh, rebuilt, random)
                soak.seen, soak.only = seen, only
                soak.begin()
                many = min(ON_ONE_CHAIN, count - done)
                for step in [soak.once] * many + [soak.too_deep]:
                    done += step != soak.too_deep
                    wrong = attempt(step, done, verbose)
                    failed += wrong
                    if wrong:  # what is broken stays broken: another chain
                        break
                soak.node.kill()
    print(
        f"seed {seed}, {kind}, {chains} chains: " + ", ".join(f"{k} {v}" for k, v in seen.items())
    )
    return failed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--only", help="one of the ways")
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    given = parser.parse_args()
    failed = run(given.count, given.db, given.seed, given.only, given.verbose)
    return conclude(given.count, failed)


if __name__ == "__main__":
    sys.exit(main())
