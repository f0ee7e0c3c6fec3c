"""Authoring and publishing: scaffold, validate, sign, upload, send, wait."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from publisher.authoring.scaffold import PackageKind, scaffold
    from publisher.authoring.sign import sign
    from publisher.authoring.validate import PackageFile, PackageValidation, validate
    from publisher.keys.keystore import load_account, load_did_key
    from publisher.keys.secret import read_passphrase
    from publisher.registry.audit import NameAudit, audit
    from publisher.registry.registry import Registry
    from publisher.registry.verified_get import VerifiedDownload, get_verified

__all__ = [
    "NameAudit",
    "PackageFile",
    "PackageKind",
    "PackageValidation",
    "Registry",
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
    __getattr__ = door(
        __name__,
        {
            "publisher.authoring.scaffold": ["PackageKind", "scaffold"],
            "publisher.authoring.sign": ["sign"],
            "publisher.authoring.validate": ["PackageFile", "PackageValidation", "validate"],
            "publisher.keys.keystore": ["load_account", "load_did_key"],
            "publisher.keys.secret": ["read_passphrase"],
            "publisher.registry.audit": ["NameAudit", "audit"],
            "publisher.registry.registry": ["Registry"],
            "publisher.registry.verified_get": ["VerifiedDownload", "get_verified"],
        },
    )
