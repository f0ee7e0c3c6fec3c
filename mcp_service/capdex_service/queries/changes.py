"""The feed of changes: each name whose answers changed, with the release that it has now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex_indexer.query.changes import read_changes, read_listed_releases
from capdex_indexer.query.status import read_revision
from capdex_service.answers.paging import read_limit
from capdex_service.answers.rendered import Answer, Moment, Rendered
from capdex_service.queries.reader import LAST, Reader

MAX_PAGE: Final = 1000
DEFAULT_PAGE: Final = 100
_PLACE: Final = re.compile(r"(0|[1-9][0-9]{0,17})(?::([a-z0-9-]{2,64}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """A place in the feed: after the changes of a revision, or after that of one name in it."""

    revision: int
    name: str = LAST

    @classmethod
    def parse(cls, text: str) -> FeedPlace:
        """Read a place as answers write it; raises InvalidInput."""
        match = _PLACE.fullmatch(text)
        if match is None:
            raise InvalidInput(
                "since is not a place in the feed of this node",
                fix="send next_since of the answer before, or nothing to start at the beginning",
            )
        return cls(int(match[1]), match[2] or LAST)

    def __str__(self) -> str:
        return str(self.revision) + ("" if self.name == LAST else f":{self.name}")


@dataclass(frozen=True, slots=True)
class Changes:
    """Some changes of the feed in its order, the place after each, and whether there are more."""

    entries: list[tuple[FeedPlace, Json]]
    after: FeedPlace
    more: bool
    moment: Moment


async def list_changes(reader: Reader, since: str | None, limit: int) -> Answer:
    """Return a page of the feed; raises InvalidInput for another place or limit.

    Each name is in the feed once, at its latest change, so a follower that reads to the end knows
    all names. A name without a latest release is `deleted`.
    """
    read_limit(limit, MAX_PAGE)
    place = FeedPlace(0) if since is None else FeedPlace.parse(since)
    page = await reader.read(read_feed, place, limit)
    body: dict[str, Any] = {
        "changes": [change for _, change in page.entries],
        "next_since": str(page.after),
        "more": page.more,
    }
    return Rendered.of(body).answer(page.moment, reader.warning())


def read_feed(connection: Connection, since: FeedPlace, limit: int) -> Changes:
    """Return the changes after a place, at most `limit`.

    Raises InvalidInput for a place beyond the index: it is of another index, or of an older state
    of this one.
    """
    moment = Moment.of(*read_revision(connection))
    if since.revision > moment.revision:
        raise InvalidInput(
            f"since is beyond this index, which is at {moment.revision}",
            why="revisions are of one node's index, and begin anew when it is built anew",
            fix="start without since",
        )
    feed = read_changes(connection, (since.revision, since.name), limit + 1)
    page = feed[:limit]
    listed = read_listed_releases(connection, page)
    entries = [
        (FeedPlace(x.revision, x.name), _change(x.name, x.revision, listed[x.name])) for x in page
    ]
    more = len(feed) > limit
    return Changes(entries, entries[-1][0] if more else FeedPlace(moment.revision), more, moment)


def _change(name: str, revision: int, listed: Row[Any] | None) -> Json:
    change: Json = {"name": name, "revision": revision, "deleted": listed is None}
    if listed is not None:
        change |= {
            "cap_uri": listed.cap_uri,
            "semver": listed.semver,
            "ipfs_cid": listed.cid,
            "sha256": bytes(listed.sha256).hex(),
        }
    return change
