"""The capdex protocol, pure: bytes and values in, values out."""

from typing import TYPE_CHECKING

from capdex.door import door

__version__ = "0.5.0.dev0"

if TYPE_CHECKING:
    from capdex.errors import (
        CapdexError,
        Code,
        InvalidInput,
        Refused,
        Unavailable,
        UsageError,
        VerificationFailure,
    )
    from capdex.manifest.manifest import Manifest
    from capdex.package import RejectedPackage, VerifiedPackage, judge, verify
    from capdex.problems import Reason, Verdict
    from capdex.registry.events import Announcement
    from capdex.uri import CapabilityURI
    from capdex.version import Version, VersionRange

__all__ = [
    "Announcement",
    "CapabilityURI",
    "CapdexError",
    "Code",
    "InvalidInput",
    "Manifest",
    "Reason",
    "Refused",
    "RejectedPackage",
    "Unavailable",
    "UsageError",
    "Verdict",
    "VerificationFailure",
    "VerifiedPackage",
    "Version",
    "VersionRange",
    "judge",
    "verify",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
