"""Texts of answers for a model: few tokens, one line for a release, names and facts first.

Publishers write the descriptions, so each is cut and kept on its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from capdex.json import object_of
from capdex.manifest.bindings.contacts import secret_uses
from capdex.yaml.characters import beginning
from capdex_indexer.query.release import IndexedRelease

HIT_TOKENS: Final = 50  # of a hit, as estimated: counted, its line stays below 60
DOES_TOKENS: Final = 24  # of what it does
SUMMARY_TOKENS: Final = 50
WARNING_TOKENS: Final = 30
TOOLS_SHOWN: Final = 4
FILES_SHOWN: Final = 8
TOOL_NAMES_TOKENS: Final = 16
TOOL_TOKENS: Final = 20
SECRETS_SHOWN: Final = 4
NEEDS_TOKENS: Final = 20
RELATED: Final = "related only: none has half of the words, try others"
PROMPT_TOKENS: Final = 280  # of the text of a whole package; its structure has all of it

_WORD: Final = re.compile(r"[A-Za-z]+|[0-9]{1,3}|\s+|.", re.DOTALL)
_COMMON: Final = re.compile(r"[\u0900-\u0eff\u2010-\u20bf\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def hits(
    lines: Iterable[str], shown: int, total: int, cursor: str | None, *, related: bool = False
) -> str:
    """Return the text of a page of hits with these lines; `related`: none fits well."""
    if not shown:
        return "No capability matches. Try other words, or fewer filters if you gave any."
    head = f"{shown} of {total}, {RELATED}." if related else f"{shown} of {total}."
    return "\n".join([head, *lines, *([] if cursor is None else [f"next_cursor {cursor}"])])


def resolution(release: IndexedRelease, tools: Sequence[str], included: Mapping[str, Any]) -> str:
    """Return the text of a resolved release, with what was asked for beside its metadata."""
    lines = [_headline(release) + tools_of(tools), *_facts(release), f"cid {release.cid}"]
    lines += [f"{x['semver']}{_flags(x)}" for x in included.get("history", ())]
    if "package" in included:  # it has the other parts
        lines += [f"sha256 {release.sha256}", "package, written by its publisher:"]
        return "\n".join([*lines, included["package"]])
    if isinstance(prompt := included.get("prompt"), str):
        lines += ["prompt, written by its publisher:", prompt]
    if included.get("tools"):
        lines += ["tools:", *(f"- {signature(x)}" for x in included["tools"])]
    if included.get("schema") is not None:
        lines.append(f"schema: {orjson.dumps(included['schema']).decode('utf-8')}")
    return "\n".join(lines)


def package(release: IndexedRelease, document: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return the text of a whole package with what its structure has (`brief.package`)."""
    lines = [_headline(release), *_facts(release)]
    tools = shown["tools"]
    lines += ["tools:", *(f"- {x}" for x in tools)] if tools else ["no tools"]
    lines += shown.get("secrets", ())
    if names := shown.get("files"):
        lines.append(f"files, on IPFS: {', '.join(names)}")
    if words := shown.get("prompt"):
        whole = words == document["prompt"].strip()
        rest = "" if whole else " (its beginning; detail: full has all of it)"
        lines += [f"prompt, written by its publisher{rest}:", words]
    return "\n".join(lines)


def files(document: Mapping[str, Any]) -> list[str]:
    """Return the paths of the first files that a package names, and how many more there are."""
    rows = document.get("resources") or ()
    paths = [cut(str(x["path"]), NEEDS_TOKENS) for x in rows[:FILES_SHOWN]]
    more = len(rows) - len(paths)
    return [*paths, f"and {more} more"] if more else paths


def cut(text: str, tokens: float, *, lines: bool = False) -> str:
    """Return the beginning of a text of about so many tokens, on one line unless `lines`.

    The estimate is made for o200k and errs to the short side: a word has a token for every five
    letters, any other character one.
    """
    text = text if lines else " ".join(_CONTROL.sub(" ", text).split())
    spent = 0.0
    for match in _WORD.finditer(text):
        part = match.group()
        spent += 0.0 if part.isspace() else _cost(part)
        if spent > tokens:
            return beginning(text, match.start()).rstrip(" ,.;:(") + "…"
    return text


def estimate(text: str) -> float:
    """Return about how many tokens a text has."""
    return sum(_cost(part) for part in _WORD.findall(text) if not part.isspace())


