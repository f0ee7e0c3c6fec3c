"""`capdex node deny`: the CIDs and names that this node refuses to serve."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns, safe

if TYPE_CHECKING:
    from indexer.db.denylist import Denial
    from indexer.store import Operator

Json = dict[str, Any]


@command(
    "deny",
    examples=[
        "capdex node deny evil-weather --reason 'it sends what you type elsewhere'",
        "capdex node deny bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "capdex node deny evil-weather --remove",
        "capdex node deny --list",
    ],
)
@click.argument("subjects", metavar="[CID|NAME]...", nargs=-1)
@click.option("--reason", default="", metavar="TEXT", help="Reason, which clients are given.")
@click.option("--remove", is_flag=True, help="Serve them again.")
@click.option("--list", "show", is_flag=True, help="List the denied CIDs and names.")
@database_option
def deny_command(
    app: App, subjects: tuple[str, ...], reason: str, remove: bool, show: bool, db: str | None
) -> None:
    """Refuse to serve a CID or a name with all its releases.

    Search, resolve, the gateway, mirrors and snapshots leave it out from now on, without a restart
    of the node. It is still indexed, and no digest changes. Other nodes are not affected.
    """
    from indexer.store import Operator

    if show == bool(subjects) or (show and (remove or reason)) or (remove and reason):
        raise UsageError(
            "these options do not go together",
            fix="name CIDs or names, with --reason or --remove; or use --list alone",
        )
    with Operator(database_url(app, db)) as operator:
        if remove:
            _remove(app, operator, subjects)
        elif show:
            _show(app, operator.denials())
        else:
            _show(app, [operator.deny(subject, reason) for subject in subjects])


def _remove(app: App, operator: Operator, subjects: tuple[str, ...]) -> None:
    from indexer.store.operator import read_subject

    removed = {read_subject(subject): operator.undeny(subject) for subject in subjects}
    marks = {True: ("ok", "is served again"), False: ("warn", "was not refused")}
    app.output.results(
        "node.deny",
        [{"subject": subject, "removed": there} for subject, there in removed.items()],
        human=lambda: [
            f"{app.output.out.mark(marks[there][0])} {safe(subject)} {marks[there][1]}"
            for subject, there in removed.items()
        ],
        plain=[subject for subject, there in removed.items() if there],
    )


def _show(app: App, denials: list[Denial]) -> None:
    rows = [(safe(x.subject), _day(x.at), safe(x.reason)) for x in denials]
    app.output.results(
        "node.deny",
        [{"subject": x.subject, "reason": x.reason or None, "at": int(x.at)} for x in denials],
        human=lambda: columns(rows, indent=0) or ["nothing is refused"],
        plain=[x.subject for x in denials],
    )


def _day(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
