"""Authoring and publishing: scaffold, validate, sign, upload, send, wait."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_publisher.authoring.scaffold import PackageKind, scaffold
    from capdex_publisher.authoring.sign import sign
    from capdex_publisher.authoring.validate import PackageFile, PackageValidation, validate
    from capdex_publisher.keys.keystore import load_account, load_did_key
    from capdex_publisher.keys.secret import Secret, read_passphrase
    from capdex_publisher.registry.audit import NameAudit, audit
    from capdex_publisher.registry.registry import Registry
    from capdex_publisher.registry.verified_get import VerifiedDownload, get_verified

__all__ = [
    "NameAudit",
    "PackageFile",
    "PackageKind",
    "PackageValidation",
    "Registry",
    "Secret",
    "VerifiedDownload",
    "audit",
    "get_verified",
    "load_account",
    "load_did_key",
    "read_passphrase",
    "scaffold",
    "sign",
    "validate",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