def _cost(part: str) -> float:
    if part.isascii():
        return -(-len(part) // 6) if part.isalnum() else 1.0
    if len(part.encode("utf-8", "replace")) < 3:
        return 0.7
    return 1.0 if _COMMON.match(part) else 3.0  # scripts that few texts are written in


def does_of(release: IndexedRelease, tokens: float) -> str:
    """Return what a release does, in about so many tokens."""
    metadata = release.metadata or {}
    return cut(str(metadata.get("summary") or metadata.get("description") or ""), tokens)


def name_of(release: IndexedRelease) -> str:
    """Return the name and version of a release with its verdict and flags."""
    deprecated = release.deprecated or release.name_deprecated
    flags = _flags({"yanked": release.yanked, "deprecated": deprecated})
    return f"{release.name} {release.semver} [{release.verdict or 'not judged'}]{flags}"


def _headline(release: IndexedRelease) -> str:
    return f"{name_of(release)} {does_of(release, SUMMARY_TOKENS)}".rstrip()


def _flags(state: Mapping[str, Any]) -> str:
    return "".join(f" ({flag})" for flag in ("yanked", "deprecated") if state.get(flag))


def _facts(release: IndexedRelease) -> list[str]:
    """Return the publisher, what it needs, and each warning."""
    required = cut(", ".join(needs_of(release)), NEEDS_TOKENS)
    needs = f" · needs {required}" if required else ""
    account = f"{release.publisher[:6]}…{release.publisher[-4:]}"
    facts = [f"by {account}, block {release.block_number}{needs}"]
    return facts + [f"warning: {cut_warning(x)}" for x in release.warnings[:2]]


def cut_warning(warning: str) -> str:
    """Return a warning as a model gets it: an owner's words in it keep their quotation marks."""
    shown = cut(warning, WARNING_TOKENS)
    return f'{shown}"' if shown.endswith("…") and shown.count('"') % 2 else shown


def needs_of(release: IndexedRelease) -> list[str]:
    """Return the permissions that a release requires."""
    section = (release.metadata or {}).get("permissions")
    required = section.get("require") if isinstance(section, Mapping) else None
    return list(map(str, required or ()))


def secrets(bindings: Any) -> list[str]:
    """Return a line for each secret that the tools send, and where to."""
    known = {x: y for x, y in (bindings or {}).items() if isinstance(y, Mapping)}
    return [
        f"sends the secret {cut(use.secret, 20)} to {cut(use.host, 20)} in {cut(use.carrier, 10)}"
        for use in list(secret_uses(known))[:SECRETS_SHOWN]
    ]


def details_of(release: IndexedRelease) -> list[str]:
    """Return lines with the URI, publisher, needs, warnings and hashes of a release."""
    hashes = f"cid {release.cid}", f"sha256 {release.sha256}"
    return [f"  {x}" for x in (release.cap_uri, *_facts(release), *hashes)]


def facets(counts: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[str]:
    """Return a line for each facet that was asked for, with its values and how often each is."""
    said = {
        key: ", ".join(f"{cut(str(x['value']), NEEDS_TOKENS)} {x['count']}" for x in values)
        for key, values in counts.items()
    }
    return [f"{key}: {values or 'none'}" for key, values in said.items()]


def tools_of(names: Sequence[str]) -> str:
    """Return the end of a line with the first tools of a release; empty without tools."""
    if not names:
        return ""
    shown = tools_shown(names)
    more = f" +{len(names) - len(shown)}" if len(names) > len(shown) else ""
    return f" · tools {', '.join(shown)}{more}"


def tools_shown(names: Sequence[str]) -> list[str]:
    """Return the first tools of a release, as many as a hit has room for."""
    shown: list[str] = []
    for name in names[:TOOLS_SHOWN]:
        if shown and estimate(", ".join([*shown, name])) > TOOL_NAMES_TOKENS:
            break
        shown.append(cut(name, TOOL_NAMES_TOKENS))
    return shown


def signature(tool: object) -> str:
    """Return a tool as `name(parameter, optional?): what it does`."""
    function = object_of(tool).get("function", {})
    schema = object_of(function.get("parameters"))
    properties, required = object_of(schema.get("properties")), schema.get("required") or ()
    names = (key if key in required else f"{key}?" for key in properties)
    does = cut(str(function.get("description") or ""), TOOL_TOKENS)
    return f"{function.get('name', '')}({cut(', '.join(names), 40)}): {does}"
