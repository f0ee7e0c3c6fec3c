"""The account that publishes and pays: its options, its address, and its signature.

Each option sets a key of the configuration for this call, so that a command of `@account_options`
needs no parameters for them. The account is, in this order: what `--keystore` or `--signer` names,
the key in CAPDEX_PRIVATE_KEY, the configured signer, the configured or usual key file. Nothing
here asks for a passphrase before a signature is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from click.decorators import FC

from capdex.errors import Code, UsageError
from capdex_cli.config.settings import TYPED, user_directories, wrong
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import together
from capdex_cli.terminal.prompt import passphrase
from capdex_cli.terminal.text import safe

if TYPE_CHECKING:
    from capdex_publisher.authoring.sign import Author
    from capdex_publisher.keys.signer import Signer

KeySource = Literal["keystore", "environment", "signer"]  # sources of the account's key

PRIVATE_KEY: Final = "CAPDEX_PRIVATE_KEY"


# the options ------------------------------------------------------------------------------------


def _set(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and not ctx.resilient_parsing:
        app = ctx.find_root().ensure_object(App)
        if param.name == "passphrase_fd":
            app.passphrase_fd = value
        else:
            app.options.config += (f"{param.opts[0].removeprefix('--')}={value}",)


def _option(name: str, metavar: str, purpose: str) -> Callable[[FC], FC]:
    variable = f"CAPDEX_{name.removeprefix('--').upper().replace('-', '_')}"
    words = f"{purpose}  [env var: {variable}]"
    return click.option(name, metavar=metavar, help=words, expose_value=False, callback=_set)


passphrase_options = together(
    click.option(
        "--passphrase-fd", type=int, metavar="N", expose_value=False, callback=_set,
        help="Read the passphrase from descriptor N.",
    ),
    _option("--passphrase-file", "FILE", "Read the passphrase from a file of mode 0600."),
)  # fmt: skip
author_options = together(
    _option("--author-key", "FILE", "The author's did:key; without one the account signs."),
    _option(
        "--author-passphrase-file", "FILE", "The same for the author's key, if it has another."
    ),
)
account_options = together(
    _option("--keystore", "FILE", "Key file of the publishing account."),
    passphrase_options,
    _option("--signer", "URL|COMMAND", "Sign elsewhere: JSON-RPC over http(s), or a command."),
    _option(
        "--signer-address", "0x…", "The account that --signer signs for, where it has several."
    ),
)
spending_options = together(
    account_options,
    _option(
        "--fee-cap",
        "ETH",
        "The most that this may cost, in ETH (0.01, deploy: 0.1); --yes never raises it.",
    ),
    _option("--confirmations", "N", "Blocks to wait for, from the one that has the transaction."),
)


# the account ------------------------------------------------------------------------------------


def fee_cap_wei(app: App, *, usual: int | None = None) -> int:
    """Return the most that may be spent; `usual` replaces the default of the configuration."""
    if usual is not None and "fee-cap" not in app.settings.origins:
        return usual
    return app.settings.fee_cap_wei


def key_source(app: App) -> KeySource:
    """Return the source of the account's key; raise UsageError if two were typed."""
    origins = app.settings.origins
    if origins.get("keystore") == origins.get("signer") == TYPED:
        raise UsageError("--keystore and --signer name two accounts", fix="say one of them")
    if app.settings.signer_address and not app.settings.signer:  # another account would pay
        fix = "name the signer, too: --signer, CAPDEX_SIGNER, or signer in your config.toml"
        raise wrong("signer-address is set, and no signer is", origins["signer-address"], fix)
    order: tuple[KeySource, KeySource] = ("signer", "keystore")
    for key in order:
        if origins.get(key) == TYPED:
            return key
    if os.environ.get(PRIVATE_KEY):
        return "environment"
    for key in order:
        if origins.get(key) == "environment":
            return key
    return "signer" if app.settings.signer else "keystore"


def has_account(app: App) -> bool:
    """True if there is a publishing account."""
    return key_source(app) != "keystore" or keystore_path(app).exists()


def keystore_path(app: App) -> Path:
    """Return the account's key file: the option, the configuration, or the default."""
    return app.settings.keystore or user_directories().keys / "account.json"


def author_path(app: App) -> Path:
    """Return the author's key file: the option, the configuration, or the default."""
    return app.settings.author_key or user_directories().keys / "author.json"


async def account_address(app: App) -> str:
    """Return the publishing account's address; ask for no passphrase."""
    return (await open_signer(app)).address


async def open_signer(app: App) -> Signer:
    """Return the publishing account; a passphrase is asked for when it first signs."""
    if app.signer is None:
        source = key_source(app)
        if source == "environment":
            app.signer = _from_environment(app)
        elif source == "signer":
            from capdex_publisher.keys.external_signer import open_external

            app.signer = await open_external(
                app.settings.signer,
                app.settings.signer_address,
                show=lambda words: app.output.say(f"    {'signer'.ljust(11)} {safe(words)}"),
            )
        else:
            app.signer = _from_key_file(app, keystore_path(app))
    return app.signer


def unlock(app: App) -> None:
    """Ask for the passphrase of the publishing account now, if it has one."""
    from capdex_publisher.keys.keystore import KeystoreSigner

    if isinstance(app.signer, KeystoreSigner):
        app.signer.unlock()


async def open_author(app: App) -> Author:
    """Return the author that signs packages: a DID key if there is one, else the account."""
    from capdex_publisher.keys.keystore import load_did_key

    path = author_path(app)
    if app.settings.author_key or path.exists():
        return load_did_key(path, passphrase(app, path, author=True))
    return await open_signer(app)


def _from_key_file(app: App, path: Path) -> Signer:
    from capdex_publisher.keys.keystore import KeystoreSigner

    if not path.exists():
        raise UsageError(
            f"there is no account: {path} does not exist",
            Code.UNREADABLE,
            why="publishing needs an account, which owns the names and pays the fees",
            fix="make one (capdex account new), bring one (capdex account import), or name its "
            "key file (--keystore)",
        )
    return KeystoreSigner(path, lambda: passphrase(app, path))


def _from_environment(app: App) -> Signer:
    from capdex_publisher.keys.keystore import parse_private_key
    from capdex_publisher.keys.secret import Secret

    app.output.warn(
        f"{PRIVATE_KEY} can be read by other programs of yours, and kept by logs; "
        "use a key file: capdex account import"
    )
    return parse_private_key(Secret(os.environ.get(PRIVATE_KEY, "")), PRIVATE_KEY)
