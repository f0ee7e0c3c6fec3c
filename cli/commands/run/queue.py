"""`capdex node queue`: what this node still waits for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns, safe

if TYPE_CHECKING:
    from indexer.query.pending import Page, Waiting

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
@click.option("--state", type=click.Choice(["pending", "parked"]), help="Those alone.")
@click.option("--rearm", is_flag=True, help="Try those that are parked again, from the first try.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, metavar="N", help="A page.")
@click.option("--cursor", metavar="CURSOR", help="next_cursor of the page before.")
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
    """Show what is not fetched or judged yet, and try it again.

    Of one name or of all, the longest waiting first, with why its last try failed and when the next
    one is. After 20 tries, or when judging it took more than it may, a release is parked: nothing
    is tried until --rearm. A running node notices that within a second.
    """
    from capdex.uri import PREFIX, check_name

    name = None if name is None else check_name(name.removeprefix(PREFIX))
    url = database_url(app, db)
    if rearm:
        if state or cursor:
            raise UsageError("--rearm takes no other option", fix="name at most what to try again")
        _rearm(app, url, name)
        return
    _show(app, _read(url, state, name, limit, cursor))


def _read(url: str, state: str | None, name: str | None, limit: int, cursor: str | None) -> Page:
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


def _show(app: App, page: Page) -> None:
    now = time.time()
    totals = {str(state): count for state, count in page.totals.items()}
    app.output.results(
        "node.queue",
        [_value(one, now) for one in page.waiting],
        human=lambda: (
            columns([_row(one, now) for one in page.waiting], indent=0) or ["nothing waits"]
        ),
        plain=[one.cap_uri for one in page.waiting],
        totals=totals,
        next_cursor=page.next_cursor,
    )
    if page.waiting:
        app.output.say(app.output.err.dim(", ".join(f"{n} {state}" for state, n in totals.items())))
    if page.next_cursor:
        app.output.say(app.output.err.dim(f"more: --cursor {safe(page.next_cursor)}"))


def _value(one: Waiting, now: float) -> Json:
    return {
        "cap_uri": one.cap_uri,
        "ipfs_cid": one.cid,
        "publisher": one.publisher,
        "state": str(one.state),
        "lane": None if one.lane is None else LANES[one.lane],
        "reason": one.reason,
        "error": one.error or None,
        "attempts": one.attempts,
        "age_seconds": _since(one.queued_at, now),
        "next_try_seconds": None if one.due_at is None else _since(now, one.due_at),
    }


def _row(one: Waiting, now: float) -> tuple[str, ...]:
    due = "" if one.due_at is None else f"next in {_span(_since(now, one.due_at))}"
    return (
        safe(one.cap_uri),
        str(one.state),
        LANES[one.lane] if one.lane is not None else safe(one.reason or ""),
        f"{one.attempts} {'try' if one.attempts == 1 else 'tries'}",
        f"waits {_span(_since(one.queued_at, now))}",
        due,
        safe(one.error),
    )


def _since(first: float, last: float) -> int:
    return max(0, round(last - first))


def _span(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
