"""`capdex yank` and `unyank`: flags of a release; nothing is ever deleted (P11)."""

from __future__ import annotations

import click

from capdex.uri import CapabilityURI
from cli.app import App
from cli.consent import confirm
from cli.house import command
from cli.progress import Progress, open_registry, show_cost, until_flagged
from cli.text import safe, short
from cli.wallet import account_address, account_options, fee_cap_wei, open_signer

DRY_RUN = click.option("--dry-run", is_flag=True, help="Check and show the transaction; send none.")
URI = click.argument("uri", metavar="NAME@VERSION")


@command("yank", examples=["capdex yank weather@1.3.0 --reason 'wrong unit in forecasts'"])
@URI
@click.option("--reason", default="", help="Why; everybody who asks for this version sees it.")
@DRY_RUN
@account_options
def yank_command(
    app: App,
    uri: str,
    reason: str,
    dry_run: bool,
) -> None:
    """Take a release out of search and latest.

    Whoever asks for exactly this version still finds it, with a warning. Can be taken back.
    """
    change(app, uri, reason, dry_run)


def change(
    app: App,
    uri: str,
    reason: str | None,
    dry_run: bool,
) -> None:
    """Yank (with a reason) or unyank (None): plan, yes, send, wait."""
    app.run(_change(app, uri, reason, dry_run))


async def _change(
    app: App,
    uri: str,
    reason: str | None,
    dry_run: bool,
) -> None:
    from publisher.yank import carry_out_yank, plan_unyank, plan_yank

    parsed = CapabilityURI.loose(uri)
    verb, name, semver = "unyank" if reason is None else "yank", parsed.name, str(parsed.version)
    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    sender = await account_address(app)
    cap = fee_cap_wei(app)
    async with open_registry(app) as registry:
        if reason is None:
            plan = await plan_unyank(
                name, semver, registry=registry, sender=sender, fee_cap_wei=cap
            )
        else:
            plan = await plan_yank(
                name, semver, reason, registry=registry, sender=sender, fee_cap_wei=cap
            )
        said = f"{verb} {parsed}"
        app.output.say(f"  {said}   on {safe(network.name)} ({network.chain}) as {short(sender)}")
        value = {"action": verb, "cap_uri": str(parsed), "already": plan.already}
        if plan.transaction is not None:
            show_cost(app, plan.transaction)
        if plan.already:
            app.output.step("ok", "unchanged", f"it is {'' if plan.yank else 'not '}yanked already")
        if dry_run or plan.already:
            if dry_run and not plan.already:
                app.output.step("plan", "dry run", f"would {verb}; nothing was sent")
            priced = None if plan.transaction is None else plan.transaction.to_json()
            value |= {"dry_run": dry_run, "transaction": priced}
        else:
            if plan.transaction is not None:
                confirm(app, f"  {verb.capitalize()} {parsed}?")
            signer = await open_signer(app)
            progress = Progress(app, f"{verb}ed")
            async with progress.interruptible():
                outcome = await carry_out_yank(
                    plan,
                    registry=registry,
                    signer=signer,
                    served=until_flagged(app, semver, yanked=plan.yank),
                    on_step=progress,
                )
            value |= outcome.to_json() | {"dry_run": False, "transaction": None}
    app.output.result(verb, value, human=lambda: [str(parsed)], plain=[parsed])
