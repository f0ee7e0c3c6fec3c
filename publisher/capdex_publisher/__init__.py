"""Authoring and publishing: scaffold, validate, sign, upload, send, wait."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_publisher.authoring.scaffold import PackageKind as PackageKind
    from capdex_publisher.authoring.scaffold import scaffold as scaffold
    from capdex_publisher.authoring.sign import sign as sign
    from capdex_publisher.authoring.validate import PackageFile as PackageFile
    from capdex_publisher.authoring.validate import PackageValidation as PackageValidation
    from capdex_publisher.authoring.validate import validate as validate
    from capdex_publisher.keys.keystore import load_account as load_account
    from capdex_publisher.keys.keystore import load_did_key as load_did_key
    from capdex_publisher.keys.secret import read_passphrase as read_passphrase
    from capdex_publisher.registry.audit import NameAudit as NameAudit
    from capdex_publisher.registry.audit import audit as audit
    from capdex_publisher.registry.registry import Registry as Registry
    from capdex_publisher.registry.verified_get import VerifiedDownload as VerifiedDownload
    from capdex_publisher.registry.verified_get import get_verified as get_verified
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
