"""Judge a package: the announcement and the bytes in, a verified or a rejected package out (P6).

Only `judge` (and `verify`, which raises instead of returning a rejection) can make a
`VerifiedPackage`; whatever stores or installs one can rely on every check listed in it. The verdict
is a pure function of the bytes and the announcement.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from capdex import did, signing
from capdex.codes import reason_codes
from capdex.errors import CapdexError, InvalidInput, VerificationFailure
from capdex.ipld.cid import RAW, Cid, spells
from capdex.manifest.manifest import Manifest, ManifestReading, read
from capdex.problems import Problem, Reason, Severity, Verdict
from capdex.registry.events import Announcement
from capdex.uri import PREFIX, CapabilityURI, check_name
from capdex.version import Version

RULES_VERSION: Final = 9  # raised whenever the same bytes could get another verdict or label

_MINT: Final = object()  # known to this module alone: what makes a VerifiedPackage a proof


class Check(NamedTuple):
    """A step of verification for people: its name, its result and a detail."""

    name: str
    ok: bool
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """The check as answers show it."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class VerifiedPackage:
    """A package whose every check held. Only `judge` makes one."""

    announcement: Announcement
    manifest: Manifest
    signer: str
    checks: tuple[Check, ...]
    problems: tuple[Problem, ...]
    data: bytes
    mint: object = field(repr=False, compare=False)

    verdict: ClassVar[Verdict] = Verdict.VERIFIED

    def __post_init__(self) -> None:
        if self.mint is not _MINT:
            raise TypeError("only capdex.package.judge makes a VerifiedPackage")


@dataclass(frozen=True, slots=True)
class RejectedPackage:
    """A package that is not verified, with its verdict and the reason why.

    `manifest` and `signer` are there as far as the bytes could be read; they are claims only.
    """

    announcement: Announcement
    verdict: Verdict
    reason: Reason
    message: str
    checks: tuple[Check, ...] = ()
    problems: tuple[Problem, ...] = ()
    manifest: Manifest | None = None
    signer: str | None = None
    data: bytes | None = field(default=None, repr=False)

    def failure(self) -> VerificationFailure:
        """This rejection as the error that `verify` raises."""
        return VerificationFailure(
            f"{self.announcement.cap_uri}: {self.message}",
            why=reason_codes()[self.reason].meaning,
            fix=reason_codes()[self.reason].hint,
            details={
                "verdict": str(self.verdict),
                "reason": str(self.reason),
                "problems": [problem.to_json() for problem in self.problems],
            },
        )


