"""kill.py COUNT [--db sqlite|postgres] [--seed N] [--releases N]: kill -9 a node while it indexes.

A node indexes a registry of N releases behind an endpoint that allows short ranges only, so that it
takes many transactions. It is killed at a random moment after its start, or at a random point of
its progress, and started again, until the index is complete; then another index is begun. After
every kill what is stored must be a part of the index that was built in one go: each event once, the
same digest at its block, the same verdicts, and nothing of what was there before is gone. A
complete index must be the same, row by row. The last line is `N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random

from attempts import arguments, attempt, conclude
from author import Author
from contents import Watch, contents, differences, faults
from databases import Fresh, databases
from nodes import Nodes, Running, anvil
from proxy import Proxy

MAX_BLOCKS = 8  # of one reply
DELAY_S = 0.02
FINALITY = 16
QUICK = 0.5  # so many of the kills come at a moment, the others at a point of progress


@dataclass
class Soak:
    """One chain, and the index of it that was built in one go."""

    author: Author
    url: str
    nodes: Nodes
    fresh: Fresh
    random: Random
    reference: str = ""
    took_s: float = 0.0

    def start(self, db: str, life: int) -> Running:
        return self.nodes.start(
            "--rpc-url", self.url, "--chain-id", "31337", "--registry",
            self.author.registry.address, "--db", db, "--ipfs", f"dir:{self.author.blocks.path}",
            "--blocks", str(self.nodes.folder / f"kept-{life}"), "--poll-interval", "0.1",
            "--finality-depth", str(FINALITY),
        )  # fmt: skip

    def finish(self, db: str, life: int) -> tuple[str, list[str]]:
        """Let a node complete an index, and compare it with the reference."""
        node = self.start(db, life)
        watch, head = Watch(db), self.author.head
        try:
            node.wait_for(lambda: watch.judged_at() == head, "the index was complete")
        finally:
            node.kill()
        wrong = differences(contents(db), contents(self.reference)) if self.reference else []
        return f"index {life} was completed", wrong

    def build_reference(self) -> None:
        """An index made in one go, and how long that takes."""
        db, started = self.fresh(), time.monotonic()
        self.finish(db, 0)
        self.reference, self.took_s = db, time.monotonic() - started

    def kill_once(self, db: str, life: int) -> tuple[str, list[str]]:
        """Start a node and kill it; what happened, and what is wrong with the index after it."""
        watch = Watch(db)
        before = watch()
        node = self.start(db, life)
        try:
            when = self.until_the_moment(node, watch, before)
        finally:
            node.kill()
        after = watch()
        lost = [] if min(a - b for a, b in zip(after, before, strict=True)) >= 0 else ["rows went"]
        what = f"{when}: {before[0]}+{before[1]} → {after[0]}+{after[1]} events+verdicts"
        return what, lost + faults(db, self.reference)

    def until_the_moment(self, node: Running, watch: Watch, before: tuple[int, int]) -> str:
        """Let some time or work pass; says which."""
        if self.random.random() < QUICK:
            moment_s = self.random.uniform(0, self.took_s)
            time.sleep(moment_s)
            return f"after {moment_s:.3f} s"
        which = self.random.randrange(2)
        whole = Watch(self.reference)()[which]
        least = self.random.randint(before[which], min(before[which] + whole // 2, whole))
        said = f"{least} {('events', 'verdicts')[which]}"
        node.wait_for(lambda: watch()[which] >= least, f"{said} were there")
        return f"at {said}"


def run(count: int, kind: str, seed: int, releases: int, verbose: bool) -> int:
    """The number of kills that went wrong."""
    random = Random(f"kill/{seed}")
    with ExitStack() as stack:
        url = stack.enter_context(anvil("--gas-limit", "1000000000"))
        proxy = stack.enter_context(Proxy.open(url, max_blocks=MAX_BLOCKS, delay_s=DELAY_S))
        nodes = stack.enter_context(Nodes.open())
        fresh = stack.enter_context(databases(kind, nodes.folder))
        references = stack.enter_context(databases("sqlite", nodes.folder / "reference"))
        author = Author.begin(url, nodes.folder / "blocks", random)
        author.fill(releases)
        soak = Soak(author, proxy.url, nodes, references, random)
        soak.build_reference()
        soak.fresh = fresh
        print(
            f"seed {seed}, {kind}, {Watch(soak.reference)()[0]} events, {author.height} blocks, "
            f"built in {soak.took_s:.1f} s"
        )
        failed = lives = number = 0
        while number < count:
            db, complete = fresh(), False
            lives += 1
            while number < count and not complete:
                number += 1
                failed += attempt(partial(soak.kill_once, db, lives), number, verbose)
                complete = Watch(db).judged_at() == author.head
            failed += attempt(partial(soak.finish, db, lives), number, verbose)
            nodes.forget(nodes.folder / f"kept-{lives}")
        print(f"{lives} indexes")
        return failed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--releases", type=int, default=300)
    given = parser.parse_args()
    failed = run(given.count, given.db, given.seed, given.releases, given.verbose)
    return conclude(given.count, failed)


if __name__ == "__main__":
    sys.exit(main())
