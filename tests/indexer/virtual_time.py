"""Time that passes only while all wait, so that hours of it take no longer than their work.

`Unhurried` is an endpoint that takes time, and runs a coroutine that asks it.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any

import orjson
import pytest

from capdex.net.connection import CONNECT_S
from capdex.net.http import READ_S
from capdex.net.rpc import client, failover
from capdex.net.rpc.replies import RpcReply
from capdex.net.rpc.transport import Transport, no_answer

BEGAN = 1_000.0
TICK_S = 1e-6  # what a turn of the loop takes
LATENCY_S = 0.02  # of a call

Calls = list[dict[str, Any]]


class _Selector(selectors.DefaultSelector):
    now = BEGAN

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        self.now += TICK_S if ready or not timeout else timeout + TICK_S
        return ready


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop whose time is virtual; what others run in a thread, it runs at once."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - of the thread
            done.set_exception(error)
        return done


class Unhurried(Transport):
    """An endpoint in front of a simulated chain that answers after `takes_s` of the calls.

    It answers what `refuses` returns instead of the chain's reply, unless that is None; `late` are
    the requests that it had no time to answer.
    """

    def __init__(self, sim: Any) -> None:
        self.sim = sim
        self.takes_s: Callable[[Calls], float] = lambda calls: 0.0
        self.refuses: Callable[[Calls], tuple[int, bytes] | None] = lambda calls: None
        self.requests: list[Calls] = []
        self.late: list[Calls] = []

    def run(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `main` in virtual time, with the same random pauses each time."""
        random.seed(1)
        with (
            asyncio.Runner(loop_factory=VirtualTime) as runner,
            pytest.MonkeyPatch.context() as patch,
        ):
            for module in (client, failover):
                patch.setattr(module, "clock", runner.get_loop().time)
            runner.run(main())

    @property
    def now(self) -> float:
        """The virtual time, from 0 on."""
        return asyncio.get_running_loop().time() - BEGAN

    async def post(self, url: str, label: str, body: bytes) -> RpcReply:
        asked = orjson.loads(body)
        calls = asked if isinstance(asked, list) else [asked]
        self.requests.append(calls)
        wait_s = LATENCY_S + self.takes_s(calls)
        await asyncio.sleep(min(wait_s, CONNECT_S + READ_S))
        if wait_s >= CONNECT_S + READ_S:
            self.late.append(calls)
            raise no_answer(label)
        status, reply = self.refuses(calls) or self.sim.answer(body)
        return RpcReply(status, None, reply)

    def is_wide(self, calls: Calls) -> bool:
        """Whether a request is for the logs of more blocks than the chain's `max_blocks`."""
        return any(map(self.sim.is_wide, calls))

    async def close(self) -> None:
        pass
