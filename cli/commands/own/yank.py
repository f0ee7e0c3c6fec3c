"""`capdex yank` and `unyank`: hide a release from new users, or show it again (P11)."""

from __future__ import annotations

import click

from cli.publish.change import RELEASE, change, exact, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command


@command("yank", examples=["capdex yank weather@1.3.0 --reason 'wrong unit in forecasts'"])
@RELEASE
@click.option("--reason", default="", help="Why; it is shown with this version.")
@sending_options
def yank_command(app: App, release: str, reason: str, dry_run: bool) -> None:
    """Take a release out of search and latest.

    A request for exactly this version still finds it, with a warning. Can be taken back.
    """
    from publisher.registry.lifecycle import change_release

    name, semver = exact(release)
    change(
        app,
        lambda registry: change_release(registry, "yank", name, semver, reason),
        dry_run=dry_run,
    )


@command("unyank", examples=["capdex unyank weather@1.3.0"])
@RELEASE
@sending_options
def unyank_command(app: App, release: str, dry_run: bool) -> None:
    """Put a yanked release back."""
    from publisher.registry.lifecycle import change_release

    name, semver = exact(release)
    change(app, lambda registry: change_release(registry, "unyank", name, semver), dry_run=dry_run)
