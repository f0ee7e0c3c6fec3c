"""`capdex version` and `completion`: versions in use, and the script for a shell."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Final

import click

import capdex
from capdex import __version__
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command

PARTS = ("click", "aiohttp", "web3", "mcp", "sqlmodel", "ipfshttpclient", "py-multiformats")
SHELLS = ("bash", "zsh", "fish")


@command("version", examples=["capdex version", "capdex version --json"])
def version_command(app: App) -> None:
    """Print the versions in use, and the commit that this program was built from.

    A program that runs from sources in git says their commit, with -dirty if files were changed.
    """
    from capdex_cli.config.settings import REGISTRY, VOTES

    parts = {}
    for part in PARTS:
        try:
            parts[part] = version(part)
        except PackageNotFoundError:
            parts[part] = "not installed"
    value = {
        "version": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "parts": parts,
        "contracts": {"CapabilityRegistry": REGISTRY, "CapabilityVotes": VOTES},
    }
    shown = {"commit": value["commit"] or "unknown", "Python": value["python"], **parts}
    human = [f"capdex {__version__}", *(f"  {name} {text}" for name, text in shown.items())]
    app.output.result("version", value, human=human, plain=[__version__])


def commit() -> str | None:
    """Return the commit of this program: what its wheel says, else what git says of its sources.

    None where it was built from files that had neither history nor the file `COMMIT`.
    """
    written = distribution("capdex").read_text("extra_metadata/COMMIT")
    root = Path(capdex.__file__).parents[1]
    if written or not (root / ".git").exists():
        return written and written.strip()
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(describe, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


# What the scripts of click do not do for names such as did:nuwa:cap:weather@1.0.0.
_CORRECTIONS: Final = (
    # That of fish cuts a description at its first comma.
    ('string split ","', 'string split -m 1 ","'),
    # Bash divides a word at : and @, and replaces what follows the last of them alone.
    (
        "    local response\n",
        """    local response words= count=-1 word line=${COMP_LINE:0:COMP_POINT}

    for word in "${COMP_WORDS[@]:0:COMP_CWORD + 1}"; do
        if [[ $count -lt 0 || $line == [[:space:]]* ]]; then
            words+=$'\\n'
            ((count += 1))
        fi
        words+=$word
        line=${line#*"$word"}
    done
    word=${words##*$'\\n'}
""",
    ),
    ('"${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD', '"$words" COMP_CWORD=$count'),
    ("COMPREPLY+=($value)", 'COMPREPLY+=("${value#"${word%"$2"}"}")'),
)


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
    text = script.source_template % script.source_vars()
    for old, new in _CORRECTIONS:
        text = text.replace(old, new)
    app.output.out.write(text.rstrip())
