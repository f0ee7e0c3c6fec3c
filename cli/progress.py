"""The visible list of steps of whatever sends a transaction, and the node it waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from cli.app import App
from cli.places import places
from cli.text import short, size

if TYPE_CHECKING:
    from publisher.outcome import Step
    from publisher.registry import Registry
    from publisher.transaction import Transaction


class Progress:
    """Shows each step when it is done, and knows what was sent if a person interrupts."""

    def __init__(self, app: App, done: str) -> None:
        self._output = app.output
        self._done = done
        self.sent: str | None = None

    def __call__(self, step: Step) -> None:
        """Show one step."""
        from publisher.outcome import Served, Uploaded
        from publisher.registry import Receipt
        from publisher.transaction import Sent, ether

        show = self._output.step
        if isinstance(step, Uploaded):
            show("ok", "uploaded", f"{step.cid}   {size(step.size_bytes)}, read back and verified")
        elif isinstance(step, Sent):
            self.sent = step.tx_hash
            self._output.detail(f"    sent        {step.tx_hash}, nonce {step.nonce}")
        elif isinstance(step, Receipt):
            place = f"block {step.block_number}, tx {short(step.tx_hash)}"
            show("ok", self._done, f"{place}, cost {ether(step.fee_wei)}")
        elif isinstance(step, Served):
            if step.after_s is None:
                show("warn", "not served", "your node does not answer with it yet; it is on chain")
            else:
                show("ok", "served", f"your node answers with it after {step.after_s:.1f} s")

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[None]:
        """On Ctrl-C say what was sent, and that the same command goes on from there."""
        import asyncio

        try:
            yield
        except asyncio.CancelledError:
            sent = f"transaction {self.sent} was sent" if self.sent else "no transaction was sent"
            self._output.say(f"\n  stopped: {sent}; the same command goes on from here")
            raise


@asynccontextmanager
async def open_registry(app: App) -> AsyncIterator[Registry]:
    """The registry of the chosen network."""
    from publisher.registry import Registry

    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    async with Registry.connect(
        network.rpc_url,
        network.registry,
        network.chain,
        state_dir=places().state,
        start_block=network.start_block,
    ) as registry:
        yield registry


def show_cost(app: App, transaction: Transaction, note: str = "") -> None:
    """What a transaction will cost, at most, before anybody agrees to it."""
    from publisher.transaction import ether

    about, most = ether(transaction.expected_fee_wei), ether(transaction.max_fee_wei)
    words = f"about {about}, at most {most} (cap {ether(app.settings.fee_cap_wei)})"
    app.output.say(f"    {'cost'.ljust(11)} {words}{note}")


def until_served(app: App, sha256: str) -> Callable[[str], Awaitable[bool]] | None:
    """Asks the configured node whether it answers with these bytes; None without a node."""
    network = app.settings.network
    if network is None or not network.mcp_url:
        return None
    # The MCP client takes half a second to import: let that pass while the block is awaited.
    Thread(target=import_module, args=["mcp"], daemon=True).start()

    async def served(cap_uri: str) -> bool:
        from capdex.net.node import serves

        return await serves(network.mcp_url, cap_uri, sha256)

    return served
