"""`capdex maintainer`: the accounts that may publish a name's releases beside its owner (P12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.publish.change import NAME, change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import Group, command
from cli.views.progress import open_registry

if TYPE_CHECKING:
    from capdex.registry.state import NameState

ACCOUNT = click.argument("account", metavar="ADDRESS")


@command(
    "add", examples=["capdex maintainer add weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"]
)
@NAME
@ACCOUNT
@sending_options
def add_command(app: App, name: str, account: str, dry_run: bool) -> None:
    """Let another account publish releases of a name.

    It may yank and deprecate them, too. It cannot give the name away or add maintainers.
    """
    from publisher.registry.ownership import add_maintainer, parse_account

    who = parse_account(account)
    change(app, lambda registry: add_maintainer(registry, name, who), dry_run=dry_run)


@command(
    "remove",
    examples=["capdex maintainer remove weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"],
)
@NAME
@ACCOUNT
@sending_options
def remove_command(app: App, name: str, account: str, dry_run: bool) -> None:
    """Take that permission back.

    The owner may remove anyone, and a maintainer itself. What it published stays.
    """
    from publisher.registry.ownership import parse_account, remove_maintainer

    who = parse_account(account)
    change(app, lambda registry: remove_maintainer(registry, name, who), dry_run=dry_run)


@command(
    "list", examples=["capdex maintainer list weather", "capdex maintainer list weather --plain"]
)
@NAME
def list_command(app: App, name: str) -> None:
    """List the maintainers of a name."""
    state = app.run(_read_name(app, name))
    found = sorted(state.maintainers)
    app.output.results(
        "maintainer",
        [{"name": name, "account": x} for x in found],
        human=lambda: found or ["no maintainers beside the owner"],
        plain=found,
        name=name,
        owner=state.owner,
    )


async def _read_name(app: App, name: str) -> NameState:
    from publisher.registry.audit import name_on_chain

    async with open_registry(app) as registry:
        return (await name_on_chain(registry, name, need_history=True)).state


maintainer_command = Group(
    "maintainer",
    commands=[add_command, remove_command, list_command],
    help="Say who may publish a name's releases beside its owner.",
    examples=[
        "capdex maintainer add weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "capdex maintainer list weather",
    ],
)
