"""Ask for consent or a passphrase; without a terminal, name the option that gives it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from capdex.errors import Refused
from capdex_cli.terminal.app import App
from capdex_cli.terminal.text import safe

if TYPE_CHECKING:
    from capdex_publisher.keys.secret import Secret

NOTHING_SENT: Final = "nothing was sent"
NOTHING_WRITTEN: Final = "nothing was written"


def confirm(app: App, question: str, *, typed: str = "") -> None:
    """Return if the answer is yes, or --yes is set; raises Refused NO_CONSENT otherwise.

    `typed` must be typed instead of a yes, for changes that give much away.
    """
    if app.options.yes:
        return
    if not app.may_ask:
        raise Refused(
            f"nobody can be asked here: {question.strip()}",
            why="stdin or stderr is not a terminal, or CI, --no-input or CMP_ROUTER is set",
            fix=f"read the plan{_plan_option()}, then add --yes",
        )
    with interruptible(NOTHING_SENT):
        if typed:
            answer = click.prompt(
                f"{question} Type {safe(typed)} to agree", default="", show_default=False, err=True
            )
            agreed = answer == typed
        else:
            agreed = click.confirm(question, default=False, err=True)
    if not agreed:
        raise Refused("stopped: the plan was not agreed to", fix=NOTHING_SENT)


def _plan_option() -> str:
    """The option of the current command that shows its plan and stops, if it has one."""
    context = click.get_current_context(silent=True)
    params = context.command.get_params(context) if context else []
    names = {name for param in params for name in param.opts}
    return next((f" with {x}" for x in ("--dry-run", "--plan", "--preview") if x in names), "")


def passphrase(app: App, of: Path, *, new: bool = False, author: bool = False) -> Secret:
    """Return the passphrase: from a descriptor, a file, CAPDEX_PASSPHRASE (warned), or a prompt.

    `author`: of the author's key, which may have a passphrase file of its own.
    """
    from capdex_publisher.keys.keystore import check_free, check_key_file
    from capdex_publisher.keys.secret import Secret, read_passphrase

    (check_free if new else check_key_file)(of)  # before a secret is typed
    own_file = _passphrase_file(app, "author-passphrase-file", of) if author else None
    if own_file is not None:
        return read_passphrase(file=own_file)
    fd = app.passphrase_fd
    if fd is not None:  # a descriptor can be read once, and two keys may share the passphrase
        if fd not in app.secrets:
            app.secrets[fd] = read_passphrase(fd=fd)
        return app.secrets[fd]
    file = _passphrase_file(app, "passphrase-file", of)
    if file is None and (text := os.environ.get("CAPDEX_PASSPHRASE")):
        app.output.warn(
            "CAPDEX_PASSPHRASE can be read by other programs of yours; prefer --passphrase-file"
        )
        return Secret(text)
    what = "" if new else "the author key " if author else "the account "
    question = f"{'New passphrase' if new else 'Passphrase'} of {what}{safe(of)}"
    undone = NOTHING_WRITTEN if new else NOTHING_SENT
    prompt = (lambda: ask_secret(question, twice=new, undone=undone)) if app.may_ask else None
    return read_passphrase(file=file, prompt=prompt)


def _passphrase_file(app: App, key: str, of: Path) -> Path | None:
    """The file that is set. That of `capdex up` is for the keys beside it alone.

    Otherwise a key for another chain would be encrypted by it, and lost with the local network.
    """
    settings = app.settings
    file = settings.passphrase_file if key == "passphrase-file" else settings.author_passphrase_file
    if file is not None and settings.up is not None and settings.origins[key] == str(settings.up):
        return file if of.absolute().parent == file.parent else None
    return file


def ask_secret(question: str, *, twice: bool = False, undone: str = NOTHING_SENT) -> str:
    """Prompt for a secret without showing it."""
    with interruptible(undone, is_hidden=True):
        return str(click.prompt(question, hide_input=True, confirmation_prompt=twice, err=True))


@contextmanager
def interruptible(undone: str, *, is_hidden: bool = False) -> Iterator[None]:
    """Let Ctrl-C end a prompt: inside a running event loop asyncio would only record the signal.

    `undone` tells what has not happened then. Click ends the line of a hidden answer itself.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except click.Abort:
        if not is_hidden:
            click.echo(err=True)
        raise click.Abort(undone) from None
    finally:
        signal.signal(signal.SIGINT, before)
