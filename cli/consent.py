"""Asking a person for a yes or a passphrase; without one, naming the option that answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capdex.errors import Refused
from cli.app import App
from cli.places import places

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from publisher.secret import Secret

F = TypeVar("F", bound=Callable[..., Any])

PASSPHRASE = (
    click.option(
        "--passphrase-fd", type=int, metavar="N", help="Read the passphrase from descriptor N."
    ),
    click.option(
        "--passphrase-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read the passphrase from a file of mode 0600.  [env var: CAPDEX_PASSPHRASE_FILE]",
    ),
)
KEYSTORE = click.option(
    "--keystore",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Key file of the publishing account.  [env var: CAPDEX_KEYSTORE]",
)


def passphrase_options(function: F) -> F:
    """--passphrase-fd and --passphrase-file."""
    for option in reversed(PASSPHRASE):
        function = option(function)
    return function


def account_options(function: F) -> F:
    """--keystore and where its passphrase comes from."""
    return KEYSTORE(passphrase_options(function))


def confirm(app: App, question: str) -> None:
    """Go on if the person says yes (or said --yes); raises Refused NO_CONSENT otherwise."""
    if app.options.yes:
        return
    if not app.may_ask:
        raise Refused(
            "nobody was there to say yes",
            why="stdin or stderr is no terminal, or CI or --no-input is set",
            fix="read the plan with --dry-run, then say --yes",
        )
    if not click.confirm(question, default=False, err=True):
        raise Refused("stopped: the plan was not agreed to", fix="nothing was sent")


def passphrase(app: App, fd: int | None, file: Path | None, *, new: bool = False) -> Secret:
    """The passphrase: descriptor, file, configuration, CAPDEX_PASSPHRASE (warned), or asked."""
    from publisher.secret import Secret, read_passphrase

    file = file or (None if fd is not None else app.settings.passphrase_file)
    if fd is None and file is None and (text := os.environ.get("CAPDEX_PASSPHRASE")):
        app.output.warn(
            "CAPDEX_PASSPHRASE can be read by other programs of yours; prefer --passphrase-file"
        )
        return Secret(text)
    prompt = (lambda: _ask(new=new)) if app.may_ask else None
    return read_passphrase(fd=fd, file=file, prompt=prompt)


def _ask(*, new: bool) -> str:
    text = "New passphrase" if new else "Passphrase"
    answer: str = click.prompt(text, hide_input=True, confirmation_prompt=new, err=True)
    return answer


def keystore_path(app: App, keystore: Path | None) -> Path:
    """The account's key file: the option, the configuration, or the usual place."""
    return keystore or app.settings.keystore or places().keys / "account.json"


def author_path(app: App, key: Path | None) -> Path:
    """The author's key file: the option, the configuration, or the usual place."""
    return key or app.settings.author_key or places().keys / "author.json"


def open_account(
    app: App, keystore: Path | None, fd: int | None, file: Path | None
) -> LocalAccount:
    """The publishing account, opened."""
    from publisher.keys import load_account, read_address

    path = keystore_path(app, keystore)
    read_address(path)  # an unreadable key file is known before anybody types a passphrase
    return load_account(path, passphrase(app, fd, file))
