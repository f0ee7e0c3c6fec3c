"""`capdex sign`: the author's signature, inside the file."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cli.publish.account import (
    AUTHOR_KEY,
    account_address,
    account_options,
    has_account,
    open_author,
)
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.file_arguments import expand, read
from cli.terminal.text import safe


@command(
    "sign",
    examples=[
        "capdex sign weather.acp.yaml",
        "capdex sign weather.acp.yaml --author-key keys/author.json --publisher 0x8f3c…21aa",
        "capdex sign - < weather.acp.yaml > signed.acp.yaml",
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--publisher", metavar="0x…", help="The account that will publish.")
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@AUTHOR_KEY
@account_options
def sign_command(app: App, files: tuple[str, ...], publisher: str | None, dry_run: bool) -> None:
    """Sign a package.

    Sets metadata.author, metadata.publisher and metadata.signature in the file; everything else
    stays byte for byte (CRLF becomes LF). From - the signed file goes to stdout. Any change after
    this needs a new signature.
    """
    app.run(_sign(app, files, publisher, dry_run))


async def _sign(app: App, files: tuple[str, ...], publisher: str | None, dry_run: bool) -> None:
    from publisher.authoring.sign import sign, sign_file

    chain_id = app.settings.need_network("chain_id").chain
    author = await open_author(app)
    if publisher is None and has_account(app):
        publisher = await account_address(app)
    values: list[dict[str, Any]] = []
    for name in expand(files):
        if name == "-":
            signed = await sign(read("-"), author, chain_id=chain_id, publisher=publisher)
            if not dry_run:
                sys.stdout.buffer.write(signed)
                sys.stdout.buffer.flush()
            continue
        if dry_run:
            data = read(name)
            changed = await sign(data, author, chain_id=chain_id, publisher=publisher) != data
            value: dict[str, Any] = {"path": name, "changed": changed}
            words = "would be signed" if changed else "would not change"
        else:
            done = await sign_file(Path(name), author, chain_id=chain_id, publisher=publisher)
            value = asdict(done) | {"path": name}
            words = f"{done.author}{'' if done.changed else ' (unchanged)'}"
        values.append(value | {"dry_run": dry_run})
        app.output.step("plan" if dry_run else "ok", "signed", f"{safe(name)}  {safe(words)}")
    if values:
        app.output.results(
            "signature", values, human=list, plain=[value["path"] for value in values]
        )
