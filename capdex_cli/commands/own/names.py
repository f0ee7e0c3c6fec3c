"""`capdex transfer`, `renounce`, `maintainer` and `vote`: changes of a name (P12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capdex_cli.publish.change import NAME, change, makes_change, sending_options
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import Group, command
from capdex_cli.views.progress import open_registry

if TYPE_CHECKING:
    from capdex_publisher.registry.change import RegistryChange
    from capdex_publisher.registry.registry import Registry

OTHER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # an account for the examples


def _account(ctx: click.Context, _: click.Parameter, address: str) -> str:
    from capdex_publisher.registry.ownership import parse_account

    return address if ctx.resilient_parsing else parse_account(address)


ACCOUNT = click.argument("account", metavar="ADDRESS", callback=_account)


@command("offer", examples=[f"capdex transfer offer weather {OTHER}"])
@NAME
@ACCOUNT
@makes_change
def offer_command(registry: Registry, name: str, account: str) -> RegistryChange:
    """Offer a name to another account.

    Nothing changes until that account accepts. An offer made before is replaced.
    """
    from capdex_publisher.registry.ownership import offer_transfer

    return offer_transfer(registry, name, account)


@command("accept", examples=["capdex transfer accept weather"])
@NAME
@makes_change
def accept_command(registry: Registry, name: str) -> RegistryChange:
    """Accept a name that is offered to you.

    It is then yours alone: the maintainers that its former owner added are removed.
    """
    from capdex_publisher.registry.ownership import accept_transfer

    return accept_transfer(registry, name)


@command("cancel", examples=["capdex transfer cancel weather"])
@NAME
@makes_change
def cancel_command(registry: Registry, name: str) -> RegistryChange:
    """Take an offer back before it is accepted."""
    from capdex_publisher.registry.ownership import cancel_transfer

    return cancel_transfer(registry, name)


transfer_command = Group(
    "transfer",
    commands=[offer_command, accept_command, cancel_command],
    help="Give a name to another account: offer it, and let that account accept.",
    examples=[f"capdex transfer offer weather {OTHER}", "capdex transfer accept weather"],
)


@command("renounce", examples=["capdex renounce weather"])
@NAME
@makes_change
def renounce_command(registry: Registry, name: str) -> RegistryChange:
    """Give a name up for good.

    Its releases stay. No account, yours included, can publish under it, change it or claim it.
    """
    from capdex_publisher.registry.ownership import renounce

    return renounce(registry, name)


@command("add", examples=[f"capdex maintainer add weather {OTHER}"])
@NAME
@ACCOUNT
@makes_change
def add_command(registry: Registry, name: str, account: str) -> RegistryChange:
    """Let another account publish releases of a name.

    It may yank and deprecate them, too. It cannot give the name away or add maintainers.
    """
    from capdex_publisher.registry.ownership import add_maintainer

    return add_maintainer(registry, name, account)


@command("remove", examples=[f"capdex maintainer remove weather {OTHER}"])
@NAME
@ACCOUNT
@makes_change
def remove_command(registry: Registry, name: str, account: str) -> RegistryChange:
    """Remove a maintainer of a name.

    The owner may remove anyone, and a maintainer itself. What it published stays.
    """
    from capdex_publisher.registry.ownership import remove_maintainer

    return remove_maintainer(registry, name, account)


@command(
    "list", examples=["capdex maintainer list weather", "capdex maintainer list weather --plain"]
)
@NAME
async def list_command(app: App, name: str) -> None:
    """List the maintainers of a name."""
    from capdex_publisher.registry.audit import name_on_chain

    async with open_registry(app) as registry:
        state = (await name_on_chain(registry, name, need_history=True)).state
    plain = sorted(state.maintainers)
    values = [{"name": name, "account": x} for x in plain]
    human = plain or ["no maintainers beside the owner"]
    app.output.results("maintainer", values, human=human, plain=plain, name=name, owner=state.owner)


maintainer_command = Group(
    "maintainer",
    commands=[add_command, remove_command, list_command],
    help="Manage who else may publish under a name.",
    examples=[f"capdex maintainer add weather {OTHER}", "capdex maintainer list weather"],
)


@command("vote", examples=["capdex vote weather up", "capdex vote weather clear"])
@NAME
@click.argument("choice", type=click.Choice(["up", "down", "clear"]))
@sending_options
async def vote_command(app: App, name: str, choice: str, dry_run: bool) -> None:
    """Vote for or against a name, or take the vote back.

    Votes are public and can be changed at any time. `capdex show NAME` counts them.
    """
    from capdex_publisher.ethereum.contract import Contract
    from capdex_publisher.registry.lifecycle import vote

    address = app.settings.need_network("votes").votes

    def make(registry: Registry) -> RegistryChange:
        votes = Contract(registry.chain, address, "CapabilityVotes")
        return vote(votes, registry, name, choice)

    await change(app, make, dry_run=dry_run, on_node=False)
