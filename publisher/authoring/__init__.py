"""Write package files: start one, validate it as a node would, sign it as its author."""

from publisher.authoring.scaffold import PackageKind, scaffold
from publisher.authoring.validate import PackageFile

__all__ = ["PackageFile", "PackageKind", "scaffold"]