class _Rejection(Exception):
    """Ends a judgement early; never leaves this module."""

    def __init__(self, verdict: Verdict, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.verdict, self.reason, self.message = verdict, reason, message


class _Judgement:
    """Checks made so far, from which a rejection or a verified package is built."""

    def __init__(self, announcement: Announcement) -> None:
        self.announcement = announcement
        self.checks: list[Check] = []

    def require(
        self, name: str, held: bool, verdict: Verdict, reason: Reason, message: str, detail: str
    ) -> None:
        if not held:
            raise self.reject(name, verdict, reason, message)
        self.checks.append(Check(name, True, detail))

    def reject(self, name: str, verdict: Verdict, reason: Reason, message: str) -> _Rejection:
        self.checks.append(Check(name, False, message))
        return _Rejection(verdict, reason, message)


def fast_name(cap_uri: str, semver: str, cid: str, sha256: bytes) -> str | None:
    """Return the name in an announcement that certainly passes `judge_announcement`.

    A fast path for raw CIDs, which nearly all announcements have; None: not decided here.
    """
    name, _, version = cap_uri[len(PREFIX) :].partition("@")
    if version != semver or not cap_uri.startswith(PREFIX) or not spells(cid, sha256):
        return None
    try:
        Version.parse(version)
        return check_name(name)
    except InvalidInput:
        return None


def claimed_uri(announcement: Announcement) -> tuple[CapabilityURI | None, RejectedPackage | None]:
    """The URI that an announcement names, if it names one, and what `judge_announcement` says."""
    _, _, cap_uri, semver, cid, sha256 = announcement
    if name := fast_name(cap_uri, semver, cid, sha256):
        return CapabilityURI(name, Version.parse(semver)), None
    try:
        uri = CapabilityURI.exact(cap_uri)
    except InvalidInput:
        return None, judge_announcement(announcement)
    return uri, judge_announcement(announcement)


def judge_announcement(announcement: Announcement) -> RejectedPackage | None:
    """Judge an announcement by itself, before anything is fetched: None if it may go on."""
    judgement = _Judgement(announcement)
    try:
        _check_announcement(judgement)
    except _Rejection as no:
        return RejectedPackage(
            announcement, no.verdict, no.reason, no.message, tuple(judgement.checks)
        )
    return None


def judge(
    announcement: Announcement, file: bytes | ManifestReading
) -> VerifiedPackage | RejectedPackage:
    """Judge the bytes of one announced release (P3-P6); never raises on content.

    A file that was read before is given as its reading, so that it is parsed once.
    """
    judgement = _Judgement(announcement)
    data = file.data if isinstance(file, ManifestReading) else file
    reading: ManifestReading | None = None
    signer: str | None = None
    try:
        _check_announcement(judgement)
        _check_bytes(judgement, data)
        reading = file if isinstance(file, ManifestReading) else read(file)
        manifest = _check_manifest(judgement, reading)
        signer = _check_signature(judgement, manifest, reading)
        _check_binding(judgement, manifest, signer)
    except _Rejection as no:
        return RejectedPackage(
            announcement,
            no.verdict,
            no.reason,
            no.message,
            tuple(judgement.checks),
            reading.problems if reading else (),
            reading.manifest if reading else None,
            signer,
            data,
        )
    checks = tuple(judgement.checks)
    return VerifiedPackage(announcement, manifest, signer, checks, reading.problems, data, _MINT)


def verify(announcement: Announcement, file: bytes | ManifestReading) -> VerifiedPackage:
    """Judge like `judge`; raise a rejection as VerificationFailure."""
    judged = judge(announcement, file)
    if isinstance(judged, RejectedPackage):
        raise judged.failure()
    return judged


def _check_announcement(judgement: _Judgement) -> None:
    event = judgement.announcement
    try:
        uri = CapabilityURI.exact(event.cap_uri)
    except InvalidInput as error:
        raise judgement.reject("event", Verdict.MISMATCH, Reason.BAD_EVENT, error.message) from None
    version = str(uri.version)
    judgement.require(
        "event",
        version == event.semver,
        Verdict.MISMATCH,
        Reason.VERSION_MISMATCH,
        f"the event says version {event.semver[:80]!r}, its cap_uri {version!r}",
        event.cap_uri,
    )
    try:
        cid = Cid.parse(event.cid)
    except InvalidInput as error:
        why = f"{error.message}: {error.why}"
        raise judgement.reject("cid", Verdict.MISMATCH, Reason.BAD_CID, why) from None
    judgement.require(
        "cid",
        cid.codec != RAW or cid.digest == event.sha256,
        Verdict.MISMATCH,
        Reason.CID_MISMATCH,
        f"the CID holds sha256 {cid.digest.hex()}, the event says {event.sha256.hex()}",
        event.cid,
    )


def _check_bytes(judgement: _Judgement, data: bytes) -> None:
    announced, digest = judgement.announcement.sha256, hashlib.sha256(data).digest()
    judgement.require(
        "sha256",
        digest == announced,
        Verdict.MISMATCH,
        Reason.SHA256_MISMATCH,
        f"the bytes have sha256 {digest.hex()}, the chain says {announced.hex()}",
        digest.hex(),
    )


def _check_manifest(judgement: _Judgement, reading: ManifestReading) -> Manifest:
    if reading.manifest is None:
        errors = [x for x in reading.problems if x.severity is Severity.ERROR]
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = f"{first.path}: " if first.path else ""
        message = f"{where}{first.message}{more}"
        raise judgement.reject("manifest", Verdict.INVALID, first.code, message)
    judgement.checks.append(Check("manifest", True, "well-formed"))
    claimed, announced = str(reading.manifest.uri), judgement.announcement.cap_uri
    judgement.require(
        "id",
        claimed == announced,
        Verdict.MISMATCH,
        Reason.ID_MISMATCH,
        f"metadata.id is {claimed}, the event says {announced}",
        claimed,
    )
    return reading.manifest


def _check_signature(judgement: _Judgement, manifest: Manifest, reading: ManifestReading) -> str:
    if manifest.signature is None:
        message = "metadata.signature is missing"
        raise judgement.reject("signature", Verdict.UNSIGNED, Reason.UNSIGNED, message)
    author = manifest.author
    if author is None:
        message = "metadata.author is missing"
        raise judgement.reject("signature", Verdict.INVALID, Reason.MISSING_AUTHOR, message)
    try:
        signature = signing.decode_signature(manifest.signature)
        signed = signing.signing_input(reading.yaml, str(manifest.uri))
        signing.verify_signature(author, signed, signature)
    except CapdexError as error:
        reason = Reason((error.details or {})["reason"])
        unresolved = reason is Reason.UNKNOWN_DID_METHOD
        verdict = Verdict.UNRESOLVABLE if unresolved else Verdict.INVALID
        raise judgement.reject("signature", verdict, reason, error.message) from None
    judgement.checks.append(Check("signature", True, author))
    return author


def _check_binding(judgement: _Judgement, manifest: Manifest, signer: str) -> None:
    event = judgement.announcement
    account = f"eip155:{event.chain_id}:{event.publisher}"  # equal to no account if malformed
    by_author = did.same_account(signer, account)
    held = by_author or (
        manifest.publisher is not None and did.same_account(manifest.publisher, account)
    )
    judgement.require(
        "binding",
        held,
        Verdict.SIGNED,
        Reason.NOT_BOUND,
        f"published by {account}, but the package names {manifest.publisher or 'no publisher'}",
        f"{'the author is' if by_author else 'metadata.publisher names'} {account}",
    )
