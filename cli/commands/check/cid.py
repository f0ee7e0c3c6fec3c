"""`capdex cid`: take a CID apart, or compute the one a file would be published under."""

from __future__ import annotations

from pathlib import Path

import click

from capdex.ipld.cid import Cid
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.file_arguments import read
from cli.terminal.text import columns

SHOWN = ("cid", "version", "codec", "hash", "digest")


@command(
    "cid",
    examples=[
        "capdex cid weather.acp.yaml",
        "capdex cid bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
    ],
)
@click.argument("cid_or_file")
def cid_command(app: App, cid_or_file: str) -> None:
    """Take a CID apart, or make one of a file (- for stdin)."""
    is_file = cid_or_file == "-" or Path(cid_or_file).exists()
    cid = Cid.of(read(cid_or_file)) if is_file else Cid.parse(cid_or_file)
    value = {
        "ok": True,
        "cid": cid.text,
        "version": cid.version,
        "codec": cid.codec,
        "hash": "sha2-256",
        "digest": cid.digest.hex(),
    }
    app.output.result(
        "cid",
        value,
        human=lambda: columns([(f"{key}:", str(value[key])) for key in SHOWN], indent=0),
        plain=[cid.text],
    )
