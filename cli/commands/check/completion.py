"""`capdex completion`: the script that lets a shell ask us for words."""

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

    Commands, options and their values are completed by asking the program; the network is never
    asked.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    made = get_completion_class(shell)
    if made is None:  # the choice above holds click's own names
        raise click.BadParameter(shell)
    # Not made.source(): for bash that starts a shell to learn its version.
    script = made(root, {}, "capdex", "_CAPDEX_COMPLETE")
    app.output.out.write((script.source_template % script.source_vars()).rstrip())
