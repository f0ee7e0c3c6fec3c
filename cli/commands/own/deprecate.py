"""`capdex deprecate` and `undeprecate`: advise against a release or a name, or stop that (P11)."""

from __future__ import annotations

import click

from capdex.errors import UsageError
from capdex.uri import CapabilityURI
from cli.config.completion_cache import complete
from cli.publish.change import change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command


@command(
    "deprecate",
    examples=[
        "capdex deprecate weather@1.3.0 --message 'use 1.4.0: it knows more cities'",
        "capdex deprecate weather --message 'no longer kept up' --replaced-by forecast",
    ],
)
@click.argument("subject", metavar="NAME[@VERSION]", shell_complete=complete)
@click.option("--message", required=True, help="What to do instead; it is shown with each result.")
@click.option("--replaced-by", metavar="NAME", default="", help="The name to use instead.")
@sending_options
def deprecate_command(
    app: App, subject: str, message: str, replaced_by: str, dry_run: bool
) -> None:
    """Advise against a release, or a name with all its releases.

    It is found and works as before, and the message is shown with it. Can be taken back.
    """
    from publisher.registry.lifecycle import change_release, deprecate_name

    uri = CapabilityURI.loose(subject)
    if uri.selector is None:
        change(
            app,
            lambda registry: deprecate_name(registry, uri.name, message, replaced_by),
            dry_run=dry_run,
        )
        return
    if replaced_by:
        raise UsageError(
            "--replaced-by is for a whole name",
            fix=f"say the better version in --message, or deprecate {uri.name}",
        )
    semver = str(uri.version)
    change(
        app,
        lambda registry: change_release(registry, "deprecate", uri.name, semver, message),
        dry_run=dry_run,
    )


@command("undeprecate", examples=["capdex undeprecate weather@1.3.0", "capdex undeprecate weather"])
@click.argument("subject", metavar="NAME[@VERSION]", shell_complete=complete)
@sending_options
def undeprecate_command(app: App, subject: str, dry_run: bool) -> None:
    """Take a deprecation back."""
    from publisher.registry.lifecycle import change_release, undeprecate_name

    uri = CapabilityURI.loose(subject)
    if uri.selector is None:
        change(app, lambda registry: undeprecate_name(registry, uri.name), dry_run=dry_run)
    else:
        semver = str(uri.version)
        change(
            app,
            lambda registry: change_release(registry, "undeprecate", uri.name, semver),
            dry_run=dry_run,
        )
