"""The structured content of a tool by default: what a model needs, about as long as the text.

Many hosts hand a model the structured content alone. It has NIP-7's names, and `next`: the tool to
call next with its arguments. `detail: full` gives the whole answer (P15). Authors write the texts,
so each is cut as in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from capdex.json import Json
from capdex_indexer.query.release import IndexedRelease
from capdex_service.answers import text

TITLE_TOKENS: Final = 10
TOOL_TOKENS: Final = 10  # of their names in a hit
HIT_TOKENS: Final = 29  # of a hit, beside names of members, the CID, the verdict and what matched
LEAST_TOKENS: Final = 5  # of what it does
FIRST_TOKENS: Final = 12  # of what it does, before names of tools are given
EVERYTHING: Final = 'search_capabilities {"query_string":""}'


def step(tool: str, **arguments: object) -> str:
    """Return a call to make next, as a model reads it."""
    return f"{tool} {orjson.dumps(arguments).decode('utf-8')}"


def get(cap_uri: str) -> str:
    """Return the step to all that one release does."""
    return step("get_capability", cap_uri=cap_uri)


def hit(release: IndexedRelease, tools: Sequence[str]) -> Json:
    """Return a release as a hit, without what matched; with it about 100 tokens.

    Names of tools give way to what it does.
    """
    made = _release(release, tools, text.DOES_TOKENS)
    metadata = made["acp_metadata"]
    names = metadata.pop("tools", [])
    said = (release.cap_uri, metadata.get("name", ""), made.get("status", ""))
    room = HIT_TOKENS - sum(text.estimate(str(x)) for x in said)
    while names and text.estimate(str(names)) > min(TOOL_TOKENS, room - FIRST_TOKENS):
        names.pop()
    if names:
        metadata["tools"] = names
        room -= text.estimate(str(names))
    metadata["description"] = text.does_of(release, max(LEAST_TOKENS, room))
    return made


def resolution(release: IndexedRelease, tools: Sequence[str]) -> Json:
    """Return the answer of `resolve_capability`."""
    return _resolved(release, tools) | {"next": get(release.cap_uri)}


def package(release: IndexedRelease, document: Mapping[str, Any]) -> Json:
    """Return the answer of `get_capability`: tools as signatures, secrets, and the prompt, cut."""
    more: Json = {"tools": [text.signature(x) for x in document.get("tools") or ()]}
    if secrets := text.secrets(document.get("tool_bindings")):
        more["secrets"] = secrets
    prompt = document.get("prompt")
    if isinstance(prompt, str) and prompt.strip():
        more["prompt"] = text.cut(prompt.strip(), text.PROMPT_TOKENS, lines=True)
    if files := text.files(document):
        more["files"] = files
    after = step("get_capability", cap_uri=release.cap_uri, detail="full")
    return _resolved(release, ()) | more | {"next": after}


def page(key: str, items: Sequence[object], cursor: str | None, after: str, **more: object) -> Json:
    """Return a page of items under a key; `after` is the step after it."""
    turn = {} if cursor is None else {"next_cursor": cursor}
    return {**more, key: list(items), **turn, "next": after}


def _resolved(release: IndexedRelease, tools: Sequence[str]) -> Json:
    made = _release(release, tools, text.SUMMARY_TOKENS)
    made |= {"cap_uri": release.cap_uri, "semver": release.semver}
    if needs := text.needs_of(release):
        shown = [text.cut(x, text.NEEDS_TOKENS) for x in needs[: text.TOOLS_SHOWN]]
        made["acp_metadata"]["permissions"] = {"require": shown}
    if release.warnings:
        made["warnings"] = list(map(text.cut_warning, release.warnings[:2]))
    return made


def _release(release: IndexedRelease, tools: Sequence[str], does: int) -> Json:
    """Return a release under NIP-7's names; `does` are the tokens of what it does.

    `status` has flags that are set, for a deprecated name the one to use instead if there is one.
    """
    metadata: Json = {"id": release.cap_uri}
    if title := (release.metadata or {}).get("name"):
        metadata["name"] = text.cut(str(title), TITLE_TOKENS)
    metadata["description"] = text.does_of(release, does)
    if tools:
        metadata["tools"] = text.tools_shown(tools)
    verdict = None if release.verdict is None else str(release.verdict)
    made = {"acp_metadata": metadata, "ipfs_cid": release.cid, "verification": {"verdict": verdict}}
    said = "replaced_by" if release.replaced_by else "name_deprecated"
    flags = ("yanked", "deprecated", said)
    if status := {x: y for x, y in release.status.items() if y and x in flags}:
        made["status"] = status
    return made
