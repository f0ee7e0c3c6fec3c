"""`capdex vote`: one vote for each account and name; search does not rank by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.publish.change import NAME, change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command

if TYPE_CHECKING:
    from publisher.registry.change import Change
    from publisher.registry.registry import Registry


@command("vote", examples=["capdex vote weather up", "capdex vote weather clear"])
@NAME
@click.argument("choice", type=click.Choice(["up", "down", "clear"]))
@sending_options
def vote_command(app: App, name: str, choice: str, dry_run: bool) -> None:
    """Vote for or against a name, or take the vote back.

    Votes are public and can be changed at any time. `capdex show NAME` counts them.
    """
    from publisher.ethereum.contract import Contract
    from publisher.registry.votes import vote

    address = app.settings.need_network("votes").votes

    def make(registry: Registry) -> Change:
        votes = Contract(registry.chain, address, "CapabilityVotes")
        return vote(votes, registry, name, choice)

    change(app, make, dry_run=dry_run, on_node=False)
