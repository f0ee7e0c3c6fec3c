"""rpc.py COUNT [--seconds S] [--rate R] [--only KIND] [--seed N]: endpoints that misbehave.

A node reads a registry from an Anvil through two endpoints of the same kind of misbehaviour, each
of which spoils three requests in ten (--rate) for S seconds (--seconds), while more is published.
COUNT is the number of such spells; the kinds take turns, so COUNT=20 has each of them once:

    timeout reset truncated stale patience status page refused wrong-id null empty doubled shuffled
    dropped falsified narrow stateless unwitnessed foreign mixed

With `refused`, calls are answered as vendors and nodes were seen to answer in public, listed in
public_refusals.json with the report of each, or in words drawn at random from them.

Each spell has a chain and an index of its own, so that the past and the present are both read
through it; of half the chains only the newest 128 states are kept, as most nodes do. What is stored
meanwhile must be the chain's, however little (but for logs that are changed rather than left out,
in blocks whose state nobody keeps: there it need be only in the end), and no second may see more
than MOST requests; once the endpoints are well
the index must be at the head within a minute, and then be the one that a node builds through a
sound endpoint: the same digests, the same rows. The last line is `N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random

from attempts import arguments, attempt, conclude
from author import Author
from contents import Contents, Watch, contents, differences, digest
from databases import Fresh, databases
from nodes import PATIENCE_S, Nodes, Running, anvil, wait_until
from rpc_faults import KINDS, Faulty

CHAIN_ID = 4242  # not Anvil's own: a development chain may be followed backwards at any depth
ANVIL = ("--chain-id", str(CHAIN_ID), "--gas-limit", "1000000000")
FINALITY = 16
FIRST_RELEASES = 150
HEALED_S = 60.0
FELT = 2  # replies spoilt, at least
KEPT = 128  # states of a pruned chain
PRUNED = ("--prune-history", str(KEPT))
UNTOLD = ("falsified", "unwitnessed", "mixed")  # what only the contract's state shows
LATE = ("foreign", "timeout", "mixed")  # with these a node may rightly refuse to start
EARLY = ("narrow",)  # a node that follows reads no range
MOST = 300  # requests within a second, to both endpoints: ten looks at the head, and what is new


@dataclass
class Soak:
    """A chain, its two bad endpoints, and a node for a spell."""

    author: Author
    proxies: tuple[Faulty, Faulty]
    nodes: Nodes
    fresh: Fresh
    random: Random
    seconds: float
    pruned: bool
    took_s: float = 0.0  # to catch up

    def start(self, db: str, blocks: str, *urls: str) -> Running:
        endpoints = [argument for url in urls for argument in ("--rpc-url", url)]
        return self.nodes.start(
            *endpoints, "--chain-id", str(CHAIN_ID), "--registry", self.author.registry.address,
            "--start-block", "1", "--db", db, "--ipfs", f"dir:{self.author.blocks.path}",
            "--blocks", str(self.nodes.folder / blocks), "--poll-interval", "0.1",
            "--finality-depth", str(FINALITY),
        )  # fmt: skip

    def spell(self, kind: str) -> tuple[str, list[str]]:
        """One spell of one kind; what happened, and what is wrong then."""
        db, seen = self.fresh(), list[tuple[int, Contents]]()
        late = kind in LATE or (kind not in EARLY and self.random.random() < 0.5)
        if not late:
            self.misbehave(kind)
        node = self.start(db, "kept", *(proxy.url for proxy in self.proxies))
        try:
            if late:
                node.wait_for(lambda: Watch(db)() != (0, 0), "the node has read something")
                self.misbehave(kind)
            until = time.monotonic() + self.seconds
            while node.alive and self.goes_on(until):
                self.author.mine(self.random.randint(0, 5))
                time.sleep(self.random.uniform(0, 0.1))
                if self.random.random() < 0.1:
                    seen.append((self.author.height, self.events(db)))
            if not node.alive:
                return kind, [f"the node ended: {node.said[-2000:]}"]
            self.misbehave(None)
            healed, head, watch = time.monotonic(), self.author.head, Watch(db)
            wait_until(lambda: watch.judged_at() == head, f"{kind} was got over", within=HEALED_S)
            self.took_s = time.monotonic() - healed
            seen.append((self.author.height, self.events(db)))
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{node.said[-4000:]}") from None
        finally:
            self.misbehave(None)
            node.kill()
        where = " of a pruned chain" if self.pruned else ""
        what = f"{kind}, {self.spoilt} replies{where} spoilt, caught up in {self.took_s:.1f} s"
        busiest = self.busiest
        what += f", busiest second: {busiest.total()} requests"
        wrong = self.compare(db, seen, untold=self.pruned and kind in UNTOLD)
        if busiest.total() > MOST:
            asked = ", ".join(f"{count} {method}" for method, count in busiest.most_common())
            wrong.append(f"more than {MOST} requests within a second: {asked}")
        return what, wrong

    @property
    def spoilt(self) -> int:
        return sum(sum(proxy.spoilt.values()) for proxy in self.proxies)

    @property
    def busiest(self) -> Counter[str]:
        """The requests of the second with the most, by method."""
        one, other = (proxy.seconds for proxy in self.proxies)
        both = [one.get(at, Counter()) + other.get(at, Counter()) for at in {**one, **other}]
        return max(both, key=Counter.total, default=Counter())

    def goes_on(self, until: float) -> bool:
        """Whether the spell does: for its time, and longer where it has hardly been felt."""
        now = time.monotonic()
        return now < until or (self.spoilt < FELT and now < until + PATIENCE_S)

    def misbehave(self, kind: str | None) -> None:
        for proxy in self.proxies:
            proxy.fault = kind

    def events(self, db: str) -> Contents:
        """The events stored so far; none before there is a table."""
        return {"event": contents(db)["event"]} if Watch(db)() != (0, 0) else {"event": []}

    def compare(self, db: str, seen: list[tuple[int, Contents]], *, untold: bool) -> list[str]:
        """How the index, and what it held on its way, differ from those of a sound endpoint."""
        clean, head = self.fresh(), self.author.head
        node, watch = self.start(clean, "clean", self.author.registry.url), Watch(clean)
        try:
            node.wait_for(lambda: watch.judged_at() == head, "the other index was complete")
        finally:
            node.kill()
        ours, theirs = contents(db), contents(clean)
        wrong = dict.fromkeys(differences(ours, theirs))
        for top, held in seen:
            # Where nobody could tell, what had no state left when it was looked at is left out.
            oldest = top - KEPT + 1 if untold else 0
            mine, there = held["event"], theirs["event"][: len(held["event"])]
            told = [{"event": [row for row in rows if row[1] >= oldest]} for rows in (mine, there)]
            wrong |= {f"on the way: {what}": None for what in differences(*told)}
        ours_is, theirs_is = digest(db), digest(clean)
        same = (ours_is.index, ours_is.content) == (theirs_is.index, theirs_is.content)
        if not same or not ours_is.content:
            wrong["the digests differ"] = None
        return list(wrong)


def run(count: int, seconds: float, rate: float, kinds: list[str], seed: int, talk: bool) -> int:
    """The number of spells that went wrong."""
    slowest, failed = Counter[str](), 0
    with Nodes.open() as nodes, databases("sqlite", nodes.folder) as fresh:

        def spell(number: int) -> tuple[str, list[str]]:
            kind, random = kinds[number % len(kinds)], Random(f"rpc/{seed}/{number}")
            pruned = random.random() < 0.5
            with ExitStack() as stack:
                url = stack.enter_context(anvil(*ANVIL, *(PRUNED if pruned else ())))
                author = Author.begin(url, nodes.folder / f"blocks-{number}", random)
                author.fill(FIRST_RELEASES)
                author.call("anvil_mine", hex(FINALITY))
                a, b = (
                    stack.enter_context(Faulty.open(url, rate, Random(random.random())))
                    for _ in "ab"
                )
                soak = Soak(author, (a, b), nodes, fresh, random, seconds, pruned)
                said = soak.spell(kind)
            slowest[kind] = max(slowest[kind], round(soak.took_s, 1))  # type: ignore[assignment]
            return said

        for number in range(count):
            failed += attempt(partial(spell, number), number + 1, talk)
    slow = ", ".join(f"{kind} {s} s" for kind, s in slowest.most_common(3))
    print(f"seed {seed}, {seconds:g} s a spell, slowest to catch up: {slow}")
    return failed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="that a spell lasts")
    parser.add_argument("--rate", type=float, default=0.3, help="of requests that are spoilt")
    parser.add_argument("--only", choices=KINDS)
    given = parser.parse_args()
    kinds = [given.only] if given.only else list(KINDS)
    failed = run(given.count, given.seconds, given.rate, kinds, given.seed, given.verbose)
    return conclude(given.count, failed)


if __name__ == "__main__":
    sys.exit(main())
