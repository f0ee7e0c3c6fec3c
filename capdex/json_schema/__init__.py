"""JSON Schema 2020-12 as packages use it (P8): strict JSON and the rules of the meta-schema."""

from capdex.json_schema.schema import BadJson, check_package_schema, check_schema, parse_json

__all__ = ["BadJson", "check_package_schema", "check_schema", "parse_json"]
