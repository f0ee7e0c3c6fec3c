"""Write package files: start one, validate it as a node would, sign it as its author."""

from publisher.authoring.package_file import PackageFile
from publisher.authoring.scaffold import PackageKind, scaffold

__all__ = ["PackageFile", "PackageKind", "scaffold"]
