"""The options of what a publisher allows although capdex would refuse it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import click

from capdex_cli.terminal.click_commands import together

if TYPE_CHECKING:
    from capdex.diff.diff import Allowance

ALLOW: Final = ("smaller-step", "widened-permission")  # the values of capdex.diff.diff.Allowance


class Allowed(TypedDict):
    """What the options of `allow_options` give."""

    allow: frozenset[Allowance]
    allow_secret_like: tuple[str, ...]


def _allowances(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> frozenset[Allowance]:
    from capdex.diff.diff import Allowance

    return frozenset(map(Allowance, values))


secret_option = click.option(
    "--allow-secret-like", multiple=True, metavar="PATH",
    help="Allow a text that looks like a secret and is none, by its path in the file.",
)  # fmt: skip
files_option = click.option(
    "--files", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="The folder of its files.  [default: NAME/ beside NAME.acp.yaml, or where that lies]",
)  # fmt: skip
allow_options = together(  # of a command that publishes
    click.option(
        "--allow", multiple=True, type=click.Choice(ALLOW), callback=_allowances,
        help="Publish although the version moves less than its changes require.",
    ),
    secret_option,
)  # fmt: skip
