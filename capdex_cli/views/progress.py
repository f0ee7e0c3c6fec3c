"""The visible list of steps of whatever sends a transaction, and the node it waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from capdex.errors import Code, Unavailable
from capdex_cli.config.settings import user_directories
from capdex_cli.terminal.app import App
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import grouped, number_of, safe, short, size
from capdex_publisher.ethereum.transaction import (
    Leaving,
    Reverted,
    Sent,
    Shallow,
    Transaction,
    ether,
)

if TYPE_CHECKING:
    from capdex_publisher.progress import Reserving, Served, Step, Uploaded
    from capdex_publisher.registry.registry import Registry

PUBLIC_NOTE: Final = "names, reasons and addresses on a chain are public and cannot be deleted"


class Progress:
    """Shows each step when it is done, and knows what was sent if a person interrupts.

    Of several packages (`_total`) uploads and answers of the node are counted, and said once.
    """

    def __init__(self, app: App, done: str, *, dry_run: bool) -> None:
        self._app, self._output = app, app.output
        self._done = done
        self._dry_run = dry_run
        self._total = 1
        self._status = StatusLine(app.output)
        self._uploads: list[Uploaded] = []
        self._served: list[Served] = []
        self._waits = False
        self._sent = "no transaction was sent"

    def __call__(self, step: Step) -> None:
        """Show one step."""
        from capdex_publisher.ethereum.contract import Receipt
        from capdex_publisher.progress import FilesUploaded, Reserved, Reserving, Served, Uploaded

        if not isinstance(step, Uploaded):
            self._say_uploaded()
        match step:
            case FilesUploaded():
                words = f"{number_of(step.count, 'file')}   {size(step.size_bytes)} in "
                words += f"{step.seconds:.1f} s, read back and verified from {safe(step.source)}"
                of = f"{safe(step.cap_uri)}   " if self._total > 1 else ""
                self._step("ok", "files", of + words)
            case Uploaded():
                self._uploads.append(step)
                self._status.show(f"uploading {len(self._uploads)} of {self._total}")
                if len(self._uploads) == self._total:
                    self._say_uploaded()
            case Reserving():
                self._wait_for_names(step)
            case Reserved(name, mined):
                place = f"block {mined.block_number}, tx {short(mined.tx_hash)}"
                words = f"{safe(name)} (1 of 2)   {place}, cost {ether(mined.fee_wei)}"
                self._step("ok", "reserved", words)
            case Leaving(tx_hash):
                self._sent = f"transaction {tx_hash} may have been sent"
            case Sent():
                self._say_sent(step)
            case Reverted(tx_hash, fee_wei):
                words = f"tx {short(tx_hash)} was refused, cost {ether(fee_wei)}"
                self._step("warn", "no change", words)
            case Shallow():
                self._status.show(shallow(step))
            case Receipt():
                place = f"block {step.block_number}, tx {short(step.tx_hash)}"
                many = f", {len(step.events)} releases" if len(step.events) > 1 else ""
                self._step("ok", self._done, f"{place}{many}, cost {ether(step.fee_wei)}")
            case Served():
                self._served.append(step)
                served = sum(x.after_s is not None for x in self._served)
                self._status.show(f"served {served} of {self._total}")
                if len(self._served) == self._total:
                    self._say_served()

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[None]:
        """On Ctrl-C say what was sent, and that the same command goes on from there."""
        import asyncio

        try:
            yield
            self._say_uploaded()
            self._say_served()
        except asyncio.CancelledError:
            self._status.clear()
            self._output.say(f"\n  stopped: {self._sent}; the same command goes on from here")
            raise
        finally:
            self._status.clear()

    def _say_uploaded(self) -> None:
        if not self._uploads:
            return
        sources = sorted({upload.source for upload in self._uploads})
        whole = size(sum(upload.size_bytes for upload in self._uploads))
        what = self._uploads[0].cid if self._total == 1 else f"{len(self._uploads)} packages"
        back = f"read back and verified from {safe(' and '.join(sources))}"
        self._uploads = []
        self._step("ok", "uploaded", f"{what}   {whole}, {back}")

    def _wait_for_names(self, step: Reserving) -> None:
        names = safe(step.names[0]) if len(step.names) == 1 else f"{len(step.names)} names"
        self._status.show(
            f"reserving {names} (1 of 2), waiting {step.left_s} s so that nobody can copy it; "
            "safe to stop: run the same command again",
            log_now=not self._waits,
        )
        self._waits = True

    def _say_sent(self, step: Sent) -> None:
        self._sent = f"transaction {step.tx_hash} was sent"
        self._output.detail(f"    sent        {step.tx_hash}, nonce {step.nonce}")
        if step.earlier and step.transaction is not None:
            most = ether(step.transaction.max_fee_wei)
            same = step.tx_hash == step.earlier[0]
            instead = "" if same else f" instead of {short(step.earlier[0])}"
            words = f"tx {short(step.tx_hash)}{instead}, at most {most}"
            self._step("plan", "sent again", words)

    def _say_served(self) -> None:
        if not self._served:
            return
        took = [x.after_s for x in self._served if x.after_s is not None]
        missing = len(self._served) - len(took)
        self._served = []
        many = self._total > 1
        if not missing:
            it = "them all" if many else "it"
            self._step("ok", "served", f"your node answers with {it} after {max(took):.1f} s")
            return
        which = f"{missing} of {missing + len(took)} packages" if many else "it"
        are = "they are" if many else "it is"
        words = f"your node does not answer with {which} yet; {are} on chain"
        self._step("warn", "not served", words)

    def _step(self, kind: str, label: str, text: str) -> None:
        self._status.clear()
        self._output.step(kind, label, text)


def shallow(step: Shallow) -> str:
    """Return the words for a transaction that is in a block and has to wait for further ones."""
    return f"in block {step.block_number}, needs {number_of(step.missing, 'more block')}"


@asynccontextmanager
async def open_registry(app: App) -> AsyncIterator[Registry]:
    """The registry of the chosen network."""
    from capdex_publisher.registry.registry import Registry

    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    async with Registry.connect(
        network.rpc_url,
        network.registry,
        network.chain,
        state_dir=user_directories().state,
        start_block=network.start_block,
    ) as registry:
        if network.confirmations is not None:
            registry.chain.confirmations = network.confirmations
        yield registry


def show_cost(app: App, every: Sequence[Transaction], cap_wei: int, note: str = "") -> None:
    """Show the expected and the highest cost, and that a chain forgets nothing.

    The highest is the cap: what waits too long is replaced at a higher price, within the cap.
    """
    about = ether(sum(x.expected_fee_wei for x in every))
    count = f"{len(every)} transactions, " if len(every) > 1 else ""
    gas = grouped(sum(x.gas for x in every))
    words = f"{count}up to {gas} gas: now about {about}, never over {ether(cap_wei)} (--fee-cap)"
    app.output.say(f"    {'note'.ljust(11)} {PUBLIC_NOTE}")
    app.output.say(f"    {'cost'.ljust(11)} {words}{note}")


def until_served(app: App) -> Callable[[str, str], Awaitable[bool]] | None:
    """Return a check of whether the node at `node-url` serves a release; None without one.

    The check takes the capability URI and the SHA-256 (hex) that the node has to answer.
    """
    network = app.settings.network
    if network is None or not network.node_url:
        return None

    async def is_served(cap_uri: str, sha256: str) -> bool:
        from capdex.net.node_client import serves

        return await serves(network.node_url, cap_uri, sha256)

    return is_served


def not_served(app: App, late: Sequence[str], why: str) -> Unavailable:
    """Return the error for releases that are on chain and that the node does not serve in time."""
    from capdex.net.http import redact

    which = late[0] if len(late) == 1 else f"{len(late)} releases"
    return Unavailable(
        f"not served yet by {redact(app.settings.need_network().node_url)}: {which}",
        Code.NOT_SERVED,
        why=why,
        fix="it is on chain and stays there: run the same command again to wait for the node",
        details={"cap_uris": list(late)},
    )
