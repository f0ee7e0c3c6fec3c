"""Asking a person for a yes or a passphrase; without one, naming the option that answers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capdex.errors import Refused
from cli.app import App
from cli.places import places
from cli.text import safe

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from publisher.secret import Secret
    from publisher.sign import Signer

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


AUTHOR_KEY = click.option(
    "--author-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The author's did:key; without one the account signs.  [env var: CAPDEX_AUTHOR_KEY]",
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
    with _ctrl_c_ends():
        agreed = click.confirm(question, default=False, err=True)
    if not agreed:
        raise Refused("stopped: the plan was not agreed to", fix="nothing was sent")


def passphrase(
    app: App, of: Path, fd: int | None, file: Path | None, *, new: bool = False
) -> Secret:
    """The passphrase: descriptor, file, configuration, CAPDEX_PASSPHRASE (warned), or asked."""
    from publisher.secret import Secret, read_passphrase

    if fd is not None:  # a descriptor can be read once, and two keys may share the passphrase
        if fd not in app.secrets:
            app.secrets[fd] = read_passphrase(fd=fd)
        return app.secrets[fd]
    file = file or app.settings.passphrase_file
    if file is None and (text := os.environ.get("CAPDEX_PASSPHRASE")):
        app.output.warn(
            "CAPDEX_PASSPHRASE can be read by other programs of yours; prefer --passphrase-file"
        )
        return Secret(text)
    prompt = (lambda: _ask(of, new=new)) if app.may_ask else None
    return read_passphrase(file=file, prompt=prompt)


def _ask(of: Path, *, new: bool) -> str:
    text = f"{'New passphrase' if new else 'Passphrase'} of {safe(of)}"
    with _ctrl_c_ends():
        answer: str = click.prompt(text, hide_input=True, confirmation_prompt=new, err=True)
    return answer


@contextmanager
def _ctrl_c_ends() -> Iterator[None]:
    """Let Ctrl-C end a question: inside a running loop asyncio would only note it for later."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    return load_account(path, passphrase(app, path, fd, file))


def open_signer(
    app: App, author_key: Path | None, keystore: Path | None, fd: int | None, file: Path | None
) -> Signer:
    """Who signs: the author's DID key where there is one, else the publishing account."""
    from publisher.keys import load_did_key

    path = author_path(app, author_key)
    if author_key or app.settings.author_key or path.exists():
        return load_did_key(path, passphrase(app, path, fd, file))
    return open_account(app, keystore, fd, file)
