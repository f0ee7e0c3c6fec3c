"""The files that a package names in `resources`: their list, paths and bytes (P10c)."""

from capdex.manifest.resources.content import check_resource
from capdex.manifest.resources.paths import path_fault
from capdex.manifest.resources.resource import Resource, read_resources

__all__ = ["Resource", "check_resource", "path_fault", "read_resources"]
