"""`capdex version` and `completion`: versions in use, and the script for a shell."""

from __future__ import annotations

import platform

import click

from capdex import __version__
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command

PARTS = ("click", "aiohttp", "web3", "mcp", "sqlmodel", "ipfshttpclient", "py-multiformats")
SHELLS = ("bash", "zsh", "fish")


@command("version", examples=["capdex version", "capdex version --json"])
def version_command(app: App) -> None:
    """Print the versions in use."""
    from importlib.metadata import PackageNotFoundError, version

    from capdex_cli.config.settings import REGISTRY, VOTES

    parts = {}
    for part in PARTS:
        try:
            parts[part] = version(part)
        except PackageNotFoundError:
            parts[part] = "missing"
    value = {
        "version": __version__,
        "python": platform.python_version(),
        "parts": parts,
        "contracts": {"CapabilityRegistry": REGISTRY, "CapabilityVotes": VOTES},
    }
    shown = {"Python": value["python"], **parts}
    human = [f"capdex {__version__}", *(f"  {name} {found}" for name, found in shown.items())]
    app.output.result("version", value, human=human, plain=[__version__])


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
