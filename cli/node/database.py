"""The database of a node on this machine, for whatever tells or asks it something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cli.config.directories import user_directories
from cli.terminal.app import App

F = TypeVar("F", bound=Callable[..., Any])


def database_option(function: F) -> F:
    """`--db URL`: given to the command, to `capdex node` before it, or by CAPDEX_DB."""
    return click.option(
        "--db",
        metavar="URL",
        envvar="CAPDEX_DB",
        show_envvar=True,
        help="The node's database.  [default: a file in the data directory]",
    )(function)


def database_url(app: App, db: str | None) -> str:
    """The database that is meant: as told, else the file of the network chosen."""
    context = click.get_current_context(silent=True)
    before = context.parent.params if context and context.parent else {}
    if db or before.get("db"):
        return str(db or before["db"])
    chain = before.get("chain_id") or app.settings.need_network("chain_id").chain
    return default_database(chain)


def default_database(chain_id: int) -> str:
    """Where `capdex node` keeps the index of a chain unless told otherwise."""
    return f"sqlite:///{user_directories().data / 'node' / str(chain_id) / 'index.db'}"
