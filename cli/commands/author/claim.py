"""`capdex claim`: own a name before anything is published under it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from capdex.uri import check_name
from cli.publish.account import account_address, fee_cap_wei, open_signer
from cli.publish.change import sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.prompt import confirm
from cli.terminal.text import safe, short
from cli.views.progress import Progress, open_registry, show_cost

if TYPE_CHECKING:
    from publisher.publish.claim import ClaimPlan


@command(
    "claim",
    examples=["capdex claim weather", "capdex claim weather --dry-run --json"],
)
@click.argument("name", metavar="NAME")
@sending_options
def claim_command(app: App, name: str, dry_run: bool) -> None:
    """Claim a name before anything is published under it.

    Publishing claims a new name by itself; this is for one whose package is not ready. Where
    the registry asks for it, the name is reserved first and claimed a minute later, so that
    nobody can copy the claim. Safe to stop and to run again: nothing is paid twice.
    """
    app.run(_claim(app, check_name(name), dry_run=dry_run))


async def _claim(app: App, name: str, *, dry_run: bool) -> None:
    from publisher.publish.claim import carry_out_claim, plan_claim

    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    sender = await account_address(app)
    where = f"on {safe(network.name)} ({network.chain}) as {short(sender)}"
    app.output.say(f"  claim {app.output.err.style(name, bold=True)}   {where}")
    async with open_registry(app) as registry:
        plan = await plan_claim(
            name,
            registry=registry,
            sender=sender,
            open_signer=partial(open_signer, app),
            fee_cap_wei=fee_cap_wei(app),
        )
        _show(app, plan)
        value = _value(name, plan, sender) | {"dry_run": dry_run}
        if dry_run or plan.claim.already:
            if not plan.claim.already:
                app.output.step("plan", "dry run", "would claim; nothing was sent")
            value |= _unsigned(plan)
        else:
            if plan.transactions:
                confirm(app, f"  Claim {name}?")
            progress = Progress(app, "claimed")
            async with progress.interruptible():
                outcome = await carry_out_claim(
                    plan,
                    registry=registry,
                    signer=await open_signer(app),
                    on_step=progress,
                )
            value |= outcome.to_json() | {"commitment": None, "transaction": None}
    app.output.result("claim", value, human=lambda: [name], plain=[name])


def _show(app: App, plan: ClaimPlan) -> None:
    wanted = plan.claim.change
    if plan.claim.already:
        app.output.step("ok", "unchanged", wanted.already)
    elif plan.claim.resumes is not None:
        app.output.step(
            "plan", "resumed", f"it was sent before, in tx {plan.claim.resumes.tx_hash}"
        )
    else:
        for words in wanted.effects:
            app.output.say(f"    {'effect'.ljust(11)} {words}")
        show_cost(app, plan.transactions)


def _value(name: str, plan: ClaimPlan, sender: str) -> dict[str, Any]:
    return {"name": name, "account": sender, "already": plan.claim.already}


def _unsigned(plan: ClaimPlan) -> dict[str, Any]:
    commit = next(iter(plan.commits.values()), None)
    claim = plan.claim.transaction
    return {
        "commitment": None if commit is None else commit.to_json(),
        "transaction": None if claim is None else claim.to_json(),
    }
