"""`capdex transfer` and `renounce`: give a name to another account, or up for good (P12)."""

from __future__ import annotations

import click

from cli.publish.change import NAME, change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import Group, command


@command(
    "offer", examples=["capdex transfer offer weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"]
)
@NAME
@click.argument("recipient", metavar="ADDRESS")
@sending_options
def offer_command(app: App, name: str, recipient: str, dry_run: bool) -> None:
    """Offer a name to another account.

    Nothing changes until that account accepts. An offer made before is replaced.
    """
    from publisher.registry.ownership import offer_transfer, parse_account

    to = parse_account(recipient)
    change(app, lambda registry: offer_transfer(registry, name, to), dry_run=dry_run)


@command("accept", examples=["capdex transfer accept weather"])
@NAME
@sending_options
def accept_command(app: App, name: str, dry_run: bool) -> None:
    """Accept a name that is offered to you.

    It is then yours alone: the maintainers that its former owner added are removed.
    """
    from publisher.registry.ownership import accept_transfer

    change(app, lambda registry: accept_transfer(registry, name), dry_run=dry_run)


@command("cancel", examples=["capdex transfer cancel weather"])
@NAME
@sending_options
def cancel_command(app: App, name: str, dry_run: bool) -> None:
    """Take an offer back before it is accepted."""
    from publisher.registry.ownership import cancel_transfer

    change(app, lambda registry: cancel_transfer(registry, name), dry_run=dry_run)


transfer_command = Group(
    "transfer",
    commands=[offer_command, accept_command, cancel_command],
    help="Give a name to another account: offer it, and let that account accept.",
    examples=[
        "capdex transfer offer weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "capdex transfer accept weather",
    ],
)


@command("renounce", examples=["capdex renounce weather"])
@NAME
@sending_options
def renounce_command(app: App, name: str, dry_run: bool) -> None:
    """Give a name up for good.

    Its releases stay. No account, yours included, can publish under it, change it or claim it.
    """
    from publisher.registry.ownership import renounce

    change(app, lambda registry: renounce(registry, name), dry_run=dry_run)
