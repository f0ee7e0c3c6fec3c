"""`capdex sign`: the author's signature, inside the file."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cli.app import App
from cli.consent import AUTHOR_KEY, account_options, keystore_path, open_signer
from cli.files import expand, read
from cli.house import command
from cli.text import safe


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
def sign_command(
    app: App,
    files: tuple[str, ...],
    publisher: str | None,
    dry_run: bool,
    author_key: Path | None,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    """Sign a package.

    Sets metadata.author, metadata.publisher and metadata.signature in the file; everything else
    stays byte for byte (CRLF becomes LF). From - the signed file goes to stdout. Any change after
    this needs a new signature.
    """
    from publisher.sign import sign, sign_file

    chain_id = app.settings.need_network("chain_id").chain
    signer = open_signer(app, author_key, keystore, passphrase_fd, passphrase_file)
    account = publisher or publishing_address(app, keystore)
    values: list[dict[str, Any]] = []
    for name in expand(files):
        if name == "-":
            signed = sign(read("-"), signer, chain_id=chain_id, publisher=account)
            if not dry_run:
                sys.stdout.buffer.write(signed)
                sys.stdout.buffer.flush()
            continue
        if dry_run:
            data = read(name)
            changed = sign(data, signer, chain_id=chain_id, publisher=account) != data
            value: dict[str, Any] = {"path": name, "changed": changed}
            words = "would be signed" if changed else "would not change"
        else:
            done = sign_file(Path(name), signer, chain_id=chain_id, publisher=account)
            value = asdict(done) | {"path": name}
            words = f"{done.author}{'' if done.changed else ' (unchanged)'}"
        values.append(value | {"dry_run": dry_run})
        app.output.step("plan" if dry_run else "ok", "signed", f"{safe(name)}  {safe(words)}")
    if values:
        app.output.results(
            "signature", values, human=list, plain=[value["path"] for value in values]
        )


def publishing_address(app: App, keystore: Path | None) -> str | None:
    """The address of the account's key file, if there is one."""
    from publisher.keys import read_address

    path = keystore_path(app, keystore)
    return read_address(path) if path.exists() else None
