"""The capdex protocol, pure: bytes and values in, values out."""

__version__ = "0.4.0"
