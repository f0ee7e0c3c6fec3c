"""The capdex protocol: bytes and values in, values out (no sockets, clock, environment, database)."""

__version__ = "0.1.0"
