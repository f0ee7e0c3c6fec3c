"""Judging a package: the announcement and the bytes in, a verified or a rejected package out (P6).

Only `judge` (and `verify`, which raises instead of returning a rejection) can make a
`VerifiedPackage`; whatever stores or installs one can rely on every check listed in it. The verdict
is a pure function of the bytes and the announcement.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from capdex import manifest as manifest_
from capdex import signing
from capdex.cid import RAW, Cid
from capdex.errors import InvalidInput, VerificationFailure
from capdex.events import Announcement
from capdex.manifest import Manifest
from capdex.problems import REASONS, Problem, Reason, Severity, Verdict
from capdex.uri import CapabilityURI

RULES_VERSION: Final = 1  # raised whenever the same bytes could get another verdict

_MINT = object()


@dataclass(frozen=True, slots=True)
class Check:
    """One step of verification, for people: what was compared, and whether it held."""

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
    uri: CapabilityURI
    manifest: Manifest
    signer: str
    checks: tuple[Check, ...]
    problems: tuple[Problem, ...]
    data: bytes
    mint: object

    verdict: Final = Verdict.VERIFIED
    reason: Final = None

    def __post_init__(self) -> None:
        if self.mint is not _MINT:
            raise TypeError("only capdex.package.judge makes a VerifiedPackage")


@dataclass(frozen=True, slots=True)
class RejectedPackage:
    """A package that is not verified, with its verdict and the reason why.

    `manifest` and `signer` are there as far as the bytes could be read and are claims only.
    """

    announcement: Announcement
    verdict: Verdict
    reason: Reason
    message: str
    checks: tuple[Check, ...] = ()
    problems: tuple[Problem, ...] = ()
    manifest: Manifest | None = None
    signer: str | None = None
    data: bytes | None = None

    def failure(self) -> VerificationFailure:
        """This rejection as the error that `verify` raises."""
        return VerificationFailure(
            f"{self.announcement.cap_uri}: {self.message}",
            why=REASONS[self.reason].meaning,
            fix=REASONS[self.reason].hint,
            details={
                "verdict": str(self.verdict),
                "reason": str(self.reason),
                "problems": [problem.to_json() for problem in self.problems],
            },
        )
