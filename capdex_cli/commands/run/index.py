"""`capdex index` and `mirror`: digests and search of an index, and an index as static files."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click

from capdex.errors import UsageError
from capdex.json import Json
from capdex_cli.node.options import (
    blocks_option,
    database_option,
    database_url,
    default_blocks,
)
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import DIRECTORY, Group, command
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import columns, number_of, safe
from capdex_cli.views.release import part

_MISSING = {
    "index_digest": "none before the first block",
    "content_digest": "none until every release is judged",
    "block_number": "none yet",
    "block_hash": "",
}


@command(
    "digest",
    examples=[
        "capdex index digest --db sqlite:///index.db",
        "capdex index digest --block 21000000 --json",
    ],
)
@click.option("--block", type=click.IntRange(0), metavar="N", help="An indexed block.")
@database_option
def digest_command(app: App, block: int | None, db: str | None) -> None:
    """Show the digests of an index, at its newest block or at an older one.

    Two nodes at the same block hash have the same index digest, and the same content digest once
    both have judged every release. Without a database on this machine, the node of the network
    gives the digests of its newest block.
    """
    url = database_url(app, db)
    network = app.settings.network if not db else None
    if network and network.node_url and not Path(url.removeprefix("sqlite:///")).exists():
        value = _fetch(app, network.node_url, block)
    else:
        value = _read(url, block)
    human = columns(_rows(value))
    app.output.result("index.digest", value, human=human, plain=[value["index_digest"]])


def _read(url: str, block: int | None) -> Json:
    from capdex_indexer.db.engine import reading
    from capdex_indexer.query.digest import read_digest, read_votes_digest

    with reading(url) as connection:
        digest = read_digest(connection, block)
        votes = read_votes_digest(connection, block)
    return digest.to_json() | {"votes": None if votes is None else votes.to_json()}


def _fetch(app: App, node_url: str, block: int | None) -> Json:
    from capdex.net.node_client import status

    if block is not None:
        raise UsageError(
            "a node gives only the digests of its newest block",
            why="this machine has no database of a node",
            fix="leave --block out, or name the node's database with --db",
        )
    answer = app.run(status(node_url))
    chain = answer["chain"]
    kept = ("index_digest", "content_digest", "decoder_version", "rules_version")
    return {
        "chain_id": chain.get("chain_id"),
        "contract": chain.get("registry"),
        "block_number": chain.get("block_number"),
        "block_hash": chain.get("block_hash"),
        "log_count": part(answer, "log", "count"),
        "log_head": part(answer, "log", "head"),
        **{key: answer.get(key) for key in kept},
        "votes": None,
    }


def _rows(value: Json) -> list[tuple[str, str]]:
    shown = {k: safe(_MISSING.get(k, "?") if value[k] is None else value[k]) for k in value}
    rows = [
        ("index digest", shown["index_digest"]),
        ("content digest", shown["content_digest"]),
        ("block", f"{shown['block_number']}  {shown['block_hash']}".rstrip()),
        ("events", f"{shown['log_count']}, log head {shown['log_head']}"),
        ("registry", f"{shown['contract']} on chain {shown['chain_id']}"),
        ("rules", f"events {shown['decoder_version']}, packages {shown['rules_version']}"),
    ]
    if votes := value["votes"]:
        at = f"{votes['index_digest']}, {votes['log_count']} at block {votes['block_number']}"
        rows.append(("votes", at))
    return rows


@command(
    "rebuild-search",
    examples=["capdex index rebuild-search", "capdex index rebuild-search --db sqlite:///index.db"],
)
@database_option
@blocks_option
def rebuild_search_command(app: App, db: str | None, blocks: Path | None) -> None:
    """Build the search of an index from its database, and save it for the next start.

    A node does so by itself if what it saved is missing or damaged. Stop the node first.
    """
    from capdex_indexer.query.index import Index
    from capdex_indexer.query.search.snapshots import directory_of

    url = database_url(app, db)
    with closing(Index(url)) as index, StatusLine(app.output) as status:
        chain_id = index.status().chain_id
        directory = directory_of(url, blocks or default_blocks(url, chain_id))
        state = index.rebuild_search(directory, partial(status.count, "packages"))
    size = sum(path.stat().st_size for path in directory.iterdir())
    value = {"directory": str(directory), "packages": state.engine.packages, "bytes": size}
    rows = [
        ("search", safe(directory)),
        ("holds", f"{number_of(state.engine.packages, 'package')}, {size / 1e6:.1f} MB"),
    ]
    app.output.result("index.rebuild-search", value, human=columns(rows), plain=[directory])


index_command = Group(
    "index",
    commands=[digest_command, rebuild_search_command],
    help="Show the digests of an index, or build its search again.",
    examples=["capdex index digest", "capdex index digest --block 21000000 --json"],
)


@command(
    "mirror",
    examples=[
        "capdex mirror public/index --base-url https://node.example",
        "capdex mirror mirror --db sqlite:///index.db --json",
    ],
)
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option("--base-url", metavar="URL", help="A node or gateway that serves the packages.")
@database_option
def mirror_command(app: App, directory: Path, base_url: str | None, db: str | None) -> None:
    """Write an index as static files, for a web server or IPFS.

    There is one file per name, with one JSON line per release. Only changed files are written, and
    the same state of an index gives the same bytes everywhere. The node may run meanwhile. What its
    operator denies is left out.
    """
    from capdex_indexer.db.engine import reading
    from capdex_indexer.mirror.directory import write_mirror

    gateway = None if base_url is None else _gateway(base_url)
    with StatusLine(app.output) as status, reading(database_url(app, db)) as connection:
        report = partial(status.count, "names")
        written = write_mirror(connection, directory, gateway=gateway, report=report)
    value = {
        "directory": str(directory),
        **written.digest.to_json(),
        **{key: getattr(written, key) for key in ("names", "releases", "denied")},
        "files": {key: getattr(written, key) for key in ("written", "unchanged", "removed")},
    }
    changed = f"{written.written} written, {written.unchanged} unchanged"
    rows = [
        ("mirror", safe(directory)),
        ("holds", f"{number_of(written.names, 'name')}, {number_of(written.releases, 'release')}"),
        ("files", f"{changed}, {written.removed} removed"),
        ("block", f"{value['block_number']} of chain {value['chain_id']}"),
        ("digest", value["index_digest"]),
    ]
    if written.denied:
        rows.append(("denied", f"{written.denied} left out, by name or CID"))
    app.output.result("mirror", value, human=columns(rows), plain=[directory])


def _gateway(base_url: str) -> str:
    """Return the URL template of packages; raises UsageError for an unusable base URL."""
    try:
        parts = urlsplit(base_url)
        valid = parts.scheme in ("http", "https") and parts.hostname and not parts.username
        valid = valid and parts.port != 0  # raises ValueError for an invalid port
    except ValueError:
        valid = False
    if not valid or not base_url.isprintable() or set("{}?# ") & set(base_url):
        raise UsageError(
            f"{base_url[:80]!r} is not the URL of a node", fix="write it like https://node.example"
        )
    return f"{base_url.rstrip('/')}/ipfs/{{cid}}?format=raw"
