"""Write package files: start one, validate it as a node would, sign it as its author."""

from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.validate import PackageFile

__all__ = ["PackageFile", "PackageKind", "scaffold"]
