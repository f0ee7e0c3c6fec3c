"""`capdex renounce`: give a name up for good (P12)."""

from __future__ import annotations

from cli.app import App
from cli.changing import NAME, change, sending_options
from cli.house import command


@command("renounce", examples=["capdex renounce weather"])
@NAME
@sending_options
def renounce_command(app: App, name: str, dry_run: bool) -> None:
    """Give a name up for good.

    Its releases stay. Nobody, you included, can ever publish under it, change it or claim it again.
    """
    from publisher.ownership import renounce

    change(app, lambda registry: renounce(registry, name), dry_run=dry_run)
