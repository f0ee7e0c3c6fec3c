"""Strict YAML (P7): one JSON-able value of a file, with the place of each part in its bytes."""

from capdex.yaml.reader import YamlReading, read_yaml
from capdex.yaml.source_map import Mapping, Scalar, Style

__all__ = ["Mapping", "Scalar", "Style", "YamlReading", "read_yaml"]
