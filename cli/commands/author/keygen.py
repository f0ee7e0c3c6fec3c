"""`capdex keygen`: a signing key for authors."""

from __future__ import annotations

from pathlib import Path

import click

from cli.config.settings import user_directories
from cli.publish.account import passphrase_options
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.prompt import passphrase
from cli.terminal.text import safe


@command(
    "keygen",
    examples=["capdex keygen", "capdex keygen --out keys/author.json --passphrase-file pass.txt"],
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where the key file goes."
)
@click.option("--light", is_flag=True, help="Encrypt quickly and weakly: throw-away keys only.")
@passphrase_options
def keygen_command(app: App, out: Path | None, light: bool) -> None:
    """Make a signing key (did:key).

    An Ed25519 key, encrypted with a passphrase. A file that exists is never overwritten.
    """
    from publisher.keys.keystore import create_did_key

    path = out or user_directories().keys / "author.json"
    secret = passphrase(app, path, new=True)
    key = create_did_key(path, secret, light=light)
    app.output.result(
        "key",
        {"did": key.did, "file": str(path)},
        human=lambda: [f"{app.output.out.mark('ok')} {key.did}", f"  in {safe(path)}"],
        plain=[key.did],
    )
