"""A name on chain, and a release of a node's answer, as text: a line of a list, or a card."""

from __future__ import annotations

import shutil
from typing import Any

from capdex.errors import quoted
from capdex.json import Json, list_of, object_of
from capdex.uri import PREFIX
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import clip, safe, short

_KIND = {"verified": "ok", "signed": "warn", "unsigned": "fail", None: "plan"}


def part(answer: Json, *path: str) -> Any:
    """Return a nested value of an answer, or None: an answer may have any shape."""
    value: Any = answer
    for key in path:
        value = object_of(value).get(key)
    return value


def mark(stream: Stream, answer: Json) -> str:
    """Return the mark and word of the verdict, with lint label, yanked and deprecated."""
    verdict = part(answer, "verification", "verdict")
    words = safe(verdict or part(answer, "availability") or "not judged")
    kind = _KIND.get(verdict, "fail") if isinstance(verdict, str | None) else "fail"
    label = part(answer, "verification", "lint", "label")
    labels = [f"lint {safe(label)}"] if label else []
    if like := answer.get("like"):
        labels.append(f"like the older name {safe(like)} of another owner")
    return f"{stream.mark(kind)} {', '.join([words, *labels, *flags(answer)])}"


def flags(answer: Json) -> list[str]:
    """Return which of `yanked` and `deprecated` its owner has set, for the release or the name."""
    keys = {"yanked": "yanked", "deprecated": "deprecated", "name_deprecated": "deprecated"}
    return list(dict.fromkeys(y for x, y in keys.items() if part(answer, "status", x) is True))


def lint_of(answer: Json) -> str:
    """Return label, score and codes of the prompt-injection lint; empty if it did not run."""
    lint = part(answer, "verification", "lint")
    if not isinstance(lint, dict):
        return ""
    listed = ", ".join(map(safe, list_of(lint.get("codes"))))
    words = f"{safe(lint.get('label'))}, {listed}" if lint.get("label") else "nothing found"
    return f"{words} (score {safe(lint.get('score'))} of 100)"


def name_of(answer: Json) -> str:
    """Return the name in the capability URI."""
    uri = safe(answer.get("cap_uri", "?"))
    return uri.removeprefix(PREFIX).partition("@")[0]


def summary_of(answer: Json) -> str:
    """Return the one-line summary of the author."""
    for key in ("summary", "description", "name"):
        if text := part(answer, "acp_metadata", key):
            return safe(" ".join(str(text).split()))
    return ""


def highlighted(stream: Stream, snippet: Json, room: int) -> str:
    """Return at most `room` characters of a snippet, its highlights bold."""
    text, shown, at = str(snippet["text"]), "", 0
    for span in list_of(snippet.get("highlights")):
        match span:
            case [int(begin), int(end)] if at <= begin < end <= min(len(text), room):
                shown += stream.dim(safe(text[at:begin]))
                shown += stream.style(safe(text[begin:end]), bold=True)
                at = end
    return shown + stream.dim(safe(text[at:room]))


def hit_rows(stream: Stream, hit: Json) -> list[tuple[str, ...]]:
    """Return the line of a hit and, on a terminal, one with the text that was found in it."""
    room = max(24, shutil.get_terminal_size((100, 24)).columns - 56) if stream.tty else 200
    summary = summary_of(hit)
    why = list(map(safe, list_of(hit.get("matched"))))
    if tool := part(hit, "why", "tool"):
        why.append(f"tool {safe(tool)}")
    if not why and part(hit, "why", "similarity"):
        why.append("meaning")
    row = (
        stream.style(name_of(hit), bold=True),
        safe(hit.get("semver", "")),
        mark(stream, hit),
        clip(summary, room, "…" if stream.unicode else "..."),
    )
    text = part(hit, "why", "snippet", "text")
    if not stream.tty or not isinstance(text, str) or safe(text) in clip(summary, room):
        return [(*row, stream.dim(", ".join(why)))]
    return [row, ("", "", "", highlighted(stream, part(hit, "why", "snippet"), room))]


def freshness(answer: Json) -> str:
    """Return the block of the answer, and how far it is behind the head of the chain."""
    block, head = part(answer, "as_of", "block_number"), part(answer, "as_of", "head_number")
    if not isinstance(block, int):
        return "the node has indexed no block yet"
    behind = f", {head - block} behind the head" if isinstance(head, int) and head > block else ""
    finality = safe(part(answer, "chain", "finality") or "")
    return f"block {block}{behind}" + (f", release is {finality}" if finality else "")


def _published(chain: Any) -> str:
    by = f"by {safe(part(chain, 'publisher'))}"
    if part(chain, "tx_hash") is None:  # read from the chain, without a node
        return by if part(chain, "publisher") else ""
    return (
        f"{by} on chain {safe(part(chain, 'chain_id'))}, block {safe(part(chain, 'block_number'))},"
        f" tx {short(safe(part(chain, 'tx_hash')))}"
    )


def card(stream: Stream, answer: Json) -> list[tuple[str, str]]:
    """Return URI, CID, publisher, verdict and freshness as (label, text)."""
    chain = part(answer, "chain") or {}
    rows = [
        ("what", stream.style(safe(answer.get("cap_uri", "?")), bold=True)),
        ("", summary_of(answer)),
        ("where", safe(answer.get("ipfs_cid", "?"))),
        ("published", _published(chain)),
        ("verdict", mark(stream, answer)),
        ("lint", lint_of(answer)),
        ("signer", safe(part(answer, "verification", "signer") or "-")),
        ("as of", freshness(answer) if answer.get("as_of") is not None else ""),
    ]
    for flag, key in (("yanked", "yank_reason"), ("deprecated", "deprecation_message")):
        if part(answer, "status", flag) is True:
            said = part(answer, "status", key)
            rows.append((flag, safe(quoted(said)) if said else "no reason given"))
    rows += [("warning", safe(x)) for x in list_of(answer.get("warnings"))]
    return [(label, text) for label, text in rows if text]


def rows_of(standing: Json) -> list[tuple[str, str]]:
    """Return the rows (label, text) of a name that `capdex_publisher.registry.audit` read."""
    owner = "none: renounced for good" if standing["renounced"] else str(standing["owner"])
    rows = [("owner", owner), *(("maintainer", x) for x in standing["maintainers"] or [])]
    if standing["maintainers"] is None:
        rows.append(("maintainers", "not known: the endpoint does not give the name's history"))
    if standing["pending_owner"]:
        rows.append(("on offer to", standing["pending_owner"]))
    if standing["deprecated"]:
        instead = standing["replaced_by"]
        words = f"by its owner, who names {instead} in its place" if instead else "by its owner"
        words += f": {safe(quoted(standing['message']))}" if standing["message"] else ""
        rows.append(("deprecated", words))
    if standing["votes"]:
        rows.append(("votes", f"{standing['votes']['up']} up, {standing['votes']['down']} down"))
    return rows
