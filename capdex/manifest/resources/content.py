"""The bytes of a package's file compared with what the package says of them (P10c)."""

from __future__ import annotations

import hashlib

from capdex.errors import VerificationFailure
from capdex.manifest.resources.resource import Resource
from capdex.problems import Reason


def check_resource(resource: Resource, data: bytes) -> None:
    """Raise VerificationFailure, with the path, if `data` is not the file.

    Whoever fetches a file hashes each block against the CID (`capdex.ipld.unixfs.Assembly`); the
    sha256 compared here is that of the whole file, so a CID of other bytes fails as well.
    """
    found = hashlib.sha256(data).digest()
    if len(data) == resource.size and found == resource.sha256:
        return
    why = f"it has sha256 {found.hex()}, the package says {resource.sha256.hex()}"
    if len(data) != resource.size:
        why = f"it has {len(data)} bytes, the package says {resource.size}"
    raise VerificationFailure(
        f"the file {resource.path} is not the one that the package names",
        why=why,
        fix="fetch it from another source, or ask the author for a new version",
        details={"reason": str(Reason.SHA256_MISMATCH), "path": resource.path},
    )
