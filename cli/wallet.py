"""The account that publishes and pays: its options, its address, and its signature.

The options are kept in `app.wallet`, so that a command of `@account_options` needs no parameters
for them. Nothing here asks for a passphrase before a signature is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.app import App
from cli.consent import passphrase
from cli.places import places

if TYPE_CHECKING:
    from publisher.sign import Author
    from publisher.signers import Signer

F = TypeVar("F", bound=Callable[..., Any])


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and not ctx.resilient_parsing:
        setattr(ctx.find_root().ensure_object(App).wallet, str(param.name), value)


def _option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, callback=_remember, **attributes)


def _file(name: str, purpose: str) -> Callable[[F], F]:
    return _option(name, type=click.Path(path_type=Path), metavar="FILE", help=purpose)


PASSPHRASE_FD = _option(
    "--passphrase-fd", type=int, metavar="N", help="Read the passphrase from descriptor N."
)
PASSPHRASE_FILE = _file(
    "--passphrase-file",
    "Read the passphrase from a file of mode 0600.  [env var: CAPDEX_PASSPHRASE_FILE]",
)
KEYSTORE = _file("--keystore", "Key file of the publishing account.  [env var: CAPDEX_KEYSTORE]")
AUTHOR_KEY = _file(
    "--author-key",
    "The author's did:key; without one the account signs.  [env var: CAPDEX_AUTHOR_KEY]",
)


def passphrase_options(function: F) -> F:
    """--passphrase-fd and --passphrase-file."""
    return PASSPHRASE_FD(PASSPHRASE_FILE(function))


def account_options(function: F) -> F:
    """--keystore and where its passphrase comes from."""
    return KEYSTORE(passphrase_options(function))


def keystore_path(app: App) -> Path:
    """The account's key file: the option, the configuration, or the usual place."""
    return app.wallet.keystore or app.settings.keystore or places().keys / "account.json"


def author_path(app: App) -> Path:
    """The author's key file: the option, the configuration, or the usual place."""
    return app.wallet.author_key or app.settings.author_key or places().keys / "author.json"


def has_account(app: App) -> bool:
    """Whether there is a publishing account at all."""
    return keystore_path(app).exists()


async def account_address(app: App) -> str:
    """The publishing account's address; asks for no passphrase."""
    from publisher.keys import read_address

    return read_address(keystore_path(app))


async def open_signer(app: App) -> Signer:
    """The publishing account, ready to sign."""
    from publisher.keys import load_account, read_address
    from publisher.signers import LocalSigner

    path = keystore_path(app)
    read_address(path)  # an unreadable key file is known before anybody types a passphrase
    return LocalSigner(load_account(path, passphrase(app, path)))


async def open_author(app: App) -> Author:
    """Who signs packages: the author's DID key where there is one, else the publishing account."""
    from publisher.keys import load_did_key

    path = author_path(app)
    if app.wallet.author_key or app.settings.author_key or path.exists():
        return load_did_key(path, passphrase(app, path))
    return await open_signer(app)


def fee_cap_wei(app: App) -> int:
    """The most that one transaction may cost."""
    return app.settings.fee_cap_wei
