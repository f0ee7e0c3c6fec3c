"""`capdex node deny`, `queue` and `accept`: decisions of a node's operator, by its database."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from capdex.json import Json
from capdex_cli.node.options import database_option, database_url
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import TEXT, command
from capdex_cli.terminal.text import duration, safe

if TYPE_CHECKING:
    from sqlalchemy import Row

LANES = ("new", "retry", "again")


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
@click.option("--reason", default="", type=TEXT, help="Reason, which clients are given.")
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
    from capdex_indexer.store import Operator
    from capdex_indexer.store.operator import read_subject

    if show == bool(subjects) or sum(map(bool, (show, remove, reason))) > 1:
        raise UsageError(
            "these options do not go together",
            fix="name CIDs or names, with --reason or --remove; or use --list alone",
        )
    human: list[str | tuple[str, ...]] = []
    with Operator(database_url(app, db)) as operator:
        if remove:
            removed = {read_subject(subject): operator.undeny(subject) for subject in subjects}
            values = [{"subject": subject, "removed": x} for subject, x in removed.items()]
            for subject, there in removed.items():
                mark = app.output.out.mark("ok" if there else "warn")
                words = "is served again" if there else "was not refused"
                human.append(f"{mark} {safe(subject)} {words}")
            plain = [subject for subject, there in removed.items() if there]
        else:
            denials = [operator.deny(x, reason) for x in subjects] or operator.denials()
            for denial in denials if subjects else ():
                if not operator.concerns(denial.subject):
                    app.output.say(f"  no release here has the name or CID {denial.subject} so far")
            values = [
                {"subject": x.subject, "reason": x.reason or None, "at": int(x.at)} for x in denials
            ]
            human += [(safe(x.subject), _day(x.at), safe(x.reason)) for x in denials]
            plain = [x.subject for x in denials]
    human = human or ["nothing is refused"]
    app.output.results("node.deny", values, human=human, plain=plain)


def _day(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


@command(
    "accept",
    examples=[
        "capdex node accept 0x5ab2a1de1f0ee7ef1e1e8a6f1e4a7a3ea8d1ab3f4a2f5d4d2ae9b1c0a7f5d301"
    ],
)
@click.argument("block_hash", metavar="BLOCK_HASH")
@database_option
def accept_command(app: App, block_hash: str, db: str | None) -> None:
    """Follow the chain through a block that contradicts a final one.

    A node that is STALLED names the block in its log (`waiting`). Compare it with another endpoint
    first: all that this node holds above the fork is undone. The node continues within seconds,
    if its endpoint has the block on its chain.
    """
    from capdex_indexer.store import Operator

    with Operator(database_url(app, db)) as operator:
        operator.accept(block_hash)
    app.output.say(
        "  a STALLED node continues within seconds, if its endpoint has this block on its chain"
    )
    known = block_hash.lower()
    app.output.result("node.accept", {"block_hash": known}, human=[known], plain=[known])


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
@click.option(
    "--state", type=click.Choice(["pending", "parked"]), help="Only releases in this state."
)
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
    from capdex.problems import Availability
    from capdex.uri import PREFIX, check_name
    from capdex_indexer.db.engine import reading
    from capdex_indexer.query.pending import WAITING, read_queue
    from capdex_indexer.store import Operator

    name = None if name is None else check_name(name.removeprefix(PREFIX))
    url = database_url(app, db)
    if rearm:
        if state or cursor:
            raise UsageError("--rearm takes no other option", fix="give a name, or nothing else")
        with Operator(url) as operator:
            count = operator.rearm(name)
        human = [f"{count} parked {'release is' if count == 1 else 'releases are'} due again"]
        value = {"name": name, "rearmed": count}
        app.output.result("node.rearm", value, human=human, plain=[count])
        return
    states = WAITING if state is None else (Availability(state),)
    with reading(url) as connection:
        page = read_queue(connection, states=states, name=name, limit=limit, cursor=cursor)
    now = time.time()
    values = [_value(row, now) for row in page.releases]
    totals = {str(key): number for key, number in page.totals.items()}
    app.output.results(
        "node.queue",
        values,
        human=list(map(_row, values))
        or ["no such release waits" if name or state else "the queue is empty"],
        plain=[row.cap_uri for row in page.releases],
        totals=totals,
        next_cursor=page.next_cursor,
    )
    if values:
        app.output.say(app.output.err.dim(", ".join(f"{n} {x}" for x, n in totals.items())))
    if page.next_cursor:
        app.output.say(app.output.err.dim(f"more: --cursor {safe(page.next_cursor)}"))


def _value(row: Row[Any], now: float) -> Json:
    return {
        "cap_uri": row.cap_uri,
        "ipfs_cid": row.cid,
        "publisher": row.publisher,
        "state": str(row.state),
        "lane": None if row.lane is None else LANES[row.lane],
        "reason": row.reason,
        "error": row.error or None,
        "attempts": row.attempts,
        "age_seconds": max(0, round(now - row.queued_at)),
        "next_try_seconds": None if row.due_at is None else max(0, round(row.due_at - now)),
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
