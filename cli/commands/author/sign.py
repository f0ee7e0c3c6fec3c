"""`capdex sign`: the author's signature, inside the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from cli.publish.account import AUTHOR_KEY, account_options, has_account, open_author, open_signer
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
    from capdex.manifest.manifest import read as read_package
    from publisher.authoring.sign import sign_file
    from publisher.authoring.validate import PackageFile

    chain_id = app.settings.need_network("chain_id").chain
    author = await open_author(app)
    if publisher is None and has_account(app):
        publisher = (await open_signer(app)).address
    values: list[dict[str, Any]] = []
    for name in expand(files):
        file = PackageFile(name, read(name), None if name == "-" else Path(name))
        signed = await sign_file(
            file, author, chain_id=chain_id, publisher=publisher, write=not dry_run
        )
        if name == "-":
            sys.stdout.buffer.write(b"" if dry_run else signed.data)
            sys.stdout.buffer.flush()
            continue
        manifest, changed = read_package(signed.data).require(), signed.data != file.data
        value = {"path": name, "cap_uri": str(manifest.uri), "author": manifest.author}
        values.append(
            value | {"publisher": manifest.publisher, "changed": changed, "dry_run": dry_run}
        )
        words = f"{manifest.author}{'' if changed else ' (unchanged)'}"
        if dry_run:
            words = "would be signed" if changed else "would not change"
        app.output.step("plan" if dry_run else "ok", "signed", f"{safe(name)}  {safe(words)}")
    if values:
        app.output.results("signature", values, plain=[value["path"] for value in values])
