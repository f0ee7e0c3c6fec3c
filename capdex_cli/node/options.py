"""Options of the commands of a node: its database, its blocks, its verdicts, its limits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
from click.decorators import FC

from capdex.problems import Verdict
from capdex_cli.config.settings import user_directories
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import DIRECTORY, NUMBER, SECONDS, together

SEMANTIC: Final = "CAPDEX_SEMANTIC"
# As in capdex_service.limits.options, which is imported only where a node starts; a test compares.
LIMITS: Final = {"max_connections": 4096, "timeout_s": 20, "keep_alive_s": 60, "rate": 200}


def environment_option(*names: str, plural: str = "", **attributes: Any) -> Callable[[FC], FC]:
    """Return an option that a variable sets, too: CAPDEX_ and its name, or `plural`.

    `plural` is the variable of an option that may be repeated: its values have spaces between them.
    """
    variable = plural or f"CAPDEX_{names[0].removeprefix('--').upper().replace('-', '_')}"
    if plural:
        attributes["multiple"] = True
    return click.option(*names, envvar=variable, show_envvar=True, **attributes)


# Typed here, typed at `capdex node` before a subcommand, or CAPDEX_DB: see `database_url`.
database_option = environment_option(
    "--db", metavar="URL", help="The node's database.  [default: a file in the data directory]"
)
blocks_option = environment_option(
    "--blocks", type=DIRECTORY,
    help="The node's verified packages.  "
    "[default: beside a SQLite file, else in the data directory]",
)  # fmt: skip
serve_signed_option = click.option(
    "--serve-signed", is_flag=True, help="Serve packages of verdict signed, too."
)
allowed_host_option = environment_option(
    "--allowed-host", plural="CAPDEX_ALLOWED_HOSTS", metavar="HOST",
    help="Accept this Host header besides loopback's.",
)  # fmt: skip
profile_option = environment_option(
    "--profile", type=click.Choice(["default", "minimal"]), default="default",
    help="Tools that MCP clients see: all, or one to search and one to get, answered in text.",
)  # fmt: skip
explorer_option = click.option(
    "--explorer/--no-explorer", envvar="CAPDEX_EXPLORER", show_envvar=True, default=True,
    help="Serve pages for people at the node's address.",
)  # fmt: skip
semantic_option = click.option(
    "--semantic/--no-semantic", envvar=SEMANTIC, show_envvar=True, default=None,
    help="Search by meaning, too.  [default: if it is installed]",
)  # fmt: skip
# Their names are those of `ClientLimits`, and None is its default.
client_limit_options = together(
    environment_option(
        "--max-connections", type=click.IntRange(1, 65536),
        default=LIMITS["max_connections"], help="Open connections.",
    ),
    environment_option(
        "--max-connections-per-client", "max_per_client", type=click.IntRange(1, 65536),
        help="Of these, from one address.  [default: an eighth]",
    ),
    environment_option(
        "--client-timeout", "timeout_s", type=SECONDS, default=LIMITS["timeout_s"], metavar="S",
        help="Seconds to send a head, to send a body, and to read an answer.",
    ),
    environment_option(
        "--keep-alive", "keep_alive_s", type=SECONDS, default=LIMITS["keep_alive_s"],
        metavar="S", help="Seconds between two requests on a connection.",
    ),
    environment_option(
        "--rate", type=NUMBER(0, 1e6), default=LIMITS["rate"], metavar="N",
        help="Requests a second of one client; 0: any.",
    ),
    environment_option("--limit-loopback", is_flag=True, help="Limit this machine's clients, too."),
    environment_option(
        "--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
        help="Believe X-Forwarded-For and -Proto of this address or network.",
    ),
    environment_option(
        "--token-file", type=click.Path(), metavar="FILE",
        help="Answer only with a bearer token of this file.",
    ),
)  # fmt: skip


def semantic_wanted(given: bool | None = None) -> bool:
    """Return True for search by meaning: as given, as CAPDEX_SEMANTIC says, or if installed."""
    from capdex.search.encoder import is_installed

    said = os.environ.get(SEMANTIC, "").strip().lower()
    if given is None and said:
        given = said not in ("0", "false", "no", "off", "n", "f")
    return is_installed() if given is None else given


def served_verdicts(serve_signed: bool) -> frozenset[Verdict]:
    """Return the verdicts a node serves: verified, and signed if its operator says so."""
    return frozenset({Verdict.VERIFIED, Verdict.SIGNED} if serve_signed else {Verdict.VERIFIED})


def database_url(app: App, db: str | None) -> str:
    """Return the URL typed, else that of a running `capdex up`, else the network's file."""
    context = click.get_current_context(silent=True)
    before = context.parent.params if context and context.parent else {}
    if db or before.get("db"):
        return str(db or before["db"])
    up = app.settings.up
    if up is not None and (db_url := json.loads(up.read_text("utf-8")).get("db_url")):
        return str(db_url)
    return default_database(before.get("chain_id") or app.settings.need_network("chain_id").chain)


def default_database(chain_id: int) -> str:
    """Return the URL of the database file that `capdex node` uses unless `--db` is given."""
    return f"sqlite:///{_node_directory(chain_id) / 'index.db'}"


def default_blocks(db: str, chain_id: int) -> Path:
    """Return the block directory of a database unless `--blocks` is given.

    It is `blocks` beside a SQLite file, if there is one, else that of the chain.
    """
    beside = Path(db.removeprefix("sqlite:///")).parent / "blocks"
    if db.startswith("sqlite:///") and beside.is_dir():
        return beside
    return _node_directory(chain_id) / "blocks"


def create_directories(db: str, blocks: Path) -> None:
    """Create the directories of a SQLite file and of the blocks."""
    with suppress(OSError):  # opening the database or the blocks then fails, with a reason
        blocks.mkdir(parents=True, exist_ok=True)
        if db.startswith("sqlite:///"):
            Path(db.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)


def _node_directory(chain_id: int) -> Path:
    return user_directories().data / "node" / str(chain_id or "reader")
