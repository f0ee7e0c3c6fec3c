"""`capdex completion`: the script with which a shell completes our commands."""

from __future__ import annotations

import click

from cli.terminal.app import App
from cli.terminal.click_commands import command

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    examples=[
        'eval "$(capdex completion bash)"',
        "capdex completion fish > ~/.config/fish/completions/capdex.fish",
    ],
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(app: App, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options and their values by calling capdex, without the network.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    completion = get_completion_class(shell)
    if completion is None:  # never: SHELLS are names of click
        raise click.BadParameter(shell)
    # Not script.source(): for bash that starts a shell to read its version.
    script = completion(root, {}, "capdex", "_CAPDEX_COMPLETE")
    app.output.out.write((script.source_template % script.source_vars()).rstrip())
