"""The capdex protocol, pure: bytes and values in, values out."""

from typing import TYPE_CHECKING

from capdex.door import door

__version__ = "0.5.0.dev0"

if TYPE_CHECKING:
    from capdex.errors import CapdexError as CapdexError
    from capdex.errors import Code as Code
    from capdex.errors import InvalidInput as InvalidInput
    from capdex.errors import Refused as Refused
    from capdex.errors import Unavailable as Unavailable
    from capdex.errors import UsageError as UsageError
    from capdex.errors import VerificationFailure as VerificationFailure
    from capdex.manifest.manifest import Manifest as Manifest
    from capdex.package import RejectedPackage as RejectedPackage
    from capdex.package import VerifiedPackage as VerifiedPackage
    from capdex.package import judge as judge
    from capdex.package import verify as verify
    from capdex.problems import Reason as Reason
    from capdex.problems import Verdict as Verdict
    from capdex.registry.events import Announcement as Announcement
    from capdex.uri import CapabilityURI as CapabilityURI
    from capdex.version import Version as Version
    from capdex.version import VersionRange as VersionRange
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
