"""`capdex renounce`: give a name up for good (P12)."""

from __future__ import annotations

from cli.publish.change import NAME, change, sending_options
from cli.terminal.app import App
from cli.terminal.click_commands import command


@command("renounce", examples=["capdex renounce weather"])
@NAME
@sending_options
def renounce_command(app: App, name: str, dry_run: bool) -> None:
    """Give a name up for good.

    Its releases stay. Nobody, you included, can ever publish under it, change it or claim it again.
    """
    from publisher.registry.ownership import renounce

    change(app, lambda registry: renounce(registry, name), dry_run=dry_run)
