"""Any history of a chain, with crashes in it, gives the rows of its canonical chain alone.

Two endpoints show it, and each may leave out, double, invent or change logs, refuse the state that
would tell, keep little of it, fall behind, or rewrite what is final.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from capdex.errors import Code

FINALITY = 6


def load(name: str) -> Any:
    full = f"indexer_tests_{name.replace(chr(47), chr(95))}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            full, Path(__file__).parents[1] / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


BENDS: dict[str, Any] = {
    "dropped": lambda logs: logs[1:],
    "doubled": lambda logs: logs * 2,
    "reversed": lambda logs: logs[::-1],
    "empty": lambda logs: [],
    "added": load("sync/test_loop").added,
    "falsified": load("sync/test_loop").falsified,
}


class ChainMachine(RuleBasedStateMachine):
    """Rules: extend, fork, let the walk advance a little, crash and restart, misbehave, lie."""

    @initialize(keeps_states=st.sampled_from([None, FINALITY + 4]))
    def begin(self, keeps_states: int | None) -> None:
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.sim, self.other = (
            load("simulator").SimulatedChain(keeps_states=keeps_states) for _ in range(2)
        )
        self.other.blocks = self.sim.blocks
        self.settled = 0  # what the walk may call final: never forked below
        self.runner.run(self._serve())
        self.runner.run(self._start())

    async def _serve(self) -> None:
        self.servers = [TestServer(one.app()) for one in (self.sim, self.other)]
        for server in self.servers:
            await server.start_server()

    async def _start(self) -> None:
        self.it = load("following").Following(
            [str(server.make_url("/")) for server in self.servers],
            registry=self.sim.registry,
            path=Path(self.directory.name) / "index.db",
            finality_depth=FINALITY,
            poll_interval_s=0.001,
        )
        await self.it.__aenter__()

    @rule(events=st.lists(st.integers(0, 3), min_size=1, max_size=12))
    def extend(self, events: list[int]) -> None:
        for count in events:
            self.sim.publish(count)

    @rule(depth=st.integers(1, FINALITY), events=st.integers(0, 3), longer=st.integers(-1, 3))
    def fork(self, depth: int, events: int, longer: int) -> None:
        top = len(self.sim.blocks) - 1
        depth = min(depth, top - max(self.settled, top - FINALITY))
        if depth > 0:
            self.sim.reorg(depth, events)
            self.sim.mine(max(longer, 0))

    def _seen(self) -> None:
        self.settled = max(self.settled, len(self.sim.blocks) - 1 - FINALITY)

    @rule(reports=st.integers(1, 3))
    def advance(self, reports: int) -> None:
        self._seen()
        enough = len(self.it.reports) + reports
        self.runner.run(self.it.until(lambda: len(self.it.reports) >= enough))

    @rule()
    def crash(self) -> None:
        self._seen()
        self.runner.run(self.it.__aexit__())
        self.runner.run(self._start())

    @rule(
        what=st.sampled_from(["orphaned", "stateless", "behind", *BENDS]),
        which=st.booleans(),
    )
    def misbehave(self, what: str, which: bool) -> None:
        sim = self.other if which else self.sim
        if what == "orphaned":
            sim.refuse_once("eth_getLogs", -32000, "unknown block")
        elif what == "stateless":
            sim.refuse_once("eth_call", -32000, "missing trie node")
        elif what == "behind":
            sim.visible = max(0, len(sim.blocks) - 6)
        else:
            sim.once("eth_getLogs", BENDS[what])

    @rule(which=st.booleans(), more=st.integers(1, 4))
    def lie(self, which: bool, more: int) -> None:
        """One endpoint rewrites what is final: the other is followed, and nothing is undone."""
        self.extend([1] * (FINALITY + 2))
        self.settle()
        liar, honest = (self.sim, self.other) if which else (self.other, self.sim)
        truth = honest.blocks
        liar.blocks = list(truth)
        liar.reorg(FINALITY + 2, events=3)
        honest.mine(more)
        undone = sum(progress.undone for progress in self.it.reports)
        self.runner.run(self.it.reach(honest.head.hash))
        assert sum(progress.undone for progress in self.it.reports) == undone
        liar.blocks = truth
        self.settle()

    @rule(alone=st.booleans(), events=st.integers(0, 3))
    def rewrite(self, alone: bool, events: int) -> None:
        """What is final is rewritten: two endpoints are believed, at one's word the walk stalls."""
        self.extend([1] * (FINALITY + 2))
        self.settle()
        stored, truth = self.it.logs, list(self.sim.blocks)
        if alone:
            self.other.visible = len(truth) - FINALITY - 4  # it has no such block yet
        self.sim.reorg(FINALITY + 2, events)
        if alone:
            before = len(self.it.troubles)
            self.runner.run(self.it.until(lambda: self._stalled(before)))
            assert self.it.logs == stored
            self.sim.blocks[:] = truth
        self.settled = 0
        self.settle()

    def _stalled(self, before: int) -> bool:
        return any(trouble.code == Code.STALLED for trouble in self.it.troubles[before:])

    @rule()
    def settle(self) -> None:
        """The invariant: whatever happened, the rows are those of the canonical chain alone."""
        self.sim.visible = self.other.visible = None
        self.runner.run(self.it.reach(self.sim.head.hash))
        self._seen()
        assert self.it.logs == self.sim.logs
        assert self.it.store.cursor().log_head == self.sim.head.log_head

    def teardown(self) -> None:
        if not hasattr(self, "it"):
            return
        self.settle()
        self.runner.run(self.it.__aexit__())
        for server in self.servers:
            self.runner.run(server.close())
        self.runner.close()
        self.directory.cleanup()


TestChain = ChainMachine.TestCase
TestChain.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
