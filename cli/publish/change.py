"""What every command that sends one transaction does: plan, say, ask, send, wait, result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capdex.uri import CapabilityURI, check_name
from cli.publish.account import account_address, fee_cap_wei, open_signer, spending_options
from cli.terminal.app import App
from cli.terminal.prompt import confirm
from cli.terminal.text import safe, short
from cli.views.progress import Progress, open_registry, show_cost

if TYPE_CHECKING:
    from publisher.registry.change import Change, ChangePlan
    from publisher.registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])


def _checked(ctx: click.Context, _: click.Parameter, name: str) -> str:
    return name if ctx.resilient_parsing else check_name(name)


RELEASE = click.argument("release", metavar="NAME@VERSION")
NAME = click.argument("name", metavar="NAME", callback=_checked)


def sending_options(function: F) -> F:
    """--dry-run and the account's options."""
    option = click.option(
        "--dry-run", is_flag=True, help="Check and show the transaction; send none."
    )
    return option(spending_options(function))


def exact(text: str) -> tuple[str, str]:
    """The name and the version of a release as typed; raises InvalidInput."""
    uri = CapabilityURI.loose(text)
    return uri.name, str(uri.version)


def change(
    app: App, make: Callable[[Registry], Change], *, dry_run: bool, on_node: bool = True
) -> None:
    """Bring about what `make(registry)` is; `on_node`: the node shows it, so wait for that."""
    app.run(_change(app, make, dry_run=dry_run, on_node=on_node))


async def _change(
    app: App, make: Callable[[Registry], Change], *, dry_run: bool, on_node: bool
) -> None:
    from publisher.registry.change import carry_out_change, plan_change

    app.settings.need_network("rpc_url", "chain_id", "registry")
    sender = await account_address(app)
    async with open_registry(app) as registry:
        wanted = make(registry)
        plan = await plan_change(wanted, sender=sender, fee_cap_wei=fee_cap_wei(app))
        _show(app, plan)
        value = _value(plan) | {"dry_run": dry_run}
        if dry_run or plan.already:
            if not plan.already:
                app.output.step("plan", "dry run", f"would {wanted.verb}; nothing was sent")
            priced = plan.transaction
            value |= {"transaction": None if priced is None else priced.to_json()}
        else:
            _ask(app, plan)
            signer = await open_signer(app)
            progress = Progress(app, "mined")
            async with progress.interruptible():
                outcome = await carry_out_change(
                    plan,
                    signer=signer,
                    indexed=_node(app) if on_node else None,
                    on_step=progress,
                )
            if outcome.already:
                app.output.step("ok", "unchanged", wanted.already)
            value |= outcome.to_json() | {"transaction": None}
    app.output.result("change", value, human=lambda: [safe(wanted.subject)], plain=[wanted.subject])


def _show(app: App, plan: ChangePlan) -> None:
    network, wanted = app.settings.need_network(), plan.change
    where = f"on {safe(network.name)} ({network.chain}) as {short(plan.sender)}"
    app.output.say(f"  {safe(wanted.summary)}   {where}")
    if plan.already:
        app.output.step("ok", "unchanged", wanted.already)
    elif plan.resumes is not None:
        app.output.step("plan", "resumed", f"it was sent before, in tx {plan.resumes.tx_hash}")
    elif plan.transaction is not None:
        for words in wanted.effects:
            app.output.say(f"    {'effect'.ljust(11)} {words}")
        show_cost(app, plan.transaction)


def _ask(app: App, plan: ChangePlan) -> None:
    """Nobody is asked again about what was sent already."""
    if plan.transaction is None:
        return
    wanted = plan.change
    question = f"  {safe(wanted.summary[:1].upper() + wanted.summary[1:])}?"
    confirm(app, question, typed=wanted.typed_back)


def _value(plan: ChangePlan) -> dict[str, Any]:
    wanted = plan.change
    uri = CapabilityURI.loose(wanted.subject)
    return {
        "action": wanted.verb,
        "name": uri.name,
        "semver": None if uri.selector is None else str(uri.version),
        "target": wanted.target or None,
        "account": plan.sender,
        "already": plan.already,
    }


def _node(app: App) -> Callable[[int], Awaitable[bool]] | None:
    """Asks the configured node whether it knows a block; None without a node."""
    network = app.settings.network
    return partial(_indexed, network.node_url) if network and network.node_url else None


async def _indexed(node_url: str, block: int) -> bool:
    from capdex.net.node_client import indexed_block

    known = await indexed_block(node_url)
    return known is not None and known >= block
