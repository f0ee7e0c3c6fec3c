"""Run the commands that send one transaction: plan, show, ask, send, wait, print the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from capdex.uri import PREFIX, CapabilityURI, check_name
from capdex_cli.publish.account import fee_cap_wei, open_signer, spending_options, unlock
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import together
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.text import safe, short
from capdex_cli.views.progress import Progress, open_registry, show_cost

if TYPE_CHECKING:
    from capdex_publisher.progress import Step
    from capdex_publisher.registry.change import Changed, ChangePlan, RegistryChange
    from capdex_publisher.registry.registry import Registry


def _checked(ctx: click.Context, _: click.Parameter, name: str) -> str:
    return name if ctx.resilient_parsing else check_name(name.removeprefix(PREFIX))


NAME = click.argument("name", metavar="NAME", callback=_checked)


sending_options = together(
    click.option("--dry-run", is_flag=True, help="Check and show the transaction; send none."),
    spending_options,
)


def makes_change(make: Callable[..., RegistryChange]) -> Callable[..., Awaitable[None]]:
    """Make a command of a function `(registry, …)`: add the options, and send its change."""

    @wraps(make)
    async def run(app: App, dry_run: bool, **typed: object) -> None:
        await change(app, partial(make, **typed), dry_run=dry_run)

    return sending_options(run)


async def change(
    app: App, make: Callable[[Registry], RegistryChange], *, dry_run: bool, on_node: bool = True
) -> None:
    """Make the change `make(registry)`; `on_node`: wait until the node has indexed its block."""
    from capdex_publisher.registry.change import make_change

    async with open_registry(app) as registry:
        wanted = make(registry)
        progress = ChangeProgress(app, "mined", dry_run=dry_run)
        async with progress.interruptible():
            done = await make_change(
                wanted,
                signer=await open_signer(app),
                fee_cap_wei=fee_cap_wei(app),
                dry_run=dry_run,
                confirm=progress.confirm,
                indexed=_indexed(app) if on_node else None,
                on_step=progress,
            )
    uri = CapabilityURI.loose(wanted.subject)
    value = {
        "action": wanted.verb,
        "name": uri.name,
        "semver": None if uri.selector is None else str(uri.version),
        "target": wanted.target or None,
        "account": progress.plan.sender,
        **progress.value(done),
    }
    app.output.result("change", value, human=[safe(wanted.subject)], plain=[wanted.subject])


class ChangeProgress(Progress):
    """Shows the plan of a change and each step, and asks a person to agree."""

    plan: ChangePlan

    @override
    def __call__(self, step: ChangePlan | Step) -> None:
        """Show one step."""
        from capdex_publisher.registry.change import ChangePlan

        if isinstance(step, ChangePlan):
            self.plan = step
            self._show_plan(step)
        else:
            super().__call__(step)

    async def confirm(self, plan: ChangePlan) -> bool:
        """Ask a person to agree; open the account's key while no other process waits for it."""
        summary = plan.change.summary
        question = f"  {safe(summary[:1].upper() + summary[1:])}?"
        confirm(self._app, question, typed=plan.change.typed_back)
        unlock(self._app)
        return True

    def value(self, done: Changed) -> dict[str, Any]:
        """Return the result as JSON, and show that nothing had to be sent."""
        transaction = self.plan.transaction
        if self._dry_run or self.plan.already:
            sent = None if transaction is None else transaction.to_json()
            return {"already": done.already, "dry_run": self._dry_run, "transaction": sent}
        if done.already:
            self._step("ok", "unchanged", self.plan.change.already)
        return asdict(done) | {"dry_run": False, "transaction": None}

    def _show_plan(self, plan: ChangePlan) -> None:
        network, wanted = self._app.settings.need_network(), plan.change
        where = f"on {safe(network.name)} ({network.chain}) as {short(plan.sender)}"
        self._output.say(f"  {safe(wanted.summary)}   {where}")
        if plan.already:
            self._step("ok", "unchanged", wanted.already)
            return
        if plan.resumes is not None:
            self._step("plan", "resumed", f"it was sent before, in tx {plan.resumes.tx_hash}")
        else:
            for words in wanted.effects:
                self._output.say(f"    {'effect'.ljust(11)} {words}")
            show_cost(self._app, plan.transactions, fee_cap_wei(self._app))
        if self._dry_run:
            self._step("plan", "dry run", f"would {wanted.verb}; nothing was sent")


def _indexed(app: App) -> Callable[[int], Awaitable[bool]] | None:
    """Return a check of whether the configured node has indexed a block; None without a node."""
    network = app.settings.network
    if network is None or not network.node_url:
        return None

    async def indexed(block: int) -> bool:
        from capdex.net.node_client import indexed_block

        known = await indexed_block(network.node_url)
        return known is not None and known >= block

    return indexed
