"""The page of an account or DID: the names it publishes, its keys, and what it did on chain."""

from __future__ import annotations

import re
from typing import Final

from capdex.did import account_of
from capdex.json import Json
from capdex_explorer.pages.recent import names_in_order
from capdex_explorer.pages.versions import EVENTS
from capdex_explorer.site import PageRequest, Site, View, account_in, not_found
from capdex_indexer.query.history import read_account_history
from capdex_service.queries.history import chain_events

MAX_HOMEPAGES: Final = 5
_DID: Final = re.compile(r"did:[a-z0-9]+:[A-Za-z0-9._:%-]{1,300}(#[A-Za-z0-9._:%-]{1,300})?")


def is_publisher(text: str) -> bool:
    """Return whether a text is an account's address or a DID, which both have a page."""
    return account_in(text) is not None or _DID.fullmatch(text) is not None


async def publisher(site: Site, request: PageRequest) -> View:
    """Show an account with the names whose latest release it published, or a DID that signs."""
    who = request.parts["who"]
    named = account_of(who)
    account = account_in(who if named is None else named.address)
    if account is None and not is_publisher(who):
        raise not_found(f"{who[:60]} is neither an account (0x and 40 digits) nor a DID")
    key, value = ("publisher", account) if account else ("author", who)
    names = await names_in_order(site, request, (key, value))
    signers = [x["verification"]["signer"] for x in names["releases"]]
    pages = [(x["acp_metadata"] or {}).get("homepage") for x in names["releases"]]
    accounts = [x["chain"]["publisher"] for x in names["releases"]]
    events: list[Json] = []
    if account:
        before = request.before_event()
        past = await site.reader.read(chain_events, read_account_history, account, before)
        events = past["events"]
    word = "Publisher" if names["total"] else "Account" if account else "Key"
    data = {
        "names": names,
        "word": word,
        "who": account or who,
        "account": account,
        "homepages": list(dict.fromkeys(x for x in pages if x))[:MAX_HOMEPAGES],
        "keys": list(dict.fromkeys(x for x in signers if x)),
        "accounts": list(dict.fromkeys(accounts)),
        **request.events_page(events, EVENTS),
    }
    feed = f"/p/{account}/feed.atom" if account else ""
    return View("publisher.html", f"{word} {account or who}", data, feed=feed)
