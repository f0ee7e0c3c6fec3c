"""`capdex unyank`: take a yank back."""

from __future__ import annotations

from cli.publish.change import RELEASE, change, exact, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command


@command("unyank", examples=["capdex unyank weather@1.3.0"])
@RELEASE
@sending_options
def unyank_command(app: App, release: str, dry_run: bool) -> None:
    """Put a yanked release back."""
    from publisher.registry.lifecycle import unyank

    name, semver = exact(release)
    change(app, lambda registry: unyank(registry, name, semver), dry_run=dry_run)
