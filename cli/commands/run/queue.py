"""`capdex node queue`: releases whose package is not fetched or judged yet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns, duration, safe

if TYPE_CHECKING:
    from indexer.query.pending import QueuedRelease, QueuePage

Json = dict[str, Any]
LANES = ("new", "retry", "again")


@command(
    "queue",
    examples=[
        "capdex node queue",
        "capdex node queue --state parked --json",
        "capdex node queue evil-weather",
        "capdex node queue --rearm",
        "capdex node queue note --rearm",
    ],
)
@click.argument("name", required=False)
@click.option("--state", type=click.Choice(["pending", "parked"]), help="Only those in this state.")
@click.option("--rearm", is_flag=True, help="Put parked releases back into the queue.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, metavar="N", help="Releases a page."
)
@click.option("--cursor", metavar="CURSOR", help="next_cursor of the previous page.")
@database_option
def queue_command(
    app: App,
    name: str | None,
    state: str | None,
    rearm: bool,
    limit: int,
    cursor: str | None,
    db: str | None,
) -> None:
    """Show releases that are not fetched or judged yet, or try them again.

    Of NAME or of all names, the longest waiting first, with the error of the last try and the time
    of the next one. A release is parked after 20 tries, or when judging it exceeded its limits: it
    is not tried again until --rearm. A running node notices --rearm within a second.
    """
    from capdex.uri import PREFIX, check_name

    name = None if name is None else check_name(name.removeprefix(PREFIX))
    url = database_url(app, db)
    if rearm:
        if state or cursor:
            raise UsageError("--rearm takes no other option", fix="give a name, or nothing else")
        _rearm(app, url, name)
        return
    _show(app, _read(url, state, name, limit, cursor))


def _read(
    url: str, state: str | None, name: str | None, limit: int, cursor: str | None
) -> QueuePage:
    from capdex.problems import Availability
    from indexer.db.engine import open_reader, transaction
    from indexer.query.pending import WAITING, read_queue

    engine = open_reader(url)
    try:
        with transaction(engine) as connection:
            states = WAITING if state is None else (Availability(state),)
            return read_queue(connection, states=states, name=name, limit=limit, cursor=cursor)
    finally:
        engine.dispose()


def _rearm(app: App, url: str, name: str | None) -> None:
    from indexer.store import Operator

    with Operator(url) as operator:
        count = operator.rearm(name)
    app.output.result(
        "node.rearm",
        {"name": name, "rearmed": count},
        human=lambda: [
            f"{count} parked {'release is' if count == 1 else 'releases are'} due again"
        ],
        plain=[count],
    )


def _show(app: App, page: QueuePage) -> None:
    now = time.time()
    values = [_value(one, now) for one in page.releases]
    totals = {str(state): count for state, count in page.totals.items()}
    app.output.results(
        "node.queue",
        values,
        human=lambda: columns(map(_row, values), indent=0) or ["the queue is empty"],
        plain=[one.cap_uri for one in page.releases],
        totals=totals,
        next_cursor=page.next_cursor,
    )
    if values:
        app.output.say(app.output.err.dim(", ".join(f"{n} {state}" for state, n in totals.items())))
    if page.next_cursor:
        app.output.say(app.output.err.dim(f"more: --cursor {safe(page.next_cursor)}"))


def _value(one: QueuedRelease, now: float) -> Json:
    return {
        "cap_uri": one.cap_uri,
        "ipfs_cid": one.cid,
        "publisher": one.publisher,
        "state": str(one.state),
        "lane": None if one.lane is None else LANES[one.lane],
        "reason": one.reason,
        "error": one.error or None,
        "attempts": one.attempts,
        "age_seconds": max(0, round(now - one.queued_at)),
        "next_try_seconds": None if one.due_at is None else max(0, round(one.due_at - now)),
    }


def _row(value: Json) -> tuple[str, ...]:
    due = value["next_try_seconds"]
    return (
        safe(value["cap_uri"]),
        value["state"],
        value["lane"] or safe(value["reason"] or ""),
        f"{value['attempts']} {'try' if value['attempts'] == 1 else 'tries'}",
        f"waits {duration(value['age_seconds'])}",
        "" if due is None else f"next in {duration(due)}",
        safe(value["error"] or ""),
    )
