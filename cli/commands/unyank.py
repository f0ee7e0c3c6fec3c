"""`capdex unyank`: take a yank back."""

from __future__ import annotations

from cli.app import App
from cli.commands.yank import DRY_RUN, URI, change
from cli.house import command
from cli.wallet import account_options


@command("unyank", examples=["capdex unyank weather@1.3.0"])
@URI
@DRY_RUN
@account_options
def unyank_command(app: App, uri: str, dry_run: bool) -> None:
    """Put a yanked release back."""
    change(app, uri, None, dry_run)
