"""`capdex maintainer`: who may publish a name's releases beside its owner (P12)."""

from __future__ import annotations

import click

from cli.publish.change import NAME, change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import Group, command

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
    from publisher.registry.ownership import add_maintainer
    from publisher.registry.permission import somebody

    who = somebody(account)
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
    from publisher.registry.ownership import remove_maintainer
    from publisher.registry.permission import somebody

    who = somebody(account)
    change(app, lambda registry: remove_maintainer(registry, name, who), dry_run=dry_run)


@command(
    "list", examples=["capdex maintainer list weather", "capdex maintainer list weather --plain"]
)
@NAME
def list_command(app: App, name: str) -> None:
    """List the maintainers of a name."""
    from cli.views.name import standing_of

    standing = app.run(standing_of(app, name, all_of_it=True))
    found = standing["maintainers"]
    app.output.results(
        "maintainer",
        [{"name": name, "account": x} for x in found],
        human=lambda: found or ["nobody but the owner"],
        plain=found,
        name=name,
        owner=standing["owner"],
    )


maintainer_command = Group(
    "maintainer",
    commands=[add_command, remove_command, list_command],
    help="Say who may publish a name's releases beside its owner.",
    examples=[
        "capdex maintainer add weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "capdex maintainer list weather",
    ],
)
