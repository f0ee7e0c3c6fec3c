"""Tool bindings (P10): how a runtime executes the tools that are not built in."""

from capdex.manifest.bindings.binding import DID, FIELDS, MAX_FIELD_CHARS, read_bindings
from capdex.manifest.bindings.contacts import SecretUse, carried_secrets, contacts, secret_uses
from capdex.manifest.bindings.placeholder import PLACEHOLDER

__all__ = [
    "DID",
    "FIELDS",
    "MAX_FIELD_CHARS",
    "PLACEHOLDER",
    "SecretUse",
    "carried_secrets",
    "contacts",
    "read_bindings",
    "secret_uses",
]
