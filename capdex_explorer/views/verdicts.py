"""Verdicts, flags and checks in words: the same wherever a release is shown (P6)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import quote

from capdex.manifest.prompt_injection import LABELS, Label
from capdex.problems import Reason, Verdict
from capdex.yaml.characters import is_blank
from capdex_explorer.views.markdown import plain
from capdex_explorer.views.text import name_of


class Badge(NamedTuple):
    """A verdict as people see it: class of its colour, mark, word, and what it means."""

    kind: str
    mark: str
    word: str
    meaning: str


BADGES: Final = {
    Verdict.VERIFIED: Badge(
        "good",
        "✓",
        "authentic",
        "The file is byte for byte what was announced on chain, its signature is valid, and the"
        " file names the account that published it.",
    ),
    Verdict.SIGNED: Badge(
        "fair",
        "◐",
        "signed",
        "The signature is valid, but the file does not name the account that published it, so"
        " anybody could have published it under this name.",
    ),
    Verdict.UNSIGNED: Badge("poor", "○", "unsigned", "The file has no signature."),
    Verdict.INVALID: Badge(
        "poor",
        "✗",
        "invalid",
        "The file is not a valid package, or its signature is not valid.",
    ),
    Verdict.UNRESOLVABLE: Badge(
        "poor",
        "?",
        "unresolvable",
        "The signer's DID is of a method that this node cannot resolve.",
    ),
    Verdict.MISMATCH: Badge(
        "poor",
        "✗",
        "mismatch",
        "The file or the announcement contradicts itself: an id, a version or a hash differs.",
    ),
}
WAITING: Final = Badge(
    "fair", "…", "not judged", "This node does not hold the file yet, so nothing has been checked."
)
MISSING: Final = Badge("plain", "?", "missing", "This node knows no such release.")
NOT_MEANT: Final = (
    "It says nothing about whether the capability is good, harmless or well made, or who its author"
    " is in life."
)

# What each check of `capdex.package` compares, in the order in which it is made.
CHECKS: Final = {
    "event": "The announced URI follows the protocol and has the announced version.",
    "cid": "The announced CID and the announced sha256 are of the same bytes.",
    "sha256": "The sha256 of the file is the announced one.",
    "manifest": "The file is a well-formed package.",
    "id": "The file names itself as the announcement does.",
    "signature": "The signature of the file is valid for the key of its author.",
    "binding": "The file names the account that published it.",
}

# Findings of the linter in the words of a mark: of a code, and else of its label.
_LINT_WORDS: Final = {
    Reason.LINT_IMITATION: "imitates a mark of trust",
    Reason.LINT_DECEPTIVE_NAME: "its title has letters that look like others",
    Label.HIGH: "has text that may steer a model",
    Label.MEDIUM: "has text to read first",
}
DECEPTIVE: Final = {Reason.LINT_IMITATION, Reason.LINT_DECEPTIVE_NAME}

_FIELDS: Final = {"memory_scope": "memory scope", "tools": "tool", "license": "licence"}
_KINDS: Final = {
    "published": "Published",
    "yanked": "Yanked",
    "unyanked": "Yank taken back",
    "deprecated": "Deprecated",
    "undeprecated": "Deprecation taken back",
    "claimed": "Name claimed",
    "committed": "Commitment to a name",
    "maintainer_added": "Maintainer added",
    "maintainer_removed": "Maintainer removed",
    "transfer_offered": "Transfer offered",
    "transfer_cancelled": "Transfer offer withdrawn",
    "transferred": "Transferred",
    "renounced": "Renounced",
    "sponsored": "Publication paid by a sponsor",
    "unreadable": "Not a valid event",
    "other": "Without effect",
}


def badge_of(release: dict[str, Any]) -> Badge:
    """Return the badge of a release in the JSON of answers."""
    verdict = release["verification"]["verdict"]
    return WAITING if verdict is None else BADGES[Verdict(verdict)]


class Mark(NamedTuple):
    """What stands beside a badge: class of its colour, words, and the page that says more."""

    kind: str
    words: str
    address: str = ""


def marks_of(release: dict[str, Any]) -> list[Mark]:
    """Return what a reader should know of a release before its publisher's words."""
    status, name = release["status"], name_of(release)
    page = f"/c/{name}/{release['semver']}"
    marks = []
    if release.get("denied"):
        marks.append(Mark("poor", "not served here"))
    if status["yanked"]:
        marks.append(Mark("poor", "yanked"))
    if like := release.get("like"):
        marks.append(Mark("poor", f"like the older name {like} of another owner", f"/c/{like}"))
    if status["deprecated"] or status["name_deprecated"]:
        marks.append(Mark("fair", "deprecated"))
    codes = (release["verification"]["lint"] or {}).get("codes") or ()
    words = dict.fromkeys(_LINT_WORDS.get(x, _LINT_WORDS[LABELS[Reason(x)]]) for x in codes)
    marks += [Mark("fair", x, f"{page}/checks#problems") for x in words]
    if growth := release.get("growth"):
        old, new = quote(growth["before"], safe=""), quote(release["semver"], safe="")
        if growth["makers"]:
            makers = f"by {growth['makers']} than {growth['before']}"
            marks.append(Mark("fair", makers, f"{page}/checks"))
        if growth["words"]:
            more = f"asks for more than {growth['before']}: {growth['words']}"
            marks.append(Mark("fair", more, f"/c/{name}/diff?old={old}&new={new}"))
    return marks


def title_of(release: dict[str, Any]) -> str:
    """Return the title that a publisher gave; empty if it is not known, blank, or may deceive."""
    verdict, lint = release["verification"]["verdict"], release["verification"]["lint"] or {}
    if verdict not in (Verdict.VERIFIED, Verdict.SIGNED) or not release["acp_metadata"]:
        return ""
    if DECEPTIVE & set(lint.get("codes") or ()):
        return ""
    title = str(release["acp_metadata"].get("name") or "")
    return "" if is_blank(title) else title


def about_of(release: dict[str, Any]) -> str:
    """Return in one line what a publisher says of a release: its summary, else its description."""
    about = release["acp_metadata"] or {}
    return " ".join(str(about.get("summary") or plain(str(about.get("description") or ""))).split())


def kind_of(event: str) -> str:
    """Return the kind of an event of a name's history in words."""
    return _KINDS.get(event, event.capitalize())


def field_of(name: str) -> str:
    """Return a field of the search in words."""
    return _FIELDS.get(name, name)


def checked(release: dict[str, Any], name: str) -> bool | None:
    """Return whether a check of a release held; None if it was not made."""
    checks = release["verification"]["checks"]
    return next((bool(x["ok"]) for x in checks if x["name"] == name), None)
