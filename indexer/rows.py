"""What one log of the registry becomes: rows to insert, judged by the event alone.

Nothing of a hostile event stops the index: what cannot be decoded is kept with its error, what
cannot be a release is kept as rejected, and texts are made fit for every database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.events import (
    Announcement,
    DeprecationChanged,
    Event,
    LogHead,
    NameDeprecationChanged,
    Published,
    RawLog,
    YankChanged,
    decode,
)
from capdex.package import RejectedPackage, precheck
from capdex.problems import Availability, Reason, Verdict
from capdex.uri import PREFIX, CapabilityURI, check_name, name_id
from indexer.listing import precedence

MAX_TEXT_CHARS: Final = 256  # twice the longest cap_uri, semver or CID that follows the protocol
MAX_REASON_CHARS: Final = 1024

Row = dict[str, Any]

_id_of = lru_cache(maxsize=16_384)(name_id)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A log, what it says (an event, or why it is none), and the registry's log slot after it."""

    log: RawLog
    event: Event | InvalidInput
    head: LogHead


@dataclass(frozen=True, slots=True)
class Claim:
    """What a `Published` event claims: its URI if it is one, and why it is refused if it is.

    Only a claim that `stands` can be resolved to: its URI, version and name id agree.
    """

    event: Published
    uri: CapabilityURI | None
    rejected: RejectedPackage | None

    @property
    def stands(self) -> bool:
        """Whether this is the release of the version it names, be it served or not."""
        return self.uri is not None and str(self.uri.version) == self.event.announcement.semver


def decoded(log: RawLog, head: LogHead, chain_id: int) -> Decoded:
    """Decode a log after which the slot is `head`; what is no event is kept with the reason."""
    try:
        return Decoded(log, decode(log, chain_id), head)
    except InvalidInput as error:
        return Decoded(log, error, head)


def claim(event: Published) -> Claim:
    """Judge a publication by its event (`capdex.package.precheck`) and the hash of its name."""
    announcement = event.announcement
    rejected = precheck(announcement)
    try:
        uri = CapabilityURI.exact(announcement.cap_uri)
    except InvalidInput:
        return Claim(event, None, rejected)
    if _id_of(uri.name) != event.name_id:
        message = f"the event's name id is not the hash of {uri.name}"
        return Claim(event, None, rejected or refusal(announcement, message))
    return Claim(event, uri, rejected)


def repeated(again: Claim) -> Claim:
    """The claim of a version that was announced before: the first one stands."""
    announcement = again.event.announcement
    message = f"{announcement.cap_uri} was announced before; the first announcement stands"
    return replace(again, rejected=refusal(announcement, message))


def refusal(announcement: Announcement, message: str) -> RejectedPackage:
    """A rejection for what the event itself says."""
    return RejectedPackage(announcement, Verdict.MISMATCH, Reason.BAD_EVENT, message)


def event_row(one: Decoded, timestamp: int, error: str | None) -> Row:
    """The row of one log, raw parts included."""
    log = one.log
    return {
        "sequence": one.head.count,
        "block_number": log.position.block_number,
        "block_hash": log.position.block_hash,
        "timestamp": timestamp,
        "tx_hash": log.position.tx_hash,
        "log_index": log.position.log_index,
        "topics": b"".join(log.topics),
        "data": log.data,
        "log_head": one.head.head,
        "error": shown(error),
    }


def shown(error: str | None) -> str | None:
    """Why an event counts for nothing, fit for its row."""
    return None if error is None else visible(error, MAX_REASON_CHARS)


def release_row(claimed: Claim, sequence: int, now: float, *, stands: bool) -> Row:
    """The row of one publication, queued unless the event alone refuses it."""
    announcement, uri, rejected = claimed.event.announcement, claimed.uri, claimed.rejected
    return {
        "sequence": sequence,
        "name": uri.name if uri else None,
        "stands": stands,
        "cap_uri": visible(announcement.cap_uri),
        "semver": visible(announcement.semver),
        "stable": uri.version.stable if uri else False,
        "precedence": precedence(uri.version) if uri else "",
        "cid": visible(announcement.cid),
        "sha256": announcement.sha256,
        "publisher": announcement.publisher,
        "yanked": False,
        "yank_reason": "",
        "availability": None if rejected else Availability.PENDING.value,
        "verdict": rejected.verdict.value if rejected else None,
        "reason": rejected.reason.value if rejected else None,
        "message": visible(rejected.message, MAX_REASON_CHARS) if rejected else "",
        "attempts": 0,
        "queued_at": now,
        "due_at": 0.0,
    }


def concerned(
    event: YankChanged | DeprecationChanged | NameDeprecationChanged,
) -> CapabilityURI | None:
    """The release or the name that an event is about, if its name id is that name's hash."""
    try:
        if isinstance(event, NameDeprecationChanged):
            uri = CapabilityURI(check_name(event.name))
            check_name(event.replaced_by or event.name)
        else:
            uri = CapabilityURI.exact(f"{PREFIX}{event.name}@{event.semver}")
    except InvalidInput:
        return None
    return uri if _id_of(uri.name) == event.name_id else None


def yank_row(event: YankChanged, uri: CapabilityURI, sequence: int) -> Row:
    """The row of one yank or un-yank."""
    reason = visible(event.reason, MAX_REASON_CHARS)
    return {"sequence": sequence, "cap_uri": str(uri), "yanked": event.yanked, "reason": reason}


def deprecation_row(
    event: DeprecationChanged | NameDeprecationChanged, uri: CapabilityURI, sequence: int
) -> Row:
    """The row of one deprecation, or of its end."""
    return {
        "sequence": sequence,
        "subject": str(uri),
        "deprecated": event.deprecated,
        "message": visible(event.message, MAX_REASON_CHARS),
        "replaced_by": event.replaced_by if isinstance(event, NameDeprecationChanged) else "",
    }


def visible(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """The text as every database takes it: no NUL, no lone surrogate, cut with a mark."""
    text = text if len(text) <= most else text[: most - 1] + "…"
    text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
