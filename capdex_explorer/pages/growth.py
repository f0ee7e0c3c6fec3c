"""What is new in a release since the version before it, and what its name is like."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final

from capdex.diff.diff import compare
from capdex.json import Json
from capdex_explorer.site import Site
from capdex_explorer.views.text import count, cut, name_of
from capdex_service.queries.releases import find_manifests

MAX_CACHED: Final = 4000
MAX_SHOWN: Final = 12
MAX_MESSAGE_CHARS: Final = 200
MORE: Final = "capdex diff shows all"
_NOUNS: Final = {
    "hosts": ("host", ""),
    "permissions": ("permission", ""),
    "secrets": ("secret", ""),
    "tools": ("effect of a tool", "effects of tools"),
    "bindings": ("way to call", "ways to call"),
    "resources": ("file that may be run", "files that may be run"),
}

# By the hashes of both files: what differs between two files stays so.
_CACHED: Final[OrderedDict[tuple[str, str], Json]] = OrderedDict()


async def add_growth(site: Site, releases: Sequence[Json]) -> None:
    """Add to each release its `growth` in place of the version `before`, and `like`; None for none.

    `like` is the older name of another owner that it may be taken for.
    A growth has the version `before`, its `words` as "+1 host, +2 permissions", its `risks` as
    lines, `more`, the number of those left out, and `makers` as "another author and account".
    """
    for release in releases:
        before, release["growth"] = release.pop("before"), None
        release["like"] = site.reader.like(name_of(release))
        if before is not None and release["verification"]["verdict"] is not None:
            growth = await _growth(site, release, *before)
            release["growth"] = growth if growth.get("words") or growth.get("makers") else None


async def _growth(site: Site, release: Json, before: str, digest: str) -> Json:
    key = digest, str(release["sha256"])
    if key not in _CACHED:
        wanted = site.reader, name_of(release), (before, str(release["semver"]))
        manifests = await site.reader.read(find_manifests, *wanted, long=True)
        if len(manifests) < 2:
            return {}  # this node may have the files later
        risks = (await site.reader.run(compare, *manifests, long=True)).risks
        counts = Counter(risk.rule.section for risk in risks)
        old, new = ({"author": x.author, "account": x.publisher} for x in manifests)
        others = " and ".join(maker for maker in new if new[maker] != old[maker])
        _CACHED[key] = {
            "words": ", ".join(f"+{count(counts[x], *y)}" for x, y in _NOUNS.items() if counts[x]),
            "risks": [cut(risk.message, MORE, MAX_MESSAGE_CHARS) for risk in risks[:MAX_SHOWN]],
            "more": max(0, len(risks) - MAX_SHOWN),
            "makers": others and f"another {others}",
        }
        while len(_CACHED) > MAX_CACHED:
            _CACHED.popitem(last=False)
    return _CACHED[key] | {"before": before}
