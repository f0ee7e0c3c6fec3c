"""A wish in words turned into one capability, or into a list to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.uri import CapabilityURI
from capdex_router.home.config import Config
from capdex_router.install.resolve import AuditWriter, NodeHit, need_nodes, search
from capdex_router.policy.consent import clean

MAX_CANDIDATES = 8


async def choose(
    want: str, config: Config, audit: AuditWriter | None = None, *, certain: bool = False
) -> CapabilityURI:
    """Return the capability that a name, a URI or a wish in words means.

    A text that can be a name, or that looks like a URI, a file or a web address, is no wish, and is
    not searched for. For a wish the hit whose name it spells is taken, or the only hit, unless it
    has to be `certain`. Raises InvalidInput AMBIGUOUS with candidates, or NOT_FOUND, and that of a
    URI that cannot be read; UsageError CONFIG for a wish without a node to ask.
    """
    text = " ".join(want.split())
    try:
        return CapabilityURI.loose(text)
    except InvalidInput:
        if " " not in text and any(x in text for x in ("@", "#", "did:", "//", "./", ".yaml")):
            raise
    need_nodes(config)
    return pick(text, await search(text, MAX_CANDIDATES, config, audit), certain=certain)


def pick(want: str, hits: Sequence[NodeHit], *, certain: bool = False) -> CapabilityURI:
    """Return the hit that a wish means; raises as `choose`. Pure."""
    by_name = {CapabilityURI.parse(hit.uri).name: hit for hit in hits}
    slug = "-".join(want.casefold().split())
    # A title is free for anybody to write; only a name is one capability's own.
    if slug in by_name:
        return CapabilityURI(slug)
    if len(by_name) == 1 and not certain:
        return CapabilityURI(next(iter(by_name)))
    if not by_name:
        raise InvalidInput(
            f"the registry has nothing for {want[:80]!r}", Code.NOT_FOUND, fix="use other words"
        )
    what = f"{len(by_name)} capabilities" if len(by_name) > 1 else "one capability, or none"
    raise InvalidInput(
        f"{want[:80]!r} may mean {what}",
        Code.AMBIGUOUS,
        fix="name one: " + ", ".join(by_name),
        details={"candidates": candidates(hits)},
    )


def candidates(hits: Sequence[NodeHit]) -> list[dict[str, str]]:
    """Return hits as JSON to choose from, their texts cleaned."""
    return [
        {
            "name": hit.name,
            "uri": hit.uri,
            "title": clean(hit.title, 80),
            "summary": clean(hit.summary, 160),
        }
        for hit in hits
    ]


async def with_suggestions(
    error: InvalidInput, uri: CapabilityURI, config: Config, audit: AuditWriter
) -> InvalidInput:
    """Return the error for an unknown name; where the node knows none, with what a search finds."""
    if error.code is not Code.NOT_FOUND or any((error.details or {}).values()):
        return error
    try:
        hits = await search(uri.name.replace("-", " "), MAX_CANDIDATES, config, audit)
    except CapdexError:
        return error
    names = [hit.name for hit in hits if hit.name != uri.name]
    if names:
        return replace(error, fix=f"a search for its words finds {', '.join(dict.fromkeys(names))}")
    return error
