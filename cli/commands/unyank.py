"""`capdex unyank`: take a yank back."""

from __future__ import annotations

from pathlib import Path

from cli.app import App
from cli.commands.yank import DRY_RUN, URI, change
from cli.consent import account_options
from cli.house import command


@command("unyank", examples=["capdex unyank weather@1.3.0"])
@URI
@DRY_RUN
@account_options
def unyank_command(
    app: App,
    uri: str,
    dry_run: bool,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    """Put a yanked release back."""
    change(app, uri, None, dry_run, keystore, passphrase_fd, passphrase_file)
