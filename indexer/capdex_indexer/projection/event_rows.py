"""Rows to insert for one log of the registry, as far as the event alone decides them.

A hostile event cannot stop the index: an undecodable one is kept with its error, an impossible
release is kept as rejected, and texts are made fit for every database. No database is imported
here, since worker processes use this module, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from capdex.errors import InvalidInput
from capdex.package import RejectedPackage, claimed_uri
from capdex.problems import Availability, Reason, Verdict
from capdex.registry.events import (
    Announcement,
    Committed,
    DeprecationChanged,
    Event,
    MaintainerChanged,
    NameDeprecationChanged,
    NameEvent,
    Published,
    Sponsored,
    TransferCancelled,
    TransferOffered,
    Transferred,
    Voted,
    YankChanged,
    decode,
)
from capdex.registry.logs import RawLog
from capdex.uri import PREFIX, CapabilityURI, check_name, name_id
from capdex.version import Version

MAX_TEXT_CHARS: Final = 256  # twice the longest cap_uri, semver or CID that follows the protocol
MAX_REASON_CHARS: Final = 1024
Row = tuple[Any, ...]

# The columns of a release that its announcement fills.
ANNOUNCED: Final = (
    *("sequence", "name", "cap_uri", "semver", "stable", "precedence", "cid", "sha256"),
    "publisher",
)
Announced = tuple[str, str, str, bool, str, str, bytes, str]  # all of them but the sequence


class Claim(NamedTuple):
    """The claim of a `Published` event: its URI if it is valid, and its rejection if it has one."""

    event: Published
    uri: CapabilityURI | None
    rejected: RejectedPackage | None
    repeats: bool = False  # the version was announced before

    @property
    def stands(self) -> bool:
        """True if this is the release of the version it names, served or not.

        Only a claim that stands can be resolved to: its URI, version and name id agree.
        """
        if self.uri is None or self.repeats:
            return False
        return self.rejected is None or str(self.uri.version) == self.event.announcement.semver


def read_event(log: RawLog, chain_id: int) -> Event | InvalidInput:
    """Return the event of a log, or the error why it cannot be decoded."""
    try:
        return decode(log, chain_id)
    except InvalidInput as error:
        return error


def claim(event: Published) -> Claim:
    """Check a publication by its event (`capdex.package.claimed_uri`) and the hash of its name."""
    uri, rejected = claimed_uri(event.announcement)
    if uri is not None and name_id(uri.name) != event.name_id:
        message = f"the event's name id is not the hash of {uri.name}"
        return Claim(event, None, rejected or refusal(event.announcement, message))
    return Claim(event, uri, rejected)


def repeated(again: Claim) -> Claim:
    """Return the rejected claim of a version that was announced before: the first one stands."""
    announcement = again.event.announcement
    message = f"{announcement.cap_uri} was announced before; the first announcement stands"
    return again._replace(rejected=refusal(announcement, message), repeats=True)


def refusal(announcement: Announcement, message: str) -> RejectedPackage:
    """Return a rejection for the contents of the event itself."""
    return RejectedPackage(announcement, Verdict.MISMATCH, Reason.BAD_EVENT, message)


def announced(
    name: str, publisher: str, cap_uri: str, semver: str, cid: str, sha256: bytes
) -> Announced:
    """Return the columns ANNOUNCED, without the sequence, of a well-formed publication."""
    return (name, cap_uri, semver, *_ranked(semver), cid, sha256, publisher)


def queued(now: float) -> dict[str, Any]:
    """Return the columns beside ANNOUNCED of a release that waits for its first fetch."""
    return {
        "stands": True,
        "yanked": False,
        "yank_reason": "",
        "availability": Availability.PENDING.value,
        "verdict": None,
        "reason": None,
        "message": "",
        "attempts": 0,
        "queued_at": now,
        "due_at": 0.0,
    }


def release_row(claim: Claim, sequence: int, now: float) -> Row:
    """Return the values of ANNOUNCED and `queued` for any publication, also a rejected one."""
    announcement, uri, rejected = claim.event.announcement, claim.uri, claim.rejected
    if rejected is None:
        assert uri is not None  # noqa: S101 - a claim without a URI is always rejected
        return (sequence, *announced(uri.name, *announcement[1:]), *queued(now).values())
    refused = {
        "stands": claim.stands,
        "availability": None,
        "verdict": rejected.verdict.value,
        "reason": rejected.reason.value,
        "message": storable(rejected.message, MAX_REASON_CHARS),
    }
    return (
        sequence,
        uri.name if uri else None,
        storable(announcement.cap_uri),
        storable(announcement.semver),
        uri.version.stable if uri else False,
        precedence(uri.version) if uri else "",
        storable(announcement.cid),
        announcement.sha256,
        announcement.publisher,
        *(queued(now) | refused).values(),
    )


def concerned(
    event: YankChanged | DeprecationChanged | NameDeprecationChanged,
) -> CapabilityURI | None:
    """Return the release or name that an event is about; None unless its name id is the hash."""
    try:
        if isinstance(event, NameDeprecationChanged):
            uri = CapabilityURI(check_name(event.name))
            check_name(event.replaced_by or event.name)
        else:
            uri = CapabilityURI.exact(f"{PREFIX}{event.name}@{event.semver}")
    except InvalidInput:
        return None
    return uri if name_id(uri.name) == event.name_id else None


def yank_row(event: YankChanged, uri: CapabilityURI, sequence: int) -> Row:
    """Return the row of one yank or un-yank."""
    return sequence, str(uri), event.yanked, storable(event.reason, MAX_REASON_CHARS)


def deprecation_row(
    event: DeprecationChanged | NameDeprecationChanged, uri: CapabilityURI, sequence: int
) -> Row:
    """Return the row of one deprecation, or of its end."""
    instead = event.replaced_by if isinstance(event, NameDeprecationChanged) else ""
    message = storable(event.message, MAX_REASON_CHARS)
    return sequence, str(uri), event.deprecated, message, instead


def ownership_row(event: Committed | NameEvent, sequence: int) -> Row | None:
    """Return the row of a change of a name; None if the name is not the one hashed."""
    kind, account = _owning(event)
    if isinstance(event, Committed):
        return sequence, None, kind, event.by, None
    return (sequence, event.name, kind, event.by, account) if _is_of(event) else None


def vote_row(event: Voted, sequence: int) -> Row | None:
    """Return the row of a vote; None if it is invalid or its name is not the one hashed."""
    if not _is_of(event) or event.vote not in (-1, 0, 1):
        return None
    return sequence, event.name, event.by, event.vote, str(event.weight)


def _owning(event: Committed | NameEvent) -> tuple[str, str | None]:
    """Return the kind of change, and the account it names besides the one that made it."""
    match event:
        case MaintainerChanged():
            return "maintainer_added" if event.maintains else "maintainer_removed", event.account
        case TransferOffered():
            return "transfer_offered", event.recipient
        case TransferCancelled():
            return "transfer_cancelled", None
        case Transferred():
            return "transferred", event.former_owner
        case Sponsored():
            return "sponsored", event.sender
        case _:
            return type(event).__name__.lower(), None


def _is_of(event: Any) -> bool:
    try:
        return bool(name_id(check_name(event.name)) == event.name_id)
    except InvalidInput:
        return False


@lru_cache(maxsize=16_384)  # many releases have a version that others have
def _ranked(semver: str) -> tuple[bool, str]:
    version = Version.parse(semver)
    return version.stable, precedence(version)


def precedence(version: Version) -> str:
    """Return a text that sorts by code point as SemVer §11 orders versions."""
    core = f"{version.major:015d}.{version.minor:015d}.{version.patch:015d}"
    if version.stable:
        return core + "~"
    # "!" sorts below every character of an identifier, so a prefix sorts below what it begins
    parts = (f"0{x:015d}" if isinstance(x, int) else f"1{x}" for x in version.prerelease)
    return core + "!" + "!".join(parts)


def storable(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return the text as every database takes it: no NUL, no lone surrogate, cut with a mark."""
    text = text if len(text) <= most else text[: most - 1] + "…"
    text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
