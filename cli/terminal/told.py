"""What a person is told once, before the first thing that cannot be taken back."""

from __future__ import annotations

from contextlib import suppress

from cli.config.directories import places
from cli.terminal.app import App

PUBLIC = "names, reasons and addresses on a chain are public for ever: nobody can delete them"


def tell_public(app: App) -> None:
    """Say what stays public, unless this person has sent something already."""
    if not (places().state / "told-public").exists():
        app.output.say(f"    {'note'.ljust(11)} {PUBLIC}")


def remember_told() -> None:
    """Remember that a person agreed after being told; forgetting it only repeats the words."""
    with suppress(OSError):
        places().state.mkdir(parents=True, exist_ok=True)
        (places().state / "told-public").touch()
