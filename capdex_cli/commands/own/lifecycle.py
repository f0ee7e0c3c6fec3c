"""`capdex yank`, `unyank`, `deprecate` and `undeprecate` a release or a name (P11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capdex.errors import UsageError
from capdex.uri import CapabilityURI, check_name
from capdex_cli.config.completion_cache import complete
from capdex_cli.publish.change import change, makes_change, sending_options
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import TEXT, command
from capdex_cli.terminal.text import safe
from capdex_cli.views.progress import open_registry

if TYPE_CHECKING:
    from capdex_publisher.registry.change import RegistryChange
    from capdex_publisher.registry.registry import Registry


def _parsed(ctx: click.Context, param: click.Parameter, text: str) -> tuple[str, ...]:
    """Return the name and the version, or the name alone of a subject without one."""
    if ctx.resilient_parsing:
        return ()
    uri = CapabilityURI.loose(text)
    if uri.selector is None and param.name == "subject":
        return (uri.name,)
    return uri.name, str(uri.version)


RELEASE = click.argument(
    "release", metavar="NAME@VERSION", shell_complete=complete, callback=_parsed
)
SUBJECT = click.argument(
    "subject", metavar="NAME[@VERSION]", shell_complete=complete, callback=_parsed
)


@command("yank", examples=["capdex yank weather@1.3.0 --reason 'wrong unit in forecasts'"])
@RELEASE
@click.option("--reason", default="", type=TEXT, help="Why; it is shown with this version.")
@makes_change
def yank_command(registry: Registry, release: tuple[str, str], reason: str) -> RegistryChange:
    """Take a release out of search, latest and ranges.

    A request for exactly this version still finds it, with a warning. Can be taken back.
    """
    from capdex_publisher.registry.lifecycle import change_release

    return change_release(registry, "yank", *release, reason)


@command("unyank", examples=["capdex unyank weather@1.3.0"])
@RELEASE
@makes_change
def unyank_command(registry: Registry, release: tuple[str, str]) -> RegistryChange:
    """Put a yanked release back."""
    from capdex_publisher.registry.lifecycle import change_release

    return change_release(registry, "unyank", *release)


@command(
    "deprecate",
    examples=[
        "capdex deprecate weather@1.3.0 --message 'use 1.4.0: it knows more cities'",
        "capdex deprecate weather --message 'no longer kept up' --replaced-by forecast",
    ],
)
@SUBJECT
@click.option(
    "--message", required=True, type=TEXT,
    help="What to do instead; it is shown with the release.",
)  # fmt: skip
@click.option("--replaced-by", metavar="NAME", default="", help="The name to use instead.")
@sending_options
async def deprecate_command(
    app: App, subject: tuple[str, ...], message: str, replaced_by: str, dry_run: bool
) -> None:
    """Advise against a release, or a name with all its releases.

    It works as before, and the message is shown with it. In a search it comes after others. Can be
    taken back.
    """
    from capdex_publisher.registry.lifecycle import change_release, deprecate_name

    name, *version = subject
    if replaced_by and version:
        raise UsageError(
            "--replaced-by is for a whole name",
            fix=f"say the better version in --message, or deprecate {name}",
        )

    def make(registry: Registry) -> RegistryChange:
        if version:
            return change_release(registry, "deprecate", name, version[0], message)
        return deprecate_name(registry, name, message, replaced_by)

    if replaced_by:
        await _warn_of_unknown(app, check_name(replaced_by))
    await change(app, make, dry_run=dry_run)


async def _warn_of_unknown(app: App, name: str) -> None:
    """Warn if nobody has claimed the name that people are sent to."""
    from capdex_publisher.registry.name_history import name_view

    async with open_registry(app) as registry:
        state, _ = await name_view(registry, name)
    if state is None:
        app.output.warn(f"there is no capability {safe(name)}; whoever claims it first will own it")


@command("undeprecate", examples=["capdex undeprecate weather@1.3.0", "capdex undeprecate weather"])
@SUBJECT
@makes_change
def undeprecate_command(registry: Registry, subject: tuple[str, ...]) -> RegistryChange:
    """Take a deprecation back."""
    from capdex_publisher.registry.lifecycle import change_release, undeprecate_name

    if len(subject) == 1:
        return undeprecate_name(registry, *subject)
    return change_release(registry, "undeprecate", *subject)
