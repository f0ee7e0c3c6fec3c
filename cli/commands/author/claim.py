"""`capdex claim`: own a name before anything is published under it."""

from __future__ import annotations

import click

from capdex.uri import check_name
from cli.publish.account import fee_cap_wei, open_signer
from cli.publish.change import ChangeProgress, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.views.progress import open_registry


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
    the claim cannot be copied. Safe to stop and to run again: nothing is paid twice.
    """
    app.run(_claim(app, check_name(name), dry_run=dry_run))


async def _claim(app: App, name: str, *, dry_run: bool) -> None:
    from publisher.publish.claim import claim

    progress = ChangeProgress(app, "claimed", dry_run=dry_run)
    async with open_registry(app) as registry, progress.interruptible():
        done = await claim(
            name,
            registry=registry,
            signer=await open_signer(app),
            fee_cap_wei=fee_cap_wei(app),
            dry_run=dry_run,
            confirm=progress.confirm,
            on_step=progress,
        )
    plan = progress.plan
    commit = plan.commit.to_json() if dry_run and plan.commit is not None else None
    value = {"name": name, "account": plan.sender, "commitment": commit, **progress.value(done)}
    app.output.result("claim", value, human=[name], plain=[name])
