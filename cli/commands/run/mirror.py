"""`capdex mirror`: an index as static files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from capdex.errors import UsageError
from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.status_line import StatusLine
from cli.terminal.text import columns, safe

if TYPE_CHECKING:
    from indexer.mirror.directory import MirrorResult

Json = dict[str, Any]


@command(
    "mirror",
    examples=[
        "capdex mirror public/index --base-url https://node.example",
        "capdex mirror mirror --db sqlite:///index.db --json",
    ],
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--base-url", metavar="URL", help="A node or gateway that serves the packages.")
@database_option
def mirror_command(app: App, directory: Path, base_url: str | None, db: str | None) -> None:
    """Write an index as static files, for a web server or IPFS.

    There is one file per name, with one JSON line per release. Only changed files are written, and
    the same state of an index gives the same bytes everywhere. The node may run meanwhile. What its
    operator denies is left out.
    """
    from indexer.db.engine import open_reader, transaction
    from indexer.mirror.directory import write_mirror

    gateway = None if base_url is None else _gateway(base_url)
    status = StatusLine(app.output)
    engine = open_reader(database_url(app, db))
    try:
        with transaction(engine) as connection:
            written = write_mirror(
                connection,
                directory,
                gateway=gateway,
                report=lambda done, total: status.show(f"{done} of {total} names"),
            )
    finally:
        status.clear()
        engine.dispose()
    human = columns(_rows(directory, written))
    app.output.result("mirror", _value(directory, written), human=human, plain=[directory])


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
            f"{base_url[:80]!r} is not the URL of a node",
            fix="write it like https://node.example",
        )
    return f"{base_url.rstrip('/')}/ipfs/{{cid}}?format=raw"


def _value(directory: Path, written: MirrorResult) -> Json:
    return {
        "directory": str(directory),
        **written.digest.to_json(),
        **{key: getattr(written, key) for key in ("names", "releases", "denied")},
        "files": {key: getattr(written, key) for key in ("written", "unchanged", "removed")},
    }


def _rows(directory: Path, written: MirrorResult) -> list[tuple[str, str]]:
    digest = written.digest
    files = f"{written.written} written, {written.unchanged} unchanged"
    rows = [
        ("mirror", safe(directory)),
        ("holds", f"{written.names} names, {written.releases} releases"),
        ("files", f"{files}, {written.removed} removed"),
        ("block", f"{digest.block_number} of chain {digest.chain_id}"),
        ("digest", f"0x{digest.index.hex()}"),
    ]
    if written.denied:
        rows.append(("denied", f"{written.denied} names or CIDs are left out"))
    return rows
