"""`capdex undeprecate`: take the advice against a release or a name back."""

from __future__ import annotations

import click

from capdex.uri import CapabilityURI
from cli.config.completion_cache import complete
from cli.publish.change import change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command


@command("undeprecate", examples=["capdex undeprecate weather@1.3.0", "capdex undeprecate weather"])
@click.argument("subject", metavar="NAME[@VERSION]", shell_complete=complete)
@sending_options
def undeprecate_command(app: App, subject: str, dry_run: bool) -> None:
    """Take a deprecation back."""
    from publisher.registry.lifecycle import undeprecate, undeprecate_name

    uri = CapabilityURI.loose(subject)
    if uri.selector is None:
        change(app, lambda registry: undeprecate_name(registry, uri.name), dry_run=dry_run)
    else:
        semver = str(uri.version)
        change(app, lambda registry: undeprecate(registry, uri.name, semver), dry_run=dry_run)
