"""Pages that are kept: those about a name until it changes, all others for a moment."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from capdex_explorer.http.rendered import RenderedPage
from capdex_explorer.site import CacheTag
from capdex_service.answers.rendered import Moment

MAX_BYTES: Final = 32 << 20  # plain and compressed
MAX_AGE_S: Final = 3600.0  # of any page, since some say how old a release is
MAX_STALE_S: Final = 1.0  # that a page of many names may be older than the index
NO_REVISION: Final = -1  # of a page that is kept for MAX_STALE_S alone

Key = tuple[str, ...]


class _Cached(NamedTuple):
    rendered: RenderedPage
    tag: CacheTag
    revision: int
    made_at: float


class PageCache:
    """The pages used last, bounded in bytes.

    A busy registry changes many times a second, and most pages with it not at all: a page about one
    name is dropped when that name changes (`drop`), or when its release becomes final. A page of
    many names is made again at most once in MAX_STALE_S.
    """

    def __init__(
        self, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_bytes, self._clock = max_bytes, clock
        self.size_bytes = 0
        self._pages: OrderedDict[Key, _Cached] = OrderedDict()
        self._of_name: dict[str, set[Key]] = {}

    def get(self, key: Key, moment: Moment) -> RenderedPage | None:
        """Return a cached page, unless it is too old at this moment of the index."""
        kept = self._pages.get(key)
        if kept is None:
            return None
        (name, final_at), age_s = kept.tag, self._clock() - kept.made_at
        if name and kept.revision != NO_REVISION:
            fresh = final_at is None or moment.finalized < final_at
        else:
            fresh = kept.revision == moment.revision or age_s < MAX_STALE_S
        if not fresh or age_s >= MAX_AGE_S:
            self._forget(key)
            return None
        self._pages.move_to_end(key)
        return kept.rendered

    def put(self, key: Key, rendered: RenderedPage, moment: Moment, tag: CacheTag) -> None:
        """Keep a page of a moment; drop those used least recently."""
        if key in self._pages:
            self._forget(key)
        self._pages[key] = _Cached(rendered, tag, moment.revision, self._clock())
        self._of_name.setdefault(tag.name, set()).add(key)
        self.size_bytes += rendered.size
        while self.size_bytes > self._max_bytes:
            self._forget(next(iter(self._pages)))

    def drop(self, names: Iterable[str] | None) -> None:
        """Drop the pages about these names; None: all pages."""
        if names is None:
            self._pages.clear()
            self._of_name.clear()
            self.size_bytes = 0
            return
        for name in names:
            for key in list(self._of_name.get(name, ())):
                self._forget(key)

    def _forget(self, key: Key) -> None:
        kept = self._pages.pop(key)
        self.size_bytes -= kept.rendered.size
        keys = self._of_name[kept.tag.name]
        keys.discard(key)
        if not keys:
            del self._of_name[kept.tag.name]
