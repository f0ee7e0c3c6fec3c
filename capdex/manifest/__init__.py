"""The manifest of a package: its fields, read and checked from the bytes of a file (P7 to P10a)."""

from capdex.manifest.manifest import Manifest, ManifestReading, read
from capdex.manifest.tools import Tool
from capdex.manifest.triggers import Trigger

__all__ = ["Manifest", "ManifestReading", "Tool", "Trigger", "read"]
